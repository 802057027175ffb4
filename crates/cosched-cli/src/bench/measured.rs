//! Files with measurements.

use crate::out::{EXIT_REFUSED, Failure};
use cosched_study::slowdown::Measured;
use std::path::{Path, PathBuf};

/// Reads a document, or that in a directory of `--out`.
pub(crate) fn read(path: &Path) -> Result<Measured, Failure> {
    let path = if path.is_dir() { path.join("slowdown.json") } else { PathBuf::from(path) };
    let hint = "give the slowdown.json that `cosched bench slowdown` wrote, or the directory of its --out";
    let text = std::fs::read_to_string(&path)
        .map_err(|e| Failure::explained(1, &format!("cannot read {}", path.display()), &e.to_string(), hint))?;
    Measured::parse(&text).map_err(|why| not_valid(&path, &why, hint))
}

/// The measurement cannot be used.
pub(crate) fn not_valid(path: &Path, why: &str, hint: &str) -> Failure {
    Failure::explained(EXIT_REFUSED, &format!("{} cannot be analysed", path.display()), why, hint)
}
