//! Which member plans, under which conditions, and what a plan waits for.

use super::*;
use crate::member::due::Stage;
use crate::store::{Compare, Of};
use crate::wire::{Ack, Answer, encode};

#[test]
fn a_plan_is_committed_on_the_condition_that_nothing_it_was_made_of_has_changed() {
    let mut lab = Lab::new(2);
    let revision = lab.seats[0].member.replica.state_revision();
    lab.seats[0].ops.clear();
    lab.asks(0, USER, submit("a", 6));
    let keys = lab.seats[0].member.settings.keys.clone();
    let commit = txns(&lab.seats[0]).find(|txn| puts(txn, "/state")).unwrap();
    assert!(commit.compare.contains(&Compare::unchanged(keys.state(), revision)), "{:?}", commit.compare);
    assert!(commit.compare.contains(&Compare::unchanged(keys.job(1), 0)), "{:?}", commit.compare);
    let request =
        |compare: &Compare| compare.key.contains("/requests/n0.") && compare.of == Of::Create && compare.is > 0;
    assert!(commit.compare.iter().any(request), "{:?}", commit.compare);
    // The record of an existing job must be unchanged since it was read.
    let revision = lab.seats[0].member.replica.jobs[&1].revision;
    lab.seats[0].ops.clear();
    lab.asks(0, USER, Ask::Suspend { job: 1 });
    let commit = txns(&lab.seats[0]).find(|txn| puts(txn, "/state")).unwrap();
    assert!(commit.compare.contains(&Compare::unchanged(keys.job(1), revision)), "{:?}", commit.compare);
}

/// Two members see the same request: it is carried out once, and the other member notices.
#[test]
fn who_plans_at_the_same_time_as_another_meets_a_conflict_and_plans_anew() {
    let mut lab = Lab::new(2);
    lab.seats[0].waits = |op| matches!(op, Op::Txn(txn) if puts(txn, "/state"));
    let now = lab.moment();
    lab.seats[0].member.ask(now, USER, submit("a", 6)).unwrap();
    // The next member plans as well, because the first one is slow.
    lab.pass(S);
    assert_eq!(lab.seats[1].member.jobs().count(), 1);
    lab.let_through(0);
    lab.pass(S);
    assert!(lab.seats[0].said.contains(&Action::Say(Notice::Conflict)));
    assert_eq!(lab.seats[0].member.jobs().count(), 1);
    assert_eq!(lab.seats[0].member.state().unwrap().next_order, 1);
}

#[test]
fn nothing_is_planned_before_the_own_watch_has_told_of_the_last_plan() {
    let mut lab = Lab::new(1);
    let member = &mut lab.seats[0].member;
    let newest = member.replica.revision;
    member.work.stage = Stage::Told(newest + 1);
    member.look_for_work();
    assert!(matches!(member.work.stage, Stage::Told(_)));
    assert_eq!(member.work_timeout(), None);
    member.replica.revision += 1;
    member.look_for_work();
    assert!(matches!(member.work.stage, Stage::Resting));
}

/// Found by cosched-swarm (076b21c): the state was read by a renewal, and the watch had yet to report the records that belong to it.
#[test]
fn nothing_is_planned_by_records_that_are_older_than_the_state() {
    let mut lab = Lab::new(1);
    lab.seats[0].ops.clear();
    let now = lab.moment();
    let member = &mut lab.seats[0].member;
    member.replica.state.iter_mut().for_each(|state| state.revision += 10);
    member.ask(now, USER, submit("a", 1)).unwrap();
    lab.settle();
    assert!(!lab.seats[0].member.replica.requests.is_empty(), "there is something to plan");
    assert_eq!(lab.seats[0].member.work_timeout(), None);
    // The state arrived while acknowledgements were read, and all of them are there.
    lab.seats[0].member.work.state_seen = Time(0);
    lab.seats[0].member.acks_read(None, Vec::new());
    assert!(lab.seats[0].member.work.pending.is_none());
    assert!(!txns(&lab.seats[0]).any(|txn| puts(txn, "/state")));
}

