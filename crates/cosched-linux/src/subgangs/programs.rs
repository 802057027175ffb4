//! The programs that launchers start in a job, each of several ranks that wait for each other: tests side by side, each with an `mpiexec` of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use cosched_core::subgangs::Subgang;

use super::class::{is_default, process_cpu_ns};
use crate::process::name_and_parent;

/// What the programs are called that start processes which wait for each other: MPI's launchers, Slurm's, PyTorch's. The kernel keeps 15 characters.
const LAUNCHERS: [&str; 9] = ["mpirun", "mpiexec", "hydra_", "orte", "prte", "prun", "srun", "slurmstepd", "torchrun"];

/// A process below a launcher is a rank once it has used this part (1/8) of the time of one CPU that the job had, and no less than this.
const BUSY_PART: u64 = 8;
const BUSY_NS: u64 = 2_000_000;
/// As one test ends the next one begins: how long after the last look that found several programs more are expected.
const LATELY: Duration = Duration::from_secs(5);

/// Programs by their outermost launchers.
#[derive(Debug, Default)]
pub(super) struct Programs {
    /// The processes of each, launchers among them.
    members: BTreeMap<i32, Vec<i32>>,
    launchers: BTreeSet<i32>,
    ranks: BTreeSet<i32>,
    expected_until: Option<Instant>,
}

impl Programs {
    /// Looks at the job's processes.
    pub(super) fn look(&mut self, procs: &[i32], now: Instant) {
        let known: BTreeMap<i32, (String, i32)> =
            procs.iter().filter_map(|pid| Some((*pid, name_and_parent(*pid)?))).collect();
        let launches = |name: &str| LAUNCHERS.iter().any(|launcher| name.starts_with(launcher));
        // One that was made nicer, and its ranks with it, is left alone.
        let is_one = |(pid, (name, _)): &(&i32, &(String, i32))| {
            launches(name) && (self.launchers.contains(pid) || is_default(**pid))
        };
        self.launchers = known.iter().filter(is_one).map(|(pid, _)| *pid).collect();
        self.members.clear();
        if self.launchers.is_empty() {
            self.ranks.clear();
            return;
        }
        for pid in known.keys() {
            // While they are read, numbers may be reused so that they form a circle.
            let line = std::iter::successors(Some(*pid), |of| known.get(of).map(|(_, ppid)| *ppid)).take(known.len());
            if let Some(outermost) = line.filter(|of| self.launchers.contains(of)).last() {
                self.members.entry(outermost).or_default().push(*pid);
            }
        }
        self.ranks.retain(|pid| known.contains_key(pid));
        if self.members.len() > 1 {
            self.expected_until = Some(now + LATELY);
        }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.members.len()
    }

    /// Whether there were several a short time ago.
    pub(super) fn are_expected(&self, now: Instant) -> bool {
        self.expected_until.is_some_and(|until| now < until)
    }

    /// Whether one has more ranks than this.
    pub(super) fn are_wider(&self, than: u32) -> bool {
        self.members.values().any(|members| self.width(members) > than)
    }

    fn width(&self, members: &[i32]) -> u32 {
        members.iter().filter(|pid| self.ranks.contains(pid)).count() as u32
    }

    /// The processes of a subgang: of a program, or the one process.
    pub(super) fn members<'a>(&'a self, pid: &'a i32) -> &'a [i32] {
        self.members.get(pid).map_or(std::slice::from_ref(pid), Vec::as_slice)
    }

    /// Whether this process belongs to one.
    pub(super) fn have(&self, pid: i32) -> bool {
        self.members.values().any(|members| members.contains(&pid))
    }

    /// The CPU time of each process that a launcher has started, but for those behind.
    pub(super) fn cpu_ns(&self) -> BTreeMap<i32, u64> {
        let started = self.members.values().flatten().filter(|pid| !self.launchers.contains(pid) && is_default(**pid));
        started.map(|pid| (*pid, process_cpu_ns(*pid))).collect()
    }

    /// What they are, by what their processes have used while the job has used `used_ns` of each CPU.
    pub(super) fn found(&mut self, then: &BTreeMap<i32, u64>, now: &BTreeMap<i32, u64>, used_ns: u64) -> Vec<Subgang> {
        let least_ns = (used_ns / BUSY_PART).max(BUSY_NS);
        let is_busy =
            |(pid, ns): &(&i32, &u64)| then.get(pid).is_some_and(|then_ns| ns.saturating_sub(*then_ns) >= least_ns);
        self.ranks.extend(now.iter().filter(is_busy).map(|(pid, _)| *pid));
        let program =
            |(pid, members): (&i32, &Vec<i32>)| Subgang { pid: *pid, width: self.width(members), is_program: true };
        self.members.iter().map(program).collect()
    }

    /// Its ranks sleep in their turns: it has none until they are busy again.
    pub(super) fn sleeps(&mut self, program: i32) {
        for pid in self.members.get(&program).into_iter().flatten() {
            self.ranks.remove(pid);
        }
    }
}
