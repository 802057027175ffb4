//! Subgangs: which processes of one job take turns with each other, and whose turn it is.
//!
//! The problem: a job of several processes that each have threads which meet (joblib's workers with OpenMP, tests in parallel with BLAS) is one gang, and
//! has more threads that spin than CPUs: each waits for one that is queued behind a spinner of another process (decision 0094).
//! The rule is coscheduling once more (Ousterhout 1982), inside of the job: processes in which more than one thread at a time is ready to run take
//! turns: as many as fit side by side, and next those that have waited the longest. The others get what they leave.

use alloc::vec::Vec;

/// The least number of a process's threads that run or are ready at a time, in the mean, for it to become a subgang (3/2) and to stay one (5/4). One
/// whose threads wait for each other asleep has 1.
const BECOMES: (u64, u64) = (3, 2);
const STAYS: (u64, u64) = (5, 4);
/// How much more than there are CPUs all of them together want at the least (5/4).
const CROWDED: (u64, u64) = (5, 4);
/// How long a turn is, in ns: long beside what it costs the CPUs' caches, short beside what a user waits for.
pub const TURN_NS: u64 = 50_000_000;

/// A process of the job, between two looks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: i32,
    /// How long its threads ran or were ready to run, in ns: all together, and the one that was so the longest.
    pub ready_ns: u64,
    /// See `ready_ns`.
    pub longest_ns: u64,
}

/// A process that takes turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subgang {
    /// Its number.
    pub pid: i32,
    /// How many of its threads want a CPU at a time.
    pub width: u32,
}

/// What became of a look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Look {
    /// The job has used too little CPU time since the last look to tell: each of its subgangs has to have had a turn, as the kernel counts how long a
    /// thread was ready when that runs again.
    TooSoon,
    /// The processes that would take turns.
    Found(Vec<Subgang>),
}

/// The subgangs of a job, and whose turn it is.
#[derive(Debug, Clone, Default)]
pub struct Subgangs {
    /// Those that have waited the longest first.
    queue: Vec<Subgang>,
    /// What the last look found: two have to agree, as programs have phases.
    last: Vec<i32>,
    /// The CPU time of the job at the begin of the turn.
    turn_ns: Option<u64>,
}

