//! A node's own copy of the watched part of the store.

use super::ended::Ended;
use crate::keys::{Keys, Place, check_name};
use crate::store::{Entry, Event, Key, LeaseId, News, Revision};
use crate::wire::{FormatError, Job, Name, Node, Reply, Request, Stored, Tree, decode};
use cosched_core::cluster::{JobRecord, State};
use cosched_core::{JobId, NodeId};
use std::collections::{BTreeMap, BTreeSet};

/// A value with the revision of its last change.
#[derive(Clone, Debug)]
pub(super) struct At<T> {
    pub(super) value: T,
    pub(super) revision: Revision,
}

/// A node's record, and the lease with which it expires.
#[derive(Clone, Debug)]
pub(super) struct Live {
    pub(super) node: Node,
    pub(super) lease: Option<LeaseId>,
}

/// The copy.
#[derive(Debug, Default)]
pub(super) struct Replica {
    /// The revision up to which all changes of the watched range are included.
    pub(super) revision: Revision,
    pub(super) tree: Option<Result<Tree, FormatError>>,
    /// The mark that the cluster has had a state, with its tree's creation time, if that can be read.
    begun: Option<Option<u64>>,
    /// The tree that this member has seen to have begun, even if the keys that show it are gone now.
    seen_begun: Option<u64>,
    /// The tree's creation time according to names.
    named_tree: Option<u64>,
    pub(super) state: Option<At<State>>,
    /// This member's last commit, as stored bytes and as a value: the watch reports it back.
    pub(super) committed: Option<(Vec<u8>, State)>,
    /// What is to be done with the jobs on this node may have changed since it was last determined.
    pub(super) is_news_of_jobs: bool,
    /// The last good state, while the present one is missing or cannot be used.
    pub(super) lost: Option<At<State>>,
    /// Earlier states of other generations whose plans were not seen yet: a plan that is skipped cannot be followed.
    pub(super) earlier: Vec<State>,
    /// Keys that all members need and that cannot be read, and why. Without them it is unknown which jobs run where, so no node or job is given up.
    unreadable: BTreeMap<Key, String>,
    pub(super) nodes: BTreeMap<String, At<Live>>,
    pub(super) names: BTreeMap<String, u32>,
    /// The names of live nodes whose keys were deleted; the keys' content is still known.
    pub(super) nameless: BTreeSet<String>,
    /// The assigned numbers, each with its name: names can be restored from them.
    pub(super) ids: BTreeMap<u32, At<String>>,
    /// The boot of each node's machine on which the plan is based.
    pub(super) boots: BTreeMap<String, String>,
    /// The home of the machine whose jobs the plan has under each name.
    pub(super) homes: BTreeMap<String, String>,
    /// When nodes that are not in the plan left it, since the Unix epoch.
    pub(super) left: BTreeMap<String, u64>,
    /// The name of each number.
    pub(super) by_id: BTreeMap<NodeId, String>,
    pub(super) jobs: BTreeMap<u64, At<Job>>,
    /// The jobs that are over.
    pub(super) ended: Ended,
    /// In their order: by the revision in which they were created, then by name.
    pub(super) requests: BTreeMap<(Revision, String), Result<Request, FormatError>>,
    pub(super) replies: BTreeMap<String, Reply>,
}

/// The boot in a name that was restored while its node was away.
pub(crate) const UNKNOWN_BOOT: &str = "?";

