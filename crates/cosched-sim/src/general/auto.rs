//! Auto: each job is a gang or local, according to its observed behaviour (core's `policy/auto.rs`).
//!
//! The rows of the matrix decide which processes may be in the queues of the nodes: local jobs always, gangs while their
//! row is current. In the queues the node's own scheduler decides, as on a live node. A gang whose row is not current is a
//! guest: it runs where the queue is empty, the rows after the current one first, and leaves at once. Local jobs keep
//! their cells, because their processes cannot move to other nodes, but a row without gangs has no turn. A boundary costs
//! what the context switches cost.

use super::engine::Sim;
use super::gang::Gang;
use super::grain::Needs;
use super::process::{Pid, State, Step};
use crate::observe::Observer;
use crate::strategy::Strategy;
use cosched_core::{Auto, AutoConfig, Choice, Disposition, Policy, Seen, Wait};

/// The behaviour of jobs is examined when all rows have had their turns, but not more often than this.
const WINDOW_NS_MIN: u64 = 200_000_000;

/// The observed behaviour of a job in the present window, and the choice made for it.
#[derive(Debug)]
pub(super) struct Watched {
    auto: Auto,
    pub(super) row: usize,
    /// When the window and the present turn began for it.
    window_ns: u64,
    turn_ns: u64,
    cpu_ns: u64,
    offered_ns: u64,
    spin_ns: u64,
    block_ns: u64,
    pub(super) waits: u64,
}

impl Watched {
    pub(super) fn new() -> Watched {
        let auto = Auto::new(AutoConfig::default());
        let (row, waits) = (0, 0);
        let [window_ns, turn_ns, cpu_ns, offered_ns, spin_ns, block_ns] = [0; 6];
        Watched { auto, row, window_ns, turn_ns, cpu_ns, offered_ns, spin_ns, block_ns, waits }
    }

    fn choice(&self) -> Choice {
        self.auto.choice()
    }

    pub(super) fn local(&self) -> bool {
        self.choice().policy != Policy::Gang
    }
}

