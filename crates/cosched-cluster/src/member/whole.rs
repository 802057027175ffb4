//! Whether what lies in the store is whole, and what a member does when it is not.
//!
//! Problem: a key that somebody has deleted looks like one that never was, and who takes a damaged store for a new one ends all
//! jobs. Rule. What nobody but the planner can write is missed: nothing is planned and nobody is judged until it is back.
//! What this member knows for certain it writes again: the tree as it was, the name with its number.

use super::Member;
use super::replica::{At, Replica};
use super::session::Flight;
use super::types::Notice;
use crate::store::{Compare, Do, Op, Txn};
use crate::wire::{Name, Tree, encode};

/// How soon it is looked again.
const RETRY_NS: u64 = 3_000_000_000;

impl Member {
    /// What lies in the store and cannot be used, or is gone, and why that is no new cluster.
    pub(super) fn damage(&mut self) -> Option<String> {
        let keys = &self.settings.keys;
        let tree = match &self.replica.tree {
            Some(Err(why)) => Some(format!("{}: {why}", keys.tree())),
            _ => None,
        };
        if let Some(why) = tree.or_else(|| self.replica.unreadable()) {
            return Some(why);
        }
        let key = self.settings.keys.state();
        (self.settings.is_shared && self.replica.has_lost_state(self.tree))
            .then(|| format!("{key}: it is gone, and the cluster has had it: somebody has deleted it"))
    }

    /// The cluster is new; or only the key of its tree is gone, and is made again as it was.
    pub(super) fn no_tree(&mut self, before: &Replica) {
        let key = self.settings.keys.tree();
        if !self.settings.is_shared || !self.replica.has_begun() {
            // Whoever makes the tree anew reads it next, and knows nothing of before then.
            self.keep_numbers(before);
            return self.make_tree(self.now.wall.0);
        }
        match self.tree.or(self.replica.tree_begun()) {
            Some(made_ns) => {
                self.make_tree(made_ns);
                self.say(Notice::KeyGone(key));
            }
            None => self.unusable(format!("{key}: it is gone, and the cluster has begun: somebody has deleted it")),
        }
    }

    pub(super) fn unusable(&mut self, why: String) {
        // When it can be used again, that is news, as when the store is back.
        self.session.lost_since.get_or_insert(self.now.steady);
        self.keep_state();
        self.session.alarm = Some(why.clone());
        if self.session.said.as_ref() != Some(&why) {
            self.session.said = Some(why.clone());
            self.say(Notice::Unusable(why));
        }
        self.away(RETRY_NS);
    }

    /// A daemon that has begun since has only what an earlier one kept of the state.
    fn keep_state(&mut self) {
        let tree = match &self.replica.tree {
            Some(Ok(tree)) => Some(tree.made_ns),
            _ => self.replica.tree_begun(),
        };
        if let (None, Some((of, state))) = (&self.replica.lost, &self.settings.kept)
            && self.replica.state.is_none()
            && tree.is_none_or(|tree| tree == *of)
        {
            self.replica.lost = Some(At { value: state.clone(), revision: 0 });
        }
    }

    pub(super) fn make_tree(&mut self, made_ns: u64) {
        let key = self.settings.keys.tree();
        let value = encode(&Tree { made_by: self.settings.version.clone(), made_ns });
        let then = vec![Do::Put { key: key.clone(), value, lease: None }];
        self.send(Flight::Make, Op::Txn(Txn { compare: vec![Compare::absent(key)], then, or_else: vec![] }));
    }

    /// The number that a name gets for ever: the next one that nobody has. One whose key is gone gets the number that it had;
    /// a daemon that finds no job of its own then does not know for which start of the machine the plan counts on.
    pub(super) fn make_name(&mut self) {
        let (keys, own, replica) = (&self.settings.keys, &self.settings.name, &self.replica);
        let given = replica.ids.iter().find(|(_, at)| at.value == *own).map(|(id, _)| *id);
        let known = given.or_else(|| replica.names.get(own).copied().filter(|id| !replica.ids.contains_key(id)));
        let last = replica.by_id.keys().next_back().map(|id| id.0).max(replica.ids.keys().next_back().copied());
        let id = known.unwrap_or_else(|| last.map_or(0, |last| last + 1));
        let is_new = known.is_none() || self.session.was_joined || self.here.is_busy();
        let boot = if is_new { self.settings.boot.clone() } else { String::new() };
        let (name, number) = (keys.name(own), keys.id(id));
        let number_is = match replica.ids.get(&id) {
            Some(at) => Compare::unchanged(number.clone(), at.revision),
            None => Compare::absent(number.clone()),
        };
        let gone = known.is_some().then(|| name.clone());
        let value = encode(&Name { id, boot, left_ns: None });
        let then = vec![
            Do::Put { key: name.clone(), value, lease: None },
            Do::Put { key: number.clone(), value: self.settings.name.clone().into_bytes(), lease: None },
        ];
        let compare = vec![Compare::absent(name), number_is];
        self.send(Flight::Make, Op::Txn(Txn { compare, then, or_else: vec![] }));
        gone.into_iter().for_each(|key| self.say(Notice::KeyGone(key)));
    }
}
