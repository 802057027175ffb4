//! Members at one store, driven by hand: each test decides what is answered, and when.

mod commit;
mod session;

use super::*;
use crate::keys::Keys;
use crate::store::{MemoryStore, Revision};
use crate::wire::{Class, JobAsk, OnNodeLoss, WantAsk};

pub(super) const S: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;
/// By how much the wall clocks are ahead of the monotonic ones.
const EPOCH: u64 = 1_000 * S;

pub(super) const ROOT: By = By { uid: 0, gid: 0, admin: true };
pub(super) const USER: By = By { uid: 1000, gid: 100, admin: false };

/// A job of this number of CPUs on any nodes.
pub(crate) fn job(name: &str, cpus: u32) -> JobAsk {
    JobAsk {
        name: name.to_owned(),
        command: vec!["x".to_owned()],
        cwd: None,
        environment: Vec::new(),
        log_path: None,
        class: Class::Batch,
        policy: None,
        share_permille: None,
        waiting: None,
        want: WantAsk::Total { cpus, memory_per_cpu_bytes: 0, disk_bytes: 0 },
        queue: None,
        groups: Vec::new(),
        on_node_loss: OnNodeLoss::Kill,
        lead: Some("n0".to_owned()),
        main: None,
        once: false,
        terms: Default::default(),
    }
}

pub(super) fn submit(name: &str, cpus: u32) -> Ask {
    Ask::Submit(Box::new(job(name, cpus)))
}

/// A member and its host.
pub(super) struct Seat {
    pub(super) member: Member,
    watches: BTreeMap<OpId, (Range, Revision)>,
    /// Operations for which this is true are held until `let_through`.
    pub(super) waits: fn(&Op) -> bool,
    held: Vec<(OpId, Op)>,
    /// Whether its watches report nothing.
    pub(super) is_deaf: bool,
    /// The operations that it sent to the store.
    pub(super) ops: Vec<Op>,
    /// All its other actions.
    pub(super) said: Vec<Action>,
}

/// A store, members, and the time.
pub(super) struct Lab {
    pub(super) store: MemoryStore,
    pub(super) now: Time,
    pub(super) seats: Vec<Seat>,
}

impl Lab {
    /// This number of members that have joined, with four CPUs each; n0 plans.
    pub(super) fn new(nodes: usize) -> Lab {
        let mut lab = Lab { store: MemoryStore::new(), now: Time(S), seats: Vec::new() };
        for node in 0..nodes {
            lab.sit(settings(&format!("n{node}"), node as u64 + 1));
            lab.pass(100 * MS);
        }
        lab.pass(3 * S);
        assert!(lab.seats.iter().all(|seat| seat.member.is_joined()));
        lab
    }

    pub(super) fn moment(&self) -> Moment {
        Moment { steady: self.now, wall: self.now + EPOCH }
    }

    pub(super) fn sit(&mut self, settings: Settings) {
        let member = Member::new(self.moment(), settings, &[]);
        let (watches, held, ops, said) = (BTreeMap::new(), Vec::new(), Vec::new(), Vec::new());
        self.seats.push(Seat { member, watches, waits: |_| false, held, is_deaf: false, ops, said });
    }

    /// Does everything that can happen now.
    pub(super) fn settle(&mut self) {
        let now = self.moment();
        for _ in 0..1000 {
            let mut quiet = true;
            for seat in &mut self.seats {
                while let Some(action) = seat.member.poll_action() {
                    quiet = false;
                    match action {
                        Action::Store(id, op) => {
                            seat.ops.push(op.clone());
                            seat.held.push((id, op));
                        }
                        Action::Drop(id) => drop(seat.watches.remove(&id)),
                        other => seat.said.push(other),
                    }
                }
                let asked = std::mem::take(&mut seat.held).into_iter();
                let (held, goes): (Vec<_>, Vec<_>) = asked.partition(|(_, op)| (seat.waits)(op));
                seat.held = held;
                for (id, op) in goes {
                    quiet = false;
                    let done = self.store.call(self.now, op.clone());
                    if let (Op::Watch { range, from }, Ok(_)) = (op, &done) {
                        seat.watches.insert(id, (range, from));
                    }
                    seat.member.handle_done(now, id, done);
                }
                for (id, (range, next)) in seat.watches.iter_mut().filter(|_| !seat.is_deaf) {
                    let news = self.store.news(range, *next).unwrap();
                    *next = news.revision + 1;
                    if !news.events.is_empty() {
                        quiet = false;
                        seat.member.handle_news(now, *id, news);
                    }
                }
            }
            if quiet {
                return;
            }
        }
        panic!("it never settles");
    }

    /// Time passes.
    pub(super) fn pass(&mut self, ns: u64) {
        let until = self.now + ns;
        while self.now < until {
            let next = self.seats.iter().filter_map(|seat| seat.member.poll_timeout()).min().unwrap_or(until);
            self.now = next.max(self.now + MS).min(until);
            self.store.expire(self.now);
            let now = self.moment();
            self.seats.iter_mut().for_each(|seat| seat.member.handle_timeout(now));
            self.settle();
        }
    }

    /// A user makes a request; returns the answer, if there is one within a second.
    pub(super) fn asks(&mut self, node: usize, by: By, ask: Ask) -> Option<crate::wire::Answer> {
        let now = self.moment();
        let id = self.seats[node].member.ask(now, by, ask).unwrap();
        self.pass(S);
        self.seats[node].said.iter().find_map(|action| match action {
            Action::Reply(of, answer) if *of == id => Some(answer.clone()),
            _ => None,
        })
    }

    /// Time passes until a member has sent an operation of this kind, which is held.
    pub(super) fn pass_until(&mut self, node: usize, is: fn(&Op) -> bool) {
        self.seats[node].waits = is;
        for _ in 0..10_000 {
            if !self.seats[node].held.is_empty() {
                return;
            }
            self.pass(MS);
        }
        panic!("it never asks");
    }

    /// The store no longer answers this member.
    pub(super) fn hangs_for(&mut self, node: usize) {
        self.seats[node].waits = |_| true;
    }

    /// The store carries out the held operations, and its answers are lost.
    pub(super) fn does_unseen(&mut self, node: usize) {
        for (_, op) in std::mem::take(&mut self.seats[node].held) {
            let _ = self.store.call(self.now, op);
        }
    }

    /// The store answers again.
    pub(super) fn let_through(&mut self, node: usize) {
        self.seats[node].waits = |_| false;
        self.settle();
    }
}

pub(super) fn settings(name: &str, instance: u64) -> Settings {
    let capacity = Capacity { cpus: 4, memory_bytes: 1 << 30, disk_bytes: 1 << 30 };
    Settings { dead: Some([].into()), ..Settings::new(Keys::new("t").unwrap(), name, instance, capacity) }
}

pub(super) fn txns(seat: &Seat) -> impl Iterator<Item = &Txn> {
    seat.ops.iter().filter_map(|op| match op {
        Op::Txn(txn) => Some(txn),
        _ => None,
    })
}

/// Whether it puts a key with this suffix.
pub(super) fn puts(txn: &Txn, end: &str) -> bool {
    txn.then.iter().any(|op| matches!(op, Do::Put { key, .. } if key.ends_with(end)))
}
