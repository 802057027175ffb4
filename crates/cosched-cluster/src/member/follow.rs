//! How the node follows plans: core's follower, the clock, and acknowledgements.

use super::Member;
use super::session::Flight;
use super::types::{Action, Notice};
use crate::store::{Do, Op, Txn};
use crate::wire::{Ack, Clock, Measured, encode};
use cosched_core::cluster::{FollowAction, Follower, Plan, Planner};
use cosched_core::{Reason, Time};
use std::sync::Arc;

/// Loads that differ by less than this count as equal, in threads.
const LOAD_STEP: u32 = 2;

/// The plan that the node follows, and what it reports.
#[derive(Debug, Default)]
pub(super) struct Follow {
    follower: Option<Follower>,
    /// By the monotonic clock.
    lease_until: Time,
    /// By how much the wall clock was ahead of the monotonic one when the lease was last passed on.
    ahead_ns: i128,
    /// Whether the clock is good enough for slots.
    clock_ok: bool,
    /// The plan that is in use, or would be with a good clock.
    plan: Option<Arc<Plan>>,
    acknowledged: u64,
    pub(super) newest_seen: u64,
    pub(super) load: u32,
    load_written_at: Time,
    /// The node's measured load.
    pub(super) measured: Option<Measured>,
    measured_written_at: Time,
    /// The acknowledgement in the store, if it is known.
    pub(super) written: Option<Ack>,
}

impl Follow {
    pub(super) fn new(clock: Clock) -> Follow {
        Follow { clock_ok: clock.synchronised, ..Follow::default() }
    }

    /// Changes may have been missed.
    pub(super) fn lose_sight(&mut self) {
        self.follower.iter_mut().for_each(Follower::lose_sight);
    }

    pub(super) fn in_use(&self) -> Option<u64> {
        self.plan.as_ref().filter(|_| self.clock_ok).map(|plan| plan.generation)
    }
}

impl Member {
    /// The state may have changed: its plan is made and passed to the follower.
    pub(super) fn state_is_known(&mut self) {
        let Some(id) = self.id else { return };
        if self.follow.follower.is_none() {
            self.follow.follower = Some(Follower::new(id));
            self.tell_lease();
        }
        for earlier in std::mem::take(&mut self.replica.earlier) {
            if self.follow.newest_seen < earlier.generation
                && let Ok(planner) = Planner::new(earlier)
            {
                self.see_plan(Arc::clone(planner.plan()));
            }
        }
        self.ensure_planner();
        let Some(planner) = &self.work.planner else { return };
        self.see_plan(Arc::clone(planner.value.plan()));
    }

    fn see_plan(&mut self, plan: Arc<Plan>) {
        self.follow.newest_seen = self.follow.newest_seen.max(plan.generation);
        if let Some(follower) = &mut self.follow.follower {
            follower.see(self.now.wall, plan);
        }
    }

    /// Other nodes have acknowledged this generation, so it exists.
    pub(super) fn hear_of(&mut self, generation: u64) {
        if let Some(follower) = &mut self.follow.follower {
            follower.hear_of(generation);
        }
    }

    /// The lease lasts until this time, by the monotonic clock, and the state is known as of its renewal.
    pub(super) fn confirm_lease(&mut self, until: Time) {
        self.follow.lease_until = self.follow.lease_until.max(until);
        self.tell_lease();
    }

    /// The lease no longer counts.
    pub(super) fn lapse(&mut self) {
        self.follow.lease_until = Time(0);
        self.tell_lease();
        self.drain_follower();
    }

    fn tell_lease(&mut self) {
        let wall = self.now.wall;
        // An expired lease must not end at a time of the wall clock, because that may be set back by too little to be noticed.
        let until = match self.follow.lease_until - self.now.steady {
            0 => Time(0),
            left => wall + left,
        };
        if let Some(follower) = &mut self.follow.follower {
            follower.renewed(wall, until);
        }
    }

    pub(super) fn go_on_following(&mut self) {
        let ahead = i128::from(self.now.wall.0) - i128::from(self.now.steady.0);
        // A stepped wall clock moves slots, but must not move the end of the lease.
        if (ahead - self.follow.ahead_ns).abs() > 1_000_000 {
            self.follow.ahead_ns = ahead;
            self.tell_lease();
        }
        if let Some(follower) = &mut self.follow.follower {
            follower.handle_timeout(self.now.wall);
        }
        self.drain_follower();
    }

