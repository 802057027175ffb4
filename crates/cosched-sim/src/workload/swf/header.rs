//! The header: `; Key: value` lines. Keys repeat, values contain text and continue over several lines.

/// The header comments of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SwfHeader {
    entries: Vec<(String, String)>,
    lines: u64,
}

impl SwfHeader {
    /// A header with these keys and values.
    pub fn new(entries: impl IntoIterator<Item = (String, String)>) -> SwfHeader {
        let entries: Vec<_> = entries.into_iter().collect();
        SwfHeader { lines: entries.len() as u64, entries }
    }

    /// Adds a line, from its `;` on.
    pub(super) fn add(&mut self, line: &str) {
        self.lines += 1;
        let text = line.trim_start_matches(';').trim();
        if let Some((key, value)) = key_and_value(text) {
            self.entries.push((key.to_string(), value.to_string()));
        } else if let (false, Some((_, value))) = (text.is_empty(), self.entries.last_mut()) {
            value.push('\n');
            value.push_str(text);
        }
    }

    /// Keys and values in the order of the file; the lines of a value are joined by line breaks.
    pub fn entries(&self) -> &[(String, String)] {
        &self.entries
    }

    /// The number of lines that begin with `;`, anywhere in the file.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// The first value of a key, in any case.
    pub fn get(&self, key: &str) -> Option<&str> {
        let found = self.entries.iter().find(|(name, _)| name.eq_ignore_ascii_case(key));
        found.map(|(_, value)| value.as_str())
    }

    /// The number at the beginning of a key's value, as in `338 (batch partition)`.
    pub fn number(&self, key: &str) -> Option<u64> {
        let value = self.get(key)?.trim_start();
        let end = value.find(|c: char| !c.is_ascii_digit()).unwrap_or(value.len());
        value[..end].parse().ok()
    }

    /// The machine's processors: MaxProcs, otherwise MaxNodes.
    pub fn processors(&self) -> Option<u32> {
        let positive = |key| self.number(key).filter(|n| *n > 0).and_then(|n| u32::try_from(n).ok());
        positive("MaxProcs").or_else(|| positive("MaxNodes"))
    }

    /// The header's value for the machine's size, if it is not a valid size.
    pub fn unusable_size(&self) -> Option<&str> {
        let size = self.get("MaxProcs").or_else(|| self.get("MaxNodes"));
        size.filter(|_| self.processors().is_none())
    }

    /// When the log starts, in s since 1970.
    pub fn unix_start_s(&self) -> Option<u64> {
        self.number("UnixStartTime")
    }
}

/// A key is one word, and a blank or nothing follows its colon: `http://…` continues the previous value.
fn key_and_value(text: &str) -> Option<(&str, &str)> {
    let (key, value) = text.split_once(':')?;
    let is_word = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphabetic());
    (is_word && (value.is_empty() || value.starts_with(char::is_whitespace))).then(|| (key, value.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_repeat_and_values_go_on() {
        let mut header = SwfHeader::default();
        for line in [
            ";;; Version: 2.2",
            "; Information: http://one/",
            ";              http://two/",
            ";",
            ";MaxNodes: 338 (batch partition; 512 total)",
            "; Note: a",
            "; Note: b: c",
            "; UnixStartTime: 843480031",
        ] {
            header.add(line);
        }
        assert_eq!(header.lines(), 8);
        assert_eq!(header.get("information"), Some("http://one/\nhttp://two/"));
        assert_eq!((header.get("Note"), header.entries().len()), (Some("a"), 6));
        assert_eq!(header.processors(), Some(338));
        assert_eq!(header.unix_start_s(), Some(843_480_031));
        header.add("; MaxProcs: 512");
        assert_eq!(header.processors(), Some(512));
    }

    #[test]
    fn what_is_no_number_is_none() {
        let header =
            SwfHeader::new([("MaxProcs".into(), "many".into()), ("MaxNodes".into(), "99999999999999999999999".into())]);
        assert_eq!((header.processors(), header.number("MaxNodes"), header.get("x")), (None, None, None));
        assert_eq!((header.unusable_size(), SwfHeader::default().unusable_size()), (Some("many"), None));
    }
}
