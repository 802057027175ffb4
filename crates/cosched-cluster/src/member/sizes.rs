//! Amounts of memory and disk space in readable form.

/// Two different amounts of bytes, in the units of configuration files; as short as possible while they still differ.
pub(super) fn sizes(bytes: [u64; 2]) -> [String; 2] {
    let units = [(50, "P"), (40, "T"), (30, "G"), (20, "M"), (10, "K")];
    let short = |bytes: u64| match units.into_iter().find(|(shift, _)| bytes >> shift > 0) {
        Some((shift, unit)) => format!("{:.1}{unit}", bytes as f64 / (1_u64 << shift) as f64),
        None => format!("{bytes} bytes"),
    };
    let [one, other] = bytes.map(short);
    if one == other { bytes.map(|bytes| format!("{bytes} bytes")) } else { [one, other] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_of_memory_are_told_in_words_that_people_read() {
        assert_eq!(sizes([3 << 30, 1 << 30]), ["3.0G", "1.0G"]);
        assert_eq!(sizes([(1 << 30) + 1, 1 << 30]), ["1073741825 bytes", "1073741824 bytes"]);
        assert_eq!(sizes([0, 1536]), ["0 bytes", "1.5K"]);
    }
}
