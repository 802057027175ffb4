//! Repair of a store with deleted or damaged keys, from what is known elsewhere.
//!
//! Rule. Sound keys stay. The state is restored as a node knows it, from its memory or from what its last daemon kept on disk;
//! no plan was made since the state was lost, so it is the same. Names come from numbers and from nodes' records; nodes
//! write their own records. A job whose record is lost, or that the known state does not have, continues without being
//! planned: a repair kills nothing. All keys are written only if the state is unchanged since it was read, and the state is written last:
//! until then no member plans.

use crate::keys::{Keys, Place, check_name};
use crate::member::UNKNOWN_BOOT;
use crate::store::{Compare, Do, Entry, Key, Op, Range, Revision, TXN_OPS_MAX, Txn};
use crate::wire::{Ack, Answer, FormatError, Job, Name, Node, Reply, Stored, Tree, decode, encode};
use cosched_core::cluster::{BadState, Config, Input, NUMBERS_END, Planner, State};
use cosched_core::{JobId, Reason, Time};
use std::collections::{BTreeMap, BTreeSet};

/// A node's knowledge of its cluster.
#[derive(Clone, Debug)]
pub struct Known {
    /// The cluster's keys.
    pub keys: Keys,
    /// The node's name.
    pub node: String,
    /// When the tree was created, if that is known.
    pub tree: Option<u64>,
    /// The tree that was seen to have a state, if one was.
    pub begun: Option<u64>,
    /// The last known state.
    pub state: Option<State>,
    /// The configuration with which a cluster begins.
    pub initial: Config,
    /// The highest known job number.
    pub jobs_known: u64,
    /// The version of the daemon.
    pub version: String,
    /// For how long from now on leases that are not in the store may still count, in nanoseconds.
    pub lease_ns: u64,
}

/// The changes that repair a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repair {
    /// What is wrong, and what is done about it, one line each.
    pub says: Vec<String>,
    /// To be carried out in this order. If the condition of one is false, another client has changed the store.
    pub ops: Vec<Op>,
}

/// Why a store cannot be repaired, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CannotRepair {
    /// The reason.
    pub why: String,
    /// What to do.
    pub hint: String,
}

/// Reads all keys of a cluster in one operation.
pub fn read_all(keys: &Keys) -> Op {
    Op::Txn(Txn { then: vec![Do::Get(Range::prefix(keys.prefix()))], ..Txn::default() })
}

/// The repair of a store with these entries.
///
/// # Errors
/// Another version wrote some of them, or another node knows more than this one.
pub fn repair(known: &Known, wall: Time, entries: &[Entry]) -> Result<Repair, CannotRepair> {
    let found = Found::new(known, entries)?;
    if !found.has_begun(known) {
        return Err(CannotRepair {
            why: "the store has no keys of an existing cluster".to_owned(),
            hint: "A cluster without any keys starts again from scratch by itself; `cosched cluster import FILE` \
                   restores a backup."
                .to_owned(),
        });
    }
    let made_ns = made_ns(known, &found, wall)?;
    let mut work = Work { known, found: &found, made_ns, says: Vec::new(), keys: Vec::new(), touched: BTreeSet::new() };
    work.tree();
    work.names();
    work.records();
    let state = work.state(wall)?;
    Ok(work.finish(state))
}

/// The content of the store.
#[derive(Default)]
struct Found {
    tree: Option<Tree>,
    begun: Option<Tree>,
    state: Option<State>,
    state_revision: Revision,
    nodes: BTreeMap<String, Node>,
    names: BTreeMap<String, Name>,
    ids: BTreeMap<u32, String>,
    jobs: BTreeMap<u64, Job>,
    acks: BTreeMap<String, Ack>,
    /// Job numbers that were promised to users who have not read the reply yet.
    submitted: BTreeMap<Key, u64>,
    /// The keys that cannot be read, and why.
    damaged: BTreeMap<Key, String>,
}