    pub(super) fn follow_timeout(&self) -> Option<Time> {
        let (at, _) = self.follow.follower.as_ref()?.poll_timeout()?;
        let writing = self.is_under_way(|flight| matches!(flight, Flight::Ack(_)));
        let tells = self.session.is_joined() && !writing;
        let load = [self.load_due(), self.measured_due()].map(|due| due.filter(|_| tells));
        [Some(self.steady(at))].into_iter().chain(load).flatten().min()
    }

    /// A time of the wall clock, by the monotonic clock.
    pub(super) fn steady(&self, wall: Time) -> Time {
        self.now.steady + (wall - self.now.wall)
    }

    fn drain_follower(&mut self) {
        while let Some(action) = self.follow.follower.as_mut().and_then(Follower::poll_action) {
            let ok = self.follow.clock_ok;
            match action {
                FollowAction::Acknowledge(generation) => self.follow.acknowledged = generation,
                FollowAction::Use(plan) => {
                    self.follow.plan = Some(Arc::clone(&plan));
                    if ok {
                        self.actions.push_back(Action::Use(plan));
                    }
                }
                FollowAction::RunNoSlots(reason) => {
                    self.follow.plan = None;
                    if ok {
                        self.actions.push_back(Action::RunNoSlots(reason));
                    }
                }
                FollowAction::StartEarly(job) if ok => self.actions.push_back(Action::StartEarly(job)),
                FollowAction::StartEarly(_) => (),
                FollowAction::Missed { generation, slots } => {
                    self.actions.push_back(Action::Missed { generation, slots });
                }
                FollowAction::Behind(many) => self.actions.push_back(Action::Behind(many)),
                FollowAction::Unsound(flaw) => self.say(Notice::Unsound(flaw.to_string())),
            }
        }
    }

    /// Without a good clock, slots would begin at another time than on other nodes.
    pub(super) fn set_clock(&mut self, clock: Clock) {
        // A plan that was taken into use by a wrong clock may not be in force yet.
        self.go_on_following();
        self.follow.clock_ok = clock.synchronised;
        self.say(Notice::Clock(clock.synchronised));
        let Some(plan) = &self.follow.plan else { return };
        self.actions.push_back(match clock.synchronised {
            true => Action::Use(Arc::clone(plan)),
            false => Action::RunNoSlots(Reason::ClockNotSynchronised),
        });
    }

    /// Writes to the store what this node has seen.
    pub(super) fn pump_acks(&mut self) {
        if self.is_under_way(|flight| matches!(flight, Flight::Ack(_))) {
            return;
        }
        let generation = self.follow.acknowledged;
        let written = self.follow.written;
        let is_due = |due: Option<Time>| due.is_some_and(|at| at <= self.now.steady);
        let other_threads = match written {
            Some(written) if !is_due(self.load_due()) => written.other_threads,
            _ => self.follow.load,
        };
        // A write that is necessary anyway also reports the measured load.
        let measured = match written {
            Some(written)
                if (written.generation, written.other_threads) == (generation, other_threads)
                    && !is_due(self.measured_due()) =>
            {
                written.measured
            }
            _ => self.follow.measured,
        };
        let ack = Ack { generation, other_threads, measured };
        if written == Some(ack) {
            return;
        }
        let key = self.settings.keys.ack(&self.settings.name);
        let then = vec![Do::Put { key, value: encode(&ack), lease: self.session.lease }];
        self.send(Flight::Ack(ack), Op::Txn(Txn { then, ..Txn::default() }));
    }

    pub(super) fn acknowledged(&mut self, ack: Ack) {
        let old = self.follow.written.replace(ack);
        if old.is_none_or(|old| old.other_threads != ack.other_threads) {
            self.follow.load_written_at = self.now.steady;
        }
        self.follow.measured_written_at = self.now.steady;
    }

    /// When the measured load may be reported again. The first report is due at once.
    fn measured_due(&self) -> Option<Time> {
        let now = self.follow.measured?;
        match self.follow.written?.measured {
            None => Some(self.now.steady),
            Some(told) => told
                .is_old(&now, self.settings.capacity.memory_bytes)
                .then(|| self.follow.measured_written_at + self.settings.load_period_ns),
        }
    }

    /// When a changed load may be reported.
    fn load_due(&self) -> Option<Time> {
        let told = self.follow.written?.other_threads;
        let step = LOAD_STEP.max(self.settings.capacity.cpus / 10);
        let differs = told.abs_diff(self.follow.load) >= step;
        differs.then(|| self.follow.load_written_at + self.settings.load_period_ns)
    }
}
