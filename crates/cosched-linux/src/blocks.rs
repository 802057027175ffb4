//! How often the threads of a job give up their CPUs because they wait (voluntary switches, /proc/TID/status).

use std::collections::BTreeMap;
use std::fs::File;

use crate::job::JobCgroup;
use crate::thread::voluntary_switches;

/// At most this number of threads is read, as a sample of all; each costs some 20 µs.
const THREADS_MAX: usize = 16;

/// The counters at the last sample, by thread.
#[derive(Debug, Clone, Default)]
pub struct Blocks(BTreeMap<i32, u64>);

impl Blocks {
    /// How often they have blocked since the last sample; 0 at the first one. Threads that are new since then do not count.
    pub fn look(&mut self, job: &JobCgroup) -> u64 {
        let threads = job.some_threads();
        let each = threads.len().div_ceil(THREADS_MAX).max(1);
        let count = |tid: i32| Some((tid, voluntary_switches(&File::open(format!("/proc/{tid}/status")).ok()?)?));
        let before = std::mem::take(&mut self.0);
        self.0 = threads.into_iter().step_by(each).filter_map(count).collect();
        let since = |(tid, now): (&i32, &u64)| Some(now.saturating_sub(*before.get(tid)?));
        self.0.iter().filter_map(since).sum::<u64>() * each as u64
    }
}
