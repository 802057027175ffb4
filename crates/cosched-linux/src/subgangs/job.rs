//! The subgangs of one job.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use cosched_core::subgangs::{self, Process, Subgang, TURN_NS};

use super::class::{Marked, end_all, is_default, process_cpu_ns, set_process};
use super::spread::spread;
use crate::cgfile;
use crate::descent::ancestors;
use crate::fence::boottime_ns;
use crate::job::JobCgroup;
use crate::process::{stat, threads};
use crate::thread::usage_of;

/// The time between two looks at the threads of a job: soon after its start and while it has subgangs, and later.
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
    subgangs: subgangs::Subgangs,
    /// What the cgroup's mark says.
    marked: Marked,
    /// What it said before, for one more look.
    late: Option<Marked>,
    /// Its cgroup cannot be marked.
    cannot: bool,
    /// The processes that were found to be ranks, or not.
    ranks: BTreeMap<i32, bool>,
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
            subgangs: subgangs::Subgangs::default(),
            marked: Marked::default(),
            late: None,
            cannot: false,
            ranks: BTreeMap::new(),
        }
    }

    pub(super) fn set_cpus(&mut self, cpus: u32) {
        self.cpus = cpus;
    }

    /// When it wants [`JobSubgangs::step`].
    pub(super) fn next_at(&self) -> Instant {
        self.turn_at.map_or(self.look_at, |turn_at| turn_at.min(self.look_at))
    }

    /// Does what is due until `until`.
    pub(super) fn step(&mut self, now: Instant, until: Instant) {
        if self.look_at <= until {
            self.look();
            let seldom = self.subgangs.count() == 0 && now.saturating_duration_since(self.began) > YOUNG;
            self.look_at = now + if seldom { LOOK_SELDOM } else { LOOK };
        }
        if self.turn_at.is_none_or(|turn_at| turn_at <= until) {
            self.give_turn();
            self.turn_at = (self.subgangs.count() > 0).then(|| now + Duration::from_nanos(TURN_NS));
        }
    }

    /// Which processes are to take turns, by what the threads have done since the last look that told something.
    fn look(&mut self) {
        self.bring_back_late();
        // Numbers are reused: those that have ended are forgotten before anything is done to their threads.
        let mut is_new = self.subgangs.forget(|pid| self.marked.is_subgang(pid));
        match self.several() {
            None => {
                self.before = None;
                is_new |= self.subgangs.forget(|_| false);
            }
            Some(several) => {
                if let Some(found) = self.found(&several) {
                    is_new |= self.subgangs.take(self.cpus, &found);
                }
                self.ranks.retain(|pid, _| several.iter().any(|(of, _)| of == pid));
            }
        }
        if is_new {
            self.change();
        } else if self.subgangs.count() > 0 {
            self.marked.bring_back_children(self.cgroup.v2_dir());
        }
        self.cgroup.switch_handle().set_subgangs(self.subgangs.count() as u32);
    }

    /// What was being forked when turns ended.
    fn bring_back_late(&mut self) {
        let Some(old) = self.late.take() else { return };
        old.bring_back(self.cgroup.v2_dir());
        if self.marked.subgangs.is_empty() {
            Marked::remove(self.cgroup.v2_dir());
        }
    }

    /// Its processes that have more than one thread, with these; `None` if there are too few or too many. Not those in cgroups that the job made itself.
    fn several(&self) -> Option<Vec<(i32, Vec<i32>)>> {
        // Its file is open, so this costs little where there are many jobs.
        let tasks = self.cgroup.tasks();
        if self.cannot || tasks.is_some_and(|tasks| tasks < 4 || tasks as usize > THREADS_MAX) {
            return None;
        }
        let all = cgfile::procs(&self.cgroup.dirs().gang()).ok().filter(|all| all.len() <= PROCESSES_MAX)?;
        let each = all.into_iter().map(|pid| (pid, threads(pid)));
        let several: Vec<(i32, Vec<i32>)> = each.filter(|(_, threads)| threads.len() > 1).collect();
        let count: usize = several.iter().map(|(_, threads)| threads.len()).sum();
        (several.len() > 1 && count <= THREADS_MAX).then_some(several)
    }

    /// Those of them that would take turns. `None` where nothing is known of before, or too little.
    fn found(&mut self, several: &[(i32, Vec<i32>)]) -> Option<Vec<Subgang>> {
        let mut now = Used { cpu_ns: self.cgroup.own_cpu_time_ns().ok()?, ready_ns: BTreeMap::new() };
        let before = self.before.take();
        let used_ns = before.as_ref().map_or(0, |before| now.cpu_ns.saturating_sub(before.cpu_ns));
        let mut processes = Vec::new();
        for (pid, threads) in several {
            if self.subgangs.is(*pid) {
                continue;
            }
            let mut process = Process { pid: *pid, ..Process::default() };
            for tid in threads {
                let Some(usage) = usage_of(*pid, *tid) else { continue };
                let ready_ns = usage.cpu_ns + usage.delay_ns;
                now.ready_ns.insert(*tid, ready_ns);
                let then_ns = before.as_ref().and_then(|before| before.ready_ns.get(tid));
                let since_ns = then_ns.map_or(0, |then_ns| ready_ns.saturating_sub(*then_ns));
                process.ready_ns += since_ns;
                process.longest_ns = process.longest_ns.max(since_ns);
            }
            // To ask who it is takes longer.
            if process.ready_ns > used_ns / u64::from(self.cpus.max(1)) && is_default(*pid) && !self.is_rank(*pid) {
                processes.push(process);
            }
        }
        let Some(before) = before else {
            self.before = Some(now);
            return None;
        };
        let found = self.subgangs.look(used_ns, self.cpus, &processes);
        self.before = Some(if found.is_some() { now } else { before });
        found
    }

    /// Others are subgangs now: all are brought back, and the next turn chooses.
    fn change(&mut self) {
        let dir = self.cgroup.v2_dir().to_owned();
        let is_first = self.marked.subgangs.is_empty();
        if !is_first {
            self.marked.bring_back(&dir);
            self.late = Some(self.marked.clone());
        }
        self.turn_at = None;
        let start = |pid: i32| stat(pid).map(|of| (pid, of.start_ticks));
        let subgangs: BTreeMap<i32, u64> = self.subgangs.pids().filter_map(start).collect();
        let since_ticks = if is_first { now_ticks() } else { self.marked.since_ticks };
        self.marked = Marked { since_ticks, subgangs };
        // Without the mark no other process would end what this daemon leaves when it is killed.
        if self.marked.write(&dir).is_err() {
            Marked::remove(&dir);
            self.marked = Marked::default();
            self.subgangs.forget(|_| false);
            self.cannot = true;
        }
    }

    fn give_turn(&mut self) {
        if self.subgangs.count() == 0 {
            return;
        }
        let Ok(cpu_ns) = self.cgroup.own_cpu_time_ns() else { return };
        let Some(mut front) = self.subgangs.turn(cpu_ns, self.cpus, process_cpu_ns) else { return };
        front.retain(|pid| self.marked.is_subgang(*pid));
        // The next ones first: meanwhile no CPU is without work.
        front.iter().for_each(|pid| set_process(*pid, false));
        for pid in self.subgangs.pids().filter(|pid| !front.contains(pid)) {
            if self.marked.is_subgang(pid) && self.cgroup.has_thread(pid) {
                set_process(pid, true);
            }
        }
        spread(&self.cgroup, &front);
    }

    /// Whether a launcher is among its ancestors in the job. Its environment would say so, too, but reading that can wait for the program.
    fn is_rank(&mut self, pid: i32) -> bool {
        if let Some(known) = self.ranks.get(&pid) {
            return *known;
        }
        let own = self.cgroup.own_procs().unwrap_or_default();
        let is_rank = ancestors(pid).take_while(|of| own.binary_search(of).is_ok()).any(|of| {
            let name = cgfile::read_proc(Path::new(&format!("/proc/{of}/comm"))).unwrap_or_default();
            LAUNCHERS.iter().any(|launcher| name.starts_with(launcher))
        });
        self.ranks.insert(pid, is_rank);
        is_rank
    }
}

impl Drop for JobSubgangs {
    fn drop(&mut self) {
        if self.marked.subgangs.is_empty() && self.late.is_none() {
            return;
        }
        end_all(&[self.cgroup.v2_dir().to_owned()]);
        Marked::remove(self.cgroup.v2_dir());
        self.cgroup.switch_handle().set_subgangs(0);
    }
}

/// The time in which the kernel counts the starts of processes, in clock ticks since boot.
fn now_ticks() -> u64 {
    boottime_ns() / (1_000_000_000 / rustix::param::clock_ticks_per_second())
}
