//! Subgangs: which processes of one job take turns with each other, and whose turn it is.
//!
//! The problem: a job of several processes that each have threads which meet (joblib's workers with OpenMP, tests in parallel with BLAS) is one gang, and
//! has more threads that spin than CPUs: each waits for one that is queued behind a spinner of another process (decision 0094).
//! The rule is coscheduling once more (Ousterhout 1982), inside of the job: processes in which more than one thread at a time is ready to run take
//! turns: as many as fit side by side, and next those that have waited the longest. The others get what they leave.
//! So do programs that launchers start side by side in one job (`ctest -j`, whose tests are MPI programs): the ranks of each wait for each other.

use alloc::vec::Vec;

/// The least number of a process's threads that run or are ready at a time, in the mean, for it to become a subgang (4/3), and of CPUs that it uses in
/// its turns to stay one (11/10). One whose threads wait for each other asleep has 1.
const BECOMES: (u64, u64) = (4, 3);
const STAYS: (u64, u64) = (11, 10);
/// How much more than there are CPUs all of them together want at the least (5/4).
const CROWDED: (u32, u32) = (5, 4);
/// How long a turn is, in ns: long beside what it costs the CPUs' caches, short beside what a user waits for.
pub const TURN_NS: u64 = 50_000_000;

/// A process of the job that is no subgang, between two looks. Of a subgang this says nothing: the kernel counts how long a thread was ready when that
/// runs again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: i32,
    /// How long its threads ran or were ready to run, in ns: all together, and the one that was so the longest.
    pub ready_ns: u64,
    /// See `ready_ns`.
    pub longest_ns: u64,
}

/// A process that takes turns, or would.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subgang {
    /// Its number; of a program, its launcher's.
    pub pid: i32,
    /// How many of its threads, or ranks, want a CPU at a time.
    pub width: u32,
    /// It is a program of several processes, its ranks.
    pub is_program: bool,
}

/// One that takes turns.
#[derive(Debug, Clone, Copy)]
struct Member {
    of: Subgang,
    /// It has the present turn: its CPU time at the begin.
    since_ns: Option<u64>,
    /// In its turns since the last look: the CPU time that it used, and the time of each CPU that the job had.
    used_ns: u64,
    had_ns: u64,
}

