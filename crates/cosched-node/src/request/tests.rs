use super::*;
use crate::tests::{LEAD, USER, ask, at, job, node, with};
use crate::types::{Action, Input, Why};
use crate::{FoundPart, PartOf};
use cosched_cluster::store::{Do, MemoryStore, Op, Range, StoreError, Txn};
use cosched_cluster::wire::{Class, Decided, JobAsk, NodeAsk, WantAsk};
use cosched_cluster::{Keys, OpId, Settings};
use cosched_core::Topology;
use cosched_core::cluster::{Capacity, LocalConfig, LocalJob};
use std::sync::Arc;

mod kill;

const ID: JobId = JobId(7);
const S: u64 = 1_000_000_000;
const ADMIN: By = By { uid: 0, gid: 0, admin: true };
const OTHER: By = By { uid: 2, gid: 2, admin: false };
const TERM: KillHow = KillHow { signal: 15, grace_ms: None };

/// A single machine with its own store, which may refuse everything.
struct Lab {
    node: Node,
    store: MemoryStore,
    watches: BTreeMap<OpId, (Range, u64)>,
    is_full: bool,
    /// Another write fails at the moment of a commit.
    fails_beside: bool,
    ns: u64,
    last: u64,
}

impl Lab {
    fn new() -> Lab {
        let keys = Keys::new("test").unwrap();
        let capacity = Capacity { cpus: 4, memory_bytes: 1 << 30, disk_bytes: 0 };
        let settings = Settings { is_shared: false, ..Settings::new(keys, "n", 1, capacity) };
        let local = LocalConfig { is_single: true, ..LocalConfig::new(4) };
        let node = Node::new(at(0), settings, local, 1 << 30, &[]);
        let mut lab = Lab {
            node,
            store: MemoryStore::new(),
            watches: BTreeMap::new(),
            is_full: false,
            fails_beside: false,
            ns: 0,
            last: 0,
        };
        lab.settle();
        assert!(lab.node.has_read_store() && !lab.node.is_out_of_touch());
        lab
    }

    /// Lets time pass; returns the host's actions, except for the store's.
    fn run(&mut self, ns: u64) -> Vec<Action> {
        let (mut said, end) = (Vec::new(), self.ns + ns);
        while self.ns < end {
            self.ns = end.min(self.ns + S / 2);
            self.node.handle(at(self.ns), Input::Timeout);
            said.extend(self.settle());
        }
        said
    }

    fn settle(&mut self) -> Vec<Action> {
        let mut said = Vec::new();
        while let Some(action) = self.node.poll_action() {
            match action {
                Action::Store(op, what) => self.call(op, what),
                Action::Drop(op) => drop(self.watches.remove(&op)),
                Action::Withdraw { ask, keys: (request, reply), why } => {
                    if self.store.read(&Range::one(reply)).is_empty() {
                        let then = vec![Do::Delete(Range::one(request))];
                        self.store.call(Time(0), Op::Txn(Txn { then, ..Txn::default() })).unwrap();
                        self.node.handle(at(self.ns), Input::Withdrawn(ask, why));
                    }
                }
                Action::Say(_)
                | Action::NoSlots(_)
                | Action::Plan
                | Action::Uses(_)
                | Action::Keep(_)
                | Action::Sample(_)
                | Action::CountBlocks(_) => (),
                other => said.push(other),
            }
        }
        said.extend(
            std::iter::from_fn(|| self.node.poll_answer()).map(|(id, outcome)| Action::Answer(id, Ok(outcome))),
        );
        said
    }

    fn call(&mut self, op: OpId, what: Op) {
        let now = at(self.ns);
        if let Op::Watch { range, from } = &what {
            self.watches.insert(op, (range.clone(), *from));
        }
        let full = || Err(StoreError::Unavailable("no space".to_owned()));
        let fails_beside = self.fails_beside && matches!(&what, Op::Txn(txn) if txn.then.len() > 2);
        let done = match self.is_full {
            true => full(),
            false => self.store.call(now.wall, what),
        };
        if fails_beside {
            self.node.done(now, OpId(u64::MAX), full());
        }
        self.node.done(now, op, done);
        for (watch, (range, from)) in &mut self.watches {
            let news = self.store.news(range, *from).unwrap();
            if news.revision >= *from && !news.events.is_empty() {
                *from = news.revision + 1;
                self.node.tell(now, |member, now| member.handle_news(now, *watch, news));
            }
        }
    }

