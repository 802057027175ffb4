//! The sign of life: one shared page that the slot thread stamps and the guard reads.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::observe::monotonic_ns;

/// What the page holds. All zero is a valid page.
#[repr(C)]
struct Page {
    beat_ns: AtomicU64,
    lease_ns: AtomicU64,
    thaws: AtomicU64,
    signals: AtomicU32,
}

const SIZE: usize = 4096;
const _: () = assert!(size_of::<Page>() <= SIZE);

/// A mapped beat page with its file.
#[derive(Debug)]
pub struct Beat {
    page: NonNull<Page>,
    file: OwnedFd,
}

// SAFETY: the page holds atomics only, and the mapping lives as long as the Beat.
unsafe impl Send for Beat {}
// SAFETY: as above.
unsafe impl Sync for Beat {}

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
        rustix::fs::ftruncate(&file, SIZE as u64)?;
        let beat = Beat::from_fd(file)?;
        beat.page().lease_ns.store(lease_ns, Relaxed);
        beat.stamp();
        Ok(beat)
    }

    /// The beat of another process, by its file.
    ///
    /// # Errors
    /// When the file is too short or cannot be mapped.
    pub fn from_fd(file: OwnedFd) -> io::Result<Beat> {
        if rustix::fs::fstat(&file)?.st_size < SIZE as i64 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "not a beat: the file is too short"));
        }
        // SAFETY: a new shared mapping at an address that the kernel chooses; it aliases no Rust object, and the file is at least as
        // long as the mapping.
        let address = unsafe {
            mmap(std::ptr::null_mut(), SIZE, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, &file, 0)?
        };
        let page = NonNull::new(address.cast::<Page>()).ok_or_else(|| io::Error::other("mmap gave no address"))?;
        Ok(Beat { page, file })
    }

    fn page(&self) -> &Page {
        // SAFETY: mapped and aligned to a page for as long as self lives; atomics may be shared with other processes.
        unsafe { self.page.as_ref() }
    }

    /// Says: alive now.
    pub fn stamp(&self) {
        self.page().beat_ns.store(monotonic_ns(), Relaxed);
    }

    /// How long ago the last stamp was, in nanoseconds.
    pub fn age_ns(&self) -> u64 {
        monotonic_ns().saturating_sub(self.page().beat_ns.load(Relaxed))
    }

    /// A beat older than this means that the daemon hangs, in nanoseconds.
    pub fn lease_ns(&self) -> u64 {
        self.page().lease_ns.load(Relaxed)
    }

    /// Notes that processes may have been stopped by signals, so that a thaw must send SIGCONT too. It stays noted.
    pub fn note_signals(&self) {
        self.page().signals.store(1, Relaxed);
    }

    /// True when processes may have been stopped by signals.
    pub fn signals(&self) -> bool {
        self.page().signals.load(Relaxed) != 0
    }

    /// Notes that everything has been thawed by somebody else than the slot thread.
    pub fn note_thaw(&self) {
        self.page().thaws.fetch_add(1, Relaxed);
    }

    /// How often that was noted.
    pub fn thaws(&self) -> u64 {
        self.page().thaws.load(Relaxed)
    }
}

impl Drop for Beat {
    fn drop(&mut self) {
        // SAFETY: this is the mapping of from_fd, and nobody has a reference into it any more.
        let _ = unsafe { munmap(self.page.as_ptr().cast(), SIZE) };
    }
}

impl AsFd for Beat {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
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