impl Found {
    fn new(known: &Known, entries: &[Entry]) -> Result<Found, CannotRepair> {
        let mut found = Found::default();
        for entry in entries {
            found.take(&known.keys, entry).map_err(|e| CannotRepair {
                why: format!("{}: {e}", entry.key),
                hint: "Repair from a node whose cosched is of the version that wrote it.".to_owned(),
            })?;
        }
        found.drop_twins(&known.keys)?;
        found.drop_wrong_ids(&known.keys);
        Ok(found)
    }

    /// Of several nodes whose names have the same number, one is right: the one whose own record has it; while that one is away, one
    /// whose record has no other number; and among those, the one that the number's key names.
    fn drop_twins(&mut self, keys: &Keys) -> Result<(), CannotRepair> {
        let mut holders: BTreeMap<u32, BTreeSet<String>> = BTreeMap::new();
        let of_nodes =
            self.nodes.iter().filter(|(name, _)| !self.names.contains_key(*name)).map(|(name, of)| (of.id, name));
        for (id, name) in of_nodes.chain(self.names.iter().map(|(name, of)| (of.id, name))) {
            holders.entry(id).or_default().insert(name.clone());
        }
        for (id, twins) in holders.into_iter().filter(|(_, names)| names.len() > 1) {
            let right = self.right_of_twins(keys, id, &twins)?;
            for name in twins.iter().filter(|name| Some(*name) != right.as_ref()) {
                let key = match self.names.remove(name) {
                    Some(_) => keys.name(name),
                    None => {
                        self.nodes.remove(name);
                        keys.node(name)
                    }
                };
                let whose = right.as_ref().map_or_else(|| "not its own".to_owned(), |right| format!("node {right}'s"));
                self.damaged.insert(key, format!("it has number {id}, which is {whose}"));
            }
        }
        Ok(())
    }

    /// `None` if the records of all of them have other numbers.
    fn right_of_twins(&self, keys: &Keys, id: u32, twins: &BTreeSet<String>) -> Result<Option<String>, CannotRepair> {
        let said = |name: &&String| self.nodes.get(*name).map(|node| node.id == id);
        let sure: Vec<&String> = twins.iter().filter(|name| said(name) == Some(true)).collect();
        let maybe: Vec<&String> = twins.iter().filter(|name| said(name).is_none()).collect();
        let candidates = if sure.is_empty() { maybe } else { sure };
        let named = self.ids.get(&id).filter(|name| candidates.contains(name));
        match (candidates.as_slice(), named) {
            ([] | [_], _) => Ok(candidates.first().map(|name| (*name).clone())),
            (_, Some(name)) => Ok(Some(name.clone())),
            ([one, other, ..], None) => Err(CannotRepair {
                why: format!(
                    "{} and {} both have number {id}, and it is unknown which of them owns it",
                    keys.name(one),
                    keys.name(other)
                ),
                hint: format!("Write the name of the right one to {} with etcdctl, and repair again.", keys.id(id)),
            }),
        }
    }

    /// Drops numbers' keys that contradict a name's key or a node's record, because these two are trusted more.
    fn drop_wrong_ids(&mut self, keys: &Keys) {
        let of_nodes = self.nodes.iter().map(|(name, node)| (node.id, name));
        let holders: BTreeMap<u32, &String> =
            of_nodes.chain(self.names.iter().map(|(name, of)| (of.id, name))).collect();
        for (id, holder) in holders {
            if self.ids.get(&id).is_some_and(|name| name != holder) {
                self.ids.remove(&id);
                self.damaged.insert(keys.id(id), format!("it is not node {holder}, which has this number"));
            }
        }
    }

