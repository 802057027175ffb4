//! Pictures that are drawn in place on a terminal. They fit its window: a line that wraps or a screen that scrolls would move what is drawn next.

use crate::out::{Failure, harmless, terminal_height, terminal_width, write};
use unicode_width::UnicodeWidthChar;

/// Draws a picture over the previous one: cursor home, each line cleared to its end, and everything below cleared. No flicker.
pub(crate) fn draw(text: &str) -> Result<(), Failure> {
    write(picture("\x1b[H", &shown(text)).as_bytes())
}

/// The same over the last `lines` lines; returns how many lines it has.
pub(crate) fn draw_over(lines: usize, text: &str) -> Result<usize, Failure> {
    let up = if lines > 0 { format!("\x1b[{lines}A\r") } else { "\r".to_owned() };
    let shown = shown(text);
    write(picture(&up, &shown).as_bytes())?;
    Ok(shown.lines().count())
}

fn shown(text: &str) -> String {
    fit(&harmless(text), terminal_width(), terminal_height())
}

fn picture(place: &str, text: &str) -> String {
    format!("{place}{}\x1b[J", text.replace('\n', "\x1b[K\n"))
}

/// Leaves one line and one column free: the cursor's line, and the column at whose end a terminal waits to wrap.
fn fit(text: &str, columns: Option<usize>, rows: Option<usize>) -> String {
    let rows = rows.map_or(usize::MAX, |rows| rows.saturating_sub(1));
    let columns = columns.map_or(usize::MAX, |columns| columns.saturating_sub(1));
    text.lines().take(rows).map(|line| cut(line, columns) + "\n").collect()
}

/// Colours take no columns; those of a line that is cut are ended.
fn cut(line: &str, columns: usize) -> String {
    let mut cut = String::with_capacity(line.len());
    let (mut used, mut is_coloured, mut in_colour) = (0, false, false);
    for c in line.chars() {
        in_colour |= c == '\x1b';
        if in_colour {
            is_coloured = true;
            in_colour = c != 'm';
        } else {
            used += if c == '\t' { 8 - used % 8 } else { c.width().unwrap_or(0) };
            if used > columns {
                return cut + if is_coloured { "\x1b[0m" } else { "" };
            }
        }
        cut.push(c);
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_fits_its_window() {
        assert_eq!(fit("abcdef\nb\nc\n", Some(5), Some(3)), "abcd\nb\n");
        assert_eq!(fit("abcdef\nb", None, None), "abcdef\nb\n");
        assert_eq!(fit("", Some(5), Some(3)), "");
        assert_eq!(cut("\x1b[1mabc\x1b[0mdef", 4), "\x1b[1mabc\x1b[0md\x1b[0m");
        assert_eq!(cut("\x1b[1mabcd\x1b[0m", 4), "\x1b[1mabcd\x1b[0m", "only colours follow");
        assert_eq!(cut("夜间作业", 5), "夜间", "two columns each");
        assert_eq!(cut("\ta", 8), "\t");
    }

    #[test]
    fn nothing_of_another_s_text_steers_a_picture() {
        assert_eq!(picture("\x1b[2A\r", &harmless("a\x1b[2Jb\n")), "\x1b[2A\ra\\u{1b}[2Jb\x1b[K\n\x1b[J");
    }
}