#[test]
fn the_lowest_number_plans_at_once_and_the_others_a_little_later() {
    let mut lab = Lab::new(3);
    let planned =
        |seat: &Seat| seat.said.iter().filter(|action| matches!(action, Action::Say(Notice::Planned { .. }))).count();
    lab.seats.iter_mut().for_each(|seat| seat.said.clear());
    lab.asks(2, USER, submit("a", 1));
    assert_eq!(lab.seats.iter().map(planned).collect::<Vec<_>>(), [1, 0, 0]);
    // A member whose clock is not synchronised would compute wrong slots for the others.
    let now = lab.moment();
    lab.seats[0].member.clock(now, Clock { synchronised: false, error_ns: 0 });
    lab.pass(2 * S);
    lab.seats.iter_mut().for_each(|seat| seat.said.clear());
    lab.asks(2, USER, submit("b", 1));
    assert_eq!(lab.seats.iter().map(planned).collect::<Vec<_>>(), [0, 1, 0]);
    // The others do not wait for a member that hangs.
    lab.hangs_for(1);
    lab.asks(2, USER, submit("c", 1));
    lab.pass(S);
    assert_eq!(lab.seats[2].member.jobs().count(), 3);
}

/// The delay until a plan takes effect, which depends on what the other nodes have seen.
fn holds_in_ns(lab: &mut Lab) -> u64 {
    let state = lab.seats[0].member.state().unwrap();
    let begins = state.from_slot * state.config.slot_length_ns;
    begins.saturating_sub(lab.moment().wall.0)
}

#[test]
fn a_plan_waits_for_the_lease_of_a_node_that_has_not_seen_the_last_one() {
    let mut lab = Lab::new(2);
    lab.hangs_for(1);
    lab.asks(0, USER, submit("a", 6));
    lab.asks(0, USER, submit("b", 6));
    // A second ago at the earliest; its lease may have been renewed just before.
    let wait_ns = holds_in_ns(&mut lab);
    assert!(wait_ns >= 4 * S, "{wait_ns} ns: it may run by the plan of before until its lease is out");
    let mut lab = Lab::new(2);
    lab.asks(0, USER, submit("a", 6));
    lab.asks(0, USER, submit("b", 6));
    assert!(holds_in_ns(&mut lab) < S, "all have seen it");
}

#[test]
fn who_has_seen_plans_of_another_copy_of_the_store_has_not_seen_later_ones() {
    let mut lab = Lab::new(2);
    let ack = Ack { generation: 1_000_000, ..Ack::default() };
    let then = vec![Do::Put { key: lab.seats[0].member.settings.keys.ack("n1"), value: encode(&ack), lease: None }];
    lab.store.call(lab.now, Op::Txn(Txn { then, ..Txn::default() })).unwrap();
    lab.seats[0].said.clear();
    lab.asks(0, USER, submit("a", 6));
    lab.pass(3 * S);
    let behind = |action: &Action| matches!(action, Action::Behind(_) | Action::RunNoSlots(_));
    assert!(!lab.seats[0].said.iter().any(behind), "{:?}", lab.seats[0].said);
    assert_eq!(lab.seats[0].member.in_use(), lab.seats[0].member.state().map(|state| state.generation));
}

