//! The heartbeat: one shared page that the slot thread and the daemon's driver stamp, and the guard reads.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use rustix::fs::{MemfdFlags, memfd_create};

use crate::observe::monotonic_ns;
use crate::shared::{Shareable, SharedPage};

/// The content of the page.
#[derive(Debug)]
#[repr(C)]
struct Page {
    beat_ns: AtomicU64,
    lease_ns: AtomicU64,
    thaws: AtomicU64,
    signals: AtomicU32,
    /// The thread id of the slot thread; 0 before it is known.
    slot_thread: AtomicU32,
    driver_ns: AtomicU64,
    driver_limit_ns: AtomicU64,
    driver_thread: AtomicU32,
}

// SAFETY: atomics only, in C's layout.
unsafe impl Shareable for Page {}

/// A mapped beat page with its file.
#[derive(Debug)]
pub struct Beat(SharedPage<Page>);

impl Beat {
    /// A page without a name, passed on by inheritance. `lease_ns`: a stamp older than this means that the daemon hangs.
    ///
    /// # Errors
    /// The kernel gives no memfd or mapping.
    pub fn create(lease_ns: u64) -> io::Result<Beat> {
        let beat = Beat(SharedPage::fresh(memfd_create("cosched-beat", MemfdFlags::CLOEXEC)?)?);
        beat.0.lease_ns.store(lease_ns, Relaxed);
        beat.stamp();
        Ok(beat)
    }

    /// Maps the page of another process, by its file.
    ///
    /// # Errors
    /// The file is too short or cannot be mapped.
    pub fn from_fd(file: OwnedFd) -> io::Result<Beat> {
        Ok(Beat(SharedPage::open(file)?))
    }

    /// Stamps the page: the slot thread is alive now.
    pub fn stamp(&self) {
        self.0.beat_ns.store(monotonic_ns(), Relaxed);
    }

    /// The age of the last stamp, in nanoseconds.
    pub fn age_ns(&self) -> u64 {
        monotonic_ns().saturating_sub(self.0.beat_ns.load(Relaxed))
    }

    /// A stamp older than this means that the daemon hangs, in nanoseconds.
    pub fn lease_ns(&self) -> u64 {
        self.0.lease_ns.load(Relaxed)
    }

    /// Notes the calling thread as the slot thread.
    pub fn note_slot_thread(&self) {
        self.0.slot_thread.store(own_thread(), Relaxed);
    }

    /// Notes that the daemon's driver, which answers requests, has completed a round. From now on the guard ends the daemon when this is not called
    /// again within `limit_ns`; 0 switches that off.
    pub fn driver_went_round(&self, limit_ns: u64) {
        self.0.driver_thread.store(own_thread(), Relaxed);
        self.0.driver_ns.store(monotonic_ns(), Relaxed);
        self.0.driver_limit_ns.store(limit_ns, Relaxed);
    }

    /// The time of the driver's last round, if that is too long ago.
    pub(crate) fn driver_hangs_since_ns(&self) -> Option<u64> {
        let (since_ns, limit_ns) = (self.0.driver_ns.load(Relaxed), self.0.driver_limit_ns.load(Relaxed));
        (limit_ns > 0 && monotonic_ns().saturating_sub(since_ns) > limit_ns).then_some(since_ns)
    }

    /// Interrupts a system call in which the slot thread of process `daemon` waits.
    pub(crate) fn nudge_slot_thread(&self, daemon: i32) {
        nudge(daemon, self.0.slot_thread.load(Relaxed));
    }

    /// The same for the driver's thread.
    pub(crate) fn nudge_driver(&self, daemon: i32) {
        nudge(daemon, self.0.driver_thread.load(Relaxed));
    }

    /// Notes that processes may have been stopped by signals, so that a thaw must send SIGCONT, too. The note is permanent.
    pub fn note_signals(&self) {
        self.0.signals.store(1, Relaxed);
    }

    /// True when processes may have been stopped by signals.
    pub fn signals(&self) -> bool {
        self.0.signals.load(Relaxed) != 0
    }

    /// Notes that everything was thawed by a process other than the daemon.
    pub fn note_thaw(&self) {
        self.0.thaws.fetch_add(1, Relaxed);
    }

    /// How often that was noted.
    pub fn thaws(&self) -> u64 {
        self.0.thaws.load(Relaxed)
    }
}

/// The signal that interrupts a thread: it has no effect of its own.
const NUDGE: i32 = libc::SIGURG;

/// Lets [`NUDGE`] interrupt system calls in which a thread of this process waits, such as the close of a socket that a user lets linger.
pub(crate) fn heed_nudges() {
    extern "C" fn nothing(_: i32) {}
    // SAFETY: the handler does nothing, and zero is a valid value of the fields that are not set; without SA_RESTART a wait ends.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as extern "C" fn(i32) as usize;
        libc::sigaction(NUDGE, &action, std::ptr::null_mut());
    }
}

fn own_thread() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get() as u32
}

fn nudge(process: i32, thread: u32) {
    if thread != 0 {
        // SAFETY: takes numbers only. If the number is no longer a thread of that process, the call does nothing.
        unsafe { libc::syscall(libc::SYS_tgkill, process, thread, NUDGE) };
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
        assert_eq!(theirs.driver_hangs_since_ns(), None, "it has not begun");
        ours.driver_went_round(3_600_000_000_000);
        assert_eq!(theirs.driver_hangs_since_ns(), None);
        ours.driver_went_round(1);
        std::thread::sleep(std::time::Duration::from_millis(1));
        assert!(theirs.driver_hangs_since_ns().is_some());
        ours.driver_went_round(0);
        assert_eq!(theirs.driver_hangs_since_ns(), None, "it ends in order");
    }

    #[test]
    fn a_nudge_interrupts_the_thread_that_it_is_for() {
        heed_nudges();
        let beat = std::sync::Arc::new(Beat::create(1).unwrap());
        let (mut reader, _writer) = std::os::unix::net::UnixStream::pair().unwrap();
        let theirs = std::sync::Arc::clone(&beat);
        let thread = std::thread::spawn(move || {
            theirs.note_slot_thread();
            std::io::Read::read(&mut reader, &mut [0]).map_err(|e| e.kind())
        });
        while !thread.is_finished() {
            beat.nudge_slot_thread(std::process::id() as i32);
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert_eq!(thread.join().unwrap(), Err(io::ErrorKind::Interrupted));
    }

    #[test]
    fn a_file_that_is_too_short_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("beat"), "short").unwrap();
        let file = std::fs::OpenOptions::new().read(true).write(true).open(dir.path().join("beat")).unwrap();
        assert!(Beat::from_fd(file.into()).is_err());
    }
}
