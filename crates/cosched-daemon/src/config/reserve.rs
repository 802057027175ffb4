//! `reserve`: the CPU time that is kept for processes that are not registered.

use super::{ConfigError, range};
use serde::Deserialize;

/// The CPU time that is kept for processes that are not registered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Reserve {
    /// As much as plain Linux would give them beside the jobs, while they can use it.
    Fair,
    /// This part of the CPU time, 0 to 0.9, however many such processes run.
    Part(f64),
}

/// The value as it is written in the file.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum FileReserve {
    Word(String),
    Part(f64),
}

impl FileReserve {
    pub(super) fn read(self) -> Result<Reserve, ConfigError> {
        match self {
            FileReserve::Word(word) if word == "fair" => Ok(Reserve::Fair),
            FileReserve::Part(part) if (0.0..=0.9).contains(&part) => Ok(Reserve::Part(part)),
            FileReserve::Word(word) => Err(range("reserve", &word, "\"fair\", or 0 to 0.9")),
            FileReserve::Part(part) => Err(range("reserve", &part.to_string(), "\"fair\", or 0 to 0.9")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::*;

    #[test]
    fn a_reserve_is_fair_or_a_part() {
        let of = |text: &str| Config::parse(text).map(|config| config.reserve);
        assert_eq!(of(""), Ok(Reserve::Fair));
        assert_eq!(of("reserve = \"fair\""), Ok(Reserve::Fair));
        assert_eq!(of("reserve = 0"), Ok(Reserve::Part(0.0)));
        assert_eq!(of("reserve = 0.25"), Ok(Reserve::Part(0.25)));
        for text in ["reserve = \"half\"", "reserve = 0.91", "reserve = -0.1"] {
            assert!(of(text).unwrap_err().to_string().contains("\"fair\", or 0 to 0.9"), "{text}");
        }
        assert!(of("reserve = true").is_err());
    }
}
