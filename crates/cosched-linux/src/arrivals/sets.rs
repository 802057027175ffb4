//! The epoll sets, for the thread that samples. A sample neither allocates nor locks.

use std::collections::HashSet;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use rustix::event::{Timespec, epoll};
use rustix::io::{Errno, ioctl_fionread};

pub(super) const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
/// Events taken in one call. A sample begins with one, which is nearly always a message; further ones may be sockets with errors.
pub(super) const EVENTS: usize = 16;
const ROUNDS: usize = 4;

/// The result of handling a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Added,
    Dropped,
    Kept,
}

/// The watched sockets of one job.
#[derive(Debug)]
pub struct JobSockets {
    job: u64,
    pub(super) set: OwnedFd,
    count: AtomicUsize,
    pub(super) rings: AtomicBool,
    closed: AtomicBool,
}

impl JobSockets {
    pub(super) fn new(job: u64) -> Result<JobSockets, Errno> {
        let set = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let (count, rings, closed) = (AtomicUsize::new(0), AtomicBool::new(false), AtomicBool::new(false));
        Ok(JobSockets { job, set, count, rings, closed })
    }

    /// The job's number.
    pub fn job(&self) -> u64 {
        self.job
    }

    /// The number of sockets that were watched after the last scan.
    pub fn count(&self) -> usize {
        self.count.load(Relaxed)
    }

    /// True when one of the sockets has something to read. One system call, two with many closed connections, whatever the number of sockets. Unread
    /// data of a closed connection count, and so does the close itself until the next scan.
    pub fn has_message(&self) -> bool {
        if self.closed.load(Relaxed) {
            return false;
        }
        let mut events = [NOTHING; EVENTS];
        for round in 0..ROUNDS {
            let room = if round == 0 { 1 } else { EVENTS };
            let Ok(count) = epoll::wait(&self.set, &mut events[..room], Some(&AT_ONCE)) else { return false };
            // Errors and hang-ups are always reported. They are not messages.
            if events[..count].iter().any(|event| { event.flags }.contains(epoll::EventFlags::IN)) {
                return true;
            }
            if count < room {
                return false;
            }
        }
        false
    }

    /// The inode numbers of the sockets whose peer has closed.
    pub(super) fn at_end(&self) -> HashSet<u64> {
        let mut events = vec![NOTHING; self.count() + EVENTS];
        let count = epoll::wait(&self.set, &mut events[..], Some(&AT_ONCE)).unwrap_or(0);
        let ended = events[..count].iter().filter(|event| { event.flags }.contains(epoll::EventFlags::RDHUP));
        ended.map(|event| { event.data }.u64()).collect()
    }

    pub(super) fn add(&self, socket: BorrowedFd<'_>, inode: u64) -> Result<Verdict, Errno> {
        let wanted = epoll::EventFlags::IN | epoll::EventFlags::RDHUP;
        match epoll::add(&self.set, socket, epoll::EventData::new_u64(inode), wanted) {
            // It is registered already: it was passed to another process and back.
            Ok(()) | Err(Errno::EXIST) => Ok(Verdict::Added),
            Err(e) => Err(e),
        }
    }

    /// Stops watching a closed connection, once everything has been read: no more data can arrive.
    pub(super) fn drop_if_empty(&self, socket: BorrowedFd<'_>) -> Result<Verdict, Errno> {
        if ioctl_fionread(socket).unwrap_or(0) > 0 {
            return Ok(Verdict::Kept);
        }
        match epoll::delete(&self.set, socket) {
            Ok(()) | Err(Errno::NOENT) => Ok(Verdict::Dropped),
            Err(e) => Err(e),
        }
    }

    pub(super) fn set_count(&self, count: usize) {
        self.count.store(count, Relaxed);
    }

    pub(super) fn close(&self) {
        self.closed.store(true, Relaxed);
    }
}

pub(super) const NOTHING: epoll::Event =
    epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) };
