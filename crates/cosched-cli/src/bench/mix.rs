//! The file of `--mix`.

use crate::out::{EXIT_REFUSED, Failure};
use cosched_study::slowdown::mix::{MixJob, parse};
use std::path::Path;

/// Reads and checks a list.
///
/// # Errors
/// When it cannot be read, or an entry is impossible.
pub(crate) fn read(path: &Path) -> Result<Vec<MixJob>, Failure> {
    let place = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|e| Failure { code: EXIT_REFUSED, message: format!("cannot read {place}: {e}") })?;
    parse(&text).map_err(|why| {
        let hint = "`cosched bench slowdown --help` shows such a list";
        Failure::explained_in_lines(EXIT_REFUSED, &format!("{place} is not a list of jobs"), &why, hint)
    })
}
