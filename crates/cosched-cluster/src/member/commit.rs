//! Planning: acknowledgements are read, the next state is made, and it is committed if no other member has committed.

use super::Member;
use super::apply::Batch;
use super::due::Stage;
use super::replica::At;
use super::session::Flight;
use super::types::Notice;
use crate::store::{Compare, Do, Done, Op, Range, Revision, TXN_BYTES_MAX, TXN_OPS_MAX, Txn};
use crate::wire::{Ack, Job, Node, Reply, decode, encode};
use cosched_core::cluster::{self, Capacity, Input, Planner, State, holds_from};
use cosched_core::{Flaw, NodeId, Reason, Time};
use std::collections::BTreeMap;

/// The wait before acknowledgements are read again while some are missing, and before a commit is repeated after a conflict.
const AGAIN_NS: u64 = 50_000_000;

/// How often the wait after a conflict doubles while the watch has not reported the conflicting change: to 1.6 s.
const CONFLICT_DOUBLINGS_MAX: u32 = 5;

/// The wait before a state that does not fit into the store is tried again.
const TOO_LARGE_NS: u64 = 5_000_000_000;

/// The wait before planning is tried again after a plan that contradicted itself.
const UNSOUND_NS: u64 = 5_000_000_000;

/// Reserved for the frame of a transaction's request, in bytes.
const FRAME_BYTES: usize = 16 << 10;

/// A commit in progress.
#[derive(Debug)]
pub(super) struct Pending {
    planner: Planner,
    puts_state: bool,
    /// If the plan waits for leases: since when plans have done so.
    waits_since: Option<Time>,
    lost: Vec<(String, bool)>,
    requests: usize,
    submits: bool,
}

/// A node's capacity as the planner counts it.
pub(super) fn capacity(node: &Node) -> Capacity {
    Capacity { cpus: node.cpus, memory_bytes: node.memory_bytes, disk_bytes: node.disk_bytes }
}

impl Member {
    /// Begins planning, because it is this member's turn: reads the acknowledgements.
    pub(super) fn read_acks(&mut self) {
        self.work.stage = Stage::Busy;
        let acks = Do::Get(self.settings.keys.acks());
        let compare = vec![Compare::unchanged(self.settings.keys.state(), self.replica.state_revision())];
        let newest = self.replica.generation();
        self.send(Flight::Acks(newest), Op::Txn(Txn { compare, then: vec![acks.clone()], or_else: vec![acks] }));
    }

    /// `newest` is the newest generation in the store, if it is known.
    pub(super) fn acks_read(&mut self, newest: Option<u64>, done: Vec<Done>) {
        self.work.stage = Stage::Resting;
        let mut acks = self.acks_of(done);
        // A node that has not heard yet of a restored copy of the store may have acknowledged plans that no longer exist.
        for ack in acks.values_mut() {
            ack.generation = newest.map_or(ack.generation, |newest| ack.generation.min(newest));
        }
        self.hear_of(acks.values().map(|ack| ack.generation).max().unwrap_or(0));
        let members = self.members(&acks);
        let newest = self.replica.generation();
        let waits = members.iter().any(|member| member.acknowledged < newest);
        if waits && self.now.steady - self.work.state_seen < self.settings.ack_wait_ns {
            self.work.hold_until = self.now.steady + AGAIN_NS;
            return;
        }
        let holds = holds_from(self.now.wall, newest, &members, &self.settings.lead);
        self.commit(&acks, holds, false);
    }

    /// The nodes' acknowledgements, by name.
    pub(super) fn acks_of(&self, done: Vec<Done>) -> BTreeMap<String, Ack> {
        let entries = done.into_iter().flat_map(Done::entries);
        let ack = |entry: crate::store::Entry| {
            Some((self.settings.keys.acks_name(&entry.key)?.to_owned(), decode(&entry.value).ok()?))
        };
        entries.filter_map(ack).collect()
    }

    /// The live nodes that may be running slots. Any of them may have renewed its lease a moment ago, and may do so until
    /// the plan is committed.
    fn members(&self, acks: &BTreeMap<String, Ack>) -> Vec<cluster::Member> {
        let lease_until = self.now.wall + self.settings.ttl_ns() + self.settings.lead.ahead_ns;
        let planned = |id: NodeId| self.replica.state.as_ref().is_some_and(|state| state.value.nodes.contains_key(&id));
        let live = self.replica.nodes.iter().map(|(name, live)| (name, &live.value.node));
        live.filter(|(_, node)| planned(NodeId(node.id)) && node.clock.synchronised)
            .map(|(name, node)| cluster::Member {
                node: NodeId(node.id),
                lease_until,
                acknowledged: acks.get(name).map_or(0, |ack| ack.generation),
            })
            .collect()
    }

