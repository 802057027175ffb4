//! The turns of one job.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use cosched_core::subgangs::{self, Process, TURN_NS};

use super::class::{bring_back, is_idle, mark, set_behind, unmark};
use crate::cgfile;
use crate::descent::ancestors;
use crate::job::JobCgroup;
use crate::process::threads;
use crate::thread::usage_of;

/// The time between two looks at the threads of a job: soon after its start and while there are turns, and later.
const LOOK: Duration = Duration::from_millis(100);
const LOOK_SELDOM: Duration = Duration::from_secs(1);
/// How long after its start it is looked at often.
const YOUNG: Duration = Duration::from_secs(5);
/// The limits on what is looked at: each thread is a file to read, and a user can make many.
const PROCESSES_MAX: usize = 256;
const THREADS_MAX: usize = 1024;

/// What the programs are called that start processes which wait for each other: MPI's launchers, Slurm's, PyTorch's. The kernel keeps 15 characters.
const LAUNCHERS: [&str; 9] = ["mpirun", "mpiexec", "hydra_", "orte", "prte", "prun", "srun", "slurmstepd", "torchrun"];

/// What a job had used at a look.
#[derive(Debug, Default)]
struct Used {
    cpu_ns: u64,
    /// How long each thread of the processes with several had run or been ready.
    ready_ns: BTreeMap<i32, u64>,
}

#[derive(Debug)]
pub(super) struct JobSubgangs {
    cgroup: JobCgroup,
    cpus: u32,
    began: Instant,
    look_at: Instant,
    turn_at: Option<Instant>,
    before: Option<Used>,
    /// Whether the processes with several threads are ranks.
    ranks: BTreeMap<i32, bool>,
    /// The processes that take turns, and the one whose turn it is.
    subgangs: Vec<i32>,
    current: Option<i32>,
    order: subgangs::Subgangs,
    /// The threads that were behind the others before there were turns.
    own_idle: BTreeSet<i32>,
}

impl JobSubgangs {
    pub(super) fn new(cgroup: JobCgroup) -> JobSubgangs {
        let now = Instant::now();
        JobSubgangs {
            cgroup,
            cpus: 0,
            began: now,
            look_at: now,
            turn_at: None,
            before: None,
            ranks: BTreeMap::new(),
            subgangs: Vec::new(),
            current: None,
            order: subgangs::Subgangs::default(),
            own_idle: BTreeSet::new(),
        }
    }

    pub(super) fn set_cpus(&mut self, cpus: u32) {
        self.cpus = cpus;
    }

    /// When it wants [`JobSubgangs::step`].
    pub(super) fn next_at(&self) -> Instant {
        self.turn_at.map_or(self.look_at, |turn_at| turn_at.min(self.look_at))
    }

    pub(super) fn step(&mut self, now: Instant) {
        if now >= self.look_at {
            if let Some(subgangs) = self.look() {
                self.begin_or_end(subgangs);
            }
            let seldom = self.subgangs.is_empty() && now.saturating_duration_since(self.began) > YOUNG;
            self.look_at = now + if seldom { LOOK_SELDOM } else { LOOK };
        }
        self.turn_at = (!self.subgangs.is_empty()).then(|| now + Duration::from_nanos(TURN_NS));
        self.give_turn();
    }

    /// Which processes are to take turns, by what the threads have done since the last look that told something; `None` if this one does not.
    fn look(&mut self) -> Option<Vec<i32>> {
        let Some(processes) = self.with_several_threads() else {
            self.before = None;
            return Some(Vec::new());
        };
        let mut now = Used { cpu_ns: self.cgroup.own_cpu_time_ns().ok()?, ready_ns: BTreeMap::new() };
        let before = self.before.take().unwrap_or_default();
        let ranks = std::mem::take(&mut self.ranks);
        let mut seen = Vec::new();
        for (pid, threads) in processes {
            let mut ready_ns = 0;
            for tid in threads {
                let Some(usage) = usage_of(pid, tid) else { continue };
                let now_ns = usage.cpu_ns + usage.delay_ns;
                ready_ns += before.ready_ns.get(&tid).map_or(0, |then_ns| now_ns.saturating_sub(*then_ns));
                now.ready_ns.insert(tid, now_ns);
            }
            let is_rank = ranks.get(&pid).copied().unwrap_or_else(|| is_rank(pid));
            self.ranks.insert(pid, is_rank);
            seen.push(Process { pid, ready_ns, is_rank });
        }
        // At the first look nothing is known of any thread.
        let told = subgangs::subgangs(self.subgangs.len(), now.cpu_ns.saturating_sub(before.cpu_ns), self.cpus, &seen);
        let is_first = before.ready_ns.is_empty();
        self.before = Some(if told.is_some() || is_first { now } else { before });
        told
    }

