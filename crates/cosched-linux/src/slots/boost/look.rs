//! The slot thread's handling of a [`Boost`]. Nothing here allocates or locks.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering::Relaxed;

use super::{Boost, BoostJob, Choice, Seen};
use crate::gangcpu::usage_ns;
use crate::observe::monotonic_ns;
use crate::slots::{Shared, worker::note};
use crate::switch::JobSwitch;
use cosched_core::Disposition;

/// The least time between two readings of a CPU time: the kernel sums over all CPUs for it, and fairness is over a second.
const CPU_PERIOD_NS: u64 = 50_000_000;
/// A freeze takes about this time to reach its processes.
const HOLD_NS_MIN: u64 = 50_000;

impl Boost {
    /// The latest time at which the thread must come back. With fewer than two jobs there is no choice to make.
    pub(in crate::slots) fn due_ns(&self, now_ns: u64) -> Option<u64> {
        if self.jobs.len() < 2 {
            return None;
        }
        let look = self.looks().then_some(self.next_look_ns);
        let listen = self.bell.is_some().then_some(self.deaf_until_ns).filter(|&until_ns| until_ns > now_ns);
        let release = self.held.map(|(_, until_ns)| until_ns);
        look.into_iter().chain(listen).chain(release).min()
    }

    /// True while samples are taken without a ring: for PB, and to end a boost.
    fn looks(&self) -> bool {
        self.held.is_some() || self.jobs.iter().any(|job| job.periodic)
    }

    /// The bell, while it is listened to.
    pub(in crate::slots) fn bell(&self, now_ns: u64) -> Option<BorrowedFd<'_>> {
        let listens = self.jobs.len() >= 2 && now_ns >= self.deaf_until_ns;
        self.bell.as_ref().filter(|_| listens).map(|bell| bell.as_fd())
    }

    /// Takes a sample, when it is due or the bell has rung; `table` is the number of the table in force.
    pub(in crate::slots) fn look_if_due(&mut self, rung: bool, table: u64, shared: &Shared) {
        if self.jobs.len() < 2 {
            return;
        }
        let start_ns = monotonic_ns();
        let rung = rung && self.answer(start_ns, shared);
        if rung || (self.looks() && start_ns >= self.next_look_ns) {
            self.look_and_boost(start_ns, table, shared);
        } else if self.held.is_some_and(|(_, until_ns)| start_ns >= until_ns) {
            self.release(table, start_ns, shared);
        }
    }

    fn look_and_boost(&mut self, start_ns: u64, table: u64, shared: &Shared) {
        self.look(start_ns, table);
        let choice = self.chooser.choose(start_ns, self.current, &self.seen);
        let eligible = |choice: &Choice| self.seen.get(choice.job).is_some_and(|seen| seen.eligible);
        self.boost(choice.filter(eligible), start_ns, shared);
        let busy = self.current.is_some() || self.seen.iter().any(|job| job.unread || job.rang || job.spinning > 0);
        self.seen.iter_mut().for_each(|job| job.rang = false);
        let grown_ns = (self.pause_ns * 2).min(self.timing.quiet_period_ns).max(self.timing.period_ns);
        self.pause_ns = if busy { self.timing.period_ns } else { grown_ns };
        self.next_look_ns = start_ns + self.pause_ns;
        shared.counters.looks.fetch_add(1, Relaxed);
        shared.counters.look_ns.fetch_add(monotonic_ns() - start_ns, Relaxed);
    }

    /// Notes the jobs for which the bell rang; false if it was none of these.
    fn answer(&mut self, now_ns: u64, shared: &Shared) -> bool {
        let Boost { bell: Some(bell), seen, .. } = self else { return false };
        let mut known = false;
        bell.answer(&mut |id| {
            for job in seen.iter_mut().filter(|job| job.job == id) {
                (job.rang, known) = (true, true);
            }
        });
        self.deaf_until_ns = now_ns + self.timing.ring_pause_ns;
        shared.counters.rings.fetch_add(1, Relaxed);
        known
    }

    fn look(&mut self, now_ns: u64, table: u64) {
        let mut may_read_cpu = true;
        for (job, seen) in self.jobs.iter_mut().zip(&mut self.seen) {
            seen.eligible = job.is_eligible(table);
            seen.unread = job.sockets.as_ref().is_some_and(|sockets| sockets.has_message());
            job.see_waits(seen);
            // One in each sample, so that they are spread out.
            if may_read_cpu && now_ns >= job.cpu_due_ns {
                may_read_cpu = false;
                job.cpu_due_ns = now_ns + CPU_PERIOD_NS;
                let used = job.cpu_stats.iter().filter_map(usage_ns);
                seen.cpu_ns = used.reduce(|all, more| all + more).unwrap_or(seen.cpu_ns);
            }
        }
    }

    /// Lets only the chosen job run among the eligible ones; without a choice, all of them.
    fn boost(&mut self, choice: Option<Choice>, now_ns: u64, shared: &Shared) {
        self.account(now_ns);
        let job = choice.map(|choice| choice.job);
        if let Some(job) = job {
            note(shared, self.jobs[job].switch.set_frozen(false));
            if self.current != Some(job) {
                self.jobs[job].switch.boosts.fetch_add(1, Relaxed);
                shared.counters.boosts.fetch_add(1, Relaxed);
            }
        }
        for (other, held) in self.jobs.iter().enumerate() {
            if self.seen[other].eligible && job != Some(other) {
                note(shared, held.switch.set_frozen(job.is_some()));
            }
        }
        self.current = job;
        self.held = choice.map(|choice| (now_ns, now_ns.saturating_add(choice.hold_ns.max(HOLD_NS_MIN))));
    }

    /// Adds the time for which others were held back until now.
    fn account(&mut self, now_ns: u64) {
        if let (Some(job), Some((since_ns, _))) = (self.current, self.held) {
            self.jobs[job].switch.boosted_ns.fetch_add(now_ns.saturating_sub(since_ns), Relaxed);
        }
        self.held = None;
    }

    /// Thaws all eligible jobs; the choice stays until the next sample.
    fn release(&mut self, table: u64, now_ns: u64, shared: &Shared) {
        self.account(now_ns);
        for job in self.jobs.iter().filter(|job| job.is_eligible(table)) {
            note(shared, job.switch.set_frozen(false));
        }
    }

    /// Ends the boost, as another [`Boost`] replaces this one.
    pub(in crate::slots) fn end(&mut self, table: u64, shared: &Shared) {
        self.release(table, monotonic_ns(), shared);
        self.current = None;
    }

    /// All states have been written again, so no job is held back any more.
    pub(in crate::slots) fn note_applied(&mut self) {
        self.account(monotonic_ns());
        self.current = None;
        self.next_look_ns = 0;
    }
}

impl BoostJob {
    /// Whether it is in the table in force, and runs in every turn of it.
    fn is_eligible(&self, table: u64) -> bool {
        let JobSwitch { table: named_by, always_runs, .. } = &*self.switch;
        named_by.load(Relaxed) == table && always_runs.load(Relaxed) && self.switch.state() == Some(Disposition::Run)
    }

    fn see_waits(&mut self, seen: &mut Seen) {
        let Some(page) = &mut self.page else { return };
        let waits = page.read();
        seen.processes = waits.processes;
        seen.spinning = waits.spinning;
        seen.sleeping = waits.sleeping;
        seen.waiting = waits.spinning > 0 && waits.spinning + waits.sleeping == waits.processes;
        seen.blocked = waits.processes > 0 && waits.sleeping == waits.processes;
    }
}