    /// The planner of the present state, or of a new cluster.
    fn planner(&mut self) -> Option<Planner> {
        self.ensure_planner();
        let known = self.jobs_known();
        match (&self.replica.state, self.work.planner.take()) {
            (Some(_), Some(planner)) if planner.value.state().next_order < known => {
                Planner::new(State { next_order: known, ..planner.value.state().clone() }).ok()
            }
            (Some(_), planner) => planner.map(|planner| planner.value),
            (None, _) => {
                let config = self.settings.initial.clone();
                Planner::new(State { config, next_order: known, ..State::default() }).ok()
            }
        }
    }

    /// Since when plans have waited for leases, if the plan that takes effect at `holds_from` waits; `waited`: the plan before it did. It also
    /// counts as waiting if it is late only because of that plan, which another member may have made.
    fn waits_since(&self, waited: bool, holds_from: Time) -> Option<Time> {
        self.is_late(holds_from).then_some(if waited { self.work.waits_since } else { self.now.steady })
    }

    fn commit(&mut self, acks: &BTreeMap<String, Ack>, holds: Time, refuse_submits: bool) {
        if self.replica.is_ahead() {
            // The state arrived while acknowledgements were read.
            self.work.stage = Stage::Resting;
            return;
        }
        let hastens = self.hastens_now();
        let Some(planner) = self.planner() else { return };
        let generation = planner.state().generation;
        let waited = self.is_late(planner.plan().holds_from());
        let lost = self.lost_nodes();
        let rebalances = self.rebalance_at().is_some_and(|at| at <= self.now.steady);
        if rebalances {
            self.work.rebalanced = self.now.steady;
        }
        let mut batch = Batch::new(&self.replica, planner, self.now.wall, refuse_submits || self.work.refuse_submits);
        batch.nodes(&lost);
        batch.loads(acks, rebalances);
        if let Some(period) = self.work.period.filter(|_| self.period_is_due()) {
            batch.input(Input::Period(period));
        }
        batch.requests();
        batch.finish();
        batch.planner.handle_timeout(self.now.wall, holds);
        let reason = batch.reason.unwrap_or(Reason::Settings);
        match hastens && !self.is_late(holds) && batch.planner.state().generation == generation {
            true => batch.planner.overtake(self.now.wall, holds, reason),
            false => batch.planner.publish(self.now.wall, holds, reason),
        }
        if let Some(flaw) = flaw(&mut batch.planner) {
            return self.does_not_hold(flaw);
        }
        let waits_since = self.waits_since(waited, batch.planner.plan().holds_from());

        let puts_state = self.replica.state.as_ref().is_none_or(|before| before.value != *batch.planner.state());
        let Batch { planner, jobs, answers, taken, submits, names, .. } = batch;
        let mut txn = Txn::default();
        self.put_state(&mut txn, &planner, puts_state);
        self.put_jobs(&mut txn, jobs);
        for (name, written) in names {
            txn.then.push(Do::Put { key: self.settings.keys.name(&name), value: encode(&written), lease: None });
        }
        for ((revision, id), reply) in taken.iter().zip(answers) {
            txn.compare.push(Compare { is: *revision, ..Compare::absent(self.settings.keys.request(id)) });
            txn.then.push(Do::Delete(Range::one(self.settings.keys.request(id))));
            if let Some(answer) = reply {
                let value = encode(&Reply { at_ns: self.now.wall.0, answer });
                txn.then.push(Do::Put { key: self.settings.keys.reply(id), value, lease: None });
            }
        }
        self.forget_old(&mut txn);
        if txn.then.is_empty() {
            // Nothing has changed; what follows from the time of day is checked again later.
            let revision = self.replica.state_revision();
            self.work.planner = Some(At { value: planner, revision });
            self.work.hold_until = self.now.steady + AGAIN_NS;
            return;
        }
        if bytes(&txn) > TXN_BYTES_MAX - FRAME_BYTES {
            if !submits {
                return self.does_not_fit(bytes(&txn));
            }
            return self.commit(acks, holds, true);
        }
        let silent = |id: &NodeId| planner.state().silent.contains_key(id);
        let lost = lost.iter().map(|id| (self.replica.name_of(*id).to_owned(), silent(id))).collect();
        self.work.pending = Some(Pending { planner, puts_state, waits_since, lost, requests: taken.len(), submits });
        self.work.stage = Stage::Busy;
        self.send(Flight::Commit, Op::Txn(txn));
    }

    /// The state's revision is a condition of the commit even if the state does not change.
    fn put_state(&mut self, txn: &mut Txn, planner: &Planner, puts: bool) {
        let key = self.settings.keys.state();
        txn.compare.push(Compare::unchanged(key.clone(), self.replica.state_revision()));
        if puts {
            let value = encode(planner.state());
            self.replica.committed = Some((value.clone(), planner.state().clone()));
            txn.then.push(Do::Put { key, value, lease: None });
        }
        self.put_mark(txn);
    }