    /// Its processes that have more than one thread, with these; `None` if there are too few or too many. Not those in cgroups that the job made itself.
    fn with_several_threads(&self) -> Option<Vec<(i32, Vec<i32>)>> {
        if self.cgroup.tasks().is_some_and(|tasks| tasks < 4) {
            return None;
        }
        let all = cgfile::procs(&self.cgroup.dirs().gang()).ok().filter(|all| all.len() <= PROCESSES_MAX)?;
        let each = all.into_iter().map(|pid| (pid, threads(pid)));
        let several: Vec<(i32, Vec<i32>)> = each.filter(|(_, threads)| threads.len() > 1).collect();
        let count: usize = several.iter().map(|(_, threads)| threads.len()).sum();
        (several.len() > 1 && count <= THREADS_MAX).then_some(several)
    }

    fn begin_or_end(&mut self, subgangs: Vec<i32>) {
        let dir = self.cgroup.v2_dir().to_owned();
        match (self.subgangs.is_empty(), subgangs.is_empty()) {
            (true, true) => return,
            (true, false) => {
                // Without the mark no other process would end what this daemon leaves when it is killed.
                if mark(&dir).is_err() {
                    return;
                }
                let procs = self.cgroup.own_procs().unwrap_or_default();
                self.own_idle = procs.into_iter().flat_map(threads).filter(|tid| is_idle(*tid)).collect();
                self.order = subgangs::Subgangs::default();
            }
            (false, true) => return self.end(),
            (false, false) => {}
        }
        if self.subgangs != subgangs {
            (self.subgangs, self.current) = (subgangs, None);
            self.cgroup.switch_handle().set_subgangs(self.subgangs.len() as u32);
        }
        // Those that are no longer subgangs, and what these have started, which is born behind the others as they are.
        let waiting = self.waiting().flat_map(threads);
        bring_back(&dir, &self.own_idle.iter().copied().chain(waiting).collect());
    }

    /// The processes whose turn it is not; none before it is that of one.
    fn waiting(&self) -> impl Iterator<Item = i32> {
        self.subgangs.iter().copied().filter(|pid| self.current.is_some_and(|current| current != *pid))
    }

    fn give_turn(&mut self) {
        let cpu_ns = |pid: &i32| {
            (*pid, threads(*pid).into_iter().filter_map(|tid| usage_of(*pid, tid)).map(|of| of.cpu_ns).sum())
        };
        let now: Vec<(i32, u64)> = self.subgangs.iter().map(cpu_ns).collect();
        let next = self.order.next(&now);
        if next == self.current {
            return;
        }
        self.current = next;
        next.into_iter().for_each(|pid| self.set_process(pid, false));
        self.waiting().for_each(|pid| self.set_process(pid, true));
    }

    fn set_process(&self, pid: i32, behind: bool) {
        for tid in threads(pid).into_iter().filter(|tid| !self.own_idle.contains(tid)) {
            set_behind(tid, behind);
            // The process may have ended and its number may have been reused.
            if behind && !self.cgroup.has_thread(tid) {
                set_behind(tid, false);
            }
        }
    }

    fn end(&mut self) {
        let dir = self.cgroup.v2_dir();
        bring_back(dir, &self.own_idle);
        unmark(dir);
        self.cgroup.switch_handle().set_subgangs(0);
        (self.subgangs, self.current, self.turn_at) = (Vec::new(), None, None);
    }
}

impl Drop for JobSubgangs {
    fn drop(&mut self) {
        if !self.subgangs.is_empty() {
            self.end();
        }
    }
}

/// Whether a launcher is among its ancestors. Its environment would say so, too, but reading that can wait for the program.
fn is_rank(pid: i32) -> bool {
    ancestors(pid).any(|of| {
        let name = cgfile::read_proc(Path::new(&format!("/proc/{of}/comm"))).unwrap_or_default();
        LAUNCHERS.iter().any(|launcher| name.starts_with(launcher))
    })
}
