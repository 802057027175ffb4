//! Lists of CPUs as the kernel writes them, such as "0-3,8".

use std::fmt::Write;

/// The limit on the CPUs in a list: no kernel has more.
const CPUS_MAX: u32 = 8192;

/// The numbers of a list, in its order; `None` if the text is not a list.
pub fn parse(text: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || last >= CPUS_MAX {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

/// The list of these CPUs, which are in ascending order.
pub fn format(cpus: &[u32]) -> String {
    let mut text = String::new();
    for run in cpus.chunk_by(|a, b| a + 1 == *b) {
        let comma = if text.is_empty() { "" } else { "," };
        // Writing to a string cannot fail.
        let _ = match run {
            [one] => write!(text, "{comma}{one}"),
            _ => write!(text, "{comma}{}-{}", run[0], run[run.len() - 1]),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_written() {
        for (text, cpus) in [("0-3,8", vec![0, 1, 2, 3, 8]), ("5", vec![5]), ("", vec![]), ("1,3", vec![1, 3])] {
            assert_eq!(parse(text), Some(cpus.clone()));
            assert_eq!(format(&cpus), text);
        }
        assert_eq!(parse("0-1\n"), Some(vec![0, 1]));
        for text in ["x", "3-1", "1-", "-1", "0-99999999", "8192"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