    fn ask(&mut self, by: By, request: Request) -> Vec<Action> {
        self.last += 1;
        self.node.request(at(self.ns), by, RequestId(self.last), request);
        self.settle()
    }

    /// A job of the user whose process has entered it.
    fn running(&mut self) -> JobId {
        let begun = self.ask(USER, submit(true));
        let Some(Action::Begin { job, launcher: Some(RequestId(1)), .. }) = begun.first() else { panic!("{begun:?}") };
        let id = JobId(job.id);
        self.node.handle(at(self.ns), Input::Began(id, crate::Began { populated: true, comes: true }));
        assert_eq!(self.settle(), [Action::Release(RequestId(1)), answer(1, Outcome::Job(id))]);
        id
    }
}

fn submit(has_process: bool) -> Request {
    Request::Submit { owner: USER, job: Box::new(ask()), has_process }
}

fn answer(id: u64, outcome: Outcome) -> Action {
    Action::Answer(RequestId(id), Ok(outcome))
}

fn refused(id: u64, why: Refusal) -> Vec<Action> {
    vec![Action::Release(RequestId(id)), Action::Answer(RequestId(id), Err(why))]
}

fn signal(job: JobId, signal: i32, asked: u64) -> Action {
    Action::Signal { job, signal, why: Why::User(1), asked: Some(RequestId(asked)) }
}

#[test]
fn a_change_is_answered_when_it_is_done_and_nobody_elses_is() {
    let mut lab = Lab::new();
    let id = lab.running();
    assert_eq!(lab.ask(OTHER, Request::Suspend(id)), refused(2, Refusal::NotYours { job: id, owner: 1, by: 2 }));
    assert_eq!(lab.ask(ADMIN, Request::Suspend(id)), [answer(3, Outcome::Job(id))]);
    assert!(lab.node.part(id).unwrap().1.suspended);
    assert_eq!(lab.node.part(id).unwrap().0.decided.suspended_by, Some(0), "the next daemon has to know");
    let resumed = lab.ask(USER, Request::Resume(id));
    assert!(matches!(resumed[..], [_, Action::Answer(_, Err(Refusal::Decided(..)))]), "{resumed:?}");
    assert_eq!(lab.ask(ADMIN, Request::Resume(id)), [answer(5, Outcome::Job(id))]);
    let raise = lab.ask(USER, Request::Class(id, Class::Interactive));
    assert!(matches!(raise[..], [_, Action::Answer(_, Err(Refusal::StaysInClass { .. }))]), "{raise:?}");
    assert_eq!(lab.ask(USER, Request::Class(id, Class::Standby)), [answer(7, Outcome::Job(id))]);
    assert_eq!(lab.ask(USER, Request::Suspend(JobId(99))), refused(8, Refusal::NoSuchJob(JobId(99))));
    let change = |ask| Request::Change(ForAll::Policy, vec![ask]);
    let refused = lab.ask(USER, change(Ask::Ceiling { permille: 500 }));
    assert!(matches!(refused[..], [_, Action::Answer(_, Err(Refusal::ForAll { by: 1, .. }))]), "{refused:?}");
    assert_eq!(lab.ask(ADMIN, change(Ask::Ceiling { permille: 500 })), [answer(10, Outcome::Status)]);
}

#[test]
fn a_share_is_the_owners_until_an_administrator_decides_and_is_at_least_a_slot_a_second() {
    let mut lab = Lab::new();
    let id = lab.running();
    let [half, third, little] = [500, 300, 50].map(SlotShare::new);
    let of = |lab: &Lab| lab.node.part(id).unwrap().1.slot_share;
    assert_eq!(lab.ask(OTHER, Request::Share(id, half)), refused(2, Refusal::NotYours { job: id, owner: 1, by: 2 }));
    assert_eq!(lab.ask(USER, Request::Share(id, half)), [answer(3, Outcome::Job(id))]);
    assert_eq!(of(&lab), half, "the next daemon has to know");
    assert_eq!(lab.ask(USER, Request::Share(id, None)), [answer(4, Outcome::Job(id))]);
    let refused = lab.ask(USER, Request::Share(id, little));
    let why = |said: &[Action]| match said {
        [.., Action::Answer(_, Err(Refusal::Planner { why, .. }))] => why.clone(),
        said => panic!("{said:?}"),
    };
    assert!(why(&refused).contains("less than one slot a second: 10% is the least"), "{refused:?}");
    assert_eq!(of(&lab), None);
    assert_eq!(lab.ask(ADMIN, Request::Share(id, third)), [answer(6, Outcome::Job(id))]);
    let lifted = lab.ask(USER, Request::Share(id, None));
    assert!(matches!(lifted[..], [_, Action::Answer(_, Err(Refusal::Decided(..)))]), "{lifted:?}");
    assert_eq!(of(&lab), third);
}

