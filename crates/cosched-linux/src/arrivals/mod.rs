//! Who has a message waiting.
//!
//! The problem: which jobs of this node have unread messages must be known every millisecond or two (periodic boost), or at once
//! (demand-based coscheduling), at a cost that nobody notices. A dump of all sockets by sock_diag walks the whole TCP hash table of one
//! network namespace: measured (examples/arrivals_cost.rs) it is tens of times dearer than what follows, and sees neither Unix sockets nor
//! other namespaces.
//!
//! The rule: the sockets of a job's processes are duplicated for a moment (pidfd_getfd, Linux 5.6), put into an epoll set of that job, and
//! our duplicates closed at once. The kernel keeps such a registration exactly as long as the program's own open file description: it
//! holds nothing open, needs no removal, and does not care for namespaces. A look is one `epoll_wait` per job, whatever the number of
//! its sockets. New processes and sockets are found by walking /proc/PID/fd at a bounded rate.
//!
//! Counted are connected stream sockets and all datagram sockets of the families inet, inet6, unix and vsock. Not counted: listening
//! sockets, sockets at their end with nothing left to read, and pipes, which programs also use to keep things in (the tokens of make).

mod bell;
mod bpf;
mod scan;
mod sets;

pub use bell::ArrivalBell;
pub use bpf::BpfArrivals;
pub use sets::JobSockets;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use crate::observe::monotonic_ns;
use crate::problem::Problem;
use scan::{Door, Found};
use sets::Verdict;

/// The shortest and the longest time between two scans of a job.
const SCAN_PERIOD_NS_MIN: u64 = 100_000_000;
const SCAN_PERIOD_NS_MAX: u64 = 5_000_000_000;
/// A scan may cost this part of the time until the next one.
const SCAN_COST_PART: u64 = 400;

/// What one scan of a job's processes found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scan {
    /// Sockets that are watched from now on.
    pub added: usize,
    /// Sockets at their end that are watched no more.
    pub ended: usize,
    /// Processes whose descriptors the kernel does not let us see.
    pub refused: usize,
    /// Why, when there are such.
    pub problem: Option<Problem>,
    /// How long the scan took, in nanoseconds.
    pub cost_ns: u64,
}

/// What is remembered of a socket, so that it is duplicated once only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    Watched,
    /// At its end, or of a kind that brings no messages.
    Ignored,
}

#[derive(Debug)]
struct Job {
    sockets: Arc<JobSockets>,
    /// By inode number, which names a socket as long as it lives.
    known: HashMap<u64, Known>,
    next_scan_ns: u64,
}

/// The watched sockets of all jobs. One thread scans; [`JobSockets`] and [`ArrivalBell`] are for another one, which looks.
#[derive(Debug)]
pub struct Arrivals {
    jobs: BTreeMap<u64, Job>,
    bell: Arc<ArrivalBell>,
    door: Door,
}

impl Arrivals {
    /// Watches nothing yet.
    ///
    /// # Errors
    /// When this kernel has no pidfd_getfd (before Linux 5.6, or forbidden by a sandbox), or gives no epoll set.
    pub fn new() -> Result<Arrivals, Problem> {
        let no_set = |e: rustix::io::Errno| {
            Problem::new(
                "waiting messages cannot be watched",
                format!("no epoll set: {e}"),
                "see the limit of open files",
            )
        };
        let door = Door::open()?;
        Ok(Arrivals { jobs: BTreeMap::new(), bell: Arc::new(ArrivalBell::new().map_err(no_set)?), door })
    }

