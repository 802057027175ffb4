//! What `cosched slurm check` finds, and reads of scontrol.

use serde::Serialize;

/// The result of one check.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Finding {
    /// `ok`, `note` (works, but worth a check) or `wrong`.
    pub(super) verdict: &'static str,
    pub(super) what: String,
}

impl Finding {
    pub(super) fn new(verdict: &'static str, what: impl Into<String>) -> Finding {
        Finding { verdict, what: what.into() }
    }
}

/// The value of a key in a line of `scontrol show --oneliner`.
pub(super) fn field(line: &str, key: &str) -> String {
    let find = |word: &str| Some(word.strip_prefix(key)?.strip_prefix('=')?.to_owned());
    line.split_ascii_whitespace().find_map(find).unwrap_or_default()
}
