//! What operators do to the store by hand: they delete or overwrite a key, and then repair the cluster.

use super::{Event, S, World};
use cosched_cluster::repair::{Repair, repair};
use cosched_cluster::store::{Do, Entry, Op, OpDone, Range, Txn};
use cosched_core::Time;
use cosched_core::cluster::State;

/// How often an operator checks whether the repair is possible.
const LOOK_NS: u64 = 3 * S;

/// The kinds of keys that are damaged. Records of jobs are left alone: a deleted record is a lost job.
const HIT: [&str; 6] = ["state", "format", "begun", "nodes", "names", "ids"];

impl World {
    /// A key is deleted or damaged by hand, and repaired after a while.
    pub(super) fn slips(&mut self, ns: u64) {
        let all = self.store.read(&Range::prefix(self.keys.prefix()));
        let short = |entry: &Entry| entry.key.strip_prefix(self.keys.prefix()).unwrap_or_default().to_owned();
        let hit = |key: &String| HIT.contains(&key.split('/').next().unwrap_or_default());
        let mut keys: Vec<String> = all.iter().map(short).filter(hit).collect();
        // A store with neither of these is a new one to a node that does not remember it, by decision 0032.
        let marks = ["state", "begun"];
        if !marks.iter().all(|mark| keys.iter().any(|key| key == mark)) {
            keys.retain(|key| !marks.contains(&key.as_str()));
        }
        if keys.is_empty() {
            return;
        }
        let key = keys[self.dice.below(keys.len() as u64) as usize].clone();
        let deletes = self.dice.one_in(2);
        self.writes_by_hand(&key, deletes);
        self.push(self.now + ns, Event::Repairs);
    }

    /// Deletes or damages a key, which is named without the common prefix.
    pub fn writes_by_hand(&mut self, key: &str, deletes: bool) {
        self.puts_by_hand(key, (!deletes).then(|| b"{\"damaged".to_vec()));
    }

    /// Overwrites the key `to` with the value of `from`.
    pub fn copies_by_hand(&mut self, from: &str, to: &str) {
        let from = format!("{}{from}", self.keys.prefix());
        let value = self.store.read(&Range::one(from)).pop().map(|entry| entry.value);
        self.puts_by_hand(to, value);
    }

    fn puts_by_hand(&mut self, key: &str, value: Option<Vec<u8>>) {
        self.note(|| format!("store: an operator {} {key}", if value.is_none() { "deletes" } else { "damages" }));
        let key = format!("{}{key}", self.keys.prefix());
        let change = match value {
            None => Do::Delete(Range::one(key)),
            Some(value) => Do::Put { key, value, lease: None },
        };
        let txn = Txn { then: vec![change], ..Txn::default() };
        let _ = self.store.call(Time(self.now), Op::Txn(txn));
        self.look_at_store();
    }

    /// What `cosched cluster repair` would do on a node now; `None` while the repair cannot be determined.
    pub fn repair_by(&self, node: usize) -> Option<Repair> {
        let known = self.hosts[node].member()?.known();
        let entries = self.store.read(&Range::prefix(self.keys.prefix()));
        repair(&known, self.moment(node).wall, &entries).ok()
    }

    /// An operator repairs the cluster on the node that knows the newest state; once the world is calm, no better node can
    /// come, so the first is taken.
    pub(super) fn repairs(&mut self) {
        let up = self.now >= self.store_stops_until && self.now >= self.store_away_until;
        let generation = |node: usize| Some(self.hosts[node].member()?.known().state?.generation);
        let newest = self.state.as_ref().map(|state| state.generation);
        let is_best = |node: usize, repair: &Repair| {
            generation(node) >= newest && !repair.says.iter().any(|line| line.contains("from scratch"))
        };
        let mut nodes: Vec<usize> = (0..self.hosts.len()).filter(|_| up).collect();
        nodes.sort_by_key(|node| std::cmp::Reverse(generation(*node)));
        let mut repairs = nodes.into_iter().filter_map(|node| Some((node, self.repair_by(node)?)));
        match repairs.find(|(node, repair)| self.calm || is_best(*node, repair)) {
            Some((_, repair)) => self.carry_out(&repair),
            None => self.push(self.now + LOOK_NS, Event::Repairs),
        }
    }

    /// An operator carries out a repair.
    pub fn carry_out(&mut self, repair: &Repair) {
        self.note(|| format!("store: an operator repairs it: {:?}", repair.says));
        let mut store = self.store.clone();
        for op in &repair.ops {
            let done = store.call(Time(self.now), op.clone());
            assert!(matches!(done, Ok(OpDone::Txn { succeeded: true, .. })), "a repair has no effect: {done:?}");
        }
        let (generation, from_slot) = self.state.as_ref().map_or((0, 0), |state| (state.generation, state.from_slot));
        let old = std::mem::replace(&mut self.store, store);
        let continues =
            |state: State| (generation..=generation + 1).contains(&state.generation) && state.from_slot >= from_slot;
        if self.state().is_none_or(continues) {
            return self.look_at_store();
        }
        // No node was left that knew the newest state, or could tell which cluster or which of its lives it was.
        let store = std::mem::replace(&mut self.store, old);
        self.begins_another_life(store);
        (0..self.hosts.len()).for_each(|node| self.loses_watches(node));
    }
}
