//! The loaded program.

use std::collections::BTreeMap;
use std::fmt;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, RingBuffer, RingBufferBuilder};

use super::WHAT;
use crate::arrivals::ArrivalBell;
use crate::job::JobCgroup;
use crate::problem::Problem;

/// Written by libbpf-cargo.
#[allow(missing_docs, unreachable_pub, clippy::all, clippy::undocumented_unsafe_blocks)]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/arrivals.skel.rs"));
}

/// Announcements taken in one answer. Further ones ring again after the next pause of their job.
const ANSWER_MAX: usize = 64;

/// The program in the kernel, and its table of gangs. Dropping it unloads it.
pub struct BpfArrivals {
    gangs: MapHandle,
    _link: Link,
    bell: Arc<ArrivalBell>,
    /// The cgroup id of each job.
    watched: BTreeMap<u64, u64>,
}

impl fmt::Debug for BpfArrivals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BpfArrivals").field("watched", &self.watched).finish_non_exhaustive()
    }
}

fn refused(e: &libbpf_rs::Error) -> Problem {
    let hint = match e.kind() {
        libbpf_rs::ErrorKind::PermissionDenied => {
            "coschedd needs CAP_BPF and CAP_PERFMON for it; epoll sets are used instead"
        }
        _ => "it needs Linux 6.3 with BTF; epoll sets are used instead",
    };
    Problem::new(WHAT, format!("{e:#}"), hint)
}

impl BpfArrivals {
    /// Loads and attaches the program.
    ///
    /// # Errors
    /// The kernel lacks a required feature, or the rights are missing.
    pub fn load() -> Result<BpfArrivals, Problem> {
        libbpf_rs::set_print(None);
        let mut place = MaybeUninit::uninit();
        let mut load = || -> libbpf_rs::Result<(MapHandle, MapHandle, Link)> {
            let skeleton = skeleton::ArrivalsSkelBuilder::default().open(&mut place)?.load()?;
            let gangs = MapHandle::try_from(&skeleton.maps.gangs)?;
            let rings = MapHandle::try_from(&skeleton.maps.rings)?;
            // The link keeps the program alive, and the program its maps.
            Ok((gangs, rings, skeleton.progs.message_arrived.attach()?))
        };
        let (gangs, rings, link) = load().map_err(|e| refused(&e))?;
        let bell = Arc::new(ArrivalBell::of_ring(Ring::new(rings).map_err(|e| refused(&e))?));
        Ok(BpfArrivals { gangs, _link: link, bell, watched: BTreeMap::new() })
    }

    /// Lets the messages of a job ring, at most once in each `pause`.
    ///
    /// # Errors
    /// The job's cgroup no longer exists, or 4096 jobs are watched.
    pub fn watch(&mut self, job: &JobCgroup, pause: Duration) -> Result<(), Problem> {
        let gang = job.v2_dir().join("gang");
        let failed = |why: String| Problem::new(WHAT, format!("{}: {why}", gang.display()), "see dmesg");
        // On 64-bit machines a cgroup's number is the inode number of its directory.
        let cgroup = std::fs::metadata(&gang).map_err(|e| failed(e.to_string()))?.ino();
        let value: Vec<u8> = [job.id(), pause.as_nanos() as u64, 0].into_iter().flat_map(u64::to_ne_bytes).collect();
        self.gangs.update(&cgroup.to_ne_bytes(), &value, MapFlags::ANY).map_err(|e| failed(e.to_string()))?;
        self.watched.insert(job.id(), cgroup);
        Ok(())
    }

    /// Stops the ringing of a job's messages.
    pub fn forget(&mut self, job: u64) {
        if let Some(cgroup) = self.watched.remove(&job) {
            // It exists, as only this removes it.
            let _ = self.gangs.delete(&cgroup.to_ne_bytes());
        }
    }

    /// The bell, which becomes readable when a message arrives for a watched job.
    pub fn bell(&self) -> Arc<ArrivalBell> {
        Arc::clone(&self.bell)
    }
}

/// The reading end of the program's ring buffer.
pub(in crate::arrivals) struct Ring {
    /// Only the slot thread, which boosts, reads it, so the lock is never contended.
    buffer: Mutex<RingBuffer<'static>>,
    epoll: i32,
    found: Arc<FoundJobs>,
    _map: MapHandle,
}

struct FoundJobs {
    count: AtomicUsize,
    jobs: [AtomicU64; ANSWER_MAX],
}

impl Ring {
    fn new(map: MapHandle) -> libbpf_rs::Result<Ring> {
        let found = Arc::new(FoundJobs { count: AtomicUsize::new(0), jobs: [const { AtomicU64::new(0) }; ANSWER_MAX] });
        let note = {
            let found = Arc::clone(&found);
            move |bytes: &[u8]| {
                let place = found.count.load(Relaxed);
                if let (Some(job), Ok(id)) = (found.jobs.get(place), bytes.try_into()) {
                    job.store(u64::from_ne_bytes(id), Relaxed);
                    found.count.store(place + 1, Relaxed);
                }
                0
            }
        };
        let mut builder = RingBufferBuilder::new();
        builder.add(&map, note)?;
        let buffer = builder.build()?;
        let epoll = buffer.epoll_fd();
        Ok(Ring { buffer: Mutex::new(buffer), epoll, found, _map: map })
    }

    pub(in crate::arrivals) fn answer(&self, tell: &mut dyn FnMut(u64)) {
        let Ok(buffer) = self.buffer.try_lock() else { return };
        self.found.count.store(0, Relaxed);
        buffer.consume_raw();
        self.found.jobs[..self.found.count.load(Relaxed)].iter().for_each(|job| tell(job.load(Relaxed)));
    }
}

impl AsFd for Ring {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor belongs to the buffer, which lives as long as self.
        unsafe { BorrowedFd::borrow_raw(self.epoll) }
    }
}

impl fmt::Debug for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ring").finish_non_exhaustive()
    }
}