#[test]
fn of_several_changes_one_answer_tells() {
    let mut lab = Lab::new();
    let (one, wrong) = (Ask::Ceiling { permille: 500 }, Ask::Drain { node: "n9".to_owned(), drains: true });
    assert_eq!(
        lab.ask(ADMIN, Request::Change(ForAll::Policy, vec![one.clone(), one.clone()])),
        [answer(1, Outcome::Status)]
    );
    assert_eq!(lab.ask(ADMIN, Request::Change(ForAll::Policy, vec![])), [answer(2, Outcome::Status)]);
    let refused = lab.ask(ADMIN, Request::Change(ForAll::Policy, vec![wrong, one]));
    assert!(matches!(refused[..], [_, Action::Answer(RequestId(3), Err(Refusal::Planner { .. }))]), "{refused:?}");
}

#[test]
fn who_waits_for_the_end_hears_of_it_when_it_was_told_how_it_ended() {
    let mut lab = Lab::new();
    let id = lab.running();
    assert_eq!(lab.ask(OTHER, Request::Wait(id)), []);
    let exit = Exit { code: Some(3), signal: None };
    assert_eq!(lab.ask(USER, Request::Exited(id, exit)), [Action::Exited(id, exit), answer(3, Outcome::Job(id))]);
    lab.node.handle(at(lab.ns), Input::Populated(id, false));
    assert_eq!(lab.settle(), [Action::Finish(id, 0)]);
    let end = cosched_cluster::wire::PartEnd { exit: Some(exit), ..Default::default() };
    lab.node.handle(at(lab.ns), Input::Over { job: id, attempt: 0, end });
    assert_eq!(lab.settle(), [answer(2, Outcome::Job(id))]);
    assert_eq!(lab.node.member().job(id).and_then(|job| job.end).and_then(|end| end.exit), Some(exit));
    assert_eq!(lab.ask(OTHER, Request::Wait(id)), [answer(4, Outcome::Job(id))], "it is over");
    let killed = lab.ask(USER, Request::Kill { job: id, how: TERM, here: false });
    assert!(matches!(killed[..], [_, Action::Answer(_, Err(Refusal::Planner { .. }))]), "{killed:?}");
    assert!(lab.node.is_idle());
}

#[test]
fn waiters_that_have_gone_are_forgotten() {
    let mut lab = Lab::new();
    let id = lab.running();
    lab.ask(OTHER, Request::Wait(id));
    lab.ask(OTHER, Request::Wait(id));
    lab.node.forget(|request| request == RequestId(2));
    assert_eq!(lab.node.requests.waiters[&id], [RequestId(3)]);
    lab.node.forget(|_| true);
    assert!(lab.node.requests.waiters.is_empty());
}

#[test]
fn a_launcher_hears_that_its_job_waits_and_takes_it_along_when_it_ends() {
    let mut lab = Lab::new();
    assert_eq!(
        lab.ask(ADMIN, Request::Change(ForAll::Node("n".into()), vec![Ask::Drain { node: "n".into(), drains: true }])),
        [answer(1, Outcome::Status)]
    );
    assert_eq!(lab.ask(USER, submit(true)), []);
    assert_eq!((lab.node.empty_jobs_of(1), lab.node.asked_by(1)), (0, Vec::new()));
    assert_eq!(lab.run(2 * S - 1), []);
    let [Action::Answer(RequestId(2), Ok(Outcome::Job(id)))] = lab.run(1)[..] else { panic!("it does not hear") };
    assert_eq!(lab.run(100 * S), []);
    lab.node.handle(at(lab.ns), Input::LauncherGone(RequestId(2)));
    assert_eq!(lab.settle(), [Action::Release(RequestId(2))]);
    assert!(lab.node.is_over(id));
    assert_eq!(lab.ask(USER, submit(false)), []);
    assert_eq!(lab.node.empty_jobs_of(1), 1);
    let express = match submit(true) {
        Request::Submit { job, .. } => Box::new(JobAsk { class: Class::Express, ..*job }),
        _ => unreachable!(),
    };
    let express = Request::Submit { owner: USER, job: express, has_process: true };
    assert_eq!(lab.ask(USER, express), refused(4, Refusal::Express));
}

