//! A job's processes on one node: they compute, sleep, use memory and end.
//!
//! Each thread of a part computes for so much CPU time, then sleeps for so long, and so on. CPUs are shared evenly among
//! the threads that may run; those that run in the background have what is left.

use cosched_cluster::wire::PartEnd;
use cosched_core::cluster::LocalJob;
use cosched_core::{Disposition, JobId};
use cosched_node::PartOf;
use std::collections::{BTreeMap, VecDeque};

/// What comes next in the life of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Each of its threads uses so much CPU time, in nanoseconds.
    Computes(u64),
    /// They sleep for so many nanoseconds.
    Sleeps(u64),
}

/// A job's part of a node.
#[derive(Clone, Debug)]
pub struct Local {
    /// What its daemon has on its disk of it.
    pub of: PartOf,
    /// And of how it is scheduled.
    pub job: LocalJob,
    /// When the job was submitted, in milliseconds.
    pub(crate) submitted_ms: u64,
    /// In which life of the store.
    pub(crate) store_life: u64,
    /// What is still to come; the first one is under way.
    pub phases: VecDeque<Phase>,
    /// When the sleep that is under way ends.
    pub sleeps_until: Option<u64>,
    /// It was killed, and is dead then.
    pub dies_at: Option<u64>,
    /// It does nothing about a polite kill.
    pub ignores_kill: bool,
    /// Its daemon was told that the store does not know the job any more.
    pub forgotten: bool,
    /// Its daemon has seen that it is over.
    pub ended: bool,
    /// CPU time used so far, of all threads, in nanoseconds.
    pub cpu_ns: u64,
    /// Memory in use.
    pub memory_bytes: u64,
    /// Memory that was told already, or declared.
    pub told_bytes: u64,
    /// What it may do.
    pub to: Disposition,
    /// Since when it is stopped, and nobody has a reason that it should be.
    pub stopped_since: Option<u64>,
}

impl Local {
    fn is_runnable(&self) -> bool {
        self.to != Disposition::Stop && matches!(self.phases.front(), Some(Phase::Computes(_)))
    }

    /// How it ended.
    pub(crate) fn end(&self) -> PartEnd {
        PartEnd { cpu_time_ns: self.cpu_ns.max(1), ..PartEnd::default() }
    }

    /// Whether any process is here.
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
    /// Up to when work is counted.
    upto: u64,
}

impl Processes {
    /// None yet, on so many CPUs.
    pub fn new(cpus: u32) -> Processes {
        Processes { parts: BTreeMap::new(), cpus: cpus.into(), upto: 0 }
    }

    /// How fast threads that own CPUs, and those in the background, get on: a fraction of a CPU each.
    fn rates(&self) -> [(u64, u64); 2] {
        let threads = |to: Disposition| {
            let runnable = self.parts.values().filter(|part| part.is_runnable() && part.to == to);
            runnable.map(|part| u64::from(part.job.cpus)).sum::<u64>()
        };
        let (run, background) = (threads(Disposition::Run), threads(Disposition::Background));
        let left = self.cpus - run.min(self.cpus);
        [(self.cpus.min(run), run.max(1)), (left.min(background), background.max(1))]
    }

    /// Counts what was computed until now. To be called before anything changes.
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

    /// Goes on to the next phases, and tells of which jobs the last process has ended.
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
                (part.dies_at, part.sleeps_until, part.stopped_since) = (None, None, None);
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
            [computed, part.sleeps_until, part.dies_at].into_iter().flatten().min()
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
            of: PartOf { attempt: 0, tree: 0, lead: true, alike: false, closing: false, decided: Default::default() },
            job: LocalJob {
                owner: 0,
                class,
                policy,
                slot_share: None,
                cpus,
                memory_bytes: 0,
                suspended: false,
                spans: false,
            },
            submitted_ms: 0,
            store_life: 0,
            phases: phases.iter().copied().collect(),
            sleeps_until: None,
            dies_at: None,
            ignores_kill: false,
            forgotten: false,
            ended: false,
            cpu_ns: 0,
            memory_bytes: 0,
            told_bytes: 0,
            to,
            stopped_since: None,
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
