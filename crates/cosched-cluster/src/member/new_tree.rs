//! A new tree. A store that has lost its data is a new cluster, whose plans, revisions and jobs begin at 1, so that what was known of
//! the old one would be taken for newer than everything that follows.
//!
//! Jobs of the old cluster continue without being planned. No new job gets the number of one of them, because their cgroups and files
//! have it, and processes that join by the number would join another user's job. So every node reports the highest job number that it
//! knows, and the numbers begin after all of these.

use super::Member;
use super::due::Work;
use super::follow::Follow;
use super::replica::{At, Replica};
use super::types::Action;
use cosched_core::Reason;
use cosched_core::cluster::State;

impl Member {
    /// The tree that was created at `made_ns` was read; `before` is the copy of the store known until now.
    pub(super) fn know_tree(&mut self, made_ns: u64, before: &Replica) {
        match self.tree.replace(made_ns) {
            Some(old) if old == made_ns && !self.is_put_back(before) => (),
            // The same store at an earlier moment: a copy of it was restored.
            Some(old) if old == made_ns => self.restart_planning(before),
            Some(_) => {
                self.id = None;
                self.restart_planning(before);
                self.forget_local(made_ns);
            }
            None => self.forget_local(made_ns),
        }
    }

    /// Whether an earlier copy was restored. Revisions rise in a store, but in a restored one they may already be above the known ones.
    fn is_put_back(&self, before: &Replica) -> bool {
        let plan = |state: &At<State>| (state.value.generation, state.value.from_slot, state.value.start);
        let is_other = match (&before.state, &self.replica.state) {
            (Some(old), Some(new)) if old.value.generation == new.value.generation => plan(old) != plan(new),
            (Some(old), Some(new)) => {
                old.value.generation > new.value.generation || old.value.next_order > new.value.next_order
            }
            (old, _) => old.is_some(),
        };
        // The earlier copy may have been dropped by a read that found no tree at all.
        let is_older = self.replica.state.as_ref().is_some_and(|new| new.value.generation < self.follow.newest_seen);
        is_other || is_older || self.replica.revision < before.revision
    }

    /// Makes sure that assigned job numbers are not assigned again.
    pub(super) fn keep_numbers(&mut self, before: &Replica) {
        let given = before.state.as_ref().map_or(0, |state| state.value.next_order);
        self.settings.jobs_known = self.settings.jobs_known.max(given);
    }

    fn restart_planning(&mut self, before: &Replica) {
        self.keep_numbers(before);
        self.session.was_counted = false;
        if self.follow.in_use().is_some() {
            self.actions.push_back(Action::RunNoSlots(Reason::LeaseOut));
        }
        let (load, period) = (self.follow.load, self.work.period);
        // The missing generations are those of the old tree.
        self.actions.push_back(Action::Behind(0));
        self.follow = Follow::new(self.settings.clock);
        self.follow.load = load;
        self.work = Work::default();
        self.work.period = period;
    }

    fn forget_local(&mut self, tree: u64) {
        let forgotten = self.local.forget_others(tree);
        self.actions.extend(forgotten.into_iter().map(Action::Forgotten));
    }

    /// The highest job number that may exist on any node.
    pub(super) fn jobs_known(&self) -> u64 {
        let nodes = self.replica.nodes.values().map(|live| live.value.node.jobs_known);
        nodes.fold(self.settings.jobs_known, u64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Lab, USER, submit};
    use super::*;

    #[test]
    fn an_earlier_state_is_known_though_the_copy_before_was_dropped() {
        let mut lab = Lab::new(1);
        lab.asks(0, USER, submit("a", 1));
        let member = &mut lab.seats[0].member;
        let dropped = Replica::default();
        assert!(!member.is_put_back(&dropped));
        let newest = member.follow.newest_seen;
        member.replica.state.as_mut().unwrap().value.generation = newest - 1;
        assert!(member.is_put_back(&dropped));
    }
}
