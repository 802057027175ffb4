//! Subgangs: which processes of one job take turns with each other, and whose turn it is.
//!
//! The problem: a job of several processes that each have threads which meet (joblib's workers with OpenMP, tests in parallel with BLAS) is one gang, and
//! has more threads that spin than CPUs: each waits for one that is queued behind a spinner of another process (decision 0094).
//! The rule is coscheduling once more (Ousterhout 1982), inside of the job: processes in which more than one thread at a time is ready to run take
//! turns. The one that has had the least CPU time is next; the others get what it leaves.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// The least number of a process's threads that ran or were ready at a time, in the mean (3/2). One whose threads wait for each other asleep has 1.
const READY: (u64, u64) = (3, 2);
/// How long a turn is, in ns: long beside what it costs the CPUs' caches, short beside what a user waits for.
pub const TURN_NS: u64 = 50_000_000;

/// A process of the job, between two looks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: i32,
    /// How long its threads ran or were ready to run, in ns, all together.
    pub ready_ns: u64,
    /// It is known to wait for other processes of the job: a rank of MPI's.
    pub is_rank: bool,
}

/// The processes that are to take turns, in the order given; none where fewer than two are, or where all of their threads find a CPU. `present` is how
/// many do. `cpu_ns` is what the whole job has used on its `cpus` since the last look: a job that leaves some of it has no need of turns, and the time in
/// which it was stopped does not count. `None` while that is too little to tell: each has to have had a turn, as the kernel counts how long a thread was
/// ready when that runs again.
pub fn subgangs(present: usize, cpu_ns: u64, cpus: u32, processes: &[Process]) -> Option<Vec<i32>> {
    let window_ns = cpu_ns / u64::from(cpus.max(1));
    if window_ns < TURN_NS * (present as u64 + 1) {
        return None;
    }
    let is_subgang = |process: &&Process| !process.is_rank && READY.1 * process.ready_ns >= READY.0 * window_ns;
    let found = || processes.iter().filter(is_subgang);
    let ready_ns: u64 = found().map(|process| process.ready_ns).sum();
    let needed = found().count() >= 2 && ready_ns > cpu_ns;
    Some(found().filter(|_| needed).map(|process| process.pid).collect())
}

/// The CPU time that each process has had since it takes turns.
#[derive(Debug, Clone, Default)]
pub struct Subgangs {
    /// By process: its CPU time when it was last looked at, and what it has had.
    had: BTreeMap<i32, (u64, u64)>,
}

impl Subgangs {
    /// Whose turn it is, of these processes with their CPU times in ns; the first of equals. One that is new begins with what the one with the least has had.
    pub fn next(&mut self, now: &[(i32, u64)]) -> Option<i32> {
        let known = |(pid, cpu_ns): &(i32, u64)| {
            let (last_ns, had_ns) = self.had.get(pid)?;
            Some((*pid, (*cpu_ns, had_ns + cpu_ns.saturating_sub(*last_ns))))
        };
        let mut had: BTreeMap<i32, (u64, u64)> = now.iter().filter_map(known).collect();
        let least_ns = had.values().map(|(_, had_ns)| *had_ns).min().unwrap_or(0);
        for (pid, cpu_ns) in now {
            had.entry(*pid).or_insert((*cpu_ns, least_ns));
        }
        self.had = had;
        self.had.iter().min_by_key(|(_, (_, had_ns))| *had_ns).map(|(pid, _)| *pid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    const MS: u64 = 1_000_000;

    fn process(pid: i32, ready_ms: u64) -> Process {
        Process { pid, ready_ns: ready_ms * MS, is_rank: false }
    }

    fn found(cpu_ms: u64, cpus: u32, processes: &[Process]) -> Vec<i32> {
        subgangs(0, cpu_ms * MS, cpus, processes).unwrap()
    }

    #[test]
    fn two_processes_of_two_spinning_threads_take_turns_on_two_cpus() {
        // Stopped for the slots of others, the job has had both CPUs for 100 ms.
        let workers = [process(7, 3), process(8, 200), process(9, 150)];
        assert_eq!(found(200, 2, &workers), [8, 9]);
        assert_eq!(found(400, 4, &workers), [0; 0], "each thread has a CPU");
        assert_eq!(subgangs(0, 90 * MS, 2, &workers), None, "too short a time says nothing");
        assert_eq!(subgangs(2, 290 * MS, 2, &workers), None, "one of the two may not have had its turn");
        assert_eq!(subgangs(2, 300 * MS, 2, &workers), Some(vec![]), "one of them has done little in that time");
    }

    #[test]
    fn threads_that_wait_asleep_and_processes_of_one_thread_need_no_turns() {
        // PyTorch's: one of the two threads computes at a time.
        assert_eq!(found(200, 2, &[process(8, 110), process(9, 105)]), [0; 0]);
        // A compilation: many processes.
        assert_eq!(found(200, 2, &[1, 2, 3, 4].map(|pid| process(pid, 100))), [0; 0]);
        assert_eq!(found(200, 2, &[process(8, 800), process(9, 100)]), [0; 0], "one alone");
        let ranks = [8, 9].map(|pid| Process { is_rank: true, ..process(pid, 200) });
        assert_eq!(found(200, 2, &ranks), [0; 0], "they wait for each other");
    }

    #[test]
    fn whoever_has_had_the_least_is_next_and_none_waits_for_ever() {
        let mut subgangs = Subgangs::default();
        let mut cpu_ns = vec![(8, 5_000 * MS), (9, 10 * MS)];
        let mut got = [0, 0];
        for _ in 0..100 {
            // A turn is two CPUs for 50 ms, of which the other one gets a tenth.
            let next = subgangs.next(&cpu_ns).unwrap();
            for (pid, ns) in &mut cpu_ns {
                *ns += if *pid == next { 90 * MS } else { 10 * MS };
            }
            got[usize::from(next == 9)] += 1;
        }
        assert_eq!(got, [50, 50], "what they had before does not count");
        cpu_ns.push((12, 0));
        assert_eq!(
            (0..3).map(|_| subgangs.next(&cpu_ns)).collect::<Vec<_>>(),
            [Some(8); 3],
            "while none runs nothing changes"
        );
        cpu_ns.iter_mut().filter(|(pid, _)| *pid != 12).for_each(|(_, ns)| *ns += MS);
        assert_eq!(
            subgangs.next(&cpu_ns),
            Some(12),
            "a new one has not to make up for its lateness, nor has it an advantage"
        );
        assert_eq!(subgangs.next(&cpu_ns[..2]), Some(8), "one that has gone is forgotten");
        assert_eq!(subgangs.next(&[]), None);
    }
}
