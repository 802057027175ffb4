//! How a node follows the plans of its cluster.
//!
//! Problem: plans come early, late or not at all, and each takes effect in a slot of its own. Rule. A node keeps the plan in
//! force and the later ones, and changes over at their slots. It acknowledges the plans that it has seen. A plan that arrives
//! after its slot takes effect at once, and the node reports how many slots it missed. When it hears of a generation that it has
//! not seen, it reports by how many it is behind, until it has caught up. It does not know from when a plan that it skipped was in
//! force, so it runs no gang slots from when it notices the gap until the next plan that it has seen takes effect: ranks that run
//! while their partners wait are better than ranks that run when their partners do not. When its lease has expired it runs no gang
//! slots, because other nodes may rely on that (see `generation.rs`); with a new lease it resumes them.

use super::plan::Plan;
use crate::id::{JobId, NodeId};
use crate::reason::Reason;
use crate::sound::Flaw;
use crate::time::Time;
use alloc::collections::VecDeque;
use alloc::sync::Arc;

/// What the host has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FollowAction {
    /// Write to the store that this node has seen this generation.
    Acknowledge(u64),
    /// Follow this plan from now on.
    Use(Arc<Plan>),
    /// Let this gang run until the plan that contains it is in force: no other gang has its CPUs.
    StartEarly(JobId),
    /// This plan arrived after the slot from which it was to be in force; for metrics.
    Missed {
        /// The plan.
        generation: u64,
        /// The number of slots in which an older plan, or none, was followed.
        slots: u64,
    },
    /// This number of newer generations exist that were not seen; 0 once all were. Read the plan, and update the metrics.
    Behind(u64),
    /// Leave all jobs to the operating system.
    RunNoSlots(Reason),
    /// The stored plans contradict each other. They are dropped, and the next plan that is seen is followed; report it.
    Unsound(Flaw),
}

/// One node's view of the cluster's plans.
#[derive(Debug)]
pub struct Follower {
    node: NodeId,
    /// The plan in force and the later ones, by generation; the times from which they are in force rise too.
    plans: VecDeque<Arc<Plan>>,
    /// The generation of the plan in use; `None` while none is.
    in_use: Option<u64>,
    /// The first generation seen after a gap; older ones are no longer used.
    usable_from: u64,
    /// There may be unseen plans between the last one seen and the next one, even if their numbers follow each other.
    lost_sight: bool,
    lease_until: Time,
    /// Whether the lease had expired when the node last checked.
    lapsed: bool,
    /// The newest generation that is known to exist.
    known: u64,
    behind: u64,
    actions: VecDeque<FollowAction>,
}

impl Follower {
    /// A node without a plan and without a lease.
    pub fn new(node: NodeId) -> Follower {
        Follower {
            node,
            plans: VecDeque::new(),
            in_use: None,
            usable_from: 0,
            lost_sight: false,
            lease_until: Time(0),
            lapsed: true,
            known: 0,
            behind: 0,
            actions: VecDeque::new(),
        }
    }

    /// A plan was read from the store.
    pub fn see(&mut self, now: Time, plan: Arc<Plan>) {
        let generation = plan.generation;
        let missed = core::mem::take(&mut self.lost_sight);
        match self.plans.back().map(|newest| newest.generation) {
            Some(newest) if newest >= generation => return,
            Some(newest) if newest + 1 < generation || missed => self.usable_from = generation,
            _ => (),
        }
        // A plan that would take effect at the same time as the new one, or later, never does.
        while self.plans.back().is_some_and(|later| later.holds_from() >= plan.holds_from()) {
            self.plans.pop_back();
        }
        self.known = self.known.max(generation);
        self.actions.push_back(FollowAction::Acknowledge(generation));
        if plan.holds_from() <= now {
            let slots = plan.slot_at(now) - plan.from_slot;
            if slots > 0 && self.in_use.is_some() {
                self.actions.push_back(FollowAction::Missed { generation, slots });
            }
        } else if self.lease_until > now {
            let here = plan.early.iter().filter(|job| plan.part(**job, self.node).is_some());
            self.actions.extend(here.map(|job| FollowAction::StartEarly(*job)));
        }
        self.plans.push_back(plan);
        self.tell_behind();
        self.handle_timeout(now);
    }

