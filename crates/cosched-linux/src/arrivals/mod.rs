//! Detects which jobs have a message waiting.
//!
//! The problem: which jobs of this node have unread messages must be known every millisecond or two (periodic boost), or at once (demand-based
//! coscheduling), at a negligible cost. A dump of all sockets by sock_diag walks the whole TCP hash table of one network namespace: measured
//! (examples/arrivals_cost.rs) it is tens of times more expensive than what follows, and covers neither Unix sockets nor other namespaces.
//!
//! The rule: the sockets of a job's processes are duplicated for a moment (pidfd_getfd, Linux 5.6), put into an epoll set of that job, and our
//! duplicates closed at once. The kernel keeps such a registration exactly as long as the program's own open file description: it holds nothing open,
//! needs no removal, and does not depend on namespaces. A sample is one `epoll_wait` per job, whatever the number of its sockets. New processes and
//! sockets are found by walking /proc/PID/fd at a bounded rate, in a thread for each user ([`Watchers`]): closing the last descriptor of a socket
//! blocks for as long as its user has set (SO_LINGER), and the last one can be ours.
//!
//! Counted are connected stream sockets and all datagram sockets of the families inet, inet6, unix and vsock. Not counted: listening sockets, closed
//! connections with nothing left to read, and pipes, which programs also use as storage (the tokens of make).

mod bell;
mod bpf;
mod scan;
mod sets;
mod watchers;

pub use bell::ArrivalBell;
pub use bpf::BpfArrivals;
pub use sets::JobSockets;
pub use watchers::Watchers;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::io::Errno;

use crate::observe::{monotonic_ns, thread_cpu_ns};
use crate::problem::Problem;
use scan::{Door, Found};
use sets::Verdict;

/// The shortest and the longest time between two scans of a job.
const SCAN_PERIOD_NS_MIN: u64 = 100_000_000;
const SCAN_PERIOD_NS_MAX: u64 = 5_000_000_000;
/// The inverses of the parts of the time that scans may use: completed ones, and those that stopped before the end.
const SCAN_COST_PART: u64 = 400;
const ROUND_COST_PART: u64 = 40;
/// A scan stops after this CPU time, and the next one continues where it stopped.
const ROUND_CPU_NS: u64 = 25_000_000;
/// The limit on the watched sockets of one job, and so on the kernel's memory for epoll, which all jobs share.
const SOCKETS_MAX: usize = 16_384;

/// The result of one scan of a job's processes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scan {
    /// Sockets that are newly watched.
    pub added: usize,
    /// Closed connections that are no longer watched.
    pub ended: usize,
    /// Sockets that are not watched, as there are too many.
    pub left_out: usize,
    /// True when there was too much for one scan: the next one continues where this one stopped.
    pub unfinished: bool,
    /// Processes whose descriptors the kernel does not let us read.
    pub refused: usize,
    /// The reason, if there are such processes.
    pub problem: Option<Problem>,
    /// The CPU time that the scan took, in nanoseconds.
    pub cost_ns: u64,
}

/// The state of a known socket, so that it is duplicated only once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    Watched,
    /// A closed connection, or of a kind that brings no messages.
    Ignored,
}

#[derive(Debug)]
struct Job {
    sockets: Arc<JobSockets>,
    /// By inode number, which identifies a socket as long as it lives.
    known: HashMap<u64, Known>,
    /// The sockets that this walk through all processes has met.
    seen: HashSet<u64>,
    /// The process and its descriptor at which the walk continues.
    stopped_at: Option<(i32, i32)>,
    next_scan_ns: u64,
}

/// The watched sockets of all jobs. One thread scans; [`JobSockets`] and [`ArrivalBell`] are for another thread, which samples.
#[derive(Debug)]
pub struct Arrivals {
    jobs: BTreeMap<u64, Job>,
    bell: Arc<ArrivalBell>,
    door: Door,
}

impl Arrivals {
    /// Makes a set without any job.
    ///
    /// # Errors
    /// This kernel has no pidfd_getfd (before Linux 5.6, or forbidden by a sandbox), or gives no epoll set.
    pub fn new() -> Result<Arrivals, Problem> {
        let no_set = |e: rustix::io::Errno| {
            Problem::new(
                "waiting messages cannot be watched",
                format!("no epoll set: {e}"),
                "check the limit of open files",
            )
        };
        Arrivals::with_bell(Arc::new(ArrivalBell::new().map_err(no_set)?))
    }

    /// Makes a set without any job, with an existing bell.
    fn with_bell(bell: Arc<ArrivalBell>) -> Result<Arrivals, Problem> {
        Ok(Arrivals { jobs: BTreeMap::new(), bell, door: Door::open()? })
    }

    /// Starts to watch a job, or returns its sockets if it is already watched. With `ring` its messages also ring the bell (demand-based
    /// coscheduling).
    ///
    /// # Errors
    /// The kernel gives no epoll set: too many open files.
    pub fn watch(&mut self, job: u64, ring: bool) -> Result<Arc<JobSockets>, Problem> {
        let failed = |e: rustix::io::Errno| {
            Problem::new(
                format!("the messages of job {job} cannot be watched"),
                e.to_string(),
                "check the limit of open files",
            )
        };
        if let Some(known) = self.jobs.get(&job) {
            self.bell.set(&known.sockets, ring).map_err(failed)?;
            return Ok(Arc::clone(&known.sockets));
        }
        let sockets = Arc::new(JobSockets::new(job).map_err(failed)?);
        self.bell.set(&sockets, ring).map_err(failed)?;
        self.scan_for(Arc::clone(&sockets));
        Ok(sockets)
    }

