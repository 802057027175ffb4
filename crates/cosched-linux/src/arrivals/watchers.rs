//! The watched sockets of all jobs, read by one thread for each user.
//!
//! The problem: to watch a socket we hold it for a moment. If its program closes it in that moment, our descriptor is the last one, and our own close
//! blocks for as long as the user has set: by SO_LINGER, or by a file system of the user's own, if another file is put under the number. The rule:
//! only a thread that reads the sockets of this user alone waits for that. There is one thread per user, it is not replaced, and it is kept after the
//! user's jobs have ended for as long as it hangs: a user costs one thread at most.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Release};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::{ArrivalBell, Arrivals, JobSockets, SOCKETS_MAX, Scan};
use crate::job::JobCgroup;
use crate::observe::{monotonic_ns, thread_cpu_ns};
use crate::problem::Problem;

/// The limit on the users whose sockets are watched at a time.
const USERS_MAX: usize = 256;
/// A scan that takes longer than this is blocked by its user: its CPU time is bounded to far less.
const STUCK_NS: u64 = 5_000_000_000;
const STACK_BYTES: usize = 256 << 10;
/// After a scan a user's thread rests for this multiple of the scan's cost: all jobs of a user together use 5 % of a CPU.
const USER_COST_PART: u64 = 20;
const HOUR_NS: u64 = 3_600_000_000_000;

/// The state that one of the threads shares with its owner.
#[derive(Debug, Default)]
struct Progress {
    /// Since when it scans; 0 while it does not.
    busy_since_ns: AtomicU64,
    /// The number of orders that it has carried out.
    done: AtomicU64,
    /// The problem of the last scan.
    problem: Mutex<Option<Problem>>,
}

#[derive(Debug)]
enum Order {
    Watch(JobCgroup, Arc<JobSockets>),
    Forget(u64),
}

/// One user's jobs and the thread that reads their sockets.
#[derive(Debug)]
struct User {
    orders: Sender<Order>,
    sent: u64,
    progress: Arc<Progress>,
    jobs: BTreeMap<u64, Arc<JobSockets>>,
}

/// The watched sockets of all jobs. None of its calls waits for a user.
#[derive(Debug)]
pub struct Watchers {
    bell: Arc<ArrivalBell>,
    users: BTreeMap<u32, User>,
}

impl Watchers {
    /// Makes a set without any job.
    ///
    /// # Errors
    /// As [`Arrivals::new`].
    pub fn new() -> Result<Watchers, Problem> {
        // Also tests whether this kernel supports it at all.
        Ok(Watchers { bell: Arrivals::new()?.bell(), users: BTreeMap::new() })
    }

    /// Starts to watch a job of this user, or returns its sockets if it is already watched. With `ring` its messages also ring the bell.
    ///
    /// # Errors
    /// The kernel gives no epoll set or no thread, or too many users have jobs that are watched.
    pub fn watch(&mut self, uid: u32, job: &JobCgroup, ring: bool) -> Result<Arc<JobSockets>, Problem> {
        let failed = |why: String| {
            let what = format!("the messages of job {} cannot be watched", job.id());
            Problem::new(what, why, "check the limits of open files and of threads")
        };
        self.drop_idle();
        let is_new = !self.users.contains_key(&uid);
        if is_new && self.users.len() >= USERS_MAX {
            return Err(failed(format!("those of {USERS_MAX} other users are")));
        }
        if is_new {
            self.users.insert(uid, User::start(uid, &self.bell).map_err(|e| failed(e.to_string()))?);
        }
        let Some(user) = self.users.get_mut(&uid) else { return Err(failed("no thread".into())) };
        let sockets = match user.jobs.get(&job.id()) {
            Some(sockets) => Arc::clone(sockets),
            None => Arc::new(JobSockets::new(job.id()).map_err(|e| failed(e.to_string()))?),
        };
        self.bell.set(&sockets, ring).map_err(|e| failed(e.to_string()))?;
        if user.jobs.insert(job.id(), Arc::clone(&sockets)).is_none() {
            user.order(Order::Watch(job.clone(), Arc::clone(&sockets)));
        }
        Ok(sockets)
    }

    /// Stops watching a job. A holder of its [`JobSockets`] sees no more messages in it.
    pub fn forget(&mut self, job: u64) {
        for user in self.users.values_mut() {
            if let Some(sockets) = user.jobs.remove(&job) {
                // Fails only if the job does not ring.
                let _ = self.bell.set(&sockets, false);
                sockets.close();
                user.order(Order::Forget(job));
            }
        }
        self.drop_idle();
    }

    /// The bell, which becomes readable when a message arrives for a job that rings.
    pub fn bell(&self) -> Arc<ArrivalBell> {
        Arc::clone(&self.bell)
    }

