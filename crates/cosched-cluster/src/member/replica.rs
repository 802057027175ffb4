//! What a node knows of the store: its own copy of what all watch.

use super::ended::Ended;
use crate::keys::{Keys, Place, check_name};
use crate::store::{Entry, Event, Key, LeaseId, News, Revision};
use crate::wire::{FormatError, Job, Name, Node, Reply, Request, Stored, Tree, decode};
use cosched_core::NodeId;
use cosched_core::cluster::State;
use std::collections::{BTreeMap, BTreeSet};

/// A value with the revision of its last change.
#[derive(Clone, Debug)]
pub(super) struct At<T> {
    pub(super) value: T,
    pub(super) revision: Revision,
}

/// A node's record, and the lease with which it goes.
#[derive(Clone, Debug)]
pub(super) struct Live {
    pub(super) node: Node,
    pub(super) lease: Option<LeaseId>,
}

/// The copy.
#[derive(Debug, Default)]
pub(super) struct Replica {
    /// All changes of the watched range up to here are in it.
    pub(super) revision: Revision,
    pub(super) tree: Option<Result<Tree, FormatError>>,
    /// That the cluster has had a state, and when its tree was made, if that can be read.
    begun: Option<Option<u64>>,
    /// The tree that was seen here to have begun, whatever is left of the keys that said so.
    seen_begun: Option<u64>,
    /// When the tree was made, as names say.
    named_tree: Option<u64>,
    pub(super) state: Option<At<State>>,
    /// What was committed here last, in the store's form and as it was meant: the watch tells it again.
    pub(super) committed: Option<(Vec<u8>, State)>,
    /// What is to be of the jobs here may be another thing than when it was last looked at.
    pub(super) is_news_of_jobs: bool,
    /// The state as it was last known, while it is gone or cannot be used.
    pub(super) lost: Option<At<State>>,
    /// States of before, of other generations, whose plans were not looked at yet: a plan that is skipped cannot be followed.
    pub(super) earlier: Vec<State>,
    /// What all need and cannot be read, and why. Without it nobody can say who runs where: nothing is judged.
    unreadable: BTreeMap<Key, String>,
    pub(super) nodes: BTreeMap<String, At<Live>>,
    pub(super) names: BTreeMap<String, u32>,
    /// The names of those live nodes whose keys are gone; what their keys said is known all the same.
    pub(super) nameless: BTreeSet<String>,
    /// The numbers that were given, each with its name: what names can be made of again.
    pub(super) ids: BTreeMap<u32, At<String>>,
    /// The start of each node's machine that the plan counts on.
    pub(super) boots: BTreeMap<String, String>,
    /// When nodes that are not in the plan left it, since the Unix epoch.
    pub(super) left: BTreeMap<String, u64>,
    /// The name of each number.
    pub(super) by_id: BTreeMap<NodeId, String>,
    pub(super) jobs: BTreeMap<u64, At<Job>>,
    /// Those that are over.
    pub(super) ended: Ended,
    /// By the revision in which they were made, then by name: in their order.
    pub(super) requests: BTreeMap<(Revision, String), Result<Request, FormatError>>,
    pub(super) replies: BTreeMap<String, Reply>,
}

/// In a name that was written again while its node was away.
pub(crate) const UNKNOWN_BOOT: &str = "?";

impl Replica {
    /// A copy of what was read at a revision.
    pub(super) fn read(keys: &Keys, revision: Revision, entries: Vec<Entry>) -> Replica {
        let mut replica = Replica { revision, ..Replica::default() };
        entries.into_iter().for_each(|entry| replica.put(keys, entry));
        let nodes: Vec<(String, Node)> =
            replica.nodes.iter().map(|(name, live)| (name.clone(), live.value.node.clone())).collect();
        for (name, node) in nodes {
            if !replica.names.contains_key(&name) {
                replica.by_id.insert(NodeId(node.id), name.clone());
                replica.names.insert(name.clone(), node.id);
                replica.boots.insert(name.clone(), node.boot);
                replica.nameless.insert(name);
            }
        }
        for (id, at) in replica.ids.iter().filter(|(_, at)| check_name(&at.value).is_ok()) {
            replica.by_id.entry(NodeId(*id)).or_insert_with(|| at.value.clone());
        }
        replica
    }