    /// Includes the sockets of a job in scans from now on.
    fn scan_for(&mut self, sockets: Arc<JobSockets>) {
        let (known, seen) = (HashMap::new(), HashSet::new());
        self.jobs.insert(sockets.job(), Job { sockets, known, seen, stopped_at: None, next_scan_ns: 0 });
    }

    /// Stops watching a job. A holder of its [`JobSockets`] sees no more messages in it.
    pub fn forget(&mut self, job: u64) {
        if let Some(job) = self.jobs.remove(&job) {
            // Fails only if the job does not ring.
            let _ = self.bell.set(&job.sockets, false);
            job.sockets.close();
        }
    }

    /// When the descriptors of a watched job should be read again; `None` if it is not watched.
    pub fn next_scan_ns(&self, job: u64) -> Option<u64> {
        self.jobs.get(&job).map(|job| job.next_scan_ns)
    }

    /// Reads the descriptors of a job's processes, which are given in ascending order: starts to watch new sockets, and stops watching closed
    /// connections. It stops after some CPU time, and the next scan continues there. The next one is due late enough that scans use at most 1/400
    /// of the time (1/40 while there is more to read), but in at most 5 s. A job that is not watched is not scanned.
    ///
    /// This may block for as long as the owner of the processes likes: nothing else may depend on the calling thread.
    ///
    /// # Errors
    /// The kernel's memory for epoll is used up. Processes that may not be inspected are counted, and are no error.
    pub fn rescan(&mut self, job: u64, pids: &[i32]) -> Result<Scan, Problem> {
        let start_ns = thread_cpu_ns();
        let Some(state) = self.jobs.get_mut(&job) else { return Ok(Scan::default()) };
        let from = state.stopped_at.take();
        if from.is_none() {
            state.seen.clear();
        }
        let at_end = state.sockets.at_end();
        let mut walk = Walk { door: &mut self.door, job: state, at_end, scan: Scan::default(), failed: None };
        for &pid in pids {
            let first = match from {
                Some((stopped, _)) if pid < stopped => continue,
                Some((stopped, number)) if pid == stopped => number,
                _ => 0,
            };
            let may_go_on = || thread_cpu_ns() - start_ns < ROUND_CPU_NS;
            let met = |inode, pidfd: &OwnedFd, number| walk.meet(inode, pidfd, number);
            match scan::sockets_of(pid, first, may_go_on, met) {
                Ok(None) => {}
                Ok(Some(number)) => {
                    walk.job.stopped_at = Some((pid, number));
                    break;
                }
                Err(problem) => {
                    walk.scan.refused += 1;
                    walk.scan.problem = Some(problem);
                }
            }
        }
        let Walk { mut scan, failed, .. } = walk;
        scan.unfinished = state.stopped_at.is_some();
        if !scan.unfinished {
            // A socket that no process has any more is closed, and its number may be reused.
            state.known.retain(|inode, _| state.seen.contains(inode));
        }
        let watched = state.known.values().filter(|&&known| known == Known::Watched).count();
        state.sockets.set_count(watched);
        scan.cost_ns = thread_cpu_ns() - start_ns;
        let part = if scan.unfinished { ROUND_COST_PART } else { SCAN_COST_PART };
        let pause_ns = scan.cost_ns.saturating_mul(part).clamp(SCAN_PERIOD_NS_MIN, SCAN_PERIOD_NS_MAX);
        state.next_scan_ns = monotonic_ns() + pause_ns;
        match failed {
            None => Ok(scan),
            Some(e) => Err(Problem::new(
                format!("not all messages of job {job} can be watched"),
                e.to_string(),
                "raise fs.epoll.max_user_watches",
            )),
        }
    }

    /// Names every watched job that has an unread message.
    pub fn unread(&self, tell: &mut dyn FnMut(u64)) {
        for (&id, job) in &self.jobs {
            if job.sockets.has_message() {
                tell(id);
            }
        }
    }

    /// The bell, which becomes readable when a message arrives for a job that rings.
    pub fn bell(&self) -> Arc<ArrivalBell> {
        Arc::clone(&self.bell)
    }

    /// The number of watched sockets.
    pub fn sockets(&self) -> usize {
        self.jobs.values().map(|job| job.sockets.count()).sum()
    }
}

/// One scan of one job.
struct Walk<'a> {
    door: &'a mut Door,
    job: &'a mut Job,
    /// The sockets of closed connections.
    at_end: HashSet<u64>,
    scan: Scan,
    /// Why a socket could not be watched.
    failed: Option<Errno>,
}

impl Walk<'_> {
    /// Handles a process's socket with descriptor `number`.
    fn meet(&mut self, inode: u64, pidfd: &OwnedFd, number: i32) -> Result<(), Errno> {
        let Walk { job: Job { sockets, known, seen, .. }, .. } = self;
        let ended = self.at_end.contains(&inode);
        if seen.len() >= SOCKETS_MAX && !ended && !seen.contains(&inode) {
            self.scan.left_out += 1;
            return Ok(());
        }
        if !seen.insert(inode) || known.contains_key(&inode) && !ended {
            return Ok(());
        }
        let found = self.door.pass(pidfd, number, inode, ended, |socket| {
            if ended { sockets.drop_if_empty(socket) } else { sockets.add(socket, inode) }
        })?;
        match found {
            Some(Found::Watch(Ok(Verdict::Added))) => {
                self.scan.added += 1;
                known.insert(inode, Known::Watched);
            }
            Some(Found::Watch(Ok(Verdict::Dropped))) => {
                self.scan.ended += 1;
                known.insert(inode, Known::Ignored);
            }
            Some(Found::Watch(Ok(Verdict::Kept)) | Found::Later) | None => {}
            Some(Found::Watch(Err(e))) => self.failed = Some(e),
            Some(Found::Ignore) => {
                known.insert(inode, Known::Ignored);
            }
        }
        Ok(())
    }
}
