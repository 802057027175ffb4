//! Whether there is something to plan, and when it is this member's turn.
//!
//! The live members are ranked by number, those without a good clock last, because a plan's beginning is a time by the
//! planner's clock. Rank 0 plans at once, rank k after k delays if there is still something to do. Only rank 0
//! makes plans that follow from the time of day alone.
//!
//! A node whose lease has expired is silent at once, unless this member itself was disconnected from the store shortly
//! before: then the others may have been disconnected too, and are given time to come back. A node that is silent for
//! much longer is dead. By then it has itself killed those of its jobs that are restarted elsewhere; see `fence.rs`.

use super::replica::At;
use super::session::Flight;
use super::types::{Moment, Notice, Settings};
use super::{Member, finish};
use crate::store::Revision;
use cosched_core::cluster::{NEVER, Period, Planner, State};
use cosched_core::{NodeId, Time};
use std::collections::BTreeMap;

/// A new plan is worthwhile when the present one takes effect later than a new one would by more than this.
const SOONER_NS: u64 = 1_000_000_000;

/// A member's planning activity.
#[derive(Debug, Default)]
pub(super) enum Stage {
    /// Nothing.
    #[default]
    Resting,
    /// It reads acknowledgements, or commits.
    Busy,
    /// It has committed, and waits until its own watch reports that.
    Told(Revision),
}

/// The planning work.
#[derive(Debug, Default)]
pub(super) struct Work {
    /// The planner of a state.
    pub(super) planner: Option<At<Planner>>,
    pub(super) stage: Stage,
    /// The commit in progress.
    pub(super) pending: Option<super::commit::Pending>,
    /// The last commit did not fit into the store.
    pub(super) refuse_submits: bool,
    /// The period by the operator's calendar.
    pub(super) period: Option<Period>,
    /// Something that does not depend on the time has to be done.
    flagged: bool,
    /// A job has ended on all its nodes, and its end is not recorded yet.
    pub(super) ends: bool,
    /// Since when there is something to do.
    since: Option<Time>,
    /// The revision of the state for which `since` was set.
    since_revision: Revision,
    /// Planning does not begin before this.
    pub(super) hold_until: Time,
    /// The number of commits in a row that met a conflict, without a report of the watch.
    pub(super) conflicts: u32,
    /// The nodes of the plan that do not take part now.
    away: BTreeMap<NodeId, Away>,
    pub(super) rebalanced: Time,
    /// The plan of this member that waits for the leases of lagging nodes: its generation, and when it was made.
    pub(super) waits: Option<(u64, Moment)>,
    /// Since when plans of this member have waited for leases without a break.
    pub(super) waits_since: Time,
    /// When it was last checked whether they still have to.
    pub(super) hastened: Time,
    /// When the state was last seen to change.
    pub(super) state_seen: Time,
}

/// A node of the plan that does not take part now.
#[derive(Clone, Copy, Debug)]
struct Away {
    /// Since when this member has missed it, or has seen that the plan counts it as silent.
    since: Time,
    /// Since when the plan counts it as silent.
    silent: Option<Time>,
    /// Whether jobs have parts there, or their main process.
    has_jobs: bool,
}

impl Work {
    /// Forgets since when nodes have been missing.
    pub(super) fn forget_silence(&mut self) {
        self.away.clear();
    }

    /// The store is lost.
    pub(super) fn stop(&mut self) {
        self.stage = Stage::Resting;
        (self.since, self.pending) = (None, None);
    }
}

impl Member {
    /// Makes the planner of the present state.
    pub(super) fn ensure_planner(&mut self) {
        let Some(state) = &self.replica.state else { return };
        // The watch may not have reported this member's own commit yet.
        if self.work.planner.as_ref().is_some_and(|planner| planner.revision >= state.revision) {
            return;
        }
        match Planner::new(state.value.clone()) {
            Ok(planner) => self.work.planner = Some(At { value: planner, revision: state.revision }),
            Err(e) => {
                let before = self.work.planner.take();
                let before = before.map(|at| At { value: at.value.state().clone(), revision: at.revision });
                self.replica.state_cannot_be(self.settings.keys.state(), e.to_string(), before);
            }
        }
    }

    /// Checks that a member that is busy planning has an operation in progress; otherwise it would wait forever.
    pub(super) fn check_work(&mut self) {
        let asks = self.is_under_way(|flight| matches!(flight, Flight::Acks(_) | Flight::Commit));
        let commits = self.is_under_way(|flight| matches!(flight, Flight::Commit));
        if matches!(self.work.stage, Stage::Busy) != asks || self.work.pending.is_some() != commits {
            self.work.stop();
            self.say(Notice::Unsound(
                "planning waited for an answer that was not outstanding, and starts again".to_owned(),
            ));
        }
    }

