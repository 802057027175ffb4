//! The position of a mistake in a configuration file: line, column, key, and the line itself with carets below it.

use super::{ConfigError, error};
use std::ops::Range;
use toml::de::{DeTable, DeValue};

/// The length of the shown part of a line, in characters.
const SHOWN: usize = 100;

/// Turns the parser's message into ours; for an unknown key it names the nearest key of its table.
pub(super) fn syntax(text: &str, e: &toml::de::Error) -> ConfigError {
    let message = e.message().trim();
    let span = e.span().unwrap_or(0..0);
    let all = "cosched.toml(5) has every key with its default.".to_owned();
    let made = match message.strip_prefix("unknown field `").and_then(|rest| rest.split_once('`')) {
        Some((key, rest)) => {
            let keys: Vec<&str> = rest.split('`').skip(1).step_by(2).collect();
            let near = cosched_api::parse::nearest(key, keys);
            let hint = near.map_or(String::new(), |near| format!("Did you mean `{near}`? ")) + &all;
            error(format!("unknown key `{key}`"), "no key has this name here", hint)
        }
        None => match key_before(text, span.start) {
            Some(key) => error(format!("the value of `{key}` cannot be read"), message, all),
            None => error("this is not a valid configuration", message, all),
        },
    };
    ConfigError { at: Some(Box::new(span)), ..made }
}

/// The key of the value that begins at `at`, if a value begins there.
fn key_before(text: &str, at: usize) -> Option<&str> {
    let line = text.get(..at)?.rsplit('\n').next()?;
    let key = line.split_once('=')?.0.trim();
    Some(key).filter(|key| !key.is_empty() && !key.starts_with('#'))
}

/// The position of the key that an error about a value names first, as `` `reserve = 2` `` or `` `shares.batch` ``.
pub(super) fn of_value(text: &str, what: &str) -> Option<Range<usize>> {
    let quoted = what.split('`').nth(1)?;
    let path = quoted.split([' ', '=']).next()?;
    let key = path.rsplit('.').next()?;
    let table = DeTable::parse(text).ok()?;
    let mut places = Vec::new();
    keys(table.get_ref(), key, &mut places);
    // If several keys have this name, the one whose value the message quotes.
    let told = |(_, value): &&(Range<usize>, Range<usize>)| {
        let value = text[value.clone()].trim_matches('"');
        !value.is_empty() && what.contains(value)
    };
    places.iter().find(told).or(places.first()).map(|(key, value)| key.start..value.end)
}

fn keys(table: &DeTable<'_>, wanted: &str, places: &mut Vec<(Range<usize>, Range<usize>)>) {
    for (key, value) in table {
        if key.get_ref() == wanted {
            places.push((key.span(), value.span()));
        }
        below(value.get_ref(), wanted, places);
    }
}

fn below(value: &DeValue<'_>, wanted: &str, places: &mut Vec<(Range<usize>, Range<usize>)>) {
    match value {
        DeValue::Table(table) => keys(table, wanted, places),
        DeValue::Array(values) => values.iter().for_each(|value| below(value.get_ref(), wanted, places)),
        _ => (),
    }
}

/// `LINE:COLUMN`, and the line with carets below the wrong part; both count from 1, columns in characters.
pub(super) fn shown(text: &str, span: &Range<usize>) -> (String, String) {
    let start = span.start.min(text.len());
    let start = (0..=start).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let begin = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let line = text[..begin].matches('\n').count() + 1;
    let column = text[begin..start].chars().count() + 1;
    let whole = text[begin..].lines().next().unwrap_or_default();
    let safe = |c: char| if c.is_control() { ' ' } else { c };
    let source: String = whole.chars().take(SHOWN).map(safe).collect();
    // A mistake at the end of a line that ends with CR LF begins after the shown part.
    let end = span.end.clamp(start, start.max(begin + whole.len()));
    let meant = text.get(start..end).unwrap_or_default().trim_end().chars().count().max(1);
    let carets = "^".repeat(meant.min((SHOWN + 1).saturating_sub(column)).max(1));
    let room = " ".repeat(line.to_string().len());
    let before = " ".repeat(column.min(SHOWN + 1) - 1);
    (format!("{line}:{column}"), format!("  {line} | {source}\n  {room} | {before}{carets}"))
}

#[cfg(test)]
mod tests {
    use super::super::Config;

    #[test]
    fn every_mistake_is_shown_where_it_is() {
        for (text, place, caret) in [
            ("policy = \"gang\"\nslot_lenght = \"50ms\"", "2:1", "  2 | slot_lenght = \"50ms\"\n    | ^^^^^^^^^^^\n"),
            ("# ä\nslot_length = 50", "2:15", "  2 | slot_length = 50\n    |               ^^\n"),
            ("policy = \"gang\nlease = \"1s\"", "1:15", "  1 | policy = \"gang\n"),
            ("policy = \"gang\r\nlease = \"1s\"", "1:1", "  1 | policy = \"gang\n"),
            ("\n[shares]\nbatch = 0", "3:1", "  3 | batch = 0\n    | ^^^^^^^^^\n"),
            ("[limits]\nconections = 1", "2:1", "    | ^^^^^^^^^^\n"),
            ("slot_length = \"9ms\"", "1:1", "    | ^^^^^^^^^^^^^^^^^^^\n"),
            (
                "[[queue]]\nname = \"a\"\ntime_max = \"1h\"\n[[queue]]\nname = \"b\"\ntime_max = \"x\"",
                "6:1",
                "  6 | time_max = \"x\"\n",
            ),
        ] {
            let e = Config::parse(text).unwrap_err();
            assert!(e.place.starts_with(place), "{text}: {} at {}", e.what, e.place);
            assert!(format!("{e}").contains(caret), "{text}:\n{e}");
        }
        let e = Config::parse("[limits]\nconections = 1").unwrap_err();
        assert!(e.hint.contains("`connections`") && e.why.len() < 80, "{e}");
        let e = Config::parse("slot_length = 50").unwrap_err();
        assert!(e.what.contains("`slot_length`") && e.why.contains("expected a string"), "{e}");
    }

    #[test]
    fn odd_texts_are_shown_too() {
        for text in ["", "ä", "\u{1b}[2J = 1", "x = \"\u{0}\"", "=", "\"\"\"", "a = 1\r\na = 2"] {
            if let Err(e) = Config::parse(text) {
                assert!(!e.to_string().contains('\u{1b}'), "{e:?}");
            }
        }
        let long = format!("{} = 1", "x".repeat(10_000));
        assert!(Config::parse(&long).unwrap_err().line.len() < 300);
    }
}
