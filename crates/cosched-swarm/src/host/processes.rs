//! A job's processes on one node: they compute, sleep, use memory and end.
//!
//! Each thread of a part alternately computes for a given CPU time and sleeps for a given time. CPUs are shared evenly
//! among the runnable threads; threads in the background get what is left.

use cosched_cluster::wire::PartEnd;
use cosched_core::cluster::LocalJob;
use cosched_core::{Disposition, JobId};
use cosched_node::PartOf;
use std::collections::{BTreeMap, VecDeque};

/// A phase in the life of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Each of its threads uses this CPU time, in nanoseconds.
    Computes(u64),
    /// They sleep for this time, in nanoseconds.
    Sleeps(u64),
}

/// A job's part on a node.
#[derive(Clone, Debug)]
pub struct Local {
    /// What the daemon has on disk about the part.
    pub of: PartOf,
    /// What the daemon has on disk about its scheduling.
    pub job: LocalJob,
    /// When the job was submitted, in milliseconds.
    pub(crate) submitted_ms: u64,
    /// The life of the store in which it was submitted.
    pub(crate) store_life: u64,
    /// The remaining phases; the first one is in progress.
    pub phases: VecDeque<Phase>,
    /// When the current sleep ends.
    pub sleeps_until: Option<u64>,
    /// It was killed, and is dead at this time.
    pub dies_at: Option<u64>,
    /// It ignores SIGTERM.
    pub ignores_kill: bool,
    /// It has got a SIGTERM: its processes end this long after they can handle it, in nanoseconds.
    pub termed: Option<u64>,
    /// The daemon was told that the store no longer knows the job.
    pub forgotten: bool,
    /// The daemon has seen that it is over.
    pub ended: bool,
    /// CPU time used so far, of all threads, in nanoseconds.
    pub cpu_ns: u64,
    /// Memory in use.
    pub memory_bytes: u64,
    /// Memory that was already reported or declared.
    pub told_bytes: u64,
    /// Whether it may run.
    pub to: Disposition,
    /// Since when it has been stopped without any reason to be.
    pub stopped_since: Option<u64>,
    /// What its freezer was told to do and has not done, and when it will have.
    pub switch: Option<(Disposition, u64)>,
}

impl Local {
    fn is_runnable(&self) -> bool {
        self.to != Disposition::Stop && matches!(self.phases.front(), Some(Phase::Computes(_)))
    }

    /// How it ended.
    pub(crate) fn end(&self) -> PartEnd {
        PartEnd { cpu_time_ns: self.cpu_ns.max(1), ..PartEnd::default() }
    }

    /// Its processes end after `delay` nanoseconds, or sooner.
    pub(crate) fn dies_in(&mut self, delay: u64, now: u64) {
        let at = now + delay;
        self.dies_at = Some(self.dies_at.map_or(at, |before| before.min(at)));
    }

    /// Whether any of its processes is alive on this node.
    pub fn is_alive(&self) -> bool {
        !self.phases.is_empty()
    }
}

/// All parts on a node.
#[derive(Clone, Debug, Default)]
pub struct Processes {
    /// By job.
    pub parts: BTreeMap<JobId, Local>,
    cpus: u64,
    /// The time up to which work has been counted.
    upto: u64,
}

impl Processes {
    /// No parts yet, on a node with `cpus` CPUs.
    pub fn new(cpus: u32) -> Processes {
        Processes { parts: BTreeMap::new(), cpus: cpus.into(), upto: 0 }
    }

    /// How fast threads that own CPUs and background threads progress: a fraction of a CPU each.
    fn rates(&self) -> [(u64, u64); 2] {
        let threads = |to: Disposition| {
            let runnable = self.parts.values().filter(|part| part.is_runnable() && part.to == to);
            runnable.map(|part| u64::from(part.job.cpus)).sum::<u64>()
        };
        let (run, background) = (threads(Disposition::Run), threads(Disposition::Background));
        let left = self.cpus - run.min(self.cpus);
        [(self.cpus.min(run), run.max(1)), (left.min(background), background.max(1))]
    }