#[test]
fn answers_that_nobody_reads_and_jobs_that_are_long_over_are_forgotten() {
    let mut lab = Lab::new(1);
    let keys = lab.seats[0].member.settings.keys.clone();
    let reply = crate::wire::Reply { at_ns: lab.moment().wall.0, answer: Answer::Done };
    let then =
        vec![Do::Put { key: keys.reply("gone.0000000000000001.0000000001"), value: encode(&reply), lease: None }];
    lab.store.call(lab.now, Op::Txn(Txn { then, ..Txn::default() })).unwrap();
    lab.asks(0, USER, Ask::Submit(Box::new(JobAsk { lead: None, ..job("a", 1) })));
    lab.asks(0, USER, Ask::Kill { job: 1, how: crate::wire::KillHow::FORCE });
    let now = lab.moment();
    lab.seats[0].member.part_ended(now, JobId(1), 0, PartEnd::default());
    lab.pass(S);
    assert!(lab.seats[0].member.job(JobId(1)).is_some_and(|job| job.end.is_some()));
    let there = |lab: &Lab, range: Range| lab.store.read(&range).len();
    let replies = Range::prefix(&format!("{}replies/", keys.prefix()));
    lab.pass(3500 * S);
    assert_eq!((there(&lab, replies.clone()), there(&lab, Range::one(keys.job(1)))), (1, 1));
    lab.pass(200 * S);
    assert_eq!((there(&lab, replies), there(&lab, Range::one(keys.job(1)))), (0, 1), "jobs are kept for longer");
    lab.seats[0].member.settings.keep_ended_ns = 3600 * S;
    lab.pass(100 * S);
    assert_eq!(there(&lab, Range::one(keys.job(1))), 0);
}

/// Two nodes; n1 has a job that is restarted elsewhere. A silence of one minute makes a node dead.
fn with_a_job_that_begins_anew() -> Lab {
    let mut lab = Lab::new(2);
    let ask = crate::wire::NodeAsk { node: "n1".to_owned(), cpus: 1, cpus_min: 1, memory_bytes: 0, disk_bytes: 0 };
    let want = WantAsk::PerNode(vec![ask]);
    let requeue = JobAsk { on_node_loss: OnNodeLoss::Requeue, lead: None, want, ..job("r", 1) };
    assert_eq!(lab.asks(0, ROOT, Ask::NodeDeadAfter { ns: 60 * S }), Some(Answer::Done));
    assert_eq!(lab.asks(0, USER, Ask::Submit(Box::new(requeue))), Some(Answer::Submitted { job: 1 }));
    lab.pass(S);
    lab.seats[1].said.clear();
    lab
}

fn is_in_the_plan(lab: &Lab) -> bool {
    lab.seats[0].member.state().unwrap().nodes.len() == 2
}

#[test]
fn others_begin_a_job_anew_well_after_its_node_has_ended_it() {
    let mut lab = with_a_job_that_begins_anew();
    lab.hangs_for(1);
    let (mut ended_at, mut given_up_at) = (None, None);
    for _ in 0..1000 {
        lab.pass(100 * MS);
        let ended = lab.seats[1].said.iter().any(|action| matches!(action, Action::KillPart { .. }));
        ended_at = ended_at.or(ended.then_some(lab.now));
        given_up_at = given_up_at.or((!is_in_the_plan(&lab)).then_some(lab.now));
    }
    let between = given_up_at.unwrap() - ended_at.unwrap();
    // Its lease expired after 5 s; it then has another lease's length for the kill, and clocks differ.
    assert!(between >= 10 * S, "{between} ns");
}

#[test]
fn a_node_is_not_dead_because_the_one_who_plans_was_away_itself() {
    let mut lab = with_a_job_that_begins_anew();
    lab.hangs_for(1);
    lab.pass(20 * S);
    lab.hangs_for(0);
    lab.pass(60 * S);
    lab.let_through(0);
    lab.pass(4 * S);
    assert!(lab.seats[0].member.is_joined());
    assert!(is_in_the_plan(&lab), "it is given time to come back, for the store may have been away for both");
    lab.pass(20 * S);
    assert!(!is_in_the_plan(&lab));
}

/// Found by cosched-soak, seed 500004: while users made many requests, no member checked whether the lagging node was back.
#[test]
fn plans_that_come_one_soon_after_the_other_wait_since_the_first_of_them() {
    let mut lab = Lab::new(2);
    lab.hangs_for(1);
    lab.asks(0, USER, submit("a", 6));
    assert_eq!(lab.seats[0].member.work.waits_since, Time(0), "it had seen the plan before");
    lab.asks(0, USER, submit("b", 6));
    let since = lab.seats[0].member.work.waits_since;
    assert!(since > Time(0));
    lab.asks(0, USER, submit("c", 6));
    assert_eq!(lab.seats[0].member.work.waits_since, since);
}
