//! Checks of files that the program is to write.

use std::path::Path;

use super::out::{EXIT_USAGE, Problem};

/// An output that is there is replaced only if that was said.
pub(crate) fn may_write(path: &Path, force: bool) -> Result<(), Problem> {
    if force || std::fs::symlink_metadata(path).is_err() {
        return Ok(());
    }
    let what = format!("{} is there already", path.display());
    Err(Problem::explained(
        EXIT_USAGE,
        &what,
        "it would be replaced, and what is in it would be lost",
        "give --force, or another name",
    ))
}

/// Writes a small file of results.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), Problem> {
    std::fs::write(path, text).map_err(|e| Problem::failed(format!("cannot write {}: {e}", path.display())))
}