#[test]
fn a_launcher_hears_at_once_that_its_job_waits_for_a_time_or_a_job() {
    let mut lab = Lab::new();
    let first = lab.running();
    let after = vec![cosched_cluster::wire::AfterAsk { job: first.0, ok: false }];
    let later = cosched_cluster::wire::TermsAsk { begin_ms: Some(1_000_100_000), ..Default::default() };
    let last = cosched_cluster::wire::TermsAsk { after, ..Default::default() };
    for (n, terms) in [(2, later), (3, last)] {
        let job = Box::new(JobAsk { terms, ..ask() });
        let said = lab.ask(USER, Request::Submit { owner: USER, job, has_process: true });
        assert!(
            matches!(said[..], [Action::Answer(RequestId(request), Ok(Outcome::Job(_)))] if request == n),
            "{said:?}"
        );
    }
    assert_eq!(lab.run(10 * S), [], "once");
}

#[test]
fn what_cannot_begin_is_told_to_its_launcher() {
    let mut lab = Lab::new();
    let begun = lab.ask(USER, submit(true));
    let Some(Action::Begin { job, .. }) = begun.first() else { panic!("{begun:?}") };
    let id = JobId(job.id);
    lab.node.handle(at(0), Input::Failed(id));
    assert_eq!(lab.settle(), refused(1, Refusal::CannotBegin(id)));
    assert!(!lab.node.has(id));
}

/// For a disk that accepts no writes.
#[test]
fn what_cannot_be_written_is_refused_and_jobs_can_be_ended_all_the_same() {
    let mut lab = Lab::new();
    let id = lab.running();
    lab.is_full = true;
    let full = || Refusal::Unwritten("no space".to_owned());
    assert_eq!(lab.ask(USER, Request::Suspend(id)), refused(2, full()));
    assert_eq!(lab.ask(USER, submit(true)), [], "it is tried again");
    assert_eq!(lab.run(2 * S), refused(3, full()));
    let killed = lab.ask(USER, Request::Kill { job: id, how: TERM, here: false });
    assert_eq!(killed, [signal(id, 15, 4), answer(4, Outcome::Job(id))]);
    lab.node.handle(at(lab.ns), Input::Populated(id, false));
    assert_eq!(lab.settle(), [], "who waits for it may say how it ended");
    assert_eq!(lab.run(2 * S), [Action::Finish(id, 0)]);
    lab.node.handle(at(lab.ns), Input::Over { job: id, attempt: 0, end: Default::default() });
    lab.settle();
    assert!(lab.node.is_over(id), "also while that cannot be written");
    assert_eq!(lab.ask(USER, Request::Wait(id)), [answer(5, Outcome::Job(id))]);
    let again = Request::Kill { job: id, how: KillHow::FORCE, here: false };
    assert_eq!(lab.ask(USER, again), [answer(6, Outcome::Job(id))]);
    lab.is_full = false;
    lab.run(10 * S);
    lab.run(10 * S);
    assert!(lab.node.member().job(id).unwrap().end.is_some(), "it is written when it can be");
}

/// Seed 2465: its user was told that a job is refused, and it ran.
#[test]
fn what_was_carried_out_is_not_said_to_be_unwritten_though_another_write_fails() {
    let mut lab = Lab::new();
    lab.fails_beside = true;
    let said = lab.ask(USER, submit(true));
    let said: Vec<Action> = said.into_iter().chain(lab.run(2 * S)).collect();
    assert!(said.iter().any(|action| matches!(action, Action::Begin { .. })), "{said:?}");
    assert!(!said.iter().any(|action| matches!(action, Action::Answer(_, Err(_)))), "{said:?}");
}

