//! Sizes, durations and spelling suggestions, for command lines and the configuration.

pub use cosched_units::{ParseError, duration, size_bytes};

/// The candidate that `word` most likely meant, if one is close: at most one mistake per three
/// letters.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let limit = (word.chars().count() / 3).max(1);
    let distance = |candidate: &str| strsim::damerau_levenshtein(&word, &candidate.to_lowercase());
    let scored = candidates.into_iter().map(|candidate| (distance(candidate), candidate));
    scored.filter(|(distance, _)| *distance <= limit).min_by_key(|(distance, _)| *distance).map(|(_, c)| c)
}

/// A part of the time, written as a percentage: more than 0% and at most 100%.
pub fn part_of_time(text: &str) -> Option<f64> {
    let percent = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    percent.map(|percent| percent / 100.0).filter(|part| *part > 0.0 && *part <= 1.0)
}

/// Whether a text matches a pattern, in which `*` stands for any number of characters and `one`, if there is such a character, for one.
/// At worst it takes time proportional to the product of both lengths.
pub fn matches(pattern: &str, text: &str, one: Option<char>) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    // Where to continue after the last star: there, with a longer match of the star.
    let (mut p, mut t, mut star) = (0, 0, None);
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p + 1, t));
                p += 1;
            }
            Some(c) if Some(*c) == one || *c == text[t] => (p, t) = (p + 1, t + 1),
            _ => match star {
                None => return false,
                Some((after, from)) => {
                    star = Some((after, from + 1));
                    (p, t) = (after, from + 1);
                }
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        let matching = [
            ("llama@*.service", "llama@1.service"),
            ("*", "x"),
            ("*", ""),
            ("*a*b", "xaayb"),
            ("", ""),
            ("a", "a"),
            ("*-é*2", "x-éy2"),
            ("a*b*c", "abbc"),
        ];
        let others = [
            ("llama@*.service", "llama@1.scope"),
            ("*a*b", "xaayc"),
            ("", "x"),
            ("a", "ab"),
            ("x-*", "x"),
            ("a*b", "abc"),
        ];
        for one in [None, Some('?')] {
            assert!(matching.iter().all(|(pattern, text)| matches(pattern, text, one)));
            assert!(!others.iter().any(|(pattern, text)| matches(pattern, text, one)));
        }
        assert!(!matches(&"*a".repeat(500), &"a".repeat(499), None), "and in time");
    }

    #[test]
    fn a_character_may_stand_for_one() {
        assert!(matches("a?c*", "abc", Some('?')) && !matches("a?", "a", Some('?')));
        assert!(matches("a?c*", "a?cd", None) && !matches("a?c*", "abc", None));
    }

    #[test]
    fn nearest_spelling() {
        let classes = ["express", "interactive", "batch", "standby"];
        assert_eq!(nearest("bacth", classes), Some("batch"));
        assert_eq!(nearest("Interactiv", classes), Some("interactive"));
        assert_eq!(nearest("stanby", classes), Some("standby"));
        assert_eq!(nearest("urgent", classes), None);
        assert_eq!(nearest("", classes), None);
    }
}
