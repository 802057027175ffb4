//! Files with measurements.

use crate::input;
use crate::out::{EXIT_REFUSED, Failure};
use cosched_study::slowdown::Measured;
use std::path::{Path, PathBuf};

/// Reads a document, or that in a directory of `--out`.
pub(crate) fn read(path: &Path) -> Result<Measured, Failure> {
    let path = if path.is_dir() { path.join("slowdown.json") } else { PathBuf::from(path) };
    let hint = "give the slowdown.json that `cosched bench slowdown` wrote, or the directory of its --out";
    Measured::parse(&input::read(&path, hint)?).map_err(|why| not_valid(&path, &why, hint))
}

/// The measurement cannot be used.
pub(crate) fn not_valid(path: &Path, why: &str, hint: &str) -> Failure {
    Failure::explained(EXIT_REFUSED, &format!("{} cannot be analysed", path.display()), why, hint)
}