/// For a store that others maintain.
#[test]
fn nobody_waits_for_ever_for_a_store_that_is_away() {
    let of = PartOf { decided: Decided::default(), ..LEAD };
    let mut node = with(of, true, true);
    node.tell(at(0), |_, _| ());
    let kill = |how| Request::Kill { job: ID, how, here: false };
    let mut ask = |by, id, request| {
        node.request(at(S), by, RequestId(id), request);
        let said: Vec<Action> = std::iter::from_fn(|| node.poll_action()).collect();
        let late = std::iter::from_fn(|| node.poll_answer()).map(|(id, outcome)| Action::Answer(id, Ok(outcome)));
        let answers = |action: &Action| matches!(action, Action::Answer(..) | Action::Signal { .. });
        said.into_iter().filter(answers).chain(late.collect::<Vec<_>>()).collect::<Vec<_>>()
    };
    assert_eq!(ask(USER, 1, Request::Suspend(ID)), [], "it is kept");
    assert!(matches!(ask(OTHER, 2, kill(TERM))[..], [Action::Answer(_, Err(Refusal::NotYours { .. }))]));
    assert_eq!(ask(USER, 3, kill(TERM)), [signal(ID, 15, 3), answer(3, Outcome::Local(ID))], "it ends at once");
    assert!(matches!(ask(USER, 4, Request::Loads(None))[..], [Action::Answer(_, Err(Refusal::Unread))]));
    let want = WantAsk::Total { cpus: 3, memory_per_cpu_bytes: 5, disk_bytes: 0 };
    let job = Box::new(JobAsk { want, ..self::ask() });
    assert_eq!(ask(USER, 5, Request::Submit { owner: USER, job, has_process: false }), []);
    assert!(node.is_unknown_yet(JobId(8)) && !node.is_unknown_yet(ID));
    assert_eq!((node.asked_by(1), node.asked_by(2)), (vec![15], vec![]), "it counts for its user's limits");
    node.handle(at(11 * S), Input::Timeout);
    let said: Vec<Action> = std::iter::from_fn(|| node.poll_action()).collect();
    let slow = |id| Action::Answer(RequestId(id), Err(Refusal::Slow { has_process: false }));
    let answers: Vec<&Action> = said.iter().filter(|action| matches!(action, Action::Answer(..))).collect();
    assert_eq!(answers, [&slow(1), &slow(5)]);
}

#[test]
fn a_job_of_several_nodes_is_ended_here_alone_only_on_demand() {
    let spans = LocalJob { spans: true, ..job() };
    let mut node = node();
    node.find(ID, &FoundPart { of: LEAD, job: spans, has_begun: true, populated: true });
    node.request(at(S), USER, RequestId(1), Request::Kill { job: ID, how: KillHow::FORCE, here: true });
    assert!(std::iter::from_fn(|| node.poll_action()).any(|action| action == signal(ID, 9, 1)));
    assert!(node.part(ID).unwrap().0.closing);
    node.request(
        at(S),
        USER,
        RequestId(2),
        Request::Kill { job: ID, how: KillHow { signal: 10, grace_ms: None }, here: false },
    );
    let said: Vec<Action> = std::iter::from_fn(|| node.poll_action()).collect();
    assert!(said.contains(&Action::Answer(RequestId(2), Err(Refusal::SignalRemote(ID, 10)))), "{said:?}");
}

#[test]
fn what_is_wanted_is_said_in_one_way() {
    let lab = Lab::new();
    let want =
        |nodes: &[WantOfNode], cpus, memory_bytes| lab.node.want(&Want { nodes: nodes.to_vec(), cpus, memory_bytes });
    let on = |node: &str, cpus| WantOfNode { node: Some(node.to_owned()), cpus: Some(cpus), ..WantOfNode::default() };
    let WantAsk::PerNode(all) = want(&[], None, None).unwrap() else { panic!() };
    assert_eq!((all[0].node.as_str(), all[0].cpus, all[0].cpus_min), ("n", 4, 4), "all of this machine");
    assert_eq!(want(&[on("n", 1)], Some(1), None), Err(Refusal::WantedTwice));
    assert_eq!(want(&[], Some(0), None), Err(Refusal::NoCpus));
    assert_eq!(want(&[], Some(5), None), Err(Refusal::TooManyCpus { cpus: 5, have: 4 }));
    let bytes = (1 << 30) + 1;
    assert_eq!(want(&[], None, Some(bytes)), Err(Refusal::TooMuchMemory { bytes, have_bytes: 1 << 30 }));
    assert_eq!(want(&[on("m", 1)], None, None), Err(Refusal::NoSuchNode("m".to_owned())));
    let least = WantOfNode { cpus_min: Some(3), ..on("n", 2) };
    assert_eq!(want(&[least], None, None), Err(Refusal::Cpus { node: "n".to_owned(), cpus: 2, cpus_min: 3 }));
}

