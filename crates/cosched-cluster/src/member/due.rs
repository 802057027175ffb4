//! Whether there is something to plan, and when it is this member's turn.
//!
//! The live members are ranked by number, those without a good clock last, because a plan's beginning is told by the
//! planner's clock. Rank 0 plans at once, rank k after k delays if there is still something to do. Nobody but rank 0
//! plans what only follows from the time of the day.
//!
//! A node whose lease is out is given up at once, unless this member was itself out of touch with the store shortly
//! before: then the others may have been so too, and are given time to come back.

use super::replica::At;
use super::types::Settings;
use super::{Member, finish};
use crate::store::Revision;
use cosched_core::cluster::{Period, Planner, State};
use cosched_core::{NodeId, Time};
use std::collections::BTreeMap;

/// What a member does about plans.
#[derive(Debug, Default)]
pub(super) enum Stage {
    /// Nothing.
    #[default]
    Resting,
    /// It reads acknowledgements, or commits.
    Busy,
    /// It has committed, and waits for its own watch to tell so.
    Told(Revision),
}

/// What is to be planned.
#[derive(Debug, Default)]
pub(super) struct Work {
    /// The planner of a state.
    pub(super) planner: Option<At<Planner>>,
    pub(super) stage: Stage,
    /// The commit under way.
    pub(super) pending: Option<super::commit::Pending>,
    /// The last commit did not fit into the store.
    pub(super) refuse_submits: bool,
    /// What time of the day it is, by the operator's calendar.
    pub(super) period: Option<Period>,
    /// Something that does not depend on the time is to be done.
    flagged: bool,
    /// Since when there is something to do.
    since: Option<Time>,
    /// With this state.
    since_revision: Revision,
    /// Not before then.
    pub(super) hold_until: Time,
    /// How many commits in a row met a conflict while the watch told nothing.
    pub(super) conflicts: u32,
    /// When nodes of the plan were first seen to be gone.
    gone_since: BTreeMap<NodeId, Time>,
    pub(super) rebalanced: Time,
    /// When the state was last seen to change.
    pub(super) state_seen: Time,
}

impl Work {
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
        // What was committed here may not have been told yet.
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

    /// The copy has changed: looks for what is to be planned.
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
        let gone: Vec<NodeId> = match &self.replica.state {
            Some(state) => state.value.nodes.keys().copied().filter(|id| self.replica.live(*id).is_none()).collect(),
            None => Vec::new(),
        };
        self.work.gone_since.retain(|id, _| gone.contains(id));
        for id in gone {
            self.work.gone_since.entry(id).or_insert(now);
        }
        let unmarked = self.replica.state.is_some() && !self.replica.is_marked();
        self.work.flagged = unmarked || !self.replica.requests.is_empty() || self.has_joins() || self.has_ends();
    }

    /// A node is there that is not in the plan as it is.
    fn has_joins(&self) -> bool {
        let state = self.replica.state.as_ref().map(|state| &state.value);
        self.replica.nodes.iter().any(|(name, live)| {
            let node = &live.value.node;
            let planned = state.and_then(|state| state.nodes.get(&NodeId(node.id)));
            self.replica.is_new_boot(name, node)
                || node.cpus > 0 && planned.is_none_or(|planned| planned.capacity != super::commit::capacity(node))
        })
    }

    fn has_ends(&self) -> bool {
        let Some(state) = &self.replica.state else { return false };
        state.value.jobs.values().any(|job| {
            let record = self.replica.jobs.get(&job.spec.id.0).map(|job| &job.value);
            finish::is_over(job, record, &self.replica)
        })
    }

    /// When a node that is not there may be given up.
    pub(super) fn gives_up_at(&self, gone_since: Time) -> Time {
        gone_since.max(self.session.since + self.settings.grace_ns())
    }

    /// The nodes that are given up now.
    pub(super) fn lost_nodes(&self) -> Vec<NodeId> {
        let lost = |(_, since): &(&NodeId, &Time)| self.gives_up_at(**since) <= self.now.steady;
        self.work.gone_since.iter().filter(lost).map(|(id, _)| *id).collect()
    }

    /// How many live members plan before this one.
    fn rank(&self) -> u64 {
        let rank_of = |node: &crate::wire::Node| (!node.clock.synchronised, node.id);
        let own = (!self.settings.clock.synchronised, self.id.map_or(u32::MAX, |id| id.0));
        self.replica.nodes.values().filter(|live| rank_of(&live.value.node) < own).count() as u64
    }

    /// When the first job is over the time limit of its queue.
    fn limit_at(&self) -> Option<Time> {
        let (at, _) = self.work.planner.as_ref()?.value.poll_timeout()?;
        Some(self.steady(at))
    }

    pub(super) fn period_is_due(&self) -> bool {
        let present = self.state().map(|state| state.config.period);
        self.work.period.is_some_and(|period| present.is_some_and(|present| present != period))
    }

    /// When rows are to be looked at anew, while there are any.
    pub(super) fn rebalance_at(&self) -> Option<Time> {
        let gangs = |state: &State| state.jobs.values().any(|job| job.place.as_ref().is_some_and(|p| p.home.is_some()));
        let has_rows = self.state().is_some_and(gangs);
        has_rows.then(|| self.work.rebalanced.max(self.session.since) + self.settings.rebalance_ns)
    }

    /// When the first thing that is over may be forgotten.
    fn forgets_at(&self) -> Option<Time> {
        let Settings { keep_ended_ns, keep_ended_max, keep_replies_ns, .. } = self.settings;
        if self.replica.ended.len() > keep_ended_max {
            return Some(self.now.steady);
        }
        let ended = self.replica.ended.first().map(|(at, _)| Time(*at) + keep_ended_ns);
        let replies = self.replica.replies.values().map(|reply| Time(reply.at_ns) + keep_replies_ns).min();
        [ended, replies].into_iter().flatten().min().map(|at| self.steady(at))
    }

    /// The times at which there will be something to do.
    fn work_times(&self) -> impl Iterator<Item = Time> {
        let lost = self.work.gone_since.values().map(|since| self.gives_up_at(*since)).min();
        let first = self.rank() == 0;
        let of_first = if first { [self.rebalance_at(), self.forgets_at()] } else { [None, None] };
        [lost, self.limit_at()].into_iter().chain(of_first).flatten()
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
