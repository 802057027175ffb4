//! The status file: the API's content, for readers that do not talk to the daemon.
//!
//! Source: LLNL, "Gang Scheduler Design": "Program and computer status information is written to a globally readable file at the start of each gang
//! scheduler time-slice." Slots are a hundred times shorter here, and the row at any time follows from the plan (`matrix.turns`), so the file is
//! written when something has changed, and periodically for the numbers. It is replaced atomically: a reader sees either the old or the new file,
//! complete.

use super::Driver;
use crate::clock::unix_ms;
use crate::journal::unless_gone;
use cosched_api::{STATUS_FILE_FORMAT, StatusFile};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::Instant;

/// Changes at shorter intervals are written together.
const PAUSE_MIN: Duration = Duration::from_millis(100);
/// The maximum age of CPU times and memory in the file, while there are jobs.
const REFRESH: Duration = Duration::from_secs(10);
/// The inverse of the part of the driver's time that writing may use.
const COST_SHARE_MAX: u32 = 50;

/// The path of the file and when it is written next.
#[derive(Debug)]
pub(super) struct StatusKeeper {
    path: Option<PathBuf>,
    changed: bool,
    /// The earliest time of the next write.
    free: Instant,
    refresh: Instant,
    problem: Option<String>,
}

impl StatusKeeper {
    pub(super) fn new(path: Option<PathBuf>) -> StatusKeeper {
        let now = Instant::now();
        StatusKeeper { path, changed: true, free: now, refresh: now, problem: None }
    }

    /// Why the file cannot be written, if the last try failed.
    pub(super) fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// When it has to be written.
    pub(super) fn due(&self, jobs: bool) -> Option<Instant> {
        self.path.as_ref()?;
        let refresh = jobs.then_some(self.refresh);
        let change = self.changed.then_some(self.free);
        change.into_iter().chain(refresh).min()
    }

    fn written(&mut self, started: Instant, result: io::Result<()>) {
        self.changed = false;
        let (now, cost) = (Instant::now(), started.elapsed());
        self.free = now + PAUSE_MIN.max(cost * COST_SHARE_MAX);
        self.refresh = now + REFRESH.max(cost * COST_SHARE_MAX);
        let problem = result.err().map(|e| e.to_string());
        if problem != self.problem
            && let Some(why) = &problem
        {
            tracing::warn!(why, "the status file cannot be written");
        }
        self.problem = problem;
    }

    /// Removes the file, which would be wrong from now on.
    pub(super) fn remove(&self) {
        if let Some(path) = &self.path {
            // The file may never have been written.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Driver {
    /// Marks a change of something that the status file and the stream of events show.
    pub(super) fn touch_status(&mut self) {
        self.status_file.changed = true;
        self.teller.touch();
    }

    /// Writes the status file, if it is due.
    pub(super) fn write_status(&mut self) {
        let started = Instant::now();
        let due = self.status_file.due(!self.live.is_empty()).is_some_and(|due| due <= started);
        let Some(path) = self.status_file.path.clone().filter(|_| due) else { return };
        let status = self.view_status();
        let file = StatusFile {
            format: STATUS_FILE_FORMAT.to_owned(),
            about: format!("cosched on {}: written by coschedd at each change; times are ms since 1970", status.node),
            written_unix_ms: unix_ms(),
            status,
            jobs: self.list_for_all().jobs,
        };
        let result = serde_json::to_vec_pretty(&file).map_err(io::Error::from).and_then(|text| replace(&path, &text));
        self.status_file.written(started, result);
    }
}

/// Replaces the old file by a new one.
fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
    unless_gone(std::fs::remove_file(&new))?;
    // Created, not opened: another user cannot have put a link there that we follow.
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o644).open(&new)?;
    // Independent of the umask.
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))?;
    file.write_all(text)?;
    file.write_all(b"\n")?;
    std::fs::rename(&new, path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_file_is_replaced_whole_readable_by_all_and_follows_no_link() {
        let dir = tempfile::tempdir().unwrap();
        let (path, victim) = (dir.path().join("status"), dir.path().join("victim"));
        std::fs::write(&victim, "mine").unwrap();
        std::os::unix::fs::symlink(&victim, dir.path().join("status.new")).unwrap();
        replace(&path, b"{}").unwrap();
        replace(&path, b"{\"a\":1}").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\"a\":1}\n");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o644);
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "mine");
        assert!(replace(Path::new("/nonexistent/status"), b"").is_err());
    }

    #[test]
    fn changes_are_written_soon_and_together_and_without_jobs_only_changes() {
        let mut keeper = StatusKeeper::new(Some("/x".into()));
        assert!(keeper.due(false).is_some_and(|due| due <= Instant::now()));
        keeper.written(Instant::now(), Ok(()));
        assert_eq!(keeper.due(false), None);
        assert!(keeper.due(true).is_some_and(|due| due > Instant::now() + REFRESH / 2));
        keeper.changed = true;
        assert!(keeper.due(false).is_some_and(|due| due > Instant::now() && due <= Instant::now() + PAUSE_MIN));
        keeper.written(Instant::now(), Err(io::Error::other("full")));
        assert_eq!(keeper.problem(), Some("full"));
        assert_eq!(StatusKeeper::new(None).due(true), None);
    }
}