#[test]
fn cores_are_a_jobs_own_where_it_has_places_on_this_node() {
    let of = |topology: Option<Topology>| {
        let local = LocalConfig { topology: topology.map(Arc::new), ..LocalConfig::new(4) };
        let keys = Keys::new("test").unwrap();
        let settings = Settings::new(keys, "n", 1, Capacity { cpus: 4, memory_bytes: 1 << 30, disk_bytes: 0 });
        Node::new(at(0), settings, local, 1 << 30, &[])
    };
    let on = |node: &str, cpus| NodeAsk { node: node.to_owned(), cpus, cpus_min: 1, memory_bytes: 0, disk_bytes: 0 };
    let ask = |node: &Node, asks: &[NodeAsk]| node.whole_cores(&WantAsk::PerNode(asks.to_vec()));
    // Two cores of two CPUs.
    let cpu = |core| cosched_core::Cpu { core, ..Default::default() };
    let paired = of(Some(Topology::new([0, 1, 0, 1].map(cpu).to_vec())));
    assert_eq!(ask(&paired, &[on("n", 2)]), Ok(()));
    assert_eq!(ask(&paired, &[on("n", 3)]), Err(Refusal::TooManyCores { cpus: 3, cores: 2 }));
    assert_eq!(ask(&paired, &[on("m", 1)]), Err(Refusal::CoresElsewhere));
    assert_eq!(ask(&paired, &[on("n", 1), on("m", 1)]), Err(Refusal::CoresElsewhere));
    let anywhere = WantAsk::Total { cpus: 1, memory_per_cpu_bytes: 0, disk_bytes: 0 };
    assert_eq!(paired.whole_cores(&anywhere), Err(Refusal::CoresElsewhere));
    assert_eq!(ask(&of(Some(Topology::flat(4))), &[on("n", 4)]), Ok(()), "without siblings it changes nothing");
    assert_eq!(ask(&of(None), &[on("n", 1)]), Err(Refusal::NoPlaces));
}

#[test]
fn cpus_or_memory_alone_leave_the_rest_as_it_is() {
    let mut lab = Lab::new();
    let id = lab.running();
    let other = |lab: &Lab, cpus, memory_bytes| lab.node.other_want(id, &Want { nodes: vec![], cpus, memory_bytes });
    let total = |cpus, memory_per_cpu_bytes| Ok(WantAsk::Total { cpus, memory_per_cpu_bytes, disk_bytes: 0 });
    assert_eq!(other(&lab, Some(2), None), total(2, 0));
    assert_eq!(other(&lab, Some(3), Some(10)), total(3, 4));
    assert_eq!(other(&lab, None, None), Err(Refusal::NothingWanted));
    assert_eq!(other(&lab, Some(0), None), Err(Refusal::NoCpus));
    let want = Want { cpus: Some(2), ..Want::default() };
    assert_eq!(lab.ask(USER, Request::Resources(id, want.clone())), [answer(2, Outcome::Job(id))]);
    let stranger = lab.ask(OTHER, Request::Resources(id, Want::default()));
    assert!(matches!(stranger[..], [_, Action::Answer(_, Err(Refusal::NotYours { .. }))]), "whose it is comes first");
}

#[test]
fn a_job_without_a_process_ends_when_it_is_asked_to() {
    let mut node = with(PartOf { lead: false, alike: true, ..LEAD }, false, false);
    node.request(at(S), USER, RequestId(1), Request::Kill { job: ID, how: TERM, here: false });
    let said: Vec<Action> = std::iter::from_fn(|| node.poll_action()).collect();
    assert!(said.contains(&Action::Finish(ID, 0)), "{said:?}");
}

