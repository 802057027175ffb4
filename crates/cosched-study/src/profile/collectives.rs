//! Collectives as sends and receives, with the algorithms of the simulator's patterns (docs/simulator.md, chapter 4).
//! Members are identified by their places in the group.

use super::What;

/// One action of a member in a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// Sends this number of bytes to this member.
    Send(usize, u64),
    /// Receives from this member.
    Receive(usize),
}

use Act::{Receive, Send};

/// A member's place in a group of `members`, and the root's place (the first if the collective has no root).
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) own: usize,
    pub(super) members: usize,
    pub(super) root: usize,
}

impl Place {
    /// The member `by` places further on, wrapping around the group.
    fn further(self, by: usize) -> usize {
        (self.own + by) % self.members
    }

    fn others(self) -> impl Iterator<Item = usize> {
        (0..self.members).filter(move |other| *other != self.own)
    }

    /// In a binomial tree: the parent, and the children with the sizes of their subtrees, largest first.
    fn tree(self) -> (Option<usize>, Vec<(usize, u64)>) {
        let place = (self.own + self.members - self.root) % self.members;
        let member = |place: usize| (place + self.root) % self.members;
        // The lowest set bit is the distance to the parent; lower bits are distances to children.
        let reach = if place == 0 { self.members.next_power_of_two() } else { place & place.wrapping_neg() };
        let distances = std::iter::successors(Some(reach / 2), |d| Some(d / 2)).take_while(|d| *d > 0);
        let children = distances.filter(|d| place + d < self.members);
        let subtree = |d: usize| d.min(self.members - place - d) as u64;
        let children = children.map(|d| (member(place + d), subtree(d))).collect();
        ((place > 0).then(|| member(place - reach)), children)
    }

    /// The size of the member's own subtree.
    fn subtree(self) -> u64 {
        1 + self.tree().1.iter().map(|(_, size)| size).sum::<u64>()
    }
}

/// The actions of a member for a blocking collective. Gather and scatter transfer the parts of whole subtrees.
pub(super) fn acts(what: What, at: Place, bytes: u64) -> Vec<Act> {
    match what {
        What::Barrier => {
            let distances = std::iter::successors(Some(1), |d| Some(d * 2)).take_while(|d| *d < at.members);
            distances.flat_map(|d| [Send(at.further(d), 0), Receive(at.further(at.members - d))]).collect()
        }
        What::Bcast => down(at, |_| bytes),
        What::Scatter => down(at, |size| size.saturating_mul(bytes)),
        What::Reduce => up(at, bytes),
        What::Gather => up(at, bytes.saturating_mul(at.subtree())),
        What::Allreduce => {
            let at = Place { root: 0, ..at };
            [up(at, bytes), down(at, |_| bytes)].concat()
        }
        What::ReduceScatter => {
            let at = Place { root: 0, ..at };
            [up(at, bytes.saturating_mul(at.members as u64)), down(at, |size| size.saturating_mul(bytes))].concat()
        }
        What::Allgather => {
            let step = |_| [Send(at.further(1), bytes), Receive(at.further(at.members - 1))];
            (1..at.members).flat_map(step).collect()
        }
        What::Alltoall => {
            let step = |step| [Send(at.further(step), bytes), Receive(at.further(at.members - step))];
            (1..at.members).flat_map(step).collect()
        }
        What::Scan => {
            let before = at.own.checked_sub(1).map(Receive);
            let after = Some(at.own + 1).filter(|next| *next < at.members).map(|next| Send(next, bytes));
            before.into_iter().chain(after).collect()
        }
    }
}

fn down(at: Place, bytes: impl Fn(u64) -> u64) -> Vec<Act> {
    let (parent, children) = at.tree();
    let sends = children.into_iter().map(|(child, size)| Send(child, bytes(size)));
    parent.map(Receive).into_iter().chain(sends).collect()
}

fn up(at: Place, bytes: u64) -> Vec<Act> {
    let (parent, children) = at.tree();
    let receives = children.into_iter().rev().map(|(child, _)| Receive(child));
    receives.chain(parent.map(|parent| Send(parent, bytes))).collect()
}

