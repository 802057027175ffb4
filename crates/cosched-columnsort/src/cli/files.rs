//! Checks and writes of the program's output files.

use std::path::Path;

use super::out::{EXIT_USAGE, Problem};

/// Refuses to replace an existing output, unless `force` is set.
pub(crate) fn may_write(path: &Path, force: bool) -> Result<(), Problem> {
    if force || std::fs::symlink_metadata(path).is_err() {
        return Ok(());
    }
    let what = format!("{} exists already", path.display());
    Err(Problem::explained(
        EXIT_USAGE,
        &what,
        "it would be replaced, and what is in it would be lost",
        "give --force, or another name",
    ))
}

/// Writes a small file with results.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), Problem> {
    std::fs::write(path, text).map_err(|e| Problem::failed(format!("cannot write {}: {e}", path.display())))
}