    /// Whether the key is there that says so.
    pub(super) fn is_marked(&self) -> bool {
        self.begun.flatten().is_some()
    }

    /// Whether the cluster has had a state.
    pub(super) fn has_begun(&self) -> bool {
        let seen = self.seen_begun.is_some() && self.seen_begun == self.made_ns();
        self.begun.is_some() || self.state.is_some() || !self.jobs.is_empty() || seen
    }

    /// The tree that has begun, as far as is known here.
    pub(super) fn begun_tree(&self) -> Option<u64> {
        self.made_ns().filter(|_| self.has_begun()).or(self.seen_begun)
    }

    /// While one key is missed another may be deleted: what was read before says more than what is left.
    pub(super) fn remember_begun(&mut self, before: &Replica) {
        self.seen_begun = before.begun_tree();
    }

    /// When the tree was made, by its key or by one of those that say the same.
    pub(super) fn made_ns(&self) -> Option<u64> {
        let tree = self.tree.as_ref().and_then(|tree| Some(tree.as_ref().ok()?.made_ns));
        tree.or(self.begun.flatten()).or(self.named_tree)
    }

    /// Whether this is the tree that was made then, as far as can be told.
    pub(super) fn is_of(&self, tree: Option<u64>) -> bool {
        let read = self.made_ns();
        read.is_none() || read == tree
    }

    /// Whether the state has been there and is not.
    pub(super) fn has_lost_state(&self) -> bool {
        self.state.is_none() && (self.has_begun() || self.lost.is_some())
    }

    /// What was read as the state cannot be one; `before` is the one before it.
    pub(super) fn state_cannot_be(&mut self, key: Key, why: String, before: Option<At<State>>) {
        self.state = None;
        self.is_news_of_jobs = true;
        self.lost = self.lost.take().or(before);
        self.unreadable.insert(key, why);
    }

    /// Takes what a watch tells.
    pub(super) fn take(&mut self, keys: &Keys, news: News) {
        for Event { entry, deleted } in news.events {
            if deleted { self.delete(keys, &entry.key) } else { self.put(keys, entry) }
        }
        self.revision = self.revision.max(news.revision);
    }

    /// Takes one value, unless a newer one is known.
    pub(super) fn put(&mut self, keys: &Keys, entry: Entry) {
        let Entry { key, value, create_revision, mod_revision, lease } = entry;
        let place = keys.place(&key);
        self.is_news_of_jobs |= place.concerns_jobs();
        match place {
            Place::Tree => self.tree = Some(decode(&value)),
            Place::Begun => self.begun = Some(decode::<Tree>(&value).ok().map(|tree| tree.made_ns)),
            Place::State if self.state_revision() >= mod_revision => (),
            Place::State => {
                let Some(state) = self.state_of(&key, &value) else { return };
                if let Some(old) = self.state.take().filter(|old| old.value.generation != state.generation) {
                    self.earlier.push(old.value);
                }
                (self.state, self.lost) = (Some(At { value: state, revision: mod_revision }), None);
            }
            Place::Node(name) => {
                let Some(node) = self.readable(&key, &value) else { return };
                self.nodes.insert(name.to_owned(), At { value: Live { node, lease }, revision: mod_revision });
            }
            Place::Name(name) => {
                let Some(Name { id, boot, left_ns, tree }) = self.readable(&key, &value) else { return };
                self.named_tree = tree.or(self.named_tree);
                match left_ns {
                    Some(left_ns) => self.left.insert(name.to_owned(), left_ns),
                    None => self.left.remove(name),
                };
                self.nameless.remove(name);
                self.boots.insert(name.to_owned(), boot);
                self.names.insert(name.to_owned(), id);
                self.by_id.insert(NodeId(id), name.to_owned());
            }
            Place::Id(id) => {
                let name = String::from_utf8_lossy(&value).into_owned();
                self.ids.insert(id, At { value: name, revision: mod_revision });
            }
            Place::Job(id) => {
                let Some(job) = self.readable::<Job>(&key, &value) else { return };
                if let Some(old) = self.jobs.get(&id) {
                    self.ended.remove(&old.value);
                }
                self.ended.insert(&job, value.len() as u64);
                self.jobs.insert(id, At { value: job, revision: mod_revision });
            }
            Place::Request(id) => {
                self.requests.insert((create_revision, id.to_owned()), decode(&value));
            }
            Place::Reply(id) => {
                if let Ok(reply) = decode(&value) {
                    self.replies.insert(id.to_owned(), reply);
                }
            }
            Place::Other => (),
        }
    }

