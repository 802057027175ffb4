//! The last known state of the cluster, on this node's disk: it serves to repair a store that lost the state while no daemon ran.

use cosched_cluster::wire::{decode, encode};
use cosched_cluster::{Kept, Member};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// The least time between two writes.
const PERIOD: Duration = Duration::from_secs(2);

/// The longest state that is read, in bytes.
const BYTES_MAX: u64 = 64 << 20;

/// The file and its content.
#[derive(Debug)]
pub(super) struct KeptFile {
    /// `None` for a single machine, whose store is itself a file.
    path: Option<PathBuf>,
    /// The revision of the state that was written, or is being written.
    written: u64,
    next: Instant,
    /// There is a newer state to write.
    stale: bool,
    /// Writes the file: the disk may hang, and the daemon does not wait for it.
    task: Option<JoinHandle<()>>,
}

impl KeptFile {
    pub(super) fn new(dir: &Path, alone: bool) -> KeptFile {
        let path = (!alone).then(|| dir.join("cluster-state"));
        KeptFile { path, written: 0, next: Instant::now(), stale: false, task: None }
    }

    /// The state that an earlier daemon kept.
    pub(super) fn read(&self) -> Option<Kept> {
        let path = self.path.as_ref()?;
        fs::metadata(path).ok().filter(|found| found.is_file() && found.len() <= BYTES_MAX)?;
        let bytes = fs::read(path).ok()?;
        let (tree, rest) = bytes.split_first_chunk()?;
        let (id, state) = rest.split_first_chunk()?;
        Some(Kept { tree: u64::from_le_bytes(*tree), id: u32::from_le_bytes(*id), state: decode(state).ok()? })
    }

    /// When the next write is due, if there is something to write.
    pub(super) fn due(&self) -> Option<Instant> {
        self.stale.then_some(self.next)
    }

    /// Keeps the member's present state.
    pub(super) fn keep(&mut self, member: &Member) {
        // While the state is missing in the store, the member has the last known one, which may be newer than the written one.
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
