//! The loop of the slot thread.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime};

use super::Entry;
use super::Prepared;
use super::Shared;
use super::boost::Boost;
use super::count::Counting;
use super::division::Division;
use super::handoff::Node;
use super::idle::Idle;
use crate::beat::Beat;
use crate::cpubits::WORDS;
use crate::mechanism::{Mechanism, Order, Phase};
use crate::observe::{monotonic_ns, realtime_ns};
use crate::probe::IdleProbe;
use crate::switch::JobSwitch;
use cosched_core::Disposition;

/// How long after a failed write everything is written again, in nanoseconds: of a job that has no slots, such as a suspended one, no switch would.
const RETRY_NS: u64 = 100_000_000;

/// The thread's own state.
pub(super) struct Worker {
    shared: Arc<Shared>,
    beat: Option<Arc<Beat>>,
    timer: OwnedFd,
    mechanism: Option<Box<Node<Box<dyn Mechanism>>>>,
    table: Option<Box<Node<Prepared>>>,
    /// The slot whose states are applied, and the next one that needs a switch.
    slot: i64,
    next_slot: Option<i64>,
    probe: Option<Box<Node<IdleProbe>>>,
    idle: Idle,
    /// Among this many jobs at the head of the present turn's list, some use idle CPUs.
    filled: usize,
    boost: Option<Box<Node<Boost>>>,
    division: Option<Box<Node<Division>>>,
    /// Since when the present part of the slot is held back for neighbours; `None` in the gangs' part.
    held_since_ns: Option<u64>,
    /// The bell of the boost has rung.
    rung: bool,
    /// The time for which the timer is set.
    armed_ns: Option<i64>,
    beaten_at_ns: u64,
    thaws_seen: u64,
    /// The failed writes so far, and when everything is written again because of the last ones.
    errors_seen: u64,
    retry_at_ns: Option<u64>,
    counting: Counting,
}

