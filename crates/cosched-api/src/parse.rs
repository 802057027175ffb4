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

#[cfg(test)]
mod tests {
    use super::*;

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
