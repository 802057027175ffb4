//! What a node knows of the store: its own copy of what all watch.

use crate::keys::{Keys, Place};
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
    pub(super) state: Option<At<State>>,
    /// States of before, of other generations, whose plans were not looked at yet: a plan that is skipped cannot be followed.
    pub(super) earlier: Vec<State>,
    /// What all need and cannot be read, and why. Without it nobody can say who runs where: nothing is judged.
    unreadable: BTreeMap<Key, String>,
    pub(super) nodes: BTreeMap<String, At<Live>>,
    pub(super) names: BTreeMap<String, u32>,
    /// The start of each node's machine that the plan counts on.
    pub(super) boots: BTreeMap<String, String>,
    /// When nodes that are not in the plan left it, since the Unix epoch.
    pub(super) left: BTreeMap<String, u64>,
    /// The name of each number.
    pub(super) by_id: BTreeMap<NodeId, String>,
    pub(super) jobs: BTreeMap<u64, At<Job>>,
    /// Jobs that are over, by the time of their end.
    pub(super) ended: BTreeSet<(u64, u64)>,
    /// By the revision in which they were made, then by name: in their order.
    pub(super) requests: BTreeMap<(Revision, String), Result<Request, FormatError>>,
    pub(super) replies: BTreeMap<String, Reply>,
}

impl Replica {
    /// A copy of what was read at a revision.
    pub(super) fn read(keys: &Keys, revision: Revision, entries: Vec<Entry>) -> Replica {
        let mut replica = Replica { revision, ..Replica::default() };
        entries.into_iter().for_each(|entry| replica.put(keys, entry));
        replica
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
        match keys.place(&key) {
            Place::Tree => self.tree = Some(decode(&value)),
            Place::State if self.state_revision() >= mod_revision => (),
            Place::State => {
                let Some(state) = self.readable::<State>(&key, &value) else { return };
                if let Some(old) = self.state.take().filter(|old| old.value.generation != state.generation) {
                    self.earlier.push(old.value);
                }
                self.state = Some(At { value: state, revision: mod_revision });
            }
            Place::Node(name) => {
                let Some(node) = self.readable(&key, &value) else { return };
                self.nodes.insert(name.to_owned(), At { value: Live { node, lease }, revision: mod_revision });
            }
            Place::Name(name) => {
                let Some(Name { id, boot, left_ns }) = self.readable(&key, &value) else { return };
                match left_ns {
                    Some(left_ns) => self.left.insert(name.to_owned(), left_ns),
                    None => self.left.remove(name),
                };
                self.boots.insert(name.to_owned(), boot);
                self.names.insert(name.to_owned(), id);
                self.by_id.insert(NodeId(id), name.to_owned());
            }
            Place::Job(id) => {
                let Some(job) = self.readable::<Job>(&key, &value) else { return };
                if let Some(end) = &job.end {
                    self.ended.insert((end.at_ns, id));
                }
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

    /// A value that was read cannot be used.
    pub(super) fn is_unusable(&mut self, key: Key, why: String) {
        self.unreadable.insert(key, why);
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

    fn delete(&mut self, keys: &Keys, key: &str) {
        self.unreadable.remove(key);
        match keys.place(key) {
            Place::Tree => self.tree = None,
            Place::State => self.state = None,
            Place::Node(name) => drop(self.nodes.remove(name)),
            Place::Name(name) => {
                self.boots.remove(name);
                self.left.remove(name);
                if let Some(id) = self.names.remove(name) {
                    self.by_id.remove(&NodeId(id));
                }
            }
            Place::Job(id) => {
                if let Some(end) = self.jobs.remove(&id).and_then(|job| job.value.end) {
                    self.ended.remove(&(end.at_ns, id));
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
        self.boots.get(name).is_some_and(|boot| *boot != node.boot)
    }

    /// The record of a live node.
    pub(super) fn live(&self, id: NodeId) -> Option<&Node> {
        let live = self.nodes.get(self.by_id.get(&id)?)?;
        Some(&live.value.node)
    }
}
