//! A store that answers, and refuses: it has no room, a node's password is no longer right, or an operation fails by itself.

use super::{S, World};
use cosched_cluster::store::{Do, Op, StoreError};

impl World {
    /// A fault of the store's or of a node's disk. These have dice of their own: seeds without them are as they were before there were any.
    pub fn something_is_refused(&mut self) {
        let node = self.more.below(self.hosts.len() as u64) as usize;
        let ns = self.more.between(1, 15) * S;
        self.counts.faults += 1;
        let until = self.now + ns;
        match self.more.below(5) {
            _ if self.is_single => self.disk_breaks(node, ns),
            0 => {
                self.note(|| format!("store: has no room for {} s", ns / S));
                self.no_room_until = until;
            }
            1 => {
                self.note(|| format!("n{node}: its password is wrong for {} s", ns / S));
                self.hosts[node].denied_until = until;
            }
            2 => {
                let refused = self.more.below(60);
                self.note(|| format!("store: refuses {refused} of 1000 for {} s", ns / S));
                (self.refused, self.refuses_until) = (refused, until);
            }
            _ => self.disk_breaks(node, ns),
        }
    }

    /// Why the store refuses an operation, if it does. Nothing is changed then.
    pub(super) fn refusal(&mut self, node: usize, what: &Op) -> Option<StoreError> {
        let puts = |op: &Do| matches!(op, Do::Put { .. });
        let grows = match what {
            Op::Grant { .. } => true,
            Op::Txn(txn) => txn.then.iter().chain(&txn.or_else).any(puts),
            _ => false,
        };
        if self.now < self.hosts[node].denied_until {
            return Some(StoreError::Denied("authentication failed".to_owned()));
        }
        if grows && self.now < self.no_room_until {
            return Some(StoreError::Fault("database space exceeded".to_owned()));
        }
        if self.now >= self.refuses_until || self.more.below(1000) >= self.refused {
            return None;
        }
        let denied = self.more.one_in(2);
        Some(if denied { StoreError::Denied("no rights".to_owned()) } else { StoreError::Fault("corrupt".to_owned()) })
    }

    /// Nothing is refused any more.
    pub(super) fn accepts_all(&mut self) {
        (self.no_room_until, self.refuses_until) = (0, 0);
        for host in &mut self.hosts {
            (host.denied_until, host.disk) = (0, Default::default());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::{ROOT, job, submit};
    use cosched_cluster::Notice;
    use cosched_cluster::wire::Answer;

    fn was_refused(world: &World, node: usize) -> bool {
        let refused = |why: &StoreError| matches!(why, StoreError::Fault(_) | StoreError::Denied(_));
        world.hosts[node].notices.iter().any(|notice| matches!(notice, Notice::StoreLost(why) if refused(why)))
    }

    #[test]
    fn what_a_store_refuses_for_a_while_is_done_afterwards() {
        for wrong in ["no room", "no rights", "now and then"] {
            let mut world = World::started(1, 2);
            let until = world.now + 20 * S;
            match wrong {
                "no room" => world.no_room_until = until,
                "no rights" => world.hosts[0].denied_until = until,
                _ => (world.refused, world.refuses_until) = (300, until),
            }
            world.ask(0, ROOT, submit(job("a", 1)));
            world.run(40 * S);
            assert!(was_refused(&world, 0), "{wrong}");
            assert!(matches!(world.told.get("a"), Some(Answer::Submitted { .. })), "{wrong}: {:?}", world.told);
            world.check_end();
        }
    }
}