impl Subgangs {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.queue.len()
    }

    /// Their processes.
    pub fn pids(&self) -> impl Iterator<Item = i32> + '_ {
        self.queue.iter().map(|of| of.pid)
    }

    /// Whether this process is one.
    pub fn is(&self, pid: i32) -> bool {
        self.queue.iter().any(|of| of.pid == pid)
    }

    /// What the processes have done since the last look. `cpu_ns` is what the whole job has used on its `cpus`; the time in which it was stopped
    /// does not count.
    pub fn look(&self, cpu_ns: u64, cpus: u32, processes: &[Process]) -> Look {
        let cpus = u64::from(cpus.max(1));
        let busy_ns = cpu_ns / cpus;
        if busy_ns < TURN_NS * (self.queue.len() as u64 + 1) {
            return Look::TooSoon;
        }
        // Beside others, and where CPUs are left, the job's CPU time tells less than how long one of its threads was ready.
        let ran_ns = processes.iter().map(|process| process.longest_ns).fold(busy_ns, u64::max);
        let is_subgang = |process: &&Process| {
            let (by, least) = if self.is(process.pid) { (STAYS.1, STAYS.0) } else { (BECOMES.1, BECOMES.0) };
            by * process.ready_ns >= least * ran_ns
        };
        let found = || processes.iter().filter(is_subgang);
        let ready_ns: u64 = found().map(|process| process.ready_ns).sum();
        let needed = found().count() >= 2 && CROWDED.1 * ready_ns >= CROWDED.0 * cpus * ran_ns;
        let width = |process: &Process| ((process.ready_ns + ran_ns / 2) / ran_ns) as u32;
        let subgang = |process: &Process| Subgang { pid: process.pid, width: width(process) };
        Look::Found(found().filter(|_| needed).map(subgang).collect())
    }

    /// Takes what a look has found, if the one before has found the same processes. Returns whether others take turns now.
    pub fn take(&mut self, found: &[Subgang]) -> bool {
        let pids: Vec<i32> = found.iter().map(|of| of.pid).collect();
        let agree = core::mem::replace(&mut self.last, pids) == self.last;
        let is_new = agree && (found.len() != self.queue.len() || found.iter().any(|of| !self.is(of.pid)));
        if is_new {
            let width_of = |pid: i32| found.iter().find(|of| of.pid == pid).copied();
            let mut queue: Vec<Subgang> = self.queue.iter().filter_map(|of| width_of(of.pid)).collect();
            queue.extend(found.iter().filter(|of| !self.is(of.pid)));
            (self.queue, self.turn_ns) = (queue, None);
        }
        is_new
    }

    /// Processes have ended. Returns whether one of them was a subgang.
    pub fn forget(&mut self, lives: impl Fn(i32) -> bool) -> bool {
        let before = self.queue.len();
        self.queue.retain(|of| lives(of.pid));
        if self.queue.len() < 2 {
            self.queue.clear();
        }
        if self.queue.len() != before {
            self.turn_ns = None;
        }
        self.queue.len() != before
    }

    /// Those whose turn begins, once the job has used enough CPU time; `None` while those of the present ones last. While the job is stopped no turn ends.
    pub fn turn(&mut self, cpu_ns: u64, cpus: u32) -> Option<Vec<i32>> {
        let is_over = |begin_ns: u64| 4 * cpu_ns.saturating_sub(begin_ns) >= 3 * TURN_NS * u64::from(cpus.max(1));
        if self.queue.is_empty() || self.turn_ns.is_some_and(|begin_ns| !is_over(begin_ns)) {
            return None;
        }
        self.turn_ns = Some(cpu_ns);
        let mut left = cpus;
        let first = self.queue[0].pid;
        let (chosen, waiting): (Vec<Subgang>, Vec<Subgang>) =
            core::mem::take(&mut self.queue).into_iter().partition(|of| {
                let fits = of.pid == first || of.width <= left;
                left = left.saturating_sub(if fits { of.width } else { 0 });
                fits
            });
        let pids = chosen.iter().map(|of| of.pid).collect();
        self.queue = waiting;
        self.queue.extend(chosen);
        Some(pids)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    const MS: u64 = 1_000_000;

    /// `threads` of a process that are ready for this time each.
    fn process(pid: i32, threads: u64, each_ms: u64) -> Process {
        Process { pid, ready_ns: threads * each_ms * MS, longest_ns: each_ms * MS }
    }

    fn found(cpu_ms: u64, cpus: u32, processes: &[Process]) -> Vec<(i32, u32)> {
        match Subgangs::default().look(cpu_ms * MS, cpus, processes) {
            Look::Found(found) => found.into_iter().map(|of| (of.pid, of.width)).collect(),
            Look::TooSoon => panic!("long enough"),
        }
    }

    fn begun(all: &[(i32, u32)]) -> Subgangs {
        let all: Vec<Subgang> = all.iter().map(|(pid, width)| Subgang { pid: *pid, width: *width }).collect();
        let mut subgangs = Subgangs::default();
        assert!(!subgangs.take(&all) && subgangs.take(&all), "two looks have to agree");
        subgangs
    }

    #[test]
    fn processes_whose_threads_spin_and_want_more_than_the_cpus_are_subgangs() {
        assert_eq!(found(200, 2, &[process(7, 1, 3), process(8, 2, 100), process(9, 2, 90)]), [(8, 2), (9, 2)]);
        assert_eq!(found(400, 4, &[process(8, 4, 99), process(9, 2, 100)]), [(8, 4), (9, 2)]);
        assert_eq!(found(400, 4, &[process(8, 2, 100), process(9, 2, 101)]), [], "each thread has a CPU");
        assert_eq!(found(200, 2, &[process(8, 8, 100), process(9, 1, 100)]), [], "one alone");
        assert_eq!(found(200, 2, &[1, 2, 3, 4].map(|pid| process(pid, 1, 100))), [], "a compilation");
        // PyTorch's: one of the two threads computes at a time.
        assert_eq!(found(200, 2, &[process(8, 2, 55), process(9, 2, 52)]), []);
        // Beside a neighbour that takes half of each CPU.
        assert_eq!(found(200, 2, &[process(8, 1, 200), process(9, 1, 200)]), []);
        assert_eq!(found(6400, 64, &[process(8, 1, 100), process(9, 1, 100)]), []);
    }

    #[test]
    fn too_short_a_time_says_nothing_and_two_looks_have_to_agree() {
        let both = [process(8, 2, 100), process(9, 2, 90)];
        assert_eq!(Subgangs::default().look(90 * MS, 2, &both), Look::TooSoon);
        let mut subgangs = begun(&[(8, 2), (9, 2)]);
        assert_eq!(subgangs.look(290 * MS, 2, &both), Look::TooSoon, "one of the two may not have had its turn");
        let hardly = [process(8, 2, 100), Process { pid: 9, ready_ns: 190 * MS, longest_ns: 100 * MS }];
        assert!(matches!(subgangs.look(300 * MS, 2, &hardly), Look::Found(found) if found.len() == 2), "it stays one");
        assert!(!subgangs.take(&[]) && subgangs.count() == 2);
        assert!(subgangs.take(&[]) && subgangs.count() == 0);
    }

    #[test]
    fn as_many_as_fit_have_a_turn_and_none_waits_for_ever() {
        for (cpus, all) in [
            (2, &[(8, 2), (9, 2)][..]),
            (4, &[(8, 4), (9, 2), (10, 2), (11, 1)]),
            (64, &[(8, 64), (9, 8)]),
            (2, &[(8, 8), (9, 3)]),
        ] {
            let mut subgangs = begun(all);
            let mut turns = vec![0; all.len()];
            let mut cpu_ns = 0;
            for _ in 0..300 {
                let chosen = subgangs.turn(cpu_ns, cpus).unwrap();
                let width: u32 = all.iter().filter(|(pid, _)| chosen.contains(pid)).map(|(_, width)| width).sum();
                assert!(chosen.len() == 1 || width <= cpus, "{chosen:?}");
                assert_eq!(subgangs.turn(cpu_ns + TURN_NS, cpus), None, "the job was stopped for most of the time");
                all.iter()
                    .zip(&mut turns)
                    .filter(|((pid, _), _)| chosen.contains(pid))
                    .for_each(|(_, turns)| *turns += 1);
                cpu_ns += TURN_NS * u64::from(cpus);
            }
            assert!(turns.iter().all(|turns| *turns >= 100), "{turns:?} of 300 on {cpus}");
        }
    }

    #[test]
    fn one_that_ends_gives_its_turn_to_the_next_and_a_last_one_needs_none() {
        let mut subgangs = begun(&[(8, 2), (9, 2), (10, 2)]);
        assert_eq!(subgangs.turn(0, 2), Some(vec![8]));
        assert!(subgangs.forget(|pid| pid != 8));
        assert_eq!(subgangs.turn(1, 2), Some(vec![9]));
        assert!(!subgangs.forget(|pid| pid != 8), "it is known");
        assert!(subgangs.forget(|pid| pid != 9) && subgangs.count() == 0);
        assert_eq!(subgangs.turn(2, 2), None);
    }
}