impl Worker {
    pub(super) fn new(shared: Arc<Shared>, beat: Option<Arc<Beat>>) -> io::Result<Worker> {
        let timer = timerfd_create(TimerfdClockId::Realtime, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        let thaws_seen = beat.as_ref().map_or(0, |beat| beat.thaws());
        Ok(Worker {
            shared,
            beat,
            timer,
            mechanism: None,
            table: None,
            slot: 0,
            next_slot: None,
            probe: None,
            idle: Idle::new(),
            filled: 0,
            boost: None,
            division: None,
            held_since_ns: None,
            rung: false,
            armed_ns: None,
            beaten_at_ns: monotonic_ns(),
            thaws_seen,
            errors_seen: 0,
            retry_at_ns: None,
            counting: Counting::default(),
        })
    }

    /// Runs until it is stopped.
    pub(super) fn run(&mut self) {
        if let Some(beat) = &self.beat {
            beat.note_slot_thread();
        }
        while !self.shared.stop.load(Acquire) {
            let now_ns = realtime_ns();
            self.switch_if_due(now_ns);
            self.divide_if_due();
            self.count_if_due();
            self.fill_if_idle();
            self.look_if_due();
            self.take_probe();
            self.take_mechanism();
            self.take_boost();
            self.take_table();
            self.take_division();
            self.stamp();
            self.retry_if_due();
            self.divide_if_due();
            self.tick_if_wanted();
            self.sleep();
        }
        self.release_all();
    }

    /// At a boundary: writes the differences of the next turn; after a clock jump or a missed boundary: everything.
    fn switch_if_due(&mut self, now_ns: i64) {
        let (Some(table), Some(next)) = (&self.table, self.next_slot) else { return };
        let slot = table.value.slot_at(now_ns);
        if slot >= self.slot && slot < next {
            return;
        }
        if slot == next {
            if self.held_since_ns.is_some() {
                // Every slot begins with the gangs' part.
                self.weigh(false);
            }
            self.switch_to(slot, now_ns);
        } else {
            if slot > next {
                self.shared.counters.missed.fetch_add((slot - next) as u64, Relaxed);
            }
            self.apply_all(slot);
        }
    }

    /// The regular switch.
    fn switch_to(&mut self, slot: i64, now_ns: i64) {
        let (Some(mechanism), Some(table)) = (&self.mechanism, &self.table) else { return };
        let (mechanism, table) = (&mechanism.value, &table.value);
        let Some(turn) = table.turn(slot) else { return };
        let apply = |job: u16, state| {
            let entry = &table.jobs[usize::from(job)];
            note(&self.shared, mechanism.apply(&entry.switch, state, entry.weight, Phase::Switch));
        };
        let enter = || turn.enter.iter().for_each(|&job| apply(job, Disposition::Run));
        if mechanism.order() == Order::IncomingFirst {
            enter();
        }
        for &job in &turn.leave {
            apply(job, table.jobs[usize::from(job)].otherwise);
        }
        // The slots without a change between the last switch and this one had the same turn.
        let filled = fills(table, self.slot, self.held_since_ns.is_some()).take(self.filled);
        for job in filled.filter(|job| table.state(usize::from(*job), slot) != Disposition::Run) {
            apply(job, table.jobs[usize::from(job)].otherwise);
        }
        if mechanism.order() == Order::OutgoingFirst {
            enter();
        }
        let (boundary_ns, done_ns) = (table.boundary_ns(slot), realtime_ns());
        let next_slot = table.next_change(slot);
        self.measure(now_ns - boundary_ns, done_ns - boundary_ns, table.slot_length_ns);
        self.counting.count_if_pending(table, self.slot, &self.shared);
        self.counting.switched(table, slot, &self.shared);
        self.slot = slot;
        self.next_slot = next_slot;
        self.note_switch();
    }

    /// What was idle before now does not count, and no gang fills.
    fn note_switch(&mut self) {
        self.filled = 0;
        self.idle.switched();
        if let Some(probe) = &self.probe {
            probe.value.note_switch();
        }
    }

    fn measure(&self, wake_ns: i64, done_ns: i64, slot_length_ns: i64) {
        let counters = &self.shared.counters;
        counters.switches.fetch_add(1, Relaxed);
        counters.wake.add(wake_ns.max(0) as u64);
        counters.done.add(done_ns.max(0) as u64);
        counters.work.add((done_ns - wake_ns).max(0) as u64);
        if wake_ns > slot_length_ns / 10 {
            counters.late.fetch_add(1, Relaxed);
        }
    }

    /// Brings every job into its state of `slot`.
    fn apply_all(&mut self, slot: i64) {
        let (Some(mechanism), Some(table)) = (&self.mechanism, &self.table) else { return };
        let (mechanism, table) = (&mechanism.value, &table.value);
        let incoming_first = mechanism.order() == Order::IncomingFirst;
        let next_slot = table.next_change(slot);
        // If no gangs change places, the kernel's own background is exact enough, and no probe is needed.
        let phase = if next_slot.is_none() && !runs_adopted(table, slot) { Phase::Fill } else { Phase::Switch };
        for running in [incoming_first, !incoming_first] {
            for (job, entry) in table.jobs.iter().enumerate() {
                let state = table.state(job, slot);
                if (state == Disposition::Run) == running {
                    note(&self.shared, mechanism.apply(&entry.switch, state, entry.weight, phase));
                }
            }
        }
        self.counting.applied_all();
        self.slot = slot;
        self.next_slot = next_slot;
        self.note_switch();
        self.count_held();
        self.weigh(false);
        if let Some(boost) = &mut self.boost {
            boost.value.note_applied();
        }
        self.set_probe();
    }

    /// The probe checks only while there are jobs that may use idle CPUs.
    fn set_probe(&self) {
        let Some(probe) = &self.probe else { return };
        probe.value.note_switch();
        let soft = self.mechanism.as_ref().is_some_and(|mechanism| mechanism.value.has_background());
        match &self.table {
            Some(table) if soft && self.looks_for_idle(&table.value) => {
                probe.value.arm(table.value.slot_length_ns as u64);
            }
            _ => probe.value.disarm(),
        }
    }

    /// The probe has found idle CPUs: one more job may use them, the first that has one of them in its place, if that pays.
    fn fill_if_idle(&mut self) {
        let Some(probe) = &self.probe else { return };
        let held = self.held_since_ns.is_some();
        let may = if held { self.is_divided_to_fill() } else { self.next_slot.is_some() };
        if !self.idle.add(&probe.value) || !may {
            return;
        }
        let (Some(mechanism), Some(table)) = (&self.mechanism, &self.table) else { return };
        if runs_adopted(&table.value, self.slot) {
            return;
        }
        let left_ns = self.left_ns(&table.value);
        let entry_of = |job: u16| &table.value.jobs[usize::from(job)];
        let fills = fills(&table.value, self.slot, held).map(entry_of).enumerate();
        let mut frozen = fills.filter(|(_, entry)| entry.switch.is_frozen()).peekable();
        if frozen.peek().is_none() {
            probe.value.rest();
        }
        let Some((at, entry)) = self.idle.choose(frozen, left_ns) else { return };
        note(&self.shared, mechanism.value.apply(&entry.switch, Disposition::Background, entry.weight, Phase::Fill));
        self.idle.filled(&probe.value);
        self.filled = self.filled.max(at + 1);
        self.shared.counters.fills.fetch_add(1, Relaxed);
    }

    /// How long it is until the next switch, or until this part of the slot ends.
    fn left_ns(&self, table: &Prepared) -> u64 {
        let boundary_ns = self.next_slot.map(|slot| table.boundary_ns(slot));
        let end_ns = boundary_ns.into_iter().chain(self.edge_ns()).min();
        end_ns.map_or(0, |end_ns| (end_ns - realtime_ns()).max(0) as u64)
    }

    /// When the present part of the slot ends, if slots are divided.
    fn edge_ns(&self) -> Option<i64> {
        self.phase().map(|(_, until_ns)| until_ns).filter(|_| self.is_divided())
    }

    /// Whether jobs in the background may run where the present gang does not: until the next switch, or in the held part of this slot.
    fn looks_for_idle(&self, table: &Prepared) -> bool {
        let holds = self.is_divided_to_fill() && table.holds(self.slot).next().is_some();
        (self.next_slot.is_some() && table.may_fill()) || holds
    }

    /// At the begin and end of the held part of a slot: its gangs are stopped together, but, like other jobs, may use a CPU that no neighbour uses.
    fn divide_if_due(&mut self) {
        let Some(held) = self.phase().map(|(held, _)| held) else { return };
        if held == self.held_since_ns.is_some() {
            return;
        }
        let (Some(mechanism), Some(table)) = (&self.mechanism, &self.table) else { return };
        let (mechanism, table) = (&mechanism.value, &table.value);
        let apply = |job: u16, state| {
            let entry = &table.jobs[usize::from(job)];
            note(&self.shared, mechanism.apply(&entry.switch, state, entry.weight, Phase::Switch));
        };
        let stop_fillers = || {
            for job in fills(table, self.slot, !held).take(self.filled) {
                if table.state(usize::from(job), self.slot) != Disposition::Run {
                    apply(job, table.jobs[usize::from(job)].otherwise);
                }
            }
        };
        if held {
            table.holds(self.slot).for_each(|job| apply(job, table.jobs[usize::from(job)].otherwise));
            stop_fillers();
            self.weigh(true);
            self.held_since_ns = Some(monotonic_ns());
        } else {
            self.weigh(false);
            table.holds(self.slot).for_each(|job| apply(job, Disposition::Run));
            stop_fillers();
            self.count_held();
        }
        self.note_switch();
    }

    /// Whether the present moment is in the held part, and when that changes, on the wall clock. `None` where slots are not divided.
    fn phase(&self) -> Option<(bool, i64)> {
        let (table, division) = (&self.table.as_ref()?.value, &self.division.as_ref()?.value);
        let now_ns = realtime_ns();
        let slot = table.slot_at(now_ns);
        table.turn(slot)?;
        let begin_ns = table.boundary_ns(slot);
        let (held, until_ns) = division.phase(table.slot_length_ns, now_ns - begin_ns);
        Some((held, begin_ns + until_ns))
    }

    fn is_divided(&self) -> bool {
        self.division.as_ref().is_some_and(|division| division.value.is_divided())
    }

    fn is_divided_to_fill(&self) -> bool {
        self.division.as_ref().is_some_and(|division| division.value.is_divided() && division.value.held.fill)
    }

    fn count_held(&mut self) {
        if let Some(since_ns) = self.held_since_ns.take() {
            self.shared.counters.held_ns.fetch_add(monotonic_ns().saturating_sub(since_ns), Relaxed);
        }
    }

    fn take_division(&mut self) {
        let Some(new) = self.shared.divisions.take() else { return };
        if let Some(old) = self.division.replace(new) {
            self.shared.divisions.give_back(old);
        }
        self.weigh(self.held_since_ns.is_some());
        self.set_probe();
    }

    /// Writes the weight of the subtree for the held part of the slot, or the rest.
    fn weigh(&self, held: bool) {
        let Some(division) = &self.division else { return };
        let divided = self.table.as_ref().is_some_and(|table| table.value.turn(self.slot).is_some());
        note(&self.shared, division.value.weigh(held, divided));
    }

    /// Switches very short turns on while a job with that setting runs.
    fn tick_if_wanted(&self) {
        let ticks = &self.shared.ticks;
        if !ticks.has_threads.load(Acquire) {
            return;
        }
        let mut cpus = [0; WORDS];
        if let Some(table) = self.table.as_ref().map(|table| &table.value).filter(|_| self.held_since_ns.is_none()) {
            for (job, entry) in table.jobs.iter().enumerate() {
                if table.state(job, self.slot) == Disposition::Run {
                    entry.switch.ticks_into(&mut cpus);
                }
            }
        }
        ticks.set(&cpus);
    }

    fn count_if_due(&mut self) {
        if let Some(table) = &self.table
            && self.counting.is_due(monotonic_ns())
        {
            self.counting.count_if_pending(&table.value, self.slot, &self.shared);
        }
    }

    fn apply_all_now(&mut self) {
        if let Some(table) = &self.table {
            let slot = table.value.slot_at(realtime_ns());
            self.apply_all(slot);
        }
    }

    fn look_if_due(&mut self) {
        let (Some(boost), Some(table)) = (&mut self.boost, &self.table) else { return };
        boost.value.look_if_due(std::mem::take(&mut self.rung), table.value.number, &self.shared);
    }

    fn take_boost(&mut self) {
        let Some(new) = self.shared.boosts.take() else { return };
        if let Some(mut old) = self.boost.replace(new) {
            if let Some(table) = &self.table {
                old.value.end(table.value.number, &self.shared);
            }
            self.shared.boosts.give_back(old);
        }
    }

    fn take_probe(&mut self) {
        let Some(new) = self.shared.probes.take() else { return };
        if let Some(old) = self.probe.replace(new) {
            self.shared.probes.give_back(old);
        }
        self.set_probe();
    }

    fn take_mechanism(&mut self) {
        let Some(new) = self.shared.mechanisms.take() else { return };
        if let (true, Some(beat)) = (new.value.uses_signals(), &self.beat) {
            beat.note_signals();
        }
        if self.mechanism.is_some() {
            self.release_all();
        }
        if let Some(old) = self.mechanism.replace(new) {
            self.shared.mechanisms.give_back(old);
        }
        self.apply_all_now();
    }

    fn take_table(&mut self) {
        let Some(new) = self.shared.tables.take() else { return };
        for entry in &new.value.jobs {
            entry.switch.table.store(new.value.number, Relaxed);
            entry.switch.always_runs.store(entry.otherwise == Disposition::Run, Relaxed);
        }
        let number = new.value.number;
        if let Some(old) = self.table.replace(new) {
            if let Some(mechanism) = &self.mechanism {
                for entry in old.value.jobs.iter().filter(|e| e.switch.table.load(Relaxed) != number) {
                    release(&self.shared, &*mechanism.value, &entry.switch);
                }
            }
            self.shared.tables.give_back(old);
        }
        self.apply_all_now();
        self.shared.taken.store(number, Release);
        self.shared.counters.installs.fetch_add(1, Relaxed);
    }

    fn release_all(&mut self) {
        let (Some(mechanism), Some(table)) = (&self.mechanism, &self.table) else { return };
        for entry in &table.value.jobs {
            release(&self.shared, &*mechanism.value, &entry.switch);
        }
        if let Some(division) = &self.division {
            note(&self.shared, division.value.weigh(false, false));
        }
    }

    /// The heartbeat. When the guard has thawed the jobs, or this thread was stopped for longer than a lease (so that the guard may be about to), the
    /// remembered contents of the files are no longer valid: everything is written again.
    fn stamp(&mut self) {
        let Some(beat) = &self.beat else { return };
        let now_ns = monotonic_ns();
        let stood_still = now_ns - self.beaten_at_ns > beat.lease_ns();
        beat.stamp();
        self.beaten_at_ns = now_ns;
        let thaws = beat.thaws();
        if stood_still || thaws != self.thaws_seen {
            self.thaws_seen = thaws;
            self.resync();
        }
    }

    /// Files keep what was written to them, so only what failed is written again.
    fn retry_if_due(&mut self) {
        let (errors, now_ns) = (self.shared.counters.errors.load(Relaxed), monotonic_ns());
        if std::mem::replace(&mut self.errors_seen, errors) < errors {
            self.retry_at_ns.get_or_insert(now_ns + RETRY_NS);
        }
        if self.retry_at_ns.take_if(|at_ns| *at_ns <= now_ns).is_some() {
            self.apply_all_now();
        }
    }

    fn resync(&mut self) {
        self.shared.counters.resyncs.fetch_add(1, Relaxed);
        if let Some(table) = &self.table {
            for entry in &table.value.jobs {
                entry.switch.forget();
            }
        }
        if let Some(division) = &self.division {
            division.value.tree.forget();
        }
        self.apply_all_now();
    }

    /// Sleeps until the next boundary, the next sample or heartbeat, a message of the probe, the bell or the owner.
    fn sleep(&mut self) {
        let boundary_ns = match (&self.table, self.next_slot) {
            (Some(table), Some(slot)) => Some(table.value.boundary_ns(slot)),
            _ => None,
        };
        self.arm(boundary_ns.into_iter().chain(self.edge_ns()).min());
        let now_ns = monotonic_ns();
        let beat_ns = self.beat.as_ref().map(|beat| self.beaten_at_ns + beat.lease_ns() / 4);
        let look_ns = self.boost.as_ref().and_then(|boost| boost.value.due_ns(now_ns));
        let timeout =
            beat_ns.into_iter().chain(look_ns).chain(self.counting.due_ns()).chain(self.retry_at_ns).min().map(
                |due_ns| {
                    let wait_ns = due_ns.saturating_sub(now_ns);
                    Timespec { tv_sec: (wait_ns / 1_000_000_000) as i64, tv_nsec: (wait_ns % 1_000_000_000) as i64 }
                },
            );
        // Without a probe or a bell the wake descriptor is used in its place.
        let wake = self.shared.wake.as_fd();
        let probe = self.probe.as_ref().map_or(wake, |probe| probe.value.as_fd());
        let bell = self.boost.as_ref().and_then(|boost| boost.value.bell(now_ns));
        let wait_for = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        let mut fds = [self.timer.as_fd(), wake, probe, bell.unwrap_or(wake)].map(wait_for);
        // An interrupted sleep only means one more round.
        let _ = poll(&mut fds, timeout.as_ref());
        let (timer_fired, woken) = (!fds[0].revents().is_empty(), !fds[1].revents().is_empty());
        self.rung = bell.is_some() && !fds[3].revents().is_empty();
        let mut count = [0u8; 8];
        if timer_fired {
            // ECANCELED means that the clock was set; either way the times are computed again.
            let _ = rustix::io::read(&self.timer, &mut count);
            self.armed_ns = None;
        }
        if woken {
            let _ = rustix::io::read(&self.shared.wake, &mut count);
        }
    }

    fn arm(&mut self, at_ns: Option<i64>) {
        if self.armed_ns == at_ns {
            return;
        }
        // Zero disarms; a time in the past fires at once.
        let at = at_ns.map_or(0, |ns| ns.max(1));
        let value = Timespec { tv_sec: at / 1_000_000_000, tv_nsec: at % 1_000_000_000 };
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        let flags = TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET;
        match timerfd_settime(&self.timer, flags, &Itimerspec { it_interval: zero, it_value: value }) {
            // ECANCELED: the clock was set since the last time, and the timer is set nevertheless.
            Ok(_) | Err(Errno::CANCELED) => self.armed_ns = at_ns,
            Err(_) => self.armed_ns = None,
        }
    }
}

/// Whether an adopted job runs in this slot: the idle mark of jobs that use idle CPUs has no effect against it.
fn runs_adopted(table: &Prepared, slot: i64) -> bool {
    let runs = |(at, entry): (usize, &Entry)| entry.switch.is_adopted() && table.state(at, slot) == Disposition::Run;
    table.jobs.iter().enumerate().any(runs)
}

/// The jobs that may use idle CPUs, in order; in the held part of a slot its own gangs first.
fn fills(table: &Prepared, slot: i64, held: bool) -> impl Iterator<Item = u16> {
    let own =
        table.holds(slot).filter(move |job| held && table.jobs[usize::from(*job)].otherwise == Disposition::Background);
    own.chain(table.fills(slot))
}

/// A panic must not leave jobs stopped, either.
impl Drop for Worker {
    fn drop(&mut self) {
        self.release_all();
    }
}

/// Releases a job: it has no slots from now on.
fn release(shared: &Shared, mechanism: &dyn Mechanism, job: &JobSwitch) {
    note(shared, mechanism.release(job));
    job.cpu.forget();
}

pub(super) fn note(shared: &Shared, result: Result<(), Errno>) {
    if let Err(errno) = result {
        shared.counters.errors.fetch_add(1, Relaxed);
        shared.counters.errno.store(errno.raw_os_error(), Relaxed);
    }
}
