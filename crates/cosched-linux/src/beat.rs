//! The sign of life: one shared page that the slot thread stamps and the guard reads.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use rustix::fs::{MemfdFlags, memfd_create};

use crate::observe::monotonic_ns;
use crate::shared::{Shareable, SharedPage};

/// What the page holds.
#[derive(Debug)]
#[repr(C)]
struct Page {
    beat_ns: AtomicU64,
    lease_ns: AtomicU64,
    thaws: AtomicU64,
    signals: AtomicU32,
}

// SAFETY: atomics only, in C's layout.
unsafe impl Shareable for Page {}

/// A mapped beat page with its file.
#[derive(Debug)]
pub struct Beat(SharedPage<Page>);

impl Beat {
    /// A beat without a name, passed on by inheritance. `lease_ns`: a beat older than this means that the daemon hangs.
    ///
    /// # Errors
    /// When the kernel gives no memfd or mapping.
    pub fn create(lease_ns: u64) -> io::Result<Beat> {
        Beat::fresh(memfd_create("cosched-beat", MemfdFlags::CLOEXEC)?, lease_ns)
    }

    /// A beat in a file, such as one below /run.
    ///
    /// # Errors
    /// When the file cannot be made or mapped.
    pub fn create_file(path: &Path, lease_ns: u64) -> io::Result<Beat> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path)?;
        Beat::fresh(File::into(file), lease_ns)
    }

    fn fresh(file: OwnedFd, lease_ns: u64) -> io::Result<Beat> {
        let beat = Beat(SharedPage::fresh(file)?);
        beat.0.lease_ns.store(lease_ns, Relaxed);
        beat.stamp();
        Ok(beat)
    }

    /// The beat of another process, by its file.
    ///
    /// # Errors
    /// When the file is too short or cannot be mapped.
    pub fn from_fd(file: OwnedFd) -> io::Result<Beat> {
        Ok(Beat(SharedPage::open(file)?))
    }

    /// Says: alive now.
    pub fn stamp(&self) {
        self.0.beat_ns.store(monotonic_ns(), Relaxed);
    }

    /// How long ago the last stamp was, in nanoseconds.
    pub fn age_ns(&self) -> u64 {
        monotonic_ns().saturating_sub(self.0.beat_ns.load(Relaxed))
    }

    /// A beat older than this means that the daemon hangs, in nanoseconds.
    pub fn lease_ns(&self) -> u64 {
        self.0.lease_ns.load(Relaxed)
    }

    /// Notes that processes may have been stopped by signals, so that a thaw must send SIGCONT too. It stays noted.
    pub fn note_signals(&self) {
        self.0.signals.store(1, Relaxed);
    }

    /// True when processes may have been stopped by signals.
    pub fn signals(&self) -> bool {
        self.0.signals.load(Relaxed) != 0
    }

    /// Notes that everything has been thawed by somebody else than the slot thread.
    pub fn note_thaw(&self) {
        self.0.thaws.fetch_add(1, Relaxed);
    }

    /// How often that was noted.
    pub fn thaws(&self) -> u64 {
        self.0.thaws.load(Relaxed)
    }
}

impl AsFd for Beat {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_mappings_see_one_page() {
        let ours = Beat::create(5_000_000).unwrap();
        let theirs = Beat::from_fd(ours.as_fd().try_clone_to_owned().unwrap()).unwrap();
        assert_eq!(theirs.lease_ns(), 5_000_000);
        std::thread::sleep(std::time::Duration::from_millis(5));
        let aged = theirs.age_ns();
        assert!(aged >= 5_000_000);
        ours.stamp();
        assert!(theirs.age_ns() < aged + 1_000_000_000);
        theirs.note_thaw();
        assert_eq!(ours.thaws(), 1);
        assert!(!theirs.signals());
        ours.note_signals();
        assert!(theirs.signals());
    }

    #[test]
    fn a_file_that_is_too_short_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("beat"), "short").unwrap();
        let file = OpenOptions::new().read(true).write(true).open(dir.path().join("beat")).unwrap();
        assert!(Beat::from_fd(file.into()).is_err());
        assert!(Beat::create_file(&dir.path().join("beat"), 7).is_ok_and(|b| b.lease_ns() == 7));
    }
}