    /// Starts to watch a job, or returns what watches it already. With `ring` its messages also ring the bell (demand-based coscheduling).
    ///
    /// # Errors
    /// When the kernel gives no epoll set: too many open files.
    pub fn watch(&mut self, job: u64, ring: bool) -> Result<Arc<JobSockets>, Problem> {
        let failed = |e: rustix::io::Errno| {
            Problem::new(
                format!("the messages of job {job} cannot be watched"),
                e.to_string(),
                "see the limit of open files",
            )
        };
        if let Some(known) = self.jobs.get(&job) {
            self.bell.set(&known.sockets, ring).map_err(failed)?;
            return Ok(Arc::clone(&known.sockets));
        }
        let sockets = Arc::new(JobSockets::new(job).map_err(failed)?);
        self.bell.set(&sockets, ring).map_err(failed)?;
        self.jobs.insert(job, Job { sockets: Arc::clone(&sockets), known: HashMap::new(), next_scan_ns: 0 });
        Ok(sockets)
    }

    /// Watches a job no more. Whoever still holds its [`JobSockets`] sees no message in it.
    pub fn forget(&mut self, job: u64) {
        if let Some(job) = self.jobs.remove(&job) {
            // Fails only when it does not ring.
            let _ = self.bell.set(&job.sockets, false);
            job.sockets.close();
        }
    }

    /// True when the descriptors of a watched job should be read again: its time has come, or a socket has come to its end.
    pub fn scan_due(&self, job: u64, now_ns: u64) -> bool {
        self.jobs.get(&job).is_some_and(|job| now_ns >= job.next_scan_ns)
    }

    /// Reads the descriptors of a job's processes: watches new sockets, and no more those that are at their end. The next scan is due
    /// so much later that scans cost at most 1/400 of the time, but in at most 5 s. A job that is not watched has no scan.
    ///
    /// # Errors
    /// When the kernel's memory for epoll is used up. Processes that may not be looked into are counted, and no error.
    pub fn rescan(&mut self, job: u64, pids: &[i32]) -> Result<Scan, Problem> {
        let start_ns = monotonic_ns();
        let mut scan = Scan::default();
        let Some(state) = self.jobs.get_mut(&job) else { return Ok(scan) };
        let at_end = state.sockets.at_end();
        let mut seen = HashSet::new();
        let mut failed = None;
        for &pid in pids {
            let visited = scan::sockets_of(pid, |inode, pidfd, number| {
                if !seen.insert(inode) {
                    return Ok(());
                }
                let ended = at_end.contains(&inode);
                if state.known.contains_key(&inode) && !ended {
                    return Ok(());
                }
                let Some(found) = self.door.pass(pidfd, number, inode, ended, |socket| {
                    if ended { state.sockets.drop_if_empty(socket) } else { state.sockets.add(socket, inode) }
                })?
                else {
                    return Ok(());
                };
                match found {
                    Found::Watch(Ok(Verdict::Added)) => {
                        scan.added += 1;
                        state.known.insert(inode, Known::Watched);
                    }
                    Found::Watch(Ok(Verdict::Dropped)) => {
                        scan.ended += 1;
                        state.known.insert(inode, Known::Ignored);
                    }
                    Found::Watch(Ok(Verdict::Kept)) | Found::Later => {}
                    Found::Watch(Err(e)) => failed = Some(e),
                    Found::Ignore => {
                        state.known.insert(inode, Known::Ignored);
                    }
                }
                Ok(())
            });
            if let Err(problem) = visited {
                scan.refused += 1;
                scan.problem = Some(problem);
            }
        }
        // What no process has any more is closed, and its number may come back.
        state.known.retain(|inode, _| seen.contains(inode));
        let watched = state.known.values().filter(|&&known| known == Known::Watched).count();
        state.sockets.set_count(watched);
        let now_ns = monotonic_ns();
        scan.cost_ns = now_ns - start_ns;
        let pause_ns = scan.cost_ns.saturating_mul(SCAN_COST_PART).clamp(SCAN_PERIOD_NS_MIN, SCAN_PERIOD_NS_MAX);
        state.next_scan_ns = now_ns + pause_ns;
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

    /// What becomes readable when a message arrives for a job that rings.
    pub fn bell(&self) -> Arc<ArrivalBell> {
        Arc::clone(&self.bell)
    }

    /// How many sockets are watched.
    pub fn sockets(&self) -> usize {
        self.jobs.values().map(|job| job.sockets.count()).sum()
    }
}