    /// The node was disconnected from the store. A restored copy of the store may have used the next generation's number twice.
    pub fn lose_sight(&mut self) {
        self.lost_sight = true;
    }

    /// The store has this generation, whether or not its plan could be read.
    pub fn hear_of(&mut self, generation: u64) {
        self.known = self.known.max(generation);
        self.tell_behind();
    }

    /// The node's lease was renewed. The host must have read the plan before.
    pub fn renewed(&mut self, now: Time, lease_until: Time) {
        self.lease_until = lease_until;
        self.handle_timeout(now);
    }

    /// Time has passed; it is now `now`: changes over to a plan that takes effect, or stops when the lease has expired.
    pub fn handle_timeout(&mut self, now: Time) {
        self.change_over(now);
        if let Err(flaw) = self.check(now) {
            self.plans.clear();
            self.actions.push_back(FollowAction::Unsound(flaw));
            self.run_no_slots(Reason::PlanMissed);
        }
    }

    fn run_no_slots(&mut self, why: Reason) {
        if self.in_use.take().is_some() {
            self.actions.push_back(FollowAction::RunNoSlots(why));
        }
    }

    /// Checks that plans are in order, and that the plan in use is in force and under a lease.
    fn check(&self, now: Time) -> Result<(), Flaw> {
        let follows = |a: &Plan, b: &Plan| a.generation < b.generation && a.holds_from() < b.holds_from();
        let wrong = self.plans.iter().zip(self.plans.iter().skip(1)).find(|(a, b)| !follows(a, b));
        let front = self.plans.front().filter(|plan| plan.holds_from() <= now && self.lease_until > now);
        match (wrong, self.in_use) {
            (Some((_, plan)), _) => Err(Flaw::Order(plan.generation)),
            (None, Some(in_use)) if front.is_none_or(|plan| plan.generation != in_use) => Err(Flaw::Order(in_use)),
            _ => Ok(()),
        }
    }

    fn change_over(&mut self, now: Time) {
        self.lapsed = self.lease_until <= now;
        if self.lapsed {
            return self.run_no_slots(Reason::LeaseOut);
        }
        while self.plans.get(1).is_some_and(|next| next.holds_from() <= now) {
            self.plans.pop_front();
        }
        let Some(plan) = self.plans.front().filter(|plan| plan.holds_from() <= now) else {
            // The clock was ahead when the plan was taken into use: the other nodes still follow the one before.
            return self.run_no_slots(Reason::ClockNotSynchronised);
        };
        if plan.generation < self.usable_from {
            return self.run_no_slots(Reason::PlanMissed);
        }
        if self.in_use != Some(plan.generation) {
            self.in_use = Some(plan.generation);
            self.actions.push_back(FollowAction::Use(Arc::clone(plan)));
        }
    }

    /// When `handle_timeout` is to be called next, and why.
    pub fn poll_timeout(&self) -> Option<(Time, Reason)> {
        let lease = self.in_use.map(|_| (self.lease_until, Reason::LeaseOut));
        let is_next = |plan: &&Arc<Plan>| {
            plan.generation >= self.usable_from && self.in_use.is_none_or(|in_use| plan.generation > in_use)
        };
        let waiting = self.plans.iter().find(is_next);
        // Without a lease, only a renewal changes anything.
        let begins = waiting.map(|plan| (plan.holds_from(), Reason::NewPlan)).filter(|_| !self.lapsed);
        [lease, begins].into_iter().flatten().min_by_key(|(t, _)| *t)
    }

    /// The next action that the host has to carry out.
    pub fn poll_action(&mut self) -> Option<FollowAction> {
        self.actions.pop_front()
    }

    /// The generation in use; `None` while the node runs no gang slots.
    pub fn in_use(&self) -> Option<u64> {
        self.in_use
    }