    /// Writes the mark that the cluster has begun with its first state, so that it does not begin again when that state is lost.
    fn put_mark(&self, txn: &mut Txn) {
        if let Some(Ok(tree)) = self.replica.tree.as_ref().filter(|_| !self.replica.is_marked()) {
            txn.then.push(Do::Put { key: self.settings.keys.begun(), value: encode(tree), lease: None });
        }
    }

    fn put_jobs(&self, txn: &mut Txn, jobs: BTreeMap<u64, Job>) {
        for (id, job) in jobs {
            let key = self.settings.keys.job(id);
            let known = self.replica.jobs.get(&id);
            if known.is_some_and(|known| known.value == job) {
                continue;
            }
            txn.compare.push(Compare::unchanged(key.clone(), known.map_or(0, |known| known.revision)));
            txn.then.push(Do::Put { key, value: encode(&job), lease: None });
        }
    }

    /// Deletes jobs that ended long ago and unread replies, as far as there is room in the transaction.
    fn forget_old(&self, txn: &mut Txn) {
        let settings = &self.settings;
        let wall = self.now.wall;
        let jobs = self.replica.ended.old(settings, wall).map(|id| settings.keys.job(id));
        let unread = self.replica.replies.iter().filter(|(_, r)| Time(r.at_ns) + settings.keep_replies_ns <= wall);
        let replies = unread.map(|(id, _)| settings.keys.reply(id));
        let room = TXN_OPS_MAX.saturating_sub(txn.then.len());
        let gone: Vec<String> = jobs.chain(replies).take(room).collect();
        txn.then.extend(gone.into_iter().map(|key| Do::Delete(Range::one(key))));
    }

    /// The previous plan stays the newest, and requests wait. The planner is rebuilt from the stored state.
    fn does_not_hold(&mut self, flaw: Flaw) {
        self.work.stage = Stage::Resting;
        self.work.hold_until = self.now.steady + UNSOUND_NS;
        self.ensure_planner();
        self.say(Notice::Unsound(format!(
            "the next plan: {flaw}. The last one stays in force, and requests are queued"
        )));
    }

    fn does_not_fit(&mut self, bytes: usize) {
        self.work.hold_until = self.now.steady + TOO_LARGE_NS;
        self.ensure_planner();
        self.say(Notice::Unusable(format!(
            "the next state has {bytes} bytes, and the store accepts {TXN_BYTES_MAX} at a time: end waiting jobs"
        )));
    }

    /// The store accepts less in one transaction than usual.
    pub(super) fn commit_too_large(&mut self) {
        self.work.stage = Stage::Resting;
        let submits = self.work.pending.take().is_some_and(|pending| pending.submits);
        self.work.refuse_submits = submits;
        if submits {
            self.work.hold_until = self.now.steady + AGAIN_NS;
            self.ensure_planner();
        } else {
            self.does_not_fit(TXN_BYTES_MAX);
        }
    }

    pub(super) fn committed(&mut self, revision: Revision, succeeded: bool) {
        self.work.stage = Stage::Resting;
        self.work.refuse_submits = false;
        let Some(pending) = self.work.pending.take() else { return };
        if !succeeded {
            self.work.hold_until = self.now.steady + (AGAIN_NS << self.work.conflicts.min(CONFLICT_DOUBLINGS_MAX));
            self.work.conflicts += 1;
            self.ensure_planner();
            return self.say(Notice::Conflict);
        }
        let generation = pending.planner.state().generation;
        if let Some(since) = pending.waits_since {
            self.work.waits_since = since;
            self.work.waits = Some((generation, self.now));
        }
        if pending.puts_state {
            self.work.planner = Some(At { value: pending.planner, revision });
        }
        if self.replica.revision < revision {
            self.work.stage = Stage::Told(revision);
        }
        for (name, silent) in pending.lost {
            self.say(if silent { Notice::NodeSilent(name) } else { Notice::NodeLeft(name) });
        }
        self.say(Notice::Planned { generation, requests: pending.requests });
    }
}

/// The flaw of the new plan, if it has one. All other actions follow from the state, too.
fn flaw(planner: &mut Planner) -> Option<Flaw> {
    let actions: Vec<cluster::Action> = std::iter::from_fn(|| planner.poll_action()).collect();
    actions.into_iter().find_map(|action| match action {
        cluster::Action::Unsound(flaw) => Some(flaw),
        _ => None,
    })
}

fn bytes(txn: &Txn) -> usize {
    let op = |op: &Do| match op {
        Do::Put { key, value, .. } => key.len() + value.len() + 16,
        Do::Delete(range) | Do::Get(range) => range.first.len() + 16,
    };
    let compares: usize = txn.compare.iter().map(|compare| compare.key.len() + 16).sum();
    txn.then.iter().map(op).sum::<usize>() + compares
}