    fn take(&mut self, keys: &Keys, entry: &Entry) -> Result<(), FormatError> {
        let key = &entry.key;
        if let Some(name) = keys.acks_name(key) {
            self.acks.extend(decode(&entry.value).ok().map(|ack| (name.to_owned(), ack)));
            return Ok(());
        }
        match keys.place(key) {
            Place::Tree => self.tree = sound(&mut self.damaged, entry)?,
            Place::Begun => self.begun = sound(&mut self.damaged, entry)?,
            Place::State => {
                self.state_revision = entry.mod_revision;
                let state: Option<State> = sound(&mut self.damaged, entry)?;
                match state.map(|state| Planner::new(state.clone()).map(|_| state)) {
                    Some(Ok(state)) => self.state = Some(state),
                    Some(Err(e)) => drop(self.damaged.insert(key.clone(), e.to_string())),
                    None => (),
                }
            }
            Place::Node(name) => put(&mut self.nodes, name.to_owned(), sound(&mut self.damaged, entry)?),
            Place::Name(name) => put(&mut self.names, name.to_owned(), sound(&mut self.damaged, entry)?),
            Place::Id(id) => {
                let name = String::from_utf8_lossy(&entry.value).into_owned();
                match check_name(&name) {
                    Ok(()) => drop(self.ids.insert(id, name)),
                    Err(e) => drop(self.damaged.insert(key.clone(), e.to_string())),
                }
            }
            Place::Job(id) => match sound(&mut self.damaged, entry)? {
                Some(Job { id: other, .. }) if other != id => {
                    self.damaged.insert(key.clone(), format!("it is the record of job {other}"));
                }
                job => put(&mut self.jobs, id, job),
            },
            Place::Reply(_) => {
                if let Ok(Reply { answer: Answer::Submitted { job }, .. }) = decode(&entry.value) {
                    self.submitted.insert(key.clone(), job);
                }
            }
            Place::Request(_) | Place::Other => (),
        }
        Ok(())
    }

    /// As members decide it: a tree without any of these keys is a new cluster, whatever a node knows of an older one.
    fn has_begun(&self, known: &Known) -> bool {
        self.begun.is_some()
            || self.state.is_some()
            || !self.jobs.is_empty()
            || !self.damaged.is_empty()
            || self.tree.is_some() && (self.state_known(known).is_some() || known.begun == self.made_ns())
    }

    /// The state that the node knows, if it is of this tree.
    fn state_known<'a>(&self, known: &'a Known) -> Option<&'a State> {
        let made = self.made_ns();
        known.state.as_ref().filter(|_| made.is_none() || made == known.tree)
    }

    /// When the tree was created. The node's own knowledge may be of an earlier tree, so the store's keys come first.
    fn made_ns(&self) -> Option<u64> {
        let tree = self.tree.as_ref().or(self.begun.as_ref()).map(|tree| tree.made_ns);
        tree.or_else(|| self.names.values().find_map(|name| name.tree))
    }
}

/// A value; `None` if it is damaged. A value of another version is an error, because another daemon can read it.
fn sound<T: Stored>(damaged: &mut BTreeMap<Key, String>, entry: &Entry) -> Result<Option<T>, FormatError> {
    match decode(&entry.value) {
        Ok(value) => Ok(Some(value)),
        Err(e @ FormatError::Version { .. }) => Err(e),
        Err(e) => {
            damaged.insert(entry.key.clone(), e.to_string());
            Ok(None)
        }
    }
}

fn put<K: Ord, V>(all: &mut BTreeMap<K, V>, key: K, value: Option<V>) {
    all.extend(value.map(|value| (key, value)));
}

/// When the tree was created.
fn made_ns(known: &Known, found: &Found, wall: Time) -> Result<u64, CannotRepair> {
    match found.made_ns().or(known.tree) {
        Some(made_ns) => Ok(made_ns),
        // A wrong time would start jobs again that are running.
        None if found.state.is_some() => Err(CannotRepair {
            why: format!("node {} does not know when the cluster was created", known.node),
            hint: "Run `cosched cluster repair` on a node that has taken part in it.".to_owned(),
        }),
        None => Ok(wall.0),
    }
}

struct Work<'a> {
    known: &'a Known,
    found: &'a Found,
    made_ns: u64,
    says: Vec<String>,
    /// The changes to keys other than the state.
    keys: Vec<Do>,
    touched: BTreeSet<Key>,
}