/// The actions of a member when a nonblocking collective begins: all its sends. No member waits here, so a replay
/// cannot wait forever, whatever the order in which programs begin and end collectives.
pub(super) fn begin(what: What, at: Place, bytes: u64) -> Vec<Act> {
    let to_all = |bytes: u64| at.others().map(|other| Send(other, bytes)).collect();
    match what {
        What::Barrier => to_all(0),
        What::Bcast | What::Scatter if at.own == at.root => to_all(bytes),
        What::Reduce | What::Gather if at.own != at.root => vec![Send(at.root, bytes)],
        What::Bcast | What::Scatter | What::Reduce | What::Gather => Vec::new(),
        What::Allreduce | What::Allgather | What::Alltoall | What::ReduceScatter | What::Scan => to_all(bytes),
    }
}

/// The actions of a member when it completes: all its receives.
pub(super) fn end(what: What, at: Place) -> Vec<Act> {
    match what {
        What::Bcast | What::Scatter if at.own != at.root => vec![Receive(at.root)],
        What::Reduce | What::Gather if at.own != at.root => Vec::new(),
        What::Bcast | What::Scatter => Vec::new(),
        _ => at.others().map(Receive).collect(),
    }
}

/// The longest chain of messages in a collective, and the bytes on it.
pub(super) fn longest_path(what: What, members: u64, bytes: u64) -> (u64, u64) {
    let depth = u64::from(members.max(1).next_power_of_two().ilog2());
    let others = members.saturating_sub(1);
    let (messages, parts) = match what {
        What::Barrier => (depth, 0),
        What::Bcast | What::Reduce => (depth, depth),
        What::Allreduce => (2 * depth, 2 * depth),
        What::Gather | What::Scatter => (depth, others),
        What::ReduceScatter => (2 * depth, depth * members + others),
        What::Allgather | What::Alltoall | What::Scan => (others, others),
    };
    (messages, bytes.saturating_mul(parts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const ALL: [What; 10] = [
        What::Barrier,
        What::Bcast,
        What::Reduce,
        What::Allreduce,
        What::Gather,
        What::Scatter,
        What::Allgather,
        What::Alltoall,
        What::ReduceScatter,
        What::Scan,
    ];

    /// Runs all members; false if one waits forever or a message is left over.
    fn ends(members: usize, acts: impl Fn(usize) -> Vec<Act>) -> bool {
        let mut left: Vec<Vec<Act>> = (0..members).map(|own| acts(own).into_iter().rev().collect()).collect();
        let mut there: BTreeMap<(usize, usize), u32> = BTreeMap::new();
        let mut moved = true;
        while moved {
            moved = false;
            for (own, left) in left.iter_mut().enumerate() {
                while let Some(act) = left.last().copied() {
                    match act {
                        Send(to, _) => *there.entry((own, to)).or_default() += 1,
                        Receive(from) => match there.get_mut(&(from, own)) {
                            Some(count) if *count > 0 => *count -= 1,
                            _ => break,
                        },
                    }
                    left.pop();
                    moved = true;
                }
            }
        }
        left.iter().all(Vec::is_empty) && there.values().all(|count| *count == 0)
    }

    #[test]
    fn every_collective_ends_for_every_number_of_members_and_root() {
        for what in ALL {
            for members in 1..10 {
                for root in 0..members {
                    let at = |own| Place { own, members, root };
                    assert!(ends(members, |own| acts(what, at(own), 8)), "{what:?} {members} {root}");
                    let flat = |own| [begin(what, at(own), 8), end(what, at(own))].concat();
                    assert!(ends(members, flat), "nonblocking {what:?} {members} {root}");
                }
            }
        }
    }

    #[test]
    fn subtrees_carry_their_parts() {
        let sent = |own| acts(What::Gather, Place { own, members: 6, root: 0 }, 10);
        assert_eq!(sent(4), [Receive(5), Send(0, 20)]);
        assert_eq!(sent(2), [Receive(3), Send(0, 20)]);
        assert_eq!(sent(0), [Receive(1), Receive(2), Receive(4)]);
    }
}
