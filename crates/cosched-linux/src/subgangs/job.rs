//! The subgangs of one job.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use cosched_core::subgangs::{self, Process, Subgang, TURN_NS};

use super::class::{Marked, end_all, is_default, process_cpu_ns, set_process};
use super::programs::Programs;
use super::spread::spread;
use crate::cgfile;
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

/// What a job had used at a look.
#[derive(Debug, Default)]
struct Used {
    cpu_ns: u64,
    /// How long each thread of the processes with several had run or been ready.
    ready_ns: BTreeMap<i32, u64>,
    /// The CPU time of each process that a launcher had started.
    started_ns: BTreeMap<i32, u64>,
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
    programs: Programs,
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
            programs: Programs::default(),
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
            self.look(now);
            let is_young = now.saturating_duration_since(self.began) <= YOUNG || self.programs.are_expected(now);
            let seldom = self.subgangs.count() == 0 && !is_young;
            self.look_at = now + if seldom { LOOK_SELDOM } else { LOOK };
        }
        if self.turn_at.is_none_or(|turn_at| turn_at <= until) {
            self.give_turn();
            self.turn_at = (self.subgangs.count() > 0).then(|| now + Duration::from_nanos(TURN_NS));
        }
    }

    /// Which processes are to take turns, by what the threads have done since the last look that told something.
    fn look(&mut self, now: Instant) {
        self.bring_back_late();
        // Numbers are reused: those that have ended are forgotten before anything is done to their threads.
        let mut is_new = self.subgangs.forget(|pid| self.marked.is_subgang(pid));
        match self.several(now) {
            None => {
                self.before = None;
                is_new |= self.subgangs.forget(|_| false);
            }
            Some(several) => {
                if let Some(found) = self.found(&several) {
                    is_new |= self.take(&found);
                }
            }
        }
        if is_new || !self.members().eq(self.marked.subgangs.keys().copied()) {
            self.change();
        } else if self.subgangs.count() > 0 {
            self.marked.bring_back_children(self.cgroup.v2_dir());
        }
        // Where one ends and the next one begins, their ranks still wait as in turns.
        let switch = self.cgroup.switch_handle();
        let between = self.programs.are_expected(now) && !self.programs.are_wider(self.cpus);
        let in_turns = self.subgangs.has_programs() || switch.programs_take_turns() && between;
        switch.set_subgangs(self.subgangs.count() as u32, in_turns);
    }

    fn take(&mut self, found: &[Subgang]) -> bool {
        let before: Vec<i32> = self.subgangs.pids().collect();
        let is_new = self.subgangs.take(self.cpus, found);
        before.into_iter().filter(|pid| !self.subgangs.is(*pid)).for_each(|pid| self.programs.sleeps(pid));
        is_new
    }

    /// All processes of all subgangs, in order. What is nicer than others, or of a class of its own, is left alone.
    fn members(&self) -> impl Iterator<Item = i32> {
        let pids: Vec<i32> = self.subgangs.pids().collect();
        let all = pids.iter().flat_map(|pid| self.programs.members(pid));
        all.copied()
            .filter(|pid| self.marked.is_subgang(*pid) || is_default(*pid))
            .collect::<BTreeSet<i32>>()
            .into_iter()
    }

    /// What was being forked when turns ended.
    fn bring_back_late(&mut self) {
        let Some(old) = self.late.take() else { return };
        old.bring_back(self.cgroup.v2_dir());
        if self.marked.subgangs.is_empty() {
            Marked::remove(self.cgroup.v2_dir());
        }
    }

    /// Looks for its programs, and for other processes that have more than one thread, with these; `None` if there are too few or too many. Not those in
    /// cgroups that the job made itself.
    fn several(&mut self, now: Instant) -> Option<Vec<(i32, Vec<i32>)>> {
        // Its file is open, so this costs little where there are many jobs.
        let tasks = self.cgroup.tasks();
        if self.cannot || tasks.is_some_and(|tasks| tasks < 4 || tasks as usize > THREADS_MAX) {
            return None;
        }
        let all = cgfile::procs(&self.cgroup.dirs().gang()).ok().filter(|all| all.len() <= PROCESSES_MAX)?;
        self.programs.look(&all, now);
        let others = all.into_iter().filter(|pid| !self.programs.have(*pid));
        let each = others.map(|pid| (pid, threads(pid)));
        let several: Vec<(i32, Vec<i32>)> = each.filter(|(_, threads)| threads.len() > 1).collect();
        let count: usize = several.iter().map(|(_, threads)| threads.len()).sum();
        ((several.len() > 1 || self.programs.count() > 1) && count <= THREADS_MAX).then_some(several)
    }

    /// Those of them that would take turns. `None` where nothing is known of before, or too little.
    fn found(&mut self, several: &[(i32, Vec<i32>)]) -> Option<Vec<Subgang>> {
        let cpu_ns = self.cgroup.own_cpu_time_ns().ok()?;
        let mut now = Used { cpu_ns, ready_ns: BTreeMap::new(), started_ns: self.programs.cpu_ns() };
        let before = self.before.take();
        let used_ns = before.as_ref().map_or(0, |before| now.cpu_ns.saturating_sub(before.cpu_ns));
        let each_ns = used_ns / u64::from(self.cpus.max(1));
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
            if process.ready_ns > each_ns && is_default(*pid) {
                processes.push(process);
            }
        }
        let Some(before) = before else {
            self.before = Some(now);
            return None;
        };
        let programs = self.programs.found(&before.started_ns, &now.started_ns, each_ns);
        let found = self.subgangs.look(used_ns, self.cpus, &processes, &programs);
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
        let subgangs: BTreeMap<i32, u64> = self.members().filter_map(start).collect();
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
        let programs = &self.programs;
        let used_ns = |pid: i32| programs.members(&pid).iter().map(|pid| process_cpu_ns(*pid)).sum();
        let Some(front) = self.subgangs.turn(cpu_ns, self.cpus, used_ns) else { return };
        let members = |of: &[i32]| -> Vec<i32> {
            let all = of.iter().flat_map(|pid| programs.members(pid)).copied();
            all.filter(|pid| self.marked.is_subgang(*pid)).collect()
        };
        let behind: Vec<i32> = self.subgangs.pids().filter(|pid| !front.contains(pid)).collect();
        let front = members(&front);
        // The next ones first: meanwhile no CPU is without work.
        front.iter().for_each(|pid| set_process(*pid, false));
        for pid in members(&behind) {
            if self.cgroup.has_thread(pid) {
                set_process(pid, true);
            }
        }
        spread(&self.cgroup, &front);
    }
}

impl Drop for JobSubgangs {
    fn drop(&mut self) {
        if self.marked.subgangs.is_empty() && self.late.is_none() {
            return;
        }
        end_all(&[self.cgroup.v2_dir().to_owned()]);
        Marked::remove(self.cgroup.v2_dir());
        self.cgroup.switch_handle().set_subgangs(0, false);
    }
}

/// The time in which the kernel counts the starts of processes, in clock ticks since boot.
fn now_ticks() -> u64 {
    boottime_ns() / (1_000_000_000 / rustix::param::clock_ticks_per_second())
}
