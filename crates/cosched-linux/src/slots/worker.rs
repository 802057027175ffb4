//! The inside of the slot thread.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime};

use super::Shared;
use super::handoff::Node;
use super::table::Prepared;
use crate::beat::Beat;
use crate::mechanism::{Mechanism, Order, Phase};
use crate::observe::{monotonic_ns, realtime_ns};
use crate::switch::State;

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
    /// When the second phase is due, on the wall clock.
    settle_at_ns: Option<i64>,
    /// What the timer is set to.
    armed_ns: Option<i64>,
    beaten_at_ns: u64,
    thaws_seen: u64,
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
            settle_at_ns: None,
            armed_ns: None,
            beaten_at_ns: monotonic_ns(),
            thaws_seen,
        })
    }

    /// Runs until it is stopped.
    pub(super) fn run(&mut self) {
        while !self.shared.stop.load(Acquire) {
            let now_ns = realtime_ns();
            self.settle_if_due(now_ns);
            self.switch_if_due(now_ns);
            self.take_mechanism();
            self.take_table();
            self.stamp();
            self.sleep();
        }
        self.release_all();
    }

    /// The second phase. It is also due when the next boundary has come.
    fn settle_if_due(&mut self, now_ns: i64) {
        if self.settle_at_ns.is_none_or(|at| now_ns < at) {
            return;
        }
        self.settle();
    }

    fn settle(&mut self) {
        self.settle_at_ns = None;
        let (Some(mechanism), Some(table)) = (&self.mechanism, &mut self.table) else { return };
        let table = &mut table.value;
        for &job in &table.settling {
            let entry = &table.jobs[usize::from(job)];
            if entry.switch.state() == Some(State::Background) {
                let result = mechanism.value.apply(&entry.switch, State::Background, entry.weight, Phase::Settle);
                note(&self.shared, result);
            }
        }
        table.settling.clear();
    }

    /// At a boundary: the differences of the next turn; after a clock jump or a missed boundary: everything.
    fn switch_if_due(&mut self, now_ns: i64) {
        let (Some(table), Some(next)) = (&self.table, self.next_slot) else { return };
        let slot = table.value.slot_at(now_ns);
        if slot >= self.slot && slot < next {
            return;
        }
        if self.settle_at_ns.is_some() {
            self.settle();
        }
        if slot == next {
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
        let (Some(mechanism), Some(table)) = (&self.mechanism, &mut self.table) else { return };
        let (mechanism, table) = (&mechanism.value, &mut table.value);
        let boundary_ns = table.boundary_ns(slot);
        let index = slot.rem_euclid(table.turns.len() as i64) as usize;
        let (turn, jobs, settling) = (&table.turns[index], &table.jobs, &mut table.settling);
        let enter = || {
            for &job in &turn.enter {
                let entry = &jobs[usize::from(job)];
                note(&self.shared, mechanism.apply(&entry.switch, State::Run, entry.weight, Phase::Boundary));
            }
        };
        let mut leave = || {
            for &job in &turn.leave {
                let entry = &jobs[usize::from(job)];
                note(&self.shared, mechanism.apply(&entry.switch, entry.otherwise, entry.weight, Phase::Boundary));
                if entry.otherwise == State::Background {
                    settling.push(job);
                }
            }
        };
        match mechanism.order() {
            Order::IncomingFirst => (enter(), leave()),
            Order::OutgoingFirst => {
                leave();
                ((), enter())
            }
        };
        let done_ns = realtime_ns();
        let settle_after_ns = mechanism.settle_after_ns();
        self.settle_at_ns = settle_after_ns.filter(|_| !table.settling.is_empty()).map(|d| done_ns + d as i64);
        let slot_length_ns = table.slot_length_ns;
        self.measure(now_ns - boundary_ns, done_ns - boundary_ns, slot_length_ns);
        self.slot = slot;
        self.next_slot = self.table.as_ref().and_then(|table| table.value.next_change(slot));
    }

    fn measure(&self, wake_ns: i64, done_ns: i64, slot_length_ns: i64) {
        let counters = &self.shared.counters;
        counters.switches.fetch_add(1, Relaxed);
        counters.wake.add(wake_ns.max(0) as u64);
        counters.done.add(done_ns.max(0) as u64);
        if wake_ns > slot_length_ns / 10 {
            counters.late.fetch_add(1, Relaxed);
        }
    }

    /// Brings every job into its state of `slot`.
    fn apply_all(&mut self, slot: i64) {
        let (Some(mechanism), Some(table)) = (&self.mechanism, &mut self.table) else { return };
        let (mechanism, table) = (&mechanism.value, &mut table.value);
        let incoming_first = mechanism.order() == Order::IncomingFirst;
        table.settling.clear();
        for running in [incoming_first, !incoming_first] {
            for job in 0..table.jobs.len() {
                let state = table.state(job, slot);
                if (state == State::Run) != running {
                    continue;
                }
                let entry = &table.jobs[job];
                note(&self.shared, mechanism.apply(&entry.switch, state, entry.weight, Phase::Boundary));
                if state == State::Background {
                    table.settling.push(job as u16);
                }
            }
        }
        let settle_after_ns = mechanism.settle_after_ns();
        self.settle_at_ns = settle_after_ns.filter(|_| !table.settling.is_empty()).map(|d| realtime_ns() + d as i64);
        self.slot = slot;
        self.next_slot = table.next_change(slot);
    }

    fn apply_all_now(&mut self) {
        if let Some(table) = &self.table {
            let slot = table.value.slot_at(realtime_ns());
            self.apply_all(slot);
        }
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
        self.settle_at_ns = None;
        self.apply_all_now();
    }

    fn take_table(&mut self) {
        let Some(new) = self.shared.tables.take() else { return };
        if self.settle_at_ns.is_some() {
            self.settle();
        }
        for entry in &new.value.jobs {
            entry.switch.table.store(new.value.number, Relaxed);
        }
        let number = new.value.number;
        if let Some(old) = self.table.replace(new) {
            if let Some(mechanism) = &self.mechanism {
                for entry in old.value.jobs.iter().filter(|e| e.switch.table.load(Relaxed) != number) {
                    note(&self.shared, mechanism.value.release(&entry.switch));
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
            note(&self.shared, mechanism.value.release(&entry.switch));
        }
    }

    /// The sign of life. When the guard has thawed, or this thread stood still for longer than a lease (so that the guard may be about
    /// to), what is remembered of the files is no longer true: everything is written anew.
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

    fn resync(&mut self) {
        self.shared.counters.resyncs.fetch_add(1, Relaxed);
        if let Some(table) = &self.table {
            for entry in &table.value.jobs {
                entry.switch.forget();
            }
        }
        self.apply_all_now();
    }

    /// Until the next boundary, the second phase, the next beat or a word of the owner.
    fn sleep(&mut self) {
        let boundary_ns = match (&self.table, self.next_slot) {
            (Some(table), Some(slot)) => Some(table.value.boundary_ns(slot)),
            _ => None,
        };
        self.arm(boundary_ns.into_iter().chain(self.settle_at_ns).min());
        let timeout = self.beat.as_ref().map(|beat| {
            let due_ns = (self.beaten_at_ns + beat.lease_ns() / 4).saturating_sub(monotonic_ns());
            Timespec { tv_sec: (due_ns / 1_000_000_000) as i64, tv_nsec: (due_ns % 1_000_000_000) as i64 }
        });
        let mut fds = [PollFd::new(&self.timer, PollFlags::IN), PollFd::new(&self.shared.wake, PollFlags::IN)];
        // An interrupted sleep only means one more look.
        let _ = poll(&mut fds, timeout.as_ref());
        let (timer_fired, woken) = (!fds[0].revents().is_empty(), !fds[1].revents().is_empty());
        let mut count = [0u8; 8];
        if timer_fired {
            // ECANCELED says that the clock was set; either way the times are looked at anew.
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

/// A panic must not leave jobs stopped either.
impl Drop for Worker {
    fn drop(&mut self) {
        self.release_all();
    }
}

fn note(shared: &Shared, result: Result<(), Errno>) {
    if let Err(errno) = result {
        shared.counters.errors.fetch_add(1, Relaxed);
        shared.counters.errno.store(errno.raw_os_error(), Relaxed);
    }
}