    /// A state that was made here need not be read again.
    fn state_of(&mut self, key: &str, value: &[u8]) -> Option<State> {
        match self.committed.take_if(|(bytes, _)| bytes == value) {
            Some((_, state)) => {
                self.unreadable.remove(key);
                Some(state)
            }
            None => self.readable(key, value),
        }
    }

    /// A value that all need.
    fn readable<T: Stored>(&mut self, key: &str, value: &[u8]) -> Option<T> {
        match decode(value) {
            Ok(value) => {
                self.unreadable.remove(key);
                Some(value)
            }
            Err(e) => {
                self.unreadable.insert(key.to_owned(), e.to_string());
                None
            }
        }
    }

    /// What cannot be read, and why.
    pub(super) fn unreadable(&self) -> Option<String> {
        let (key, why) = self.unreadable.first_key_value()?;
        let more = match self.unreadable.len() {
            1 => String::new(),
            n => format!(" (and {} more)", n - 1),
        };
        Some(format!("{key}: {why}{more}"))
    }

    /// A number that two nodes have by their names, and these two: what the plan says of that number can be meant for either.
    pub(super) fn twins(&self) -> Option<(u32, &str, &str)> {
        let mut seen = BTreeMap::new();
        self.names.iter().find_map(|(name, id)| Some((*id, seen.insert(id, name)?.as_str(), name.as_str())))
    }

    fn delete(&mut self, keys: &Keys, key: &str) {
        self.unreadable.remove(key);
        let place = keys.place(key);
        self.is_news_of_jobs |= place.concerns_jobs();
        match place {
            Place::Tree => self.tree = None,
            Place::Begun => self.begun = None,
            Place::State => self.lost = self.state.take().or_else(|| self.lost.take()),
            Place::Node(name) => drop(self.nodes.remove(name)),
            // It makes its key again; until then nobody is to think that there is no such node.
            Place::Name(name) if self.nodes.contains_key(name) => drop(self.nameless.insert(name.to_owned())),
            Place::Id(id) => drop(self.ids.remove(&id)),
            Place::Name(name) => {
                self.boots.remove(name);
                self.left.remove(name);
                if let Some(id) = self.names.remove(name) {
                    self.by_id.remove(&NodeId(id));
                }
            }
            Place::Job(id) => {
                if let Some(old) = self.jobs.remove(&id) {
                    self.ended.remove(&old.value);
                }
            }
            Place::Request(id) => self.requests.retain(|(_, other), _| other != id),
            Place::Reply(id) => drop(self.replies.remove(id)),
            Place::Other => (),
        }
    }

    /// The state was read by itself, and what belongs to it is still to be told: jobs' records and requests are older. It is
    /// good for following plans, not for judging jobs or for planning.
    pub(super) fn is_ahead(&self) -> bool {
        self.state_revision() > self.revision
    }

    /// When the planner's state was last changed; 0 while there is none.
    pub(super) fn state_revision(&self) -> Revision {
        self.state.as_ref().map_or(0, |state| state.revision)
    }

    /// The generation of the newest plan.
    pub(super) fn generation(&self) -> u64 {
        self.state.as_ref().map_or(0, |state| state.value.generation)
    }

    /// The name of a node.
    pub(super) fn name_of(&self, id: NodeId) -> &str {
        self.by_id.get(&id).map_or("?", String::as_str)
    }

    /// Whether a live node's machine was started anew, and the plan still counts on what ran there before.
    pub(super) fn is_new_boot(&self, name: &str, node: &Node) -> bool {
        self.boots.get(name).is_some_and(|boot| *boot != node.boot && boot != UNKNOWN_BOOT)
    }

    /// Whether the node itself has to say for which start of its machine the plan counts on it.
    pub(super) fn lacks_boot(&self, name: &str) -> bool {
        self.boots.get(name).is_some_and(|boot| boot == UNKNOWN_BOOT)
    }

    /// The record of a live node.
    pub(super) fn live(&self, id: NodeId) -> Option<&Node> {
        let live = self.nodes.get(self.by_id.get(&id)?)?;
        Some(&live.value.node)
    }
}

#[cfg(test)]
mod tests;