#[test]
fn who_waits_for_a_job_that_the_store_has_forgotten_hears_what_was_here() {
    let mut node = with(LEAD, true, true);
    node.request(at(S), OTHER, RequestId(1), Request::Wait(ID));
    node.handle(at(S), Input::Populated(ID, false));
    node.handle(at(4 * S), Input::Timeout);
    let answers = |node: &mut Node| {
        let said = std::iter::from_fn(|| node.poll_action());
        said.filter(|action| matches!(action, Action::Answer(..))).collect::<Vec<_>>()
    };
    assert_eq!(answers(&mut node), [], "the host has not ended it yet");
    node.handle(at(4 * S), Input::Over { job: ID, attempt: 0, end: Default::default() });
    assert_eq!(answers(&mut node), [answer(1, Outcome::Local(ID))]);
}

#[test]
fn a_process_enters_a_job_that_has_begun_before_its_number_was_known() {
    let mut node = with(LEAD, false, false);
    let waits = Waits::Submit { owner: 1, memory_bytes: 5, has_process: true };
    let pending = || Pending { request: RequestId(1), since: at(0).steady, is_answered: false, waits: waits.clone() };
    node.submitted(ID, pending());
    assert!(std::iter::from_fn(|| node.poll_action()).any(|action| action == Action::Enter(ID, RequestId(1))));
    let other = JobId(8);
    node.submitted(other, pending());
    node.submitted(other, Pending { request: RequestId(2), ..pending() });
    let said: Vec<Action> = std::iter::from_fn(|| node.poll_action()).collect();
    assert!(said.contains(&answer(2, Outcome::Job(other))), "two of this node's have asked for the same job: {said:?}");
    assert_eq!(node.launcher_of(other), Some(RequestId(1)));
}

/// A job with a time limit of 10 s and this grace time, in a queue with this limit.
fn limited(grace_ms: Option<u64>, of_queue_s: Option<u64>) -> (Lab, JobId) {
    let mut lab = Lab::new();
    let time_ns_max = of_queue_s.map(|s| s * S);
    let queue = cosched_core::cluster::Queue { name: "q".to_owned(), time_ns_max, ..Default::default() };
    lab.ask(ADMIN, Request::Change(ForAll::Queues, vec![Ask::Queues { queues: vec![queue.into()] }]));
    let terms = cosched_cluster::wire::TermsAsk { time_ms_max: Some(10_000), grace_ms, ..Default::default() };
    let job = Box::new(JobAsk { terms, ..ask() });
    let begun = lab.ask(USER, Request::Submit { owner: USER, job, has_process: true });
    let Some(Action::Begin { job, .. }) = begun.first() else { panic!("{begun:?}") };
    let id = JobId(job.id);
    lab.node.handle(at(lab.ns), Input::Began(id, crate::Began { populated: true, comes: true }));
    lab.settle();
    (lab, id)
}

/// The same, run until the limit is over.
fn over_its_time(grace_ms: Option<u64>, of_queue_s: Option<u64>) -> (Lab, JobId, Vec<Action>) {
    let (mut lab, id) = limited(grace_ms, of_queue_s);
    let said = lab.run(11 * S);
    (lab, id, said)
}

#[test]
fn a_job_over_its_time_is_asked_to_end_and_then_ended() {
    let why = Why::Reason(cosched_core::Reason::RunTime);
    let (mut lab, id, said) = over_its_time(Some(30_000), None);
    assert_eq!(said, [Action::Signal { job: id, signal: 15, why, asked: None }]);
    assert_eq!(lab.run(28 * S), []);
    assert_eq!(lab.run(2 * S), [Action::KillRest(id)]);
    lab.node.handle(at(lab.ns), Input::Populated(id, false));
    assert_eq!(lab.run(3 * S), [Action::Finish(id, 0)], "nobody said how its main process ended");
    lab.node.handle(at(lab.ns), Input::Over { job: id, attempt: 0, end: Default::default() });
    lab.settle();
    let end = lab.node.member().job(id).and_then(|job| job.end);
    assert_eq!(end.map(|end| end.why), Some(cosched_cluster::wire::Why::RunTime));
}