    fn tell_behind(&mut self) {
        let seen = self.plans.back().map_or(0, |plan| plan.generation);
        let behind = self.known - seen.min(self.known);
        if behind != self.behind {
            self.behind = behind;
            self.actions.push_back(FollowAction::Behind(behind));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const SLOT_NS: u64 = 100;

    fn plan(generation: u64, from_slot: u64) -> Arc<Plan> {
        Arc::new(Plan { generation, from_slot, slot_length_ns: SLOT_NS, ..Plan::default() })
    }

    fn actions(follower: &mut Follower) -> Vec<FollowAction> {
        core::iter::from_fn(|| follower.poll_action()).collect()
    }

    fn with_lease() -> Follower {
        let mut follower = Follower::new(NodeId(0));
        follower.renewed(Time(0), Time(100_000));
        follower
    }

    #[test]
    fn a_plan_is_used_from_its_slot_on() {
        let mut f = with_lease();
        let (first, second) = (plan(1, 0), plan(2, 7));
        f.see(Time(0), Arc::clone(&first));
        assert_eq!(actions(&mut f), [FollowAction::Acknowledge(1), FollowAction::Use(first)]);
        f.see(Time(150), Arc::clone(&second));
        assert_eq!(actions(&mut f), [FollowAction::Acknowledge(2)]);
        assert_eq!((f.in_use(), f.poll_timeout()), (Some(1), Some((Time(700), Reason::NewPlan))));
        f.handle_timeout(Time(699));
        assert_eq!(actions(&mut f), []);
        f.handle_timeout(Time(700));
        assert_eq!(actions(&mut f), [FollowAction::Use(second)]);
    }

    #[test]
    fn plans_that_come_fast_take_their_turns_or_are_passed_over() {
        let mut f = with_lease();
        for (generation, from_slot) in [(1, 0), (2, 5), (3, 9), (4, 9)] {
            f.see(Time(0), plan(generation, from_slot));
        }
        f.see(Time(1), plan(2, 5));
        actions(&mut f);
        f.handle_timeout(Time(500));
        assert_eq!(actions(&mut f), [FollowAction::Use(plan(2, 5))]);
        f.handle_timeout(Time(900));
        assert_eq!(actions(&mut f), [FollowAction::Use(plan(4, 9))], "the third never held");
    }

    #[test]
    fn a_node_that_missed_a_plan_says_so_and_catches_up() {
        let mut f = with_lease();
        f.see(Time(0), plan(1, 0));
        actions(&mut f);
        f.hear_of(3);
        assert_eq!(actions(&mut f), [FollowAction::Behind(2)]);
        assert_eq!(f.in_use(), Some(1), "the old one goes on");
        f.see(Time(1250), plan(3, 8));
        let expected = [
            FollowAction::Acknowledge(3),
            FollowAction::Missed { generation: 3, slots: 4 },
            FollowAction::Behind(0),
            FollowAction::Use(plan(3, 8)),
        ];
        assert_eq!(actions(&mut f), expected);
    }

    /// Found by cosched-swarm, seed 4: a node that was disconnected for two plans continued with the one before them until the second
    /// took effect, and ran gangs in other slots than all other nodes, long after its lease had expired.
    #[test]
    fn a_node_that_missed_a_plan_runs_no_slots_until_the_next_one_holds() {
        let mut f = with_lease();
        f.see(Time(0), plan(1, 0));
        actions(&mut f);
        f.see(Time(500), plan(3, 20));
        assert_eq!(actions(&mut f), [FollowAction::Acknowledge(3), FollowAction::RunNoSlots(Reason::PlanMissed)]);
        assert_eq!((f.in_use(), f.poll_timeout()), (None, Some((Time(2000), Reason::NewPlan))));
        // A plan that takes the slot of a later one, and one that is seen in order.
        f.see(Time(600), plan(4, 20));
        f.see(Time(700), plan(5, 30));
        assert_eq!(f.poll_timeout(), Some((Time(2000), Reason::NewPlan)));
        actions(&mut f);
        f.handle_timeout(Time(2000));
        assert_eq!(actions(&mut f), [FollowAction::Use(plan(4, 20))]);
        assert_eq!(f.poll_timeout(), Some((Time(3000), Reason::NewPlan)));
    }

    #[test]
    fn without_a_lease_there_are_no_slots() {
        let mut f = with_lease();
        f.see(Time(0), plan(1, 0));
        f.renewed(Time(0), Time(1000));
        actions(&mut f);
        assert_eq!(f.poll_timeout(), Some((Time(1000), Reason::LeaseOut)));
        f.handle_timeout(Time(1000));
        assert_eq!(actions(&mut f), [FollowAction::RunNoSlots(Reason::LeaseOut)]);
        f.see(Time(1100), plan(2, 11));
        assert_eq!(actions(&mut f), [FollowAction::Acknowledge(2)], "seen, but not run");
        assert_eq!(f.poll_timeout(), None);
        f.renewed(Time(1200), Time(2000));
        assert_eq!(actions(&mut f), [FollowAction::Use(plan(2, 11))]);
    }

    /// Found by cosched-swarm, seed 447: a copy of the store was restored, and had its own plans 20 and 21 when the node with
    /// the first plan 20 was connected again.
    #[test]
    fn the_next_number_is_not_the_next_plan_after_an_interruption() {
        let mut f = with_lease();
        f.see(Time(0), plan(1, 0));
        f.lose_sight();
        f.see(Time(100), plan(1, 0));
        actions(&mut f);
        f.see(Time(200), plan(2, 9));
        assert_eq!(actions(&mut f), [FollowAction::Acknowledge(2)], "it was the same store");
        f.lose_sight();
        f.see(Time(300), plan(3, 20));
        assert_eq!(actions(&mut f), [FollowAction::Acknowledge(3), FollowAction::RunNoSlots(Reason::PlanMissed)]);
    }

    /// Found by cosched-swarm, seed 485: a clock was ahead, and then corrected.
    #[test]
    fn a_plan_that_was_taken_too_early_is_not_run_until_it_holds() {
        let mut f = with_lease();
        f.see(Time(0), plan(1, 0));
        f.see(Time(5000), plan(2, 8));
        actions(&mut f);
        assert_eq!(f.in_use(), Some(2));
        f.handle_timeout(Time(100));
        assert_eq!(actions(&mut f), [FollowAction::RunNoSlots(Reason::ClockNotSynchronised)]);
        assert_eq!(f.poll_timeout(), Some((Time(800), Reason::NewPlan)));
        f.handle_timeout(Time(800));
        assert_eq!(actions(&mut f), [FollowAction::Use(plan(2, 8))]);
    }

    #[test]
    fn plans_that_contradict_each_other_are_forgotten_and_the_next_one_is_followed() {
        let mut f = with_lease();
        f.see(Time(0), plan(1, 0));
        f.see(Time(0), plan(2, 9));
        actions(&mut f);
        f.plans[1] = plan(1, 9);
        f.handle_timeout(Time(1));
        let no_slots = FollowAction::RunNoSlots(Reason::PlanMissed);
        assert_eq!(actions(&mut f), [FollowAction::Unsound(Flaw::Order(1)), no_slots.clone()]);
        f.see(Time(2), plan(3, 0));
        assert_eq!(actions(&mut f), [FollowAction::Acknowledge(3), FollowAction::Use(plan(3, 0))]);
        f.plans[0] = plan(4, 0);
        f.in_use = Some(3);
        assert_eq!(f.check(Time(2)), Err(Flaw::Order(3)), "another one is in use than holds");
    }

    #[test]
    fn early_gangs_of_this_node_start_when_the_plan_is_seen() {
        use crate::cluster::{Part, PlannedJob, Stage};
        let part = |node| Part { node: NodeId(node), cpus: 1, memory_bytes: 0, disk_bytes: 0 };
        let job = |nodes: [u32; 2]| PlannedJob {
            class: crate::Class::Batch,
            policy: crate::Policy::Gang,
            auto: false,
            slot_share: None,
            standing: crate::Standing::Scheduled,
            stage: Stage::Ready,
            weight: 1,
            parts: nodes.map(part).as_slice().into(),
            home: None,
            turns_16: 16,
        };
        let jobs = [(JobId(1), job([0, 1])), (JobId(2), job([1, 2]))].into_iter().collect();
        let next = Plan { jobs, early: alloc::vec![JobId(1), JobId(2)], ..Plan::clone(&plan(1, 9)) };
        let mut f = with_lease();
        f.see(Time(0), Arc::new(next));
        assert_eq!(actions(&mut f), [FollowAction::Acknowledge(1), FollowAction::StartEarly(JobId(1))]);
    }
}