impl<O: Observer> Sim<'_, O> {
    fn is_auto(&self) -> bool {
        self.params.strategy == Strategy::Auto
    }

    /// Starts observing a job, which has got its cells.
    pub(super) fn watch(&mut self, job: u32) {
        let row = self.gang.as_ref().and_then(|gang| gang.row_of(job));
        let watched = &mut self.jobs[job as usize].watched;
        (watched.window_ns, watched.turn_ns) = (self.now_ns, self.now_ns);
        watched.row = row.unwrap_or(0) as usize;
    }

    /// Whether a process may only run where no other process can: a gang's outside its turn (auto, live).
    pub(super) fn is_guest(&self, pid: Pid) -> bool {
        if let Some(to) = self.disposition(pid) {
            return to != Disposition::Run;
        }
        let Some(gang) = self.gang.as_ref().filter(|_| self.is_auto()) else { return false };
        let watched = &self.jobs[pid.job as usize].watched;
        !watched.local() && !gang.has_turn(watched.row)
    }

    /// How a process waits.
    pub(super) fn wait_of(&self, pid: Pid) -> Wait {
        if let Some((wait, _)) = self.jobs[pid.job as usize].processes[pid.task as usize].told {
            return wait;
        }
        if self.is_flexible() {
            return if self.needs(pid) == Needs::Coscheduled { Wait::Busy } else { Wait::SpinBlock };
        }
        let job = &self.jobs[pid.job as usize];
        if self.is_auto() { job.watched.choice().wait } else { job.work.own().wait.unwrap_or_else(|| self.wait()) }
    }

    pub(super) fn anybody_queued(&self, node: usize) -> bool {
        let node = &self.nodes[node];
        node.levels.best().is_some() || node.fair.waiting().next().is_some()
    }

    /// A process was added to the queue: guests leave as soon as they can.
    pub(super) fn guests_leave(&mut self, node: usize) {
        for cpu in self.cpus_of(node) {
            if self.cpus[cpu].current.is_some_and(|pid| self.is_guest(pid)) {
                self.cpus[cpu].resched = true;
            }
        }
    }

    /// The process that a CPU runs if its node's queue is empty.
    pub(super) fn pick_guest(&self, cpu: usize) -> Option<Pid> {
        if self.is_live() {
            return self.pick_filler(cpu);
        }
        let gang = self.gang.as_ref().filter(|_| self.is_auto())?;
        let cells = || self.cpus_of(self.cpus[cpu].node);
        gang.other_rows().find_map(|row| cells().find_map(|cell| self.ready_in_cell(gang, row, cell)))
    }

    /// A process has used a CPU. CPU time that a gang used as a guest does not count for its slots.
    pub(super) fn watch_cpu(&mut self, pid: Pid, ns: u64) {
        if self.is_live() {
            return self.sample(pid, ns);
        }
        if self.is_flexible() {
            return self.grain_cpu(pid, ns);
        }
        if !self.is_auto() || self.is_guest(pid) {
            return;
        }
        let spins = matches!(self.process(pid).step, Step::Receive { .. });
        let watched = &mut self.jobs[pid.job as usize].watched;
        watched.cpu_ns += ns;
        watched.spin_ns += if spins { ns } else { 0 };
    }

    /// A process was blocked since `since_ns`.
    pub(super) fn watch_block(&mut self, job: u32, since_ns: u64) {
        let watched = &mut self.jobs[job as usize].watched;
        watched.block_ns += self.now_ns - since_ns.max(watched.window_ns);
    }

    /// A turn is over: the next row with gangs gets its own, and from time to time the behaviour of the jobs is examined.
    pub(super) fn next_turn(&mut self) {
        let (now_ns, live) = (self.now_ns, |job: &u32| !self.jobs[*job as usize].processes.is_empty());
        let live: Vec<u32> = (0..self.jobs.len() as u32).filter(live).collect();
        let Some(gang) = self.gang.as_ref() else { return };
        let (current, next) = (gang.current(), self.next_with_gangs(gang));
        for job in &live {
            let compete = u64::from(self.rivals(*job, true)) + 1;
            let run = &mut self.jobs[*job as usize];
            let turn_ns = now_ns - std::mem::replace(&mut run.watched.turn_ns, now_ns);
            if run.watched.row == current && !run.watched.local() {
                run.watched.offered_ns += turn_ns * u64::from(run.tasks) / compete;
            }
        }
        let all_had = next <= current;
        for cpu in 0..self.cpus.len() {
            self.book(cpu);
        }
        let guests = self.guests(&live);
        if let Some(gang) = self.gang.as_mut() {
            gang.set_turn(next);
        }
        for job in live {
            if all_had && now_ns - self.jobs[job as usize].watched.window_ns >= WINDOW_NS_MIN {
                self.end_window(job);
            }
        }
        self.change_places(&guests);
    }

    /// The row after the current one that has a gang; the current one if none has.
    fn next_with_gangs(&self, gang: &Gang) -> usize {
        let has = |row: &usize| gang.jobs_of(*row).any(|job| !self.jobs[job as usize].watched.local());
        gang.other_rows().find(has).unwrap_or(gang.current())
    }

    /// All processes of these jobs, and whether each is a guest.
    fn guests(&self, jobs: &[u32]) -> Vec<(Pid, bool)> {
        let of_job = |job: u32| (0..self.jobs[job as usize].tasks).map(move |task| Pid { job, task });
        jobs.iter().copied().flat_map(of_job).map(|pid| (pid, self.is_guest(pid))).collect()
    }

    fn end_window(&mut self, job: u32) {
        let now_ns = self.now_ns;
        let blocked = |process: &&super::process::Process| process.state == State::Blocked;
        let since: Vec<u64> =
            self.jobs[job as usize].processes.iter().filter(blocked).map(|process| process.since_ns).collect();
        since.into_iter().for_each(|since_ns| self.watch_block(job, since_ns));
        let rivals = self.rivals(job, false);
        let run = &mut self.jobs[job as usize];
        let interval_ns = now_ns - run.watched.window_ns;
        if run.watched.local() {
            run.watched.offered_ns = interval_ns * u64::from(run.tasks) / u64::from(rivals + 1);
        }
        let watched = &mut run.watched;
        let seen = Seen {
            interval_ns,
            cpu_ns: std::mem::take(&mut watched.cpu_ns),
            offered_ns: std::mem::take(&mut watched.offered_ns),
            waits: std::mem::take(&mut watched.waits),
            spin_ns: std::mem::take(&mut watched.spin_ns),
            block_ns: std::mem::take(&mut watched.block_ns),
            // All waits are hooked here, and those of a gang just spin for longer.
            blocks: 0,
            hooked: true,
            rivals,
        };
        watched.window_ns = now_ns;
        if let Some(choice) = watched.auto.see(&seen) {
            self.observer.choice(now_ns, job, choice);
        }
    }

    /// The number of other jobs that have processes on this job's nodes; with `local`, of local jobs only.
    fn rivals(&self, job: u32, local: bool) -> u32 {
        let run = &self.jobs[job as usize];
        let on_its_nodes = run.processes.iter().flat_map(|process| &self.nodes[process.node as usize].table);
        let mut others: Vec<u32> = on_its_nodes.map(|pid| pid.job).filter(|other| *other != job).collect();
        others.retain(|other| !local || self.jobs[*other as usize].watched.local());
        others.sort_unstable();
        others.dedup();
        others.len() as u32
    }

    /// Turns or choices have changed since `before` was recorded: processes that are no longer guests enter the queues,
    /// and new guests leave them.
    fn change_places(&mut self, before: &[(Pid, bool)]) {
        let changed = before.iter().filter(|(pid, guest)| self.is_guest(*pid) != *guest);
        let (enter, leave): (Vec<_>, Vec<_>) = changed.copied().partition(|(_, guest)| *guest);
        leave.into_iter().for_each(|(pid, _)| self.leave_queue(pid));
        enter.into_iter().for_each(|(pid, _)| self.enter_queue(pid));
        for cpu in 0..self.cpus.len() {
            // Because the spin time may have changed, too.
            if self.cpus[cpu].doing.gives_way() {
                self.stop(cpu);
                self.resume(cpu);
            }
        }
    }

    pub(super) fn leave_queue(&mut self, pid: Pid) {
        let process = self.process(pid);
        let (state, level, node) = (process.state, process.level, process.node as usize);
        match state {
            State::Ready => self.nodes[node].levels.remove(level, pid),
            State::Running(cpu) => self.cpus[cpu].resched = true,
            State::Io | State::Blocked | State::Ended => return,
        }
        if self.is_fair() {
            let lag_ns = self.nodes[node].fair.remove(pid, self.config.linux.slice_ns);
            self.process(pid).lag_ns = lag_ns;
        }
    }

    pub(super) fn enter_queue(&mut self, pid: Pid) {
        let process = self.process(pid);
        let (state, level, node, lag_ns) = (process.state, process.level, process.node as usize, process.lag_ns);
        let running = matches!(state, State::Running(_));
        if !running && state != State::Ready {
            return;
        }
        if self.is_fair() {
            self.nodes[node].fair.add_woken(pid, lag_ns, self.config.linux.slice_ns);
            if running {
                self.nodes[node].fair.begin(pid);
            }
        } else if !running {
            self.nodes[node].levels.push_tail(level, pid);
        }
        self.guests_leave(node);
    }
}
