//! Whether the store's content is complete, and what a member does when it is not.
//!
//! Problem: a deleted key looks like one that never existed, and a member that takes a damaged store for a new one kills all
//! jobs. Rule. When a key is missing that only the planner can write, no plan is made and no node or job is given up until it is back.
//! A member writes again what it knows for certain: the tree as it was, and its name with its number.

use super::Member;
use super::replica::{At, Live, Replica};
use super::session::Flight;
use super::types::Notice;
use crate::keys::check_name;
use crate::store::{Compare, Do, Op, Txn};
use crate::wire::{Name, Tree, encode};
use cosched_core::NodeId;

/// The interval between checks.
const RETRY_NS: u64 = 3_000_000_000;

impl Member {
    /// What in the store is damaged or missing, and shows that this is not a new cluster.
    pub(super) fn damage(&mut self) -> Option<String> {
        let keys = &self.settings.keys;
        let tree = match &self.replica.tree {
            Some(Err(why)) => Some(format!("{}: {why}", keys.tree())),
            _ => None,
        };
        if let Some(why) = tree.or_else(|| self.replica.unreadable()) {
            return Some(why);
        }
        if let Some((id, one, other)) = self.replica.twins() {
            let (one, key) = (keys.name(one), keys.name(other));
            return Some(format!(
                "{key}: it has number {id}, which {one} has, too, and each node needs a number of its own"
            ));
        }
        let key = self.settings.keys.state();
        (self.settings.is_shared && self.replica.has_lost_state())
            .then(|| format!("{key}: it is missing: it existed before, and was deleted by another program"))
    }

    /// Either the cluster is new; or only the key of its tree was deleted, and is written again as it was.
    pub(super) fn no_tree(&mut self, before: &Replica) {
        let key = self.settings.keys.tree();
        if !self.settings.is_shared || !self.replica.has_begun() && self.replica.made_ns().is_none() {
            // The member that makes the new tree reads it next, and then knows nothing of the earlier one.
            self.keep_numbers(before);
            return self.make_tree(self.now.wall.0);
        }
        match self.replica.made_ns().or(self.tree) {
            Some(made_ns) => {
                self.make_tree(made_ns);
                self.say(Notice::KeyGone(key));
            }
            None => self
                .unusable(format!("{key}: it is missing: every cluster has it, so it was deleted by another program")),
        }
    }

    pub(super) fn unusable(&mut self, why: String) {
        // When it becomes usable again, that is reported, as when the store is back.
        self.session.lost_since.get_or_insert(self.now.steady);
        // In this condition no node is given up, and later all nodes' silence is counted from then on: a node that still has its key
        // counts as alive by having seen the condition.
        self.work.forget_silence();
        let own = self.replica.nodes.get(&self.settings.name);
        let is_own = |live: &At<Live>| live.value.node.instance == self.settings.instance;
        if own.is_some_and(|live| is_own(live) && live.value.lease == self.session.lease) {
            self.is_heard(self.session.granted_at);
        }
        self.session.alarm = Some(why.clone());
        if self.session.said.as_ref() != Some(&why) {
            self.session.said = Some(why.clone());
            self.say(Notice::Unusable(why));
        }
        self.away(RETRY_NS);
    }

    /// A daemon that was started since then only has what an earlier one kept of the state.
    pub(super) fn keep_state(&mut self) {
        if let (None, Some(kept)) = (&self.replica.lost, &self.settings.kept)
            && self.replica.state.is_none()
            && self.replica.is_of(Some(kept.tree))
        {
            self.replica.lost = Some(At { value: kept.state.clone(), revision: 0 });
        }
    }

    pub(super) fn make_tree(&mut self, made_ns: u64) {
        let key = self.settings.keys.tree();
        let value = encode(&Tree { made_by: self.settings.version.clone(), made_ns });
        let then = vec![Do::Put { key: key.clone(), value, lease: None }];
        self.send(Flight::Make, Op::Txn(Txn { compare: vec![Compare::absent(key)], then, or_else: vec![] }));
    }

    /// Assigns a permanent number to the name: the next unused one. A name whose key was deleted gets the number that it had;
    /// a daemon that finds no job of its own then does not know on which boot of the machine the plan is based.
    pub(super) fn make_name(&mut self) {
        let (keys, own, replica) = (&self.settings.keys, &self.settings.name, &self.replica);
        let is_available = |id: &u32| replica.by_id.get(&NodeId(*id)).is_none_or(|name| name == own);
        let given = replica.ids.iter().find(|(id, at)| at.value == *own && is_available(id)).map(|(id, _)| *id);
        // A node of the plan keeps its number, unless another node has it.
        let is_free =
            |id: &u32| replica.ids.get(id).is_none_or(|at| check_name(&at.value).is_err()) && is_available(id);
        let kept = self.settings.kept.as_ref().filter(|kept| self.tree == Some(kept.tree));
        let mut remembered =
            [replica.names.get(own).copied(), self.id.map(|id| id.0), kept.map(|kept| kept.id)].into_iter().flatten();
        let known = given.or_else(|| remembered.find(is_free));
        let planned = replica.state.iter().flat_map(|state| state.value.nodes.keys());
        let last = replica.by_id.keys().chain(planned).map(|id| id.0).chain(replica.ids.keys().copied()).max();
        let id = known.unwrap_or_else(|| last.map_or(0, |last| last + 1));
        let boot = self.boot_counted_on(known.is_none());
        let (name, number) = (keys.name(own), keys.id(id));
        let number_is = match replica.ids.get(&id) {
            Some(at) => Compare::unchanged(number.clone(), at.revision),
            None => Compare::absent(number.clone()),
        };
        let gone = known.is_some().then(|| name.clone());
        let value = encode(&self.own_name(id, boot));
        let then = vec![
            Do::Put { key: name.clone(), value, lease: None },
            Do::Put { key: number.clone(), value: self.settings.name.clone().into_bytes(), lease: None },
        ];
        let compare = vec![Compare::absent(name), number_is];
        self.send(Flight::Make, Op::Txn(Txn { compare, then, or_else: vec![] }));
        gone.into_iter().for_each(|key| self.say(Notice::KeyGone(key)));
    }

    /// A repair has restored the name without knowing on which boot of the machine the plan is based.
    pub(super) fn tell_boot(&mut self, id: u32) {
        let boot = self.boot_counted_on(false);
        let value = encode(&self.own_name(id, boot));
        let then = vec![Do::Put { key: self.settings.keys.name(&self.settings.name), value, lease: None }];
        self.send(Flight::Make, Op::Txn(Txn { then, ..Txn::default() }));
    }

    pub(super) fn own_name(&self, id: u32, boot: String) -> Name {
        Name { id, boot, home: Some(self.settings.home.clone()), left_ns: None, tree: self.replica.made_ns() }
    }

    /// Whether the plan is based on the present boot of this machine.
    pub(super) fn is_counted(&self) -> bool {
        self.replica.boots.get(&self.settings.name) == Some(&self.settings.boot)
    }

    /// The boot to be written. A daemon that has not seen a plan with the present one and has no job of its own cannot tell whether there is
    /// one: the machine may have been restarted since the plan was made.
    fn boot_counted_on(&self, is_new: bool) -> String {
        let is_same = is_new || self.session.was_counted || self.local.is_busy();
        if is_same { self.settings.boot.clone() } else { String::new() }
    }
}
