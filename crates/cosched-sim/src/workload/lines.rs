//! Lines of a text of unknown origin: numbered, of bounded length, in any bytes.

use std::io::{self, BufRead, Read};

/// Longer lines are invalid in every format that is read here, and would only fill the memory.
pub(crate) const LINE_BYTES_MAX: usize = 65_536;

/// The lines of a reader, one at a time.
pub(crate) struct Lines<R> {
    input: R,
    buffer: Vec<u8>,
    number: u64,
}

/// One line, without its end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    /// Counted from 1.
    pub(crate) number: u64,
    /// Its text; bytes that are not UTF-8 are replaced.
    pub(crate) text: std::borrow::Cow<'a, str>,
    /// Whether the line was longer than [`LINE_BYTES_MAX`]; the rest was skipped.
    pub(crate) is_cut: bool,
    /// Whether the text ends here without a line break.
    pub(crate) is_open: bool,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(input: R) -> Lines<R> {
        Lines { input, buffer: Vec::new(), number: 0 }
    }

    /// The next line; `None` at the end.
    pub(crate) fn next_line(&mut self) -> io::Result<Option<Line<'_>>> {
        self.buffer.clear();
        let limit = LINE_BYTES_MAX as u64 + 1;
        if (&mut self.input).take(limit).read_until(b'\n', &mut self.buffer)? == 0 {
            return Ok(None);
        }
        self.number += 1;
        let is_cut = self.buffer.len() > LINE_BYTES_MAX && self.buffer.last() != Some(&b'\n');
        if is_cut {
            self.skip_rest()?;
        }
        let is_open = !is_cut && self.buffer.last() != Some(&b'\n');
        let mut bytes = &self.buffer[..];
        while let [rest @ .., b'\n' | b'\r'] = bytes {
            bytes = rest;
        }
        if self.number == 1 {
            bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        }
        Ok(Some(Line { number: self.number, text: String::from_utf8_lossy(bytes), is_cut, is_open }))
    }

    fn skip_rest(&mut self) -> io::Result<()> {
        loop {
            let chunk = self.input.fill_buf()?;
            let (used, at_end) = match chunk.iter().position(|byte| *byte == b'\n') {
                Some(place) => (place + 1, true),
                None => (chunk.len(), chunk.is_empty()),
            };
            self.input.consume(used);
            if at_end {
                return Ok(());
            }
        }
    }
}

/// A part of a text that fits into a message.
pub(crate) fn excerpt(text: &str) -> String {
    const CHARS_MAX: usize = 80;
    let clean = |c: char| if c.is_control() { '·' } else { c };
    if text.chars().count() <= CHARS_MAX {
        return text.chars().map(clean).collect();
    }
    text.chars().take(CHARS_MAX - 1).map(clean).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_numbered_and_end_anyhow() {
        let mut lines = Lines::new(&b"\xef\xbb\xbfa\r\n\n\xffb"[..]);
        let mut seen = Vec::new();
        while let Some(line) = lines.next_line().unwrap() {
            seen.push((line.number, line.text.into_owned(), line.is_cut, line.is_open));
        }
        let expected = [
            (1, "a".to_string(), false, false),
            (2, String::new(), false, false),
            (3, "\u{fffd}b".to_string(), false, true),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn endless_lines_are_cut_and_the_next_one_is_whole() {
        let mut text = vec![b'x'; LINE_BYTES_MAX * 3];
        text.extend_from_slice(b"\nnext\n");
        let mut lines = Lines::new(&text[..]);
        let first = lines.next_line().unwrap().unwrap();
        assert!(first.is_cut && first.text.len() <= LINE_BYTES_MAX + 1);
        assert_eq!(lines.next_line().unwrap().unwrap().text, "next");
        assert_eq!(lines.next_line().unwrap(), None);
        let mut exact = vec![b'x'; LINE_BYTES_MAX];
        exact.push(b'\n');
        assert!(!Lines::new(&exact[..]).next_line().unwrap().unwrap().is_cut);
    }

    #[test]
    fn excerpts_are_short_and_printable() {
        assert_eq!(excerpt("a\tb"), "a·b");
        assert_eq!(excerpt(&"ä".repeat(500)).chars().count(), 80);
    }
}
