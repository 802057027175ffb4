//! The state of the cluster as it was last known here, on this node's disk: a store that has lost it while no daemon ran is
//! repaired with it.

use cosched_cluster::wire::{decode, encode};
use cosched_cluster::{Kept, Member};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// It is written at most so often.
const PERIOD: Duration = Duration::from_secs(2);

/// No state is longer.
const BYTES_MAX: u64 = 64 << 20;

/// The file, and what is in it.
#[derive(Debug)]
pub(super) struct KeptFile {
    /// `None` for a machine alone, whose store is a file itself.
    path: Option<PathBuf>,
    /// The revision of the state that was written, or is being written.
    written: u64,
    next: Instant,
    /// There is another one to write.
    stale: bool,
    /// The disk may stand still; the daemon does not wait for it.
    task: Option<JoinHandle<()>>,
}

impl KeptFile {
    pub(super) fn new(dir: &Path, alone: bool) -> KeptFile {
        let path = (!alone).then(|| dir.join("cluster-state"));
        KeptFile { path, written: 0, next: Instant::now(), stale: false, task: None }
    }

    /// What an earlier daemon has kept.
    pub(super) fn read(&self) -> Option<Kept> {
        let path = self.path.as_ref()?;
        fs::metadata(path).ok().filter(|found| found.is_file() && found.len() <= BYTES_MAX)?;
        let bytes = fs::read(path).ok()?;
        let (tree, rest) = bytes.split_first_chunk()?;
        let (id, state) = rest.split_first_chunk()?;
        Some(Kept { tree: u64::from_le_bytes(*tree), id: u32::from_le_bytes(*id), state: decode(state).ok()? })
    }

    /// When there is something to write.
    pub(super) fn due(&self) -> Option<Instant> {
        self.stale.then_some(self.next)
    }

    /// Keeps what the member knows now.
    pub(super) fn keep(&mut self, member: &Member) {
        // While it is gone from the store it is what was last known, and that may be newer than what was written.
        let is_known = member.is_joined() || member.alarm().is_some();
        let (Some(path), true) = (&self.path, is_known) else { return };
        let revision = member.state_revision();
        self.stale = revision > 0 && revision != self.written;
        if !self.stale || self.next > Instant::now() {
            return;
        }
        self.next = Instant::now() + PERIOD;
        if self.task.as_ref().is_some_and(|task| !task.is_finished()) {
            return;
        }
        let Some(kept) = member.kept() else { return };
        (self.written, self.stale) = (revision, false);
        let path = path.clone();
        self.task = Some(tokio::task::spawn_blocking(move || {
            let mut bytes = [&kept.tree.to_le_bytes()[..], &kept.id.to_le_bytes()].concat();
            bytes.extend(encode(&kept.state));
            let new = path.with_extension("new");
            if let Err(e) = fs::write(&new, bytes).and_then(|()| fs::rename(&new, &path)) {
                tracing::warn!("{} cannot be written: {e}", path.display());
            }
        }));
    }
}
