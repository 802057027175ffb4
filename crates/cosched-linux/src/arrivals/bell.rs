//! The bell: a descriptor that announces arriving messages.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering::Relaxed;

use rustix::event::epoll;
use rustix::io::Errno;

#[cfg(feature = "bpf")]
use super::bpf::Ring;
use super::sets::{AT_ONCE, EVENTS, JobSockets, NOTHING};

#[derive(Debug)]
enum Source {
    /// An epoll set of the sets of all jobs that ring.
    Sets(OwnedFd),
    #[cfg(feature = "bpf")]
    Ring(Ring),
}

/// Becomes readable when a message arrives for one of the jobs that ring, and stays readable until [`ArrivalBell::answer`].
#[derive(Debug)]
pub struct ArrivalBell {
    source: Source,
}

impl ArrivalBell {
    pub(super) fn new() -> Result<ArrivalBell, Errno> {
        Ok(ArrivalBell { source: Source::Sets(epoll::create(epoll::CreateFlags::CLOEXEC)?) })
    }

    #[cfg(feature = "bpf")]
    pub(super) fn of_ring(ring: Ring) -> ArrivalBell {
        ArrivalBell { source: Source::Ring(ring) }
    }

    /// Lets the messages of a job ring the bell, or stops that.
    pub(super) fn set(&self, job: &JobSockets, ring: bool) -> Result<(), Errno> {
        #[cfg_attr(not(feature = "bpf"), allow(irrefutable_let_patterns))]
        let Source::Sets(set) = &self.source else { return Ok(()) };
        if job.rings.swap(ring, Relaxed) == ring {
            return Ok(());
        }
        // Edge-triggered: a message that stays unread rings once.
        let wanted = epoll::EventFlags::IN | epoll::EventFlags::ET;
        let done = if ring {
            epoll::add(set, &job.set, epoll::EventData::new_u64(job.job()), wanted)
        } else {
            epoll::delete(set, &job.set)
        };
        done.inspect_err(|_| job.rings.store(!ring, Relaxed))
    }

    /// Names the jobs for which messages arrived since the last answer (16 at most, with BPF 64; the others keep ringing). Neither waits nor
    /// allocates.
    pub fn answer(&self, tell: &mut dyn FnMut(u64)) {
        match &self.source {
            Source::Sets(set) => {
                let mut events = [NOTHING; EVENTS];
                let count = epoll::wait(set, &mut events[..], Some(&AT_ONCE)).unwrap_or(0);
                events[..count].iter().for_each(|event| tell({ event.data }.u64()));
            }
            #[cfg(feature = "bpf")]
            Source::Ring(ring) => ring.answer(tell),
        }
    }
}

impl AsFd for ArrivalBell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.source {
            Source::Sets(set) => set.as_fd(),
            #[cfg(feature = "bpf")]
            Source::Ring(ring) => ring.as_fd(),
        }
    }
}