/// The subgangs of a job, and whose turn it is.
#[derive(Debug, Clone, Default)]
pub struct Subgangs {
    /// Those that have waited the longest first.
    queue: Vec<Member>,
    /// What the last look found: only what two find one after the other counts, as programs have phases.
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
        self.queue.iter().map(|member| member.of.pid)
    }

    /// Whether this process is one.
    pub fn is(&self, pid: i32) -> bool {
        self.pids().any(|of| of == pid)
    }

    /// Whether programs are among them.
    pub fn has_programs(&self) -> bool {
        self.queue.iter().any(|member| member.of.is_program)
    }

    /// Which processes would take turns, by what they have done since the last look, and which of the job's `programs`, each with its busy ranks.
    /// `cpu_ns` is what the whole job has used meanwhile on its `cpus`; the time in which it was stopped does not count. `None` while that is too
    /// little to tell, or a process has had no turn.
    pub fn look(
        &mut self,
        cpu_ns: u64,
        cpus: u32,
        processes: &[Process],
        programs: &[Subgang],
    ) -> Option<Vec<Subgang>> {
        if cpus < 2 {
            // No two threads of a process could run at a time.
            return Some(Vec::new());
        }
        let busy_ns = cpu_ns / u64::from(cpus);
        if busy_ns < TURN_NS || self.queue.iter().any(|member| member.had_ns == 0 && !member.of.is_program) {
            return None;
        }
        // Beside others, and where CPUs are left, the job's CPU time tells less than how long one of its threads was ready.
        let ran_ns = processes.iter().map(|process| process.longest_ns).fold(busy_ns, u64::max);
        let width = |process: &Process| ((process.ready_ns + ran_ns / 2) / ran_ns) as u32;
        let newcomers = processes.iter().filter(|process| BECOMES.1 * process.ready_ns >= BECOMES.0 * ran_ns);
        let stays = |member: &&Member| STAYS.1 * member.used_ns >= STAYS.0 * member.had_ns;
        let of_processes = self.queue.iter().filter(|member| !member.of.is_program);
        let mut found: Vec<Subgang> = of_processes.filter(stays).map(|member| member.of).collect();
        found.extend(newcomers.map(|of| Subgang { pid: of.pid, width: width(of), is_program: false }));
        // A program that is wider than the CPUs has its own ranks to wait for: with others its turns would gain little.
        if programs.iter().all(|program| program.width <= cpus) {
            let leaves = |pid: i32| self.queue.iter().any(|member| member.of.pid == pid && !stays(&member));
            found.extend(programs.iter().filter(|of| of.width > 1 && !leaves(of.pid)));
        }
        self.queue.iter_mut().for_each(|member| (member.used_ns, member.had_ns) = (0, 0));
        Some(found)
    }

    /// Takes what a look has found: processes that two looks have found and programs, which may end soon, at once; and without those that two have not.
    /// None where fewer than two are left, or all of their threads find a CPU. Returns whether others take turns now.
    pub fn take(&mut self, cpus: u32, found: &[Subgang]) -> bool {
        let now: Vec<i32> = found.iter().map(|of| of.pid).collect();
        let last = core::mem::replace(&mut self.last, now);
        let before: Vec<i32> = self.pids().collect();
        self.queue.retain(|member| last.contains(&member.of.pid) || self.last.contains(&member.of.pid));
        for of in found.iter().filter(|of| of.is_program || last.contains(&of.pid)) {
            match self.queue.iter_mut().find(|member| member.of.pid == of.pid) {
                Some(member) => member.of = *of,
                None => self.queue.push(Member { of: *of, since_ns: None, used_ns: 0, had_ns: 0 }),
            }
        }
        let width = self.queue.iter().fold(0, |sum: u32, member| sum.saturating_add(member.of.width));
        if self.queue.len() < 2 || u64::from(CROWDED.1) * u64::from(width) < u64::from(CROWDED.0) * u64::from(cpus) {
            self.queue.clear();
        }
        self.begins_again_after(&before)
    }

    /// Processes have ended. Returns whether one of them was a subgang.
    pub fn forget(&mut self, lives: impl Fn(i32) -> bool) -> bool {
        let before: Vec<i32> = self.pids().collect();
        self.queue.retain(|member| lives(member.of.pid));
        if self.queue.len() < 2 {
            self.queue.clear();
        }
        if self.queue.is_empty() && !before.is_empty() {
            self.last.clear();
        }
        self.begins_again_after(&before)
    }

    /// If these were other subgangs, there is no present turn. Returns whether they were.
    fn begins_again_after(&mut self, before: &[i32]) -> bool {
        let others = !self.pids().eq(before.iter().copied());
        if others {
            self.turn_ns = None;
            self.queue.iter_mut().for_each(|member| member.since_ns = None);
        }
        others
    }

    /// Those whose turn begins, when the job has used `cpu_ns`; `None` while those of the present one last. While the job is stopped no turn ends.
    /// `used_ns` is the CPU time of a process.
    pub fn turn(&mut self, cpu_ns: u64, cpus: u32, used_ns: impl Fn(i32) -> u64) -> Option<Vec<i32>> {
        let had_ns = self.turn_ns.map(|begin_ns| cpu_ns.saturating_sub(begin_ns) / u64::from(cpus.max(1)));
        if self.queue.is_empty() || had_ns.is_some_and(|had_ns| 4 * had_ns < 3 * TURN_NS) {
            return None;
        }
        self.turn_ns = Some(cpu_ns);
        for member in &mut self.queue {
            if let (Some(since_ns), Some(had_ns)) = (member.since_ns.take(), had_ns) {
                member.used_ns += used_ns(member.of.pid).saturating_sub(since_ns);
                member.had_ns += had_ns;
            }
        }
        let mut left = cpus;
        let first = self.queue[0].of.pid;
        let (mut chosen, waiting): (Vec<Member>, Vec<Member>) =
            core::mem::take(&mut self.queue).into_iter().partition(|Member { of, .. }| {
                let fits = of.pid == first || of.width <= left;
                left = left.saturating_sub(if fits { of.width } else { 0 });
                fits
            });
        chosen.iter_mut().for_each(|member| member.since_ns = Some(used_ns(member.of.pid)));
        let pids = chosen.iter().map(|member| member.of.pid).collect();
        self.queue = waiting;
        self.queue.extend(chosen);
        Some(pids)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use alloc::vec;

    const MS: u64 = 1_000_000;

    /// `threads` of a process that are ready for this time each.
    fn process(pid: i32, threads: u64, each_ms: u64) -> Process {
        Process { pid, ready_ns: threads * each_ms * MS, longest_ns: each_ms * MS }
    }

    fn subgangs(all: &[(i32, u32)]) -> Vec<Subgang> {
        all.iter().map(|(pid, width)| Subgang { pid: *pid, width: *width, is_program: false }).collect()
    }

    fn found(cpu_ms: u64, cpus: u32, processes: &[Process]) -> Vec<(i32, u32)> {
        let found = Subgangs::default().look(cpu_ms * MS, cpus, processes, &[]).expect("long enough");
        found.into_iter().map(|of| (of.pid, of.width)).collect()
    }

    fn begun(cpus: u32, all: &[(i32, u32)]) -> Subgangs {
        let mut begun = Subgangs::default();
        let lives = |_| true;
        assert!(!begun.take(cpus, &subgangs(all)) && !begun.forget(lives), "two looks have to agree");
        assert!(begun.take(cpus, &subgangs(all)) && !begun.forget(lives));
        begun
    }

    /// Turns in which those in front use the CPUs, as many as they are wide, but for `asleep`, which uses one.
    #[derive(Default)]
    struct World {
        cpu_ns: u64,
        used_ns: BTreeMap<i32, u64>,
        turns: BTreeMap<i32, u32>,
    }

    impl World {
        fn turn(&mut self, subgangs: &mut Subgangs, cpus: u32, turn_ns: u64, asleep: Option<i32>) -> Vec<i32> {
            let chosen = subgangs.turn(self.cpu_ns, cpus, |pid| self.used_ns.get(&pid).copied().unwrap_or(0)).unwrap();
            let width =
                |pid: i32| subgangs.queue.iter().find(|member| member.of.pid == pid).unwrap().of.width.min(cpus);
            for pid in &chosen {
                let wide = if asleep == Some(*pid) { 1 } else { width(*pid) };
                *self.used_ns.entry(*pid).or_default() += turn_ns * u64::from(wide);
                *self.turns.entry(*pid).or_default() += 1;
            }
            self.cpu_ns += turn_ns * u64::from(cpus);
            chosen
        }
    }

    #[test]
    fn processes_whose_threads_spin_would_be_subgangs() {
        assert_eq!(found(200, 2, &[process(7, 1, 3), process(8, 2, 100), process(9, 2, 90)]), [(8, 2), (9, 2)]);
        assert_eq!(found(400, 4, &[process(8, 4, 99), process(9, 2, 100)]), [(8, 4), (9, 2)]);
        assert_eq!(found(200, 2, &[1, 2, 3, 4].map(|pid| process(pid, 1, 100))), [], "a compilation");
        // PyTorch's: one of the two threads computes at a time.
        assert_eq!(found(200, 2, &[process(8, 2, 55), process(9, 2, 52)]), []);
        // Beside a neighbour that takes half of each CPU.
        assert_eq!(found(200, 2, &[process(8, 1, 200), process(9, 1, 200)]), []);
        assert_eq!(found(6400, 64, &[process(8, 1, 100), process(9, 1, 100)]), []);
        assert_eq!(found(100, 1, &[process(8, 2, 100), process(9, 2, 100)]), [], "on one CPU no two run at a time");
        assert_eq!(
            Subgangs::default().look(90 * MS, 2, &[process(8, 2, 100)], &[]),
            None,
            "too short a time says nothing"
        );
    }

    #[test]
    fn what_two_looks_find_takes_turns_if_it_wants_more_than_the_cpus() {
        assert_eq!(begun(2, &[(8, 2), (9, 2)]).pids().collect::<Vec<_>>(), [8, 9]);
        let mut none = Subgangs::default();
        for all in [&[(8, 2), (9, 2)][..], &[(8, 2), (9, 2)], &[(8, 2), (9, 2)]] {
            assert!(!none.take(4, &subgangs(all)), "each thread has a CPU");
        }
        let mut none = Subgangs::default();
        assert!((0..3).all(|_| !none.take(2, &subgangs(&[(8, 8)]))), "one alone");
        // Workers come and go.
        let mut some = begun(2, &[(8, 2), (9, 2)]);
        assert!(!some.take(2, &subgangs(&[(8, 2), (9, 2), (10, 2)])));
        assert!(some.take(2, &subgangs(&[(8, 2), (10, 2), (11, 2)])), "10 was found twice, 9 missed once");
        assert_eq!(some.pids().collect::<Vec<_>>(), [8, 9, 10]);
        assert!(some.take(2, &subgangs(&[(8, 2), (11, 2)])));
        assert_eq!(some.pids().collect::<Vec<_>>(), [8, 10, 11], "9 was missed twice");
        assert!(some.take(2, &[]) && some.pids().eq([8, 11]), "10, too");
        assert!(some.take(2, &[]) && some.count() == 0);
    }

    #[test]
    fn as_many_as_fit_have_a_turn_and_none_waits_for_ever() {
        let (two, five) = ([(8, 2), (9, 2)], [(8, 2), (9, 2), (10, 2), (11, 2), (12, 2)]);
        let unequal = [(8, 4), (9, 2), (10, 2), (11, 1)];
        for (cpus, all) in [(2, &two[..]), (2, &five), (4, &unequal), (64, &[(8, 64), (9, 18)]), (2, &[(8, 8), (9, 3)])]
        {
            let (mut subgangs, mut world) = (begun(cpus, all), World::default());
            for _ in 0..300 {
                let chosen = world.turn(&mut subgangs, cpus, TURN_NS, None);
                let width: u32 = all.iter().filter(|(pid, _)| chosen.contains(pid)).map(|(_, width)| width).sum();
                assert!(chosen.len() == 1 || width <= cpus, "{chosen:?}");
                assert_eq!(
                    subgangs.turn(world.cpu_ns - TURN_NS / 2 * u64::from(cpus), cpus, |_| 0),
                    None,
                    "it was stopped for half of the time"
                );
            }
            assert!(
                world.turns.values().all(|turns| *turns as usize >= 300 / all.len()),
                "{:?} on {cpus}",
                world.turns
            );
        }
    }

    #[test]
    fn whoever_uses_its_turns_stays_however_many_and_long_they_are() {
        for count in 2..=6 {
            for turn_ns in [TURN_NS, 160 * MS, 310 * MS] {
                let all: Vec<(i32, u32)> = (0..count).map(|pid| (pid, 2)).collect();
                let (mut subgangs, mut world) = (begun(2, &all), World::default());
                let mut before_ns = 0;
                for at in 0..200 {
                    world.turn(&mut subgangs, 2, turn_ns, None);
                    // The kernel has counted little of what they waited for.
                    let seen: Vec<Process> = (0..count).map(|pid| process(pid, 2, 1)).collect();
                    if let Some(found) = subgangs.look(world.cpu_ns - before_ns, 2, &seen, &[]) {
                        before_ns = world.cpu_ns;
                        assert!(!subgangs.take(2, &found), "{count} in turns of {turn_ns} ns: {found:?} at {at}");
                    }
                }
                assert!(before_ns > 0, "some look told something");
            }
        }
    }

    #[test]
    fn whoever_leaves_a_cpu_in_its_turns_is_none_any_more_and_another_one_comes_in() {
        let (mut subgangs, mut world) = (begun(2, &[(8, 2), (9, 2), (10, 2)]), World::default());
        let mut before_ns = 0;
        for _ in 0..20 {
            world.turn(&mut subgangs, 2, TURN_NS, Some(9));
            let window_ns = (world.cpu_ns - before_ns) / 2;
            let newcomer = Process { pid: 11, ready_ns: 2 * window_ns, longest_ns: window_ns };
            if let Some(found) = subgangs.look(world.cpu_ns - before_ns, 2, &[newcomer], &[]) {
                before_ns = world.cpu_ns;
                subgangs.take(2, &found);
            }
        }
        let mut pids: Vec<i32> = subgangs.pids().collect();
        pids.sort_unstable();
        assert_eq!(pids, [8, 10, 11]);
    }

    #[test]
    fn one_that_ends_gives_its_turn_to_the_next_and_a_last_one_needs_none() {
        let both = subgangs(&[(8, 2), (9, 2)]);
        let mut subgangs = begun(2, &[(8, 2), (9, 2), (10, 2)]);
        assert_eq!(subgangs.turn(0, 2, |_| 0), Some(vec![8]));
        assert!(subgangs.forget(|pid| pid != 8));
        assert_eq!(subgangs.turn(1, 2, |_| 0), Some(vec![9]));
        assert!(!subgangs.forget(|pid| pid != 8), "it is known");
        assert!(subgangs.forget(|pid| pid != 9) && subgangs.count() == 0);
        assert_eq!(subgangs.turn(2, 2, |_| 0), None);
        assert!(!subgangs.take(2, &both) && subgangs.take(2, &both), "two looks again");
    }

    #[test]
    fn programs_of_ranks_take_turns_at_once_while_each_fits_and_keeps_the_cpus_busy() {
        let programs = |all: &[(i32, u32)]| -> Vec<Subgang> {
            subgangs(all).into_iter().map(|of| Subgang { is_program: true, ..of }).collect()
        };
        let (mut subgangs, mut world, mut before_ns) = (Subgangs::default(), World::default(), 0);
        let mut look = |subgangs: &mut Subgangs, all: &[(i32, u32)], asleep: Option<i32>| {
            for _ in 0..8 {
                match subgangs.count() {
                    0 => world.cpu_ns += 2 * TURN_NS,
                    _ => drop(world.turn(subgangs, 2, TURN_NS, asleep)),
                }
            }
            let found = subgangs.look(world.cpu_ns - before_ns, 2, &[], &programs(all)).expect("long enough");
            before_ns = world.cpu_ns;
            subgangs.take(2, &found);
            let mut pids: Vec<i32> = subgangs.pids().collect();
            pids.sort_unstable();
            pids
        };
        assert_eq!(look(&mut subgangs, &[(8, 1), (9, 1)], None), [], "they have just begun");
        assert_eq!(look(&mut subgangs, &[(8, 2)], None), [], "one alone");
        assert_eq!(look(&mut subgangs, &[(8, 2), (9, 2)], None), [8, 9]);
        assert_eq!(look(&mut subgangs, &[(8, 2), (10, 2)], None), [8, 9, 10]);
        assert!(subgangs.has_programs() && subgangs.forget(|pid| pid != 9));
        for _ in 0..9 {
            assert_eq!(look(&mut subgangs, &[(8, 2), (10, 2), (11, 2)], None), [8, 10, 11]);
        }
        assert_eq!(look(&mut subgangs, &[(8, 2), (10, 2), (11, 2)], Some(10)), [8, 10, 11]);
        assert_eq!(look(&mut subgangs, &[(8, 2), (10, 2), (11, 2)], Some(10)), [8, 11], "its ranks sleep");
        assert_eq!(look(&mut subgangs, &[(8, 2), (11, 2), (12, 5)], None), [8, 11]);
        assert_eq!(look(&mut subgangs, &[(8, 2), (11, 2), (12, 5)], None), [], "its ranks wait for each other");
        assert!(!subgangs.has_programs());
    }
}
