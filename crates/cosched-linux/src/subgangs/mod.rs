//! Processes of one job, or programs of several ranks in it, that take turns: a thread that looks for such jobs and changes whose turn it is.
//!
//! The rule is core's (`policy/subgangs.rs`). What a turn is here: the threads of the processes that wait for theirs are of the class SCHED_IDLE, so that
//! those of the process whose turn it is come first on every CPU, and CPU time that these leave is used. Nothing is stopped. A thread that has a class
//! of its own keeps it.
//!
//! Whatever ends the turns (fewer processes, another plan, the daemon's end, the guard), the threads are of the default class again: the cgroup of a
//! job that has subgangs is marked.

mod class;
mod job;
mod programs;
mod spread;

pub(crate) use class::end_all;
pub use class::forget;

use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::job::JobCgroup;
use crate::observe::thread_cpu_ns;
use crate::thread::{current_tid, is_privileged};
use class::set_behind;
use job::JobSubgangs;

/// What is due within this time is done at one wake-up.
const TOGETHER: Duration = Duration::from_millis(20);

/// After that it does nothing for as many times the CPU time that it took, up to a time: users can make many threads, which are files to read. So turns
/// become longer, not dearer.
const PAUSE: u32 = 30;
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// The jobs that are looked at, each with the number of its CPUs.
type Jobs = BTreeMap<u64, (JobCgroup, u32)>;

/// The thread; it ends with this handle.
#[derive(Debug)]
pub struct Subgangs {
    told: BTreeMap<u64, u32>,
    orders: Sender<Jobs>,
    thread: JoinHandle<()>,
}

impl Subgangs {
    /// Starts the thread. `None` where the class cannot be left again: for that the kernel wants CAP_SYS_NICE, in the initial user namespace.
    ///
    /// # Errors
    /// The kernel gives no thread.
    pub fn start() -> io::Result<Option<Subgangs>> {
        let name = |what: &str| std::thread::Builder::new().name(what.into());
        // A thread that waits, as one that was behind others might get no CPU to come back by itself.
        let (tids, tid) = channel();
        let (done, until) = channel::<()>();
        let waits = name("subgangs-try").spawn(move || {
            let _ = tids.send(current_tid());
            let _ = until.recv();
        })?;
        let comes_back = tid.recv().is_ok_and(|tid| set_behind(tid, true) && set_behind(tid, false));
        drop(done);
        let _ = waits.join();
        if !is_privileged() || !comes_back {
            return Ok(None);
        }
        let (orders, told) = channel();
        let thread = name("subgangs").spawn(move || serve(&told))?;
        Ok(Some(Subgangs { told: BTreeMap::new(), orders, thread }))
    }

    /// From now on these jobs are looked at, and no others.
    pub fn set(&mut self, jobs: Jobs) {
        let numbers = jobs.iter().map(|(id, (_, cpus))| (*id, *cpus)).collect();
        if self.told != numbers {
            self.told = numbers;
            // The receiver lives as long as this sender.
            let _ = self.orders.send(jobs);
        }
    }

    /// Ends all turns, and the thread.
    pub fn end(self) {
        drop(self.orders);
        // A thread that panicked has already reported it.
        let _ = self.thread.join();
    }
}

fn serve(orders: &Receiver<Jobs>) {
    let mut jobs: BTreeMap<u64, JobSubgangs> = BTreeMap::new();
    let mut not_before = Instant::now();
    loop {
        let order = match jobs.values().map(JobSubgangs::next_at).min() {
            None => orders.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(at) => orders.recv_timeout(at.max(not_before).saturating_duration_since(Instant::now())),
        };
        let begin_ns = thread_cpu_ns();
        match order {
            Ok(wanted) => {
                jobs.retain(|id, _| wanted.contains_key(id));
                for (id, (cgroup, cpus)) in wanted {
                    jobs.entry(id).or_insert_with(|| JobSubgangs::new(cgroup)).set_cpus(cpus);
                }
            }
            Err(RecvTimeoutError::Timeout) => {
                let now = Instant::now();
                let until = now + TOGETHER;
                jobs.values_mut().filter(|job| job.next_at() <= until).for_each(|job| job.step(now, until));
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
        let worked = Duration::from_nanos(thread_cpu_ns() - begin_ns);
        not_before = Instant::now() + (PAUSE * worked).min(PAUSE_MAX);
    }
}