impl Work<'_> {
    fn say(&mut self, key: &str, done: impl std::fmt::Display) {
        let wrong = self.found.damaged.get(key).map_or("is gone", |why| why.as_str());
        self.says.push(format!("{key}: {wrong}; {done}"));
        self.touched.insert(key.to_owned());
    }

    fn put(&mut self, key: Key, value: Vec<u8>) {
        self.keys.push(Do::Put { key, value, lease: None });
    }

    fn delete(&mut self, key: Key) {
        self.keys.push(Do::Delete(Range::one(key)));
    }

    /// The tree's key and the mark that the cluster has begun are copies of each other.
    fn tree(&mut self) {
        let (keys, found) = (&self.known.keys, self.found);
        let tree = encode(&Tree { made_by: self.known.version.clone(), made_ns: self.made_ns });
        for (key, is_lost) in [(keys.tree(), found.tree.is_none()), (keys.begun(), found.begun.is_none())] {
            if is_lost {
                self.say(&key, "it is written again");
                self.put(key, tree.clone());
            }
        }
    }

    /// Restores names: a node's number is in the number's key and in the node's own record.
    fn names(&mut self) {
        let (known, found) = (self.known, self.found);
        let of_ids = found.ids.iter().map(|(id, name)| (name, *id));
        let of_nodes = found.nodes.iter().map(|(name, node)| (name, node.id));
        let numbers: BTreeMap<&String, u32> = of_nodes.chain(of_ids).collect();
        let mut numbered: BTreeMap<u32, &String> = found.names.iter().map(|(name, of)| (of.id, name)).collect();
        for (name, id) in numbers.into_iter().filter(|(name, _)| !found.names.contains_key(*name)) {
            // A node must not get another node's number.
            if numbered.contains_key(&id) {
                continue;
            }
            numbered.insert(id, name);
            // The plan may be older than the boot in the node's own record.
            let boot = UNKNOWN_BOOT.to_owned();
            let key = known.keys.name(name);
            self.say(&key, format_args!("it is written again: node {name} is number {id}"));
            let home = found.nodes.get(name).map(|node| node.home.clone());
            self.put(key, encode(&Name { id, boot, home, left_ns: None, tree: Some(self.made_ns) }));
        }
        for (id, name) in numbered.into_iter().filter(|(id, _)| !found.ids.contains_key(id)) {
            let key = known.keys.id(id);
            self.say(&key, format_args!("it is written again: node {name} is number {id}"));
            self.put(key, name.clone().into_bytes());
        }
    }

    /// Deletes records that cannot be read, because they are of no use.
    fn records(&mut self) {
        let (known, found) = (self.known, self.found);
        for key in found.damaged.keys() {
            let done = match known.keys.place(key) {
                Place::Node(name) => format!("it is deleted, and node {name} writes it again if its daemon is running"),
                Place::Job(id) => {
                    format!("it is deleted: running processes of job {id} continue, scheduled by Linux, without a plan")
                }
                Place::Name(_) | Place::Id(_) if self.touched.contains(key) => continue,
                Place::Name(_) => "it is deleted, and its node gets a new number".to_owned(),
                Place::Id(_) => "it is deleted: no node is known to have this number".to_owned(),
                _ => continue,
            };
            self.say(key, done);
            self.delete(key.clone());
        }
    }

    /// The repaired state, if it differs from the stored one.
    fn state(&mut self, wall: Time) -> Result<Option<State>, CannotRepair> {
        let (known, found) = (self.known, self.found);
        let key = known.keys.state();
        let base = match (&found.state, found.state_known(known)) {
            (Some(state), _) => state.clone(),
            (None, kept) => {
                self.is_newest(kept)?;
                let how = match kept {
                    Some(state) => format!(
                        "it is restored from node {}: plan {}, {} jobs",
                        known.node,
                        state.generation,
                        state.jobs.len()
                    ),
                    None => format!(
                        "node {} does not know its contents, nor does any running node: it is created from scratch \
                         with the settings of this node's configuration, without any job",
                        known.node
                    ),
                };
                self.say(&key, how);
                let generation = found.acks.values().map(|ack| ack.generation).max().unwrap_or(0);
                let new = || State { config: known.initial.clone(), generation, ..State::default() };
                kept.cloned().unwrap_or_else(new)
            }
        };
        let ended = self.without_records(&base);
        self.unknown_to(&base);
        let of_nodes = found.nodes.values().map(|node| node.jobs_known).filter(|number| *number < NUMBERS_END);
        let numbers = found.jobs.keys().copied().chain(of_nodes);
        let next_order = numbers.fold(base.next_order.max(known.jobs_known), u64::max);
        let before = found.state.clone();
        let planner = Planner::new(State { next_order, ..base });
        let cannot = |e: BadState| CannotRepair {
            why: format!("the state that node {} knows cannot be used: {e}", known.node),
            hint: "Repair from another node, or restore a backup: `cosched cluster import FILE`.".to_owned(),
        };
        let mut planner = planner.map_err(cannot)?;
        for id in ended {
            // The job existed a moment ago.
            let _ = planner.apply(wall, Input::End(id));
        }
        planner.publish(wall, wall + known.lease_ns, Reason::Settings);
        let state = planner.state();
        // The state must also be sound after the jobs have ended.
        Planner::new(state.clone()).map_err(cannot)?;
        // If only the next job's number has risen, the state need not be written.
        let is_same = before.is_some_and(|before| State { next_order, ..before } == *state);
        Ok((!is_same).then(|| state.clone()))
    }

    /// Another node may have seen a newer state.
    fn is_newest(&self, kept: Option<&State>) -> Result<(), CannotRepair> {
        let own = kept.map_or(0, |state| state.generation);
        let newer = self.found.acks.iter().find(|(name, ack)| ack.generation > own && **name != self.known.node);
        match newer {
            Some((name, ack)) if self.found.nodes.contains_key(name) => Err(CannotRepair {
                why: format!("node {name} knows plan {}, and node {} plan {own}", ack.generation, self.known.node),
                hint: format!("Run `cosched cluster repair` on node {name}."),
            }),
            _ => Ok(()),
        }
    }

    /// The jobs of a state that are over, or whose records are lost.
    fn without_records(&mut self, state: &State) -> Vec<JobId> {
        let (known, found) = (self.known, self.found);
        let over = |id: &JobId| found.jobs.get(&id.0).is_none_or(|job| job.end.is_some());
        let ended: Vec<JobId> = state.jobs.keys().copied().filter(over).collect();
        for id in ended.iter().filter(|id| !found.jobs.contains_key(&id.0)) {
            let key = known.keys.job(id.0);
            if !self.touched.contains(&key) {
                self.say(
                    &key,
                    format_args!("running processes of job {id} continue, scheduled by Linux, without a plan"),
                );
            }
        }
        ended
    }

    /// Jobs that are newer than the known state: their nodes are unknown.
    fn unknown_to(&mut self, state: &State) {
        let (known, found) = (self.known, self.found);
        let open = found.jobs.values().filter(|job| job.end.is_none() && !state.jobs.contains_key(&JobId(job.id)));
        for id in open.map(|job| job.id) {
            let key = known.keys.job(id);
            self.says.push(format!(
                "{key}: it is not in the state; it is deleted: running processes of job {id} continue, scheduled by \
                 Linux, without a plan"
            ));
            self.delete(key);
        }
        let kept =
            |id: &u64| found.jobs.get(id).is_some_and(|job| job.end.is_some()) || state.jobs.contains_key(&JobId(*id));
        for (key, _) in found.submitted.iter().filter(|(_, id)| !kept(id)) {
            self.delete(key.clone());
        }
    }

    fn finish(self, state: Option<State>) -> Repair {
        let key = self.known.keys.state();
        let is_as_read = || vec![Compare::unchanged(key.clone(), self.found.state_revision)];
        let mut all = self.keys;
        all.extend(state.map(|state| Do::Put { key: key.clone(), value: encode(&state), lease: None }));
        let txn = |then: &[Do]| Op::Txn(Txn { compare: is_as_read(), then: then.to_vec(), or_else: vec![] });
        Repair { says: self.says, ops: all.chunks(TXN_OPS_MAX - 1).map(txn).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Clock;

    fn node(id: u32) -> Node {
        Node {
            id,
            instance: 1,
            home: String::new(),
            boot: "b".to_owned(),
            cpus: 1,
            memory_bytes: 1,
            disk_bytes: 0,
            clock: Clock { synchronised: true, error_ns: 0 },
            version: String::new(),
            jobs_known: 0,
        }
    }

    /// Names `a` and `b` with number 1, these nodes' records, and the name in the number's key.
    fn twins(records: &[(&str, u32)], named: Option<&str>) -> Found {
        let name =
            |name: &str| (name.to_owned(), Name { id: 1, boot: "b".to_owned(), home: None, left_ns: None, tree: None });
        Found {
            names: [name("a"), name("b")].into(),
            nodes: records.iter().map(|(name, id)| ((*name).to_owned(), node(*id))).collect(),
            ids: named.map(|name| (1, name.to_owned())).into_iter().collect(),
            ..Found::default()
        }
    }

    #[test]
    fn a_number_that_two_have_goes_to_whom_most_is_known_of() {
        let keys = Keys::new("hall").unwrap();
        for (records, named, left) in [
            // A live node whose record has the number, whatever the number's key says.
            (&[("a", 1), ("b", 2)][..], Some("b"), &["a"][..]),
            (&[("b", 1)], Some("a"), &["b"]),
            // The other node's record has another number.
            (&[("a", 2)], None, &["b"]),
            (&[], Some("b"), &["b"]),
            (&[("a", 1), ("b", 1)], Some("b"), &["b"]),
            (&[("a", 2), ("b", 3)], None, &[]),
        ] {
            let mut found = twins(records, named);
            found.drop_twins(&keys).unwrap();
            assert_eq!(found.names.keys().collect::<Vec<_>>(), left, "{records:?} {named:?}");
            assert_eq!(found.damaged.len(), 2 - left.len());
        }
        for named in [None, Some("c")] {
            let refused = twins(&[], named).drop_twins(&keys).unwrap_err();
            assert!(refused.why.contains("it is unknown which of them owns it"), "{}", refused.why);
        }
    }

    /// The name of one node is lost, and another node has its number.
    #[test]
    fn who_has_lost_its_name_keeps_its_number() {
        let keys = Keys::new("hall").unwrap();
        let mut found = twins(&[("c", 1), ("a", 2)], None);
        found.names.remove("b");
        found.drop_twins(&keys).unwrap();
        assert!(found.names.is_empty() && found.nodes.contains_key("c"), "{:?}", found.damaged);
    }

    #[test]
    fn of_two_nodes_without_names_that_say_one_number_one_gets_it() {
        let known = Known {
            keys: Keys::new("hall").unwrap(),
            node: "b".to_owned(),
            tree: None,
            begun: None,
            state: None,
            initial: Config::default(),
            jobs_known: 0,
            version: String::new(),
            lease_ns: 0,
        };
        let nodes = ["b", "c"].map(|name| (name.to_owned(), node(1))).into();
        let found = Found { nodes, ..Found::default() };
        let (says, keys, touched) = (Vec::new(), Vec::new(), BTreeSet::new());
        let mut work = Work { known: &known, found: &found, made_ns: 5, says, keys, touched };
        work.names();
        let put = |op: &Do| matches!(op, Do::Put { key, .. } if key.contains("/names/"));
        assert_eq!(work.keys.iter().filter(|op| put(op)).count(), 1, "{:?}", work.says);
    }
}