    /// The copy of the store has changed: determines whether there is something to plan.
    pub(super) fn look_for_work(&mut self) {
        if let Stage::Told(revision) = self.work.stage
            && self.replica.revision >= revision
        {
            self.work.stage = Stage::Resting;
        }
        let revision = self.replica.state_revision();
        if self.work.since_revision != revision {
            (self.work.since_revision, self.work.since) = (revision, None);
            self.work.state_seen = self.now.steady;
            self.work.conflicts = 0;
        }
        let now = self.now.steady;
        self.work.away = self.who_is_away(now);
        let unmarked = self.replica.state.is_some() && !self.replica.is_marked();
        self.work.flagged = unmarked || !self.replica.requests.is_empty() || self.has_joins() || self.work.ends;
    }

    fn who_is_away(&self, now: Time) -> BTreeMap<NodeId, Away> {
        let Some(state) = self.state() else { return BTreeMap::new() };
        let away = state.nodes.keys().filter(|id| self.replica.live(**id).is_none()).map(|id| {
            let silent = state.silent.get(id).copied();
            let known = self.work.away.get(id).filter(|known| known.silent == silent);
            let has_jobs = self.replica.has_jobs(*id);
            (*id, Away { since: known.map_or(now, |known| known.since), silent, has_jobs })
        });
        away.collect()
    }

    /// Whether a live node is not in the plan as it is now.
    fn has_joins(&self) -> bool {
        let state = self.replica.state.as_ref().map(|state| &state.value);
        self.replica.nodes.iter().any(|(name, live)| {
            let node = &live.value.node;
            let planned = state.and_then(|state| state.nodes.get(&NodeId(node.id)));
            self.replica.is_new_boot(name, node)
                || state.is_some_and(|state| state.silent.contains_key(&NodeId(node.id)))
                || node.cpus > 0 && planned.is_none_or(|planned| planned.capacity != super::commit::capacity(node))
        })
    }

    pub(super) fn has_ends(&self) -> bool {
        let Some(state) = &self.replica.state else { return false };
        state.value.jobs.values().any(|job| {
            let record = self.replica.jobs.get(&job.spec.id.0).map(|job| &job.value);
            finish::is_over(job, record, &self.replica)
        })
    }

    /// When a missing node becomes silent, or a silent one dead; `None` if only an operator may say so.
    fn gives_up_at(&self, away: Away) -> Option<Time> {
        let wait_ns = match self.state()?.config.node_dead_after_ns {
            _ if !(away.silent.is_some() && away.has_jobs) => 0,
            NEVER => return None,
            ns => ns.saturating_add(self.settings.fence_margin_ns(ns)),
        };
        Some((away.since + wait_ns).max(self.session.since + self.settings.grace_ns()))
    }

    /// The nodes that are given up now.
    pub(super) fn lost_nodes(&self) -> Vec<NodeId> {
        let lost = |away: Away| self.gives_up_at(away).is_some_and(|at| at <= self.now.steady);
        self.work.away.iter().filter(|(_, away)| lost(**away)).map(|(id, _)| *id).collect()
    }

    /// The number of live members that plan before this one.
    fn rank(&self) -> u64 {
        let rank_of = |node: &crate::wire::Node| (!node.clock.synchronised, node.id);
        let own = (!self.settings.clock.synchronised, self.id.map_or(u32::MAX, |id| id.0));
        self.replica.nodes.values().filter(|live| rank_of(&live.value.node) < own).count() as u64
    }

    /// When the first job exceeds its time limit, or may begin.
    fn limit_at(&self) -> Option<Time> {
        let (at, _) = self.work.planner.as_ref()?.value.poll_timeout()?;
        Some(self.steady(at))
    }

    pub(super) fn period_is_due(&self) -> bool {
        let present = self.state().map(|state| state.config.period);
        self.work.period.is_some_and(|period| present.is_some_and(|present| present != period))
    }

    /// When rows are rebalanced next, if there are any.
    pub(super) fn rebalance_at(&self) -> Option<Time> {
        let gangs = |state: &State| state.jobs.values().any(|job| job.place.as_ref().is_some_and(|p| p.home.is_some()));
        let has_rows = self.state().is_some_and(gangs);
        has_rows.then(|| self.work.rebalanced.max(self.session.since) + self.settings.rebalance_ns)
    }

    /// Whether a plan takes effect later than one that waits for no lease.
    pub(super) fn is_late(&self, holds_from: Time) -> bool {
        holds_from > self.now.wall + self.settings.lead.ahead_ns + SOONER_NS
    }