impl Replica {
    /// A copy of the entries read at a revision.
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
                replica.homes.insert(name.clone(), node.home);
                replica.nameless.insert(name);
            }
        }
        for (id, at) in replica.ids.iter().filter(|(_, at)| check_name(&at.value).is_ok()) {
            replica.by_id.entry(NodeId(*id)).or_insert_with(|| at.value.clone());
        }
        replica
    }

    /// Whether the mark that the cluster has begun exists.
    pub(super) fn is_marked(&self) -> bool {
        self.begun.flatten().is_some()
    }

    /// Whether the cluster has had a state.
    pub(super) fn has_begun(&self) -> bool {
        let seen = self.seen_begun.is_some() && self.seen_begun == self.made_ns();
        self.begun.is_some() || self.state.is_some() || !self.jobs.is_empty() || seen
    }

    /// The tree that has begun, as far as this member knows.
    pub(super) fn begun_tree(&self) -> Option<u64> {
        self.made_ns().filter(|_| self.has_begun()).or(self.seen_begun)
    }

    /// Remembers what was read before: while one key is missing another may be deleted, so the earlier copy is better evidence.
    pub(super) fn remember_begun(&mut self, before: &Replica) {
        self.seen_begun = before.begun_tree();
    }

    /// When the tree was created, by its own key or by one of its copies.
    pub(super) fn made_ns(&self) -> Option<u64> {
        let tree = self.tree.as_ref().and_then(|tree| Some(tree.as_ref().ok()?.made_ns));
        tree.or(self.begun.flatten()).or(self.named_tree)
    }

    /// Whether this is the tree that was created at that time, as far as is known.
    pub(super) fn is_of(&self, tree: Option<u64>) -> bool {
        let read = self.made_ns();
        read.is_none() || read == tree
    }

    /// Whether the state existed and is gone now.
    pub(super) fn has_lost_state(&self) -> bool {
        self.state.is_none() && (self.has_begun() || self.lost.is_some())
    }

    /// The state that was read contradicts itself; `before` is the previous one.
    pub(super) fn state_cannot_be(&mut self, key: Key, why: String, before: Option<At<State>>) {
        self.state = None;
        self.is_news_of_jobs = true;
        self.lost = self.lost.take().or(before);
        self.unreadable.insert(key, why);
    }

    /// Applies the changes of a watch.
    pub(super) fn take(&mut self, keys: &Keys, news: News) {
        for Event { entry, deleted } in news.events {
            if deleted { self.delete(keys, &entry.key) } else { self.put(keys, entry) }
        }
        self.revision = self.revision.max(news.revision);
    }

    /// Applies one value, unless a newer one is known.
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
                let Some(Name { id, boot, home, left_ns, tree }) = self.readable(&key, &value) else { return };
                self.named_tree = tree.or(self.named_tree);
                match left_ns {
                    Some(left_ns) => self.left.insert(name.to_owned(), left_ns),
                    None => self.left.remove(name),
                };
                self.nameless.remove(name);
                self.boots.insert(name.to_owned(), boot);
                match home {
                    Some(home) => self.homes.insert(name.to_owned(), home),
                    None => self.homes.remove(name),
                };
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

    /// A state that this member committed need not be decoded again.
    fn state_of(&mut self, key: &str, value: &[u8]) -> Option<State> {
        match self.committed.take_if(|(bytes, _)| bytes == value) {
            Some((_, state)) => {
                self.unreadable.remove(key);
                Some(state)
            }
            None => self.readable(key, value),
        }
    }

    /// Decodes a value that all members need; records it if that fails.
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

    /// The first key that cannot be read, and why.
    pub(super) fn unreadable(&self) -> Option<String> {
        let (key, why) = self.unreadable.first_key_value()?;
        let more = match self.unreadable.len() {
            1 => String::new(),
            n => format!(" (and {} more)", n - 1),
        };
        Some(format!("{key}: {why}{more}"))
    }

    /// A number that two names have, with these names: what the plan says of that number could be about either node.
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
            // The live node restores its key; until then it must not count as unknown.
            Place::Name(name) if self.nodes.contains_key(name) => drop(self.nameless.insert(name.to_owned())),
            Place::Id(id) => drop(self.ids.remove(&id)),
            Place::Name(name) => {
                self.boots.remove(name);
                self.homes.remove(name);
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

    /// Whether the state was read separately, and the changes that belong to it are yet to be reported: jobs' records and requests are older. Such
    /// a state is good for following plans, but not for starting and ending jobs or for planning.
    pub(super) fn is_ahead(&self) -> bool {
        self.state_revision() > self.revision
    }

    /// The revision of the last change of the planner's state; 0 while there is none.
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

    /// Whether the key of a node's name exists.
    pub(super) fn is_named(&self, name: &str) -> bool {
        self.names.contains_key(name) && !self.nameless.contains(name)
    }

    /// Whether a live node's machine was rebooted, while the plan still includes what ran there before.
    pub(super) fn is_new_boot(&self, name: &str, node: &Node) -> bool {
        self.boots.get(name).is_some_and(|boot| *boot != node.boot && boot != UNKNOWN_BOOT)
    }

    /// Whether the node itself has to report on which boot of its machine the plan is based.
    pub(super) fn lacks_boot(&self, name: &str) -> bool {
        self.boots.get(name).is_some_and(|boot| boot == UNKNOWN_BOOT)
    }

    /// Whether the plan has something on this node: a part of a job, or a job's main process.
    pub(super) fn has_jobs(&self, id: NodeId) -> bool {
        let parts = |job: &JobRecord| job.place.as_ref().is_some_and(|p| p.parts.iter().any(|p| p.node == id));
        let name = self.name_of(id);
        let leads =
            |id: &JobId| self.jobs.get(&id.0).is_some_and(|job| job.value.is_led_from(name) && !job.value.closing);
        self.state.iter().flat_map(|state| &state.value.jobs).any(|(id, job)| parts(job) || leads(id))
    }

    /// The record of a live node.
    pub(super) fn live(&self, id: NodeId) -> Option<&Node> {
        let live = self.nodes.get(self.by_id.get(&id)?)?;
        Some(&live.value.node)
    }
}

#[cfg(test)]
mod tests;
