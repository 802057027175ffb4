//! Refusals: what happened, why, what to do.

use cosched_api::{ErrorBody, ErrorCode};
use std::io::{self, ErrorKind};
use std::path::Path;

/// The result of a request.
pub(crate) type Answer<T> = Result<T, ErrorBody>;

/// A refusal in its three parts.
pub(crate) fn refuse(
    code: ErrorCode,
    what: impl Into<String>,
    why: impl Into<String>,
    hint: impl Into<String>,
) -> ErrorBody {
    ErrorBody { code, what: what.into(), why: why.into(), hint: hint.into() }
}

/// The machine or the daemon failed at something that should have worked.
pub(crate) fn internal(what: impl Into<String>, why: impl std::fmt::Display) -> ErrorBody {
    refuse(
        ErrorCode::Internal,
        what,
        why.to_string(),
        "Nothing was changed. The daemon's log says more; `cosched status` shows what is wrong.",
    )
}

/// The disk did not take what was to be remembered.
pub(crate) fn unwritten(dir: &Path, e: &io::Error) -> ErrorBody {
    let dir = dir.display();
    let hint = match e.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "Make room there, and ask again".to_owned(),
        _ => "Look at that disk, and ask again".to_owned(),
    };
    refuse(
        ErrorCode::Internal,
        format!("the state in {dir} could not be written"),
        e.to_string(),
        format!("{hint}. Nothing was changed; jobs that run go on, and `cosched kill` ends them."),
    )
}

/// There is no such job.
pub(crate) fn no_such_job(id: u64) -> ErrorBody {
    refuse(
        ErrorCode::NotFound,
        format!("there is no job {id}"),
        "No running or remembered job has this id",
        "`cosched ps --all` lists the jobs.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_and_a_broken_one_are_told_apart() {
        for (kind, hint) in [
            (ErrorKind::StorageFull, "Make room there"),
            (ErrorKind::QuotaExceeded, "Make room there"),
            (ErrorKind::Other, "Look at that disk"),
        ] {
            let refused = unwritten(Path::new("/s"), &io::Error::from(kind));
            assert_eq!(refused.code, ErrorCode::Internal);
            assert!(refused.hint.starts_with(hint) && refused.hint.contains("Nothing was changed"), "{refused:?}");
        }
    }
}