    /// When to check whether the lagging nodes have caught up, so that the newest plan need not wait for their leases.
    pub(super) fn hastens_at(&self) -> Option<Time> {
        let plan = self.work.planner.as_ref()?.value.plan();
        let (generation, made) = self.work.waits?;
        // After a clock was set back, any plan would seem to be far ahead.
        let passed = self.now.steady - made.steady;
        let was_set = self.now.wall.0.abs_diff(made.wall.0 + passed) > self.settings.lead.clock_error_ns;
        let waits = generation == plan.generation && self.is_late(plan.holds_from());
        let looks = waits && self.settings.clock.synchronised && !was_set;
        // Counted from the first plan that waited: later plans in quick succession must not postpone the check.
        looks.then(|| self.work.hastened.max(self.work.waits_since) + self.settings.ack_wait_ns)
    }

    pub(super) fn hastens_now(&mut self) -> bool {
        let now = self.hastens_at().is_some_and(|at| at <= self.now.steady);
        if now {
            self.work.hastened = self.now.steady;
        }
        now
    }

    /// When the first ended job or unread reply may be deleted.
    fn forgets_at(&self) -> Option<Time> {
        let Settings { keep_ended_ns, keep_replies_ns, .. } = self.settings;
        if self.replica.ended.are_too_many(&self.settings) {
            return Some(self.now.steady);
        }
        let ended = self.replica.ended.first_ns().map(|at| Time(at) + keep_ended_ns);
        let replies = self.replica.replies.values().map(|reply| Time(reply.at_ns) + keep_replies_ns).min();
        [ended, replies].into_iter().flatten().min().map(|at| self.steady(at))
    }

    /// The times at which there will be something to do.
    fn work_times(&self) -> impl Iterator<Item = Time> {
        let lost = self.work.away.values().filter_map(|away| self.gives_up_at(*away)).min();
        let first = self.rank() == 0;
        let of_first = if first { [self.rebalance_at(), self.forgets_at()] } else { [None, None] };
        [lost, self.limit_at(), self.hastens_at()].into_iter().chain(of_first).flatten()
    }

    fn has_work(&self) -> bool {
        self.work.flagged
            || self.rank() == 0 && self.period_is_due()
            || self.work_times().any(|at| at <= self.now.steady)
    }

    fn turn_at(&self, since: Time) -> Time {
        (since + self.rank().saturating_mul(self.settings.rank_delay_ns)).max(self.work.hold_until)
    }

    pub(super) fn work_timeout(&self) -> Option<Time> {
        if !self.session.is_joined() || !matches!(self.work.stage, Stage::Resting) || self.replica.is_ahead() {
            return None;
        }
        match self.work.since {
            Some(since) => Some(self.turn_at(since)),
            None => self.work_times().min(),
        }
    }

    pub(super) fn go_on_planning(&mut self) {
        if !matches!(self.work.stage, Stage::Resting) || self.replica.is_ahead() {
            return;
        }
        if !self.has_work() {
            self.work.since = None;
            return;
        }
        let since = *self.work.since.get_or_insert(self.now.steady);
        if self.turn_at(since) <= self.now.steady {
            self.read_acks();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::Keys;
    use crate::member::{Action, Settings};
    use cosched_core::cluster::Capacity;

    #[test]
    fn who_waits_for_an_answer_that_nobody_owes_says_so_and_plans_again() {
        let capacity = Capacity { cpus: 1, memory_bytes: 1, disk_bytes: 1 };
        let settings = Settings::new(Keys::new("t").unwrap(), "n0", 1, capacity);
        let mut member = Member::new(Moment::default(), settings, &[]);
        while member.poll_action().is_some() {}
        member.work.stage = Stage::Busy;
        member.handle_timeout(Moment::default());
        let said: Vec<Action> = std::iter::from_fn(|| member.poll_action()).collect();
        assert!(matches!(said[..], [Action::Say(Notice::Unsound(_))]), "{said:?}");
        assert!(matches!(member.work.stage, Stage::Resting));
        member.handle_timeout(Moment::default());
        assert_eq!(member.poll_action(), None);
    }

    /// Seed 2181: after a slow write, a job that had its number was said to be refused, because its answer had come too late.
    #[test]
    fn a_store_of_this_machine_alone_is_waited_for() {
        let is_lost = |is_shared| {
            let capacity = Capacity { cpus: 1, memory_bytes: 1, disk_bytes: 1 };
            let settings = Settings { is_shared, ..Settings::new(Keys::new("t").unwrap(), "n0", 1, capacity) };
            let mut member = Member::new(Moment::default(), settings, &[]);
            member.handle_timeout(Moment { steady: Time(2_000_000_000), wall: Time(2_000_000_000) });
            std::iter::from_fn(|| member.poll_action()).any(|said| matches!(said, Action::Say(Notice::StoreLost(_))))
        };
        assert_eq!([true, false].map(is_lost), [true, false]);
    }
}