    /// The number of watched sockets.
    pub fn sockets(&self) -> usize {
        self.users.values().flat_map(|user| user.jobs.values()).map(|sockets| sockets.count()).sum()
    }

    /// Why messages of some user's jobs are not seen, if that is so.
    pub fn problem(&self) -> Option<Problem> {
        let now_ns = monotonic_ns();
        self.users.iter().find_map(|(&uid, user)| user.problem(uid, now_ns))
    }

    /// Ends the threads that are no longer needed. One that hangs is kept, so that no second one is started.
    fn drop_idle(&mut self) {
        self.users.retain(|_, user| !user.jobs.is_empty() || user.progress.done.load(Acquire) < user.sent);
    }
}

impl User {
    fn start(uid: u32, bell: &Arc<ArrivalBell>) -> Result<User, Box<dyn std::error::Error>> {
        let arrivals = Arrivals::with_bell(Arc::clone(bell))?;
        let (orders, taken) = mpsc::channel();
        let progress = Arc::new(Progress::default());
        let told = Arc::clone(&progress);
        let thread = std::thread::Builder::new().name(format!("scan-{uid}")).stack_size(STACK_BYTES);
        thread.spawn(move || work(arrivals, &taken, &told))?;
        Ok(User { orders, sent: 0, progress, jobs: BTreeMap::new() })
    }

    fn order(&mut self, order: Order) {
        // The thread lives as long as this end of the channel.
        if self.orders.send(order).is_ok() {
            self.sent += 1;
        }
    }

    fn problem(&self, uid: u32, now_ns: u64) -> Option<Problem> {
        let since_ns = self.progress.busy_since_ns.load(Acquire);
        if since_ns > 0 && now_ns.saturating_sub(since_ns) > STUCK_NS {
            return Some(Problem::new(
                "messages cannot be watched",
                format!("a socket or file of user {uid} blocks the daemon's thread (SO_LINGER?)"),
                "new sockets of this user's jobs are not seen until it returns; those of other users are",
            ));
        }
        self.progress.problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The thread's loop: carries out orders as they arrive, and scans when they are due.
fn work(mut arrivals: Arrivals, orders: &Receiver<Order>, progress: &Progress) {
    let mut cgroups: BTreeMap<u64, JobCgroup> = BTreeMap::new();
    let mut rested_at_ns = 0;
    loop {
        let next =
            cgroups.values().filter_map(|job| Some((arrivals.next_scan_ns(job.id())?, job))).min_by_key(|it| it.0);
        let wait_ns = next.map_or(HOUR_NS, |(due_ns, _)| due_ns.max(rested_at_ns).saturating_sub(monotonic_ns()));
        match (orders.recv_timeout(Duration::from_nanos(wait_ns)), next) {
            (Ok(order), _) => {
                match order {
                    Order::Watch(cgroup, sockets) => {
                        arrivals.scan_for(sockets);
                        cgroups.insert(cgroup.id(), cgroup);
                    }
                    Order::Forget(job) => {
                        arrivals.forget(job);
                        cgroups.remove(&job);
                    }
                }
                progress.done.fetch_add(1, Release);
            }
            (Err(RecvTimeoutError::Timeout), Some((_, cgroup))) => {
                progress.busy_since_ns.store(monotonic_ns(), Release);
                let (cost_ns, problem) = scan(&mut arrivals, cgroup);
                progress.busy_since_ns.store(0, Release);
                *progress.problem.lock().unwrap_or_else(PoisonError::into_inner) = problem;
                rested_at_ns = monotonic_ns() + cost_ns * USER_COST_PART;
            }
            (Err(RecvTimeoutError::Timeout), None) => {}
            (Err(RecvTimeoutError::Disconnected), _) => return,
        }
    }
}

/// One scan: its cost, and the problem if there was one.
fn scan(arrivals: &mut Arrivals, cgroup: &JobCgroup) -> (u64, Option<Problem>) {
    let start_ns = thread_cpu_ns();
    // A job whose cgroup is about to be removed has no processes.
    let pids = cgroup.procs().unwrap_or_default();
    let scanned = arrivals.rescan(cgroup.id(), &pids);
    let problem = match scanned {
        Ok(Scan { left_out: 0, problem, .. }) => problem,
        Ok(Scan { left_out, .. }) => Some(Problem::new(
            format!("not all messages of job {} are watched", cgroup.id()),
            format!("it has {left_out} sockets too many"),
            format!("{SOCKETS_MAX} are watched; run it under another policy than pb and dcs"),
        )),
        Err(problem) => Some(problem),
    };
    (thread_cpu_ns() - start_ns, problem)
}