    /// Counts what was computed until now. Must be called before anything changes.
    pub fn advance(&mut self, now: u64) {
        let passed = now - self.upto.min(now);
        self.upto = self.upto.max(now);
        if passed == 0 {
            return;
        }
        let [run, background] = self.rates();
        for part in self.parts.values_mut().filter(|part| part.is_runnable()) {
            let (num, den) = if part.to == Disposition::Run { run } else { background };
            let used = (u128::from(passed) * u128::from(num) / u128::from(den)) as u64;
            if let Some(Phase::Computes(left)) = part.phases.front_mut() {
                let used = used.min(*left);
                *left -= used;
                part.cpu_ns += used * u64::from(part.job.cpus);
            }
        }
    }

    /// Moves on to the next phases, and returns the jobs whose last process has ended.
    pub fn settle(&mut self, now: u64) -> Vec<JobId> {
        let mut over = Vec::new();
        for (id, part) in self.parts.iter_mut().filter(|(_, part)| part.is_alive()) {
            loop {
                match (part.phases.front().copied(), part.sleeps_until) {
                    (Some(Phase::Computes(0)), _) => drop(part.phases.pop_front()),
                    (Some(Phase::Sleeps(_)), Some(until)) if until <= now => {
                        part.sleeps_until = None;
                        part.phases.pop_front();
                    }
                    (Some(Phase::Sleeps(ns)), None) => part.sleeps_until = Some(now + ns),
                    _ => break,
                }
            }
            if part.dies_at.is_some_and(|at| at <= now) {
                part.phases.clear();
            }
            if part.phases.is_empty() {
                (part.dies_at, part.termed, part.sleeps_until, part.stopped_since) = (None, None, None, None);
                over.push(*id);
            }
        }
        over
    }

    /// When the next phase ends.
    pub fn next(&self) -> Option<u64> {
        let [run, background] = self.rates();
        let of = |part: &Local| {
            let (num, den) = if part.to == Disposition::Run { run } else { background };
            let computed = match part.phases.front() {
                Some(Phase::Computes(left)) if part.is_runnable() && num > 0 => {
                    Some(self.upto + (u128::from(*left) * u128::from(den)).div_ceil(u128::from(num)) as u64)
                }
                _ => None,
            };
            [computed, part.sleeps_until, part.dies_at, part.switch.map(|(_, at)| at)].into_iter().flatten().min()
        };
        self.parts.values().filter(|part| part.is_alive()).filter_map(of).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cosched_core::Class;

    fn part(cpus: u32, to: Disposition, phases: &[Phase]) -> Local {
        let (class, policy) = (Class::Batch, None);
        Local {
            of: PartOf {
                attempt: 0,
                tree: 0,
                lead: true,
                alike: false,
                closing: false,
                grace_ms: None,
                planned_ms: None,
                decided: Default::default(),
            },
            job: LocalJob {
                owner: 0,
                class,
                policy,
                slot_share: None,
                cpus,
                memory_bytes: 0,
                suspended: false,
                spans: false,
                exclusive_cores: false,
            },
            submitted_ms: 0,
            store_life: 0,
            phases: phases.iter().copied().collect(),
            sleeps_until: None,
            dies_at: None,
            ignores_kill: false,
            termed: None,
            forgotten: false,
            ended: false,
            cpu_ns: 0,
            memory_bytes: 0,
            told_bytes: 0,
            to,
            stopped_since: None,
            switch: None,
        }
    }

    #[test]
    fn cpus_are_shared_and_the_background_has_the_rest() {
        let mut all = Processes::new(4);
        let computes = [Phase::Computes(1000), Phase::Sleeps(50)];
        all.parts.insert(JobId(1), part(3, Disposition::Run, &computes));
        all.parts.insert(JobId(2), part(2, Disposition::Background, &computes));
        all.parts.insert(JobId(3), part(4, Disposition::Stop, &computes));
        assert_eq!(all.next(), Some(1000));
        all.advance(1000);
        assert_eq!(all.settle(1000), []);
        assert_eq!([1, 2, 3].map(|id| all.parts[&JobId(id)].cpu_ns), [3000, 1000, 0]);
        // The first sleeps, and the second has two CPUs for what is left.
        assert_eq!(all.next(), Some(1050));
        all.advance(1050);
        assert_eq!(all.settle(1050), [JobId(1)]);
        assert_eq!(all.next(), Some(1500));
    }
}
