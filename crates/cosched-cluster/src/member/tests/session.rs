//! Lease, name and watch.

use super::*;
use crate::store::{Compare, LeaseId};

fn is_renewal(op: &Op) -> bool {
    matches!(op, Op::KeepAlive(_))
}

#[test]
fn a_renewal_counts_from_when_it_was_asked_for() {
    let mut lab = Lab::new(2);
    lab.pass_until(1, is_renewal);
    let asked_at = lab.now;
    lab.pass(S);
    lab.let_through(1);
    assert_eq!(lab.seats[1].member.heard_at, Some(asked_at), "it is heard of from then");
    // Now the store is unreachable for this node: it has slots until its lease expires.
    lab.hangs_for(1);
    lab.pass(4 * S - 10 * MS);
    assert!(lab.seats[1].member.in_use().is_some());
    lab.pass(20 * MS);
    assert_eq!(lab.seats[1].member.in_use(), None, "and no longer, though it has heard of it a second later");
}

#[test]
fn a_lease_that_ran_out_is_replaced() {
    let mut lab = Lab::new(2);
    let before = lab.seats[1].member.session.lease;
    lab.hangs_for(1);
    lab.pass(12 * S);
    assert_eq!(lab.seats[1].member.in_use(), None);
    lab.let_through(1);
    lab.pass(5 * S);
    let now = lab.seats[1].member.session.lease;
    assert!(lab.seats[1].member.is_joined() && now != before, "{before:?} {now:?}");
    let key = lab.seats[1].member.settings.keys.node("n1");
    assert_eq!(lab.store.read(&Range::one(key))[0].lease, now);
}

#[test]
fn who_lost_touch_for_a_moment_keeps_its_lease() {
    let mut lab = Lab::new(2);
    let before = lab.seats[1].member.session.lease;
    let watch = lab.seats[1].member.session.watch.unwrap();
    let now = lab.moment();
    lab.seats[1].member.handle_watch_lost(now, watch, StoreError::Compacted(3));
    lab.settle();
    assert!(lab.seats[1].member.is_joined(), "at once: nothing is wrong with the store");
    assert_eq!(lab.seats[1].member.session.lease, before);
}

/// A renewal reads what the watch has not reported, and a second renewal that finds it still unreported gives the watch up.
#[test]
fn a_watch_that_is_silent_is_noticed() {
    let mut lab = Lab::new(2);
    lab.seats[1].is_deaf = true;
    lab.seats[1].said.clear();
    assert_eq!(lab.asks(0, USER, submit("a", 6)), Some(crate::wire::Answer::Submitted { job: 1 }));
    let newest = lab.seats[0].member.state().map(|state| state.generation);
    lab.pass_until(1, is_renewal);
    lab.let_through(1);
    assert_eq!(
        lab.seats[1].member.state().map(|state| state.generation),
        newest,
        "it follows the newest plan all the same"
    );
    assert!(lab.seats[1].member.replica.is_ahead());
    lab.pass(2 * S);
    let silent =
        |action: &Action| matches!(action, Action::Say(Notice::StoreLost(why)) if why.to_string().contains("silent"));
    assert!(lab.seats[1].said.iter().any(silent), "{:?}", lab.seats[1].said);
    lab.seats[1].is_deaf = false;
    lab.pass(2 * S);
    assert!(lab.seats[1].member.is_joined() && !lab.seats[1].member.replica.is_ahead());
}

#[test]
fn a_watch_begins_with_the_first_change_that_was_not_read() {
    let lab = Lab::new(1);
    let mut read =
        lab.seats[0].ops.iter().filter_map(|op| if let Op::Watch { from, .. } = op { Some(*from) } else { None });
    let key = lab.seats[0].member.settings.keys.node("n0");
    let entry = lab.store.read(&Range::one(key)).pop().unwrap();
    assert_eq!(read.next_back(), Some(entry.mod_revision), "what was read last did not have the own record yet");
}

#[test]
fn a_name_is_claimed_on_the_condition_that_nobody_has() {
    let mut lab = Lab::new(1);
    let key = lab.seats[0].member.settings.keys.node("n0");
    let claim = txns(&lab.seats[0]).find(|txn| puts(txn, "/nodes/n0")).unwrap();
    assert_eq!(claim.compare, [Compare::absent(key.clone())]);
    // The next instance of the daemon replaces this one's record, if it is as it was read.
    let revision = lab.store.read(&Range::one(key.clone()))[0].mod_revision;
    lab.seats.clear();
    lab.sit(Settings { dead: Some([1].into()), ..settings("n0", 2) });
    lab.pass(S);
    let claim = txns(&lab.seats[0]).find(|txn| puts(txn, "/nodes/n0")).unwrap();
    assert_eq!(claim.compare, [Compare::unchanged(key, revision)]);
}

/// The same machine-id, name and state, while it is unknown whether the first daemon is dead.
#[test]
fn the_place_of_a_daemon_that_may_live_is_not_taken() {
    let mut lab = Lab::new(1);
    lab.sit(settings("n0", 2));
    lab.pass(30 * S);
    let [first, second] = &lab.seats[..] else { panic!() };
    assert!(first.member.is_joined());
    assert!(second.member.out().is_some_and(|why| why.contains("a copy of this machine")), "{:?}", second.member.out());
    assert!(!txns(second).any(|txn| puts(txn, "/nodes/n0")), "it has never tried");
}

#[test]
fn another_machine_does_not_take_a_name_over_though_it_thinks_that_daemon_dead() {
    let mut lab = Lab::new(1);
    lab.sit(Settings { home: "elsewhere".to_owned(), dead: Some([1].into()), ..settings("n0", 2) });
    lab.pass(30 * S);
    assert!(lab.seats[0].member.is_joined());
    let why = lab.seats[1].member.out().unwrap_or_default();
    assert!(why.contains("the name n0 is taken: another coschedd, n0,"), "{why}");
}

#[test]
fn who_has_lost_its_name_takes_no_part_any_more() {
    let mut lab = Lab::new(1);
    lab.sit(Settings { dead: Some([1].into()), ..settings("n0", 2) });
    lab.pass(5 * S);
    let [first, second] = &lab.seats[..] else { panic!() };
    assert!(second.member.is_joined());
    assert!(
        first.member.out().is_some_and(|why| why.contains("has taken the name n0 over")),
        "{:?}",
        first.member.out()
    );
    assert_eq!(first.member.in_use(), None);
    let now = lab.moment();
    assert!(matches!(lab.seats[0].member.ask(now, USER, submit("a", 1)), Err(NotTaken::Out(_))));
}

#[test]
fn who_leaves_takes_its_keys_with_it_at_once() {
    let mut lab = Lab::new(2);
    let lease = lab.seats[1].member.session.lease.unwrap();
    let now = lab.moment();
    lab.seats[1].member.leave(now);
    lab.pass(S);
    assert!(lab.seats[1].ops.contains(&Op::Revoke(lease)) && lease != LeaseId(0));
    assert!(lab.seats[1].said.contains(&Action::Say(Notice::Left)));
    assert_eq!(lab.seats[0].member.nodes().count(), 1);
    lab.pass(10 * S);
    assert_eq!(lab.seats[0].member.state().unwrap().nodes.len(), 1);
}

#[test]
fn what_the_store_refuses_is_told_once() {
    let mut lab = Lab::new(1);
    let watch = lab.seats[0].member.session.watch.unwrap();
    let now = lab.moment();
    lab.seats[0].said.clear();
    let why = StoreError::Fault("no space".to_owned());
    lab.seats[0].member.handle_watch_lost(now, watch, why.clone());
    lab.pass(S);
    let watch = lab.seats[0].member.session.watch.unwrap();
    let now = lab.moment();
    lab.seats[0].member.handle_watch_lost(now, watch, why.clone());
    lab.pass(S);
    let told =
        lab.seats[0].said.iter().filter(|action| **action == Action::Say(Notice::StoreLost(why.clone()))).count();
    assert_eq!(told, 1);
    assert!(!lab.seats[0].said.iter().any(|action| matches!(action, Action::Say(Notice::StoreBack(_)))), "not yet");
    lab.pass(5 * S);
    assert!(lab.seats[0].said.iter().any(|action| matches!(action, Action::Say(Notice::StoreBack(_)))));
}

#[test]
fn a_store_that_does_not_answer_is_lost_and_tried_again() {
    let mut lab = Lab::new(1);
    lab.hangs_for(0);
    lab.seats[0].said.clear();
    lab.pass(4 * S);
    assert!(!lab.seats[0].member.is_joined());
    let lost = lab.seats[0].said.iter().filter(|action| matches!(action, Action::Say(Notice::StoreLost(_)))).count();
    assert_eq!(lost, 1, "once: {:?}", lab.seats[0].said);
    lab.let_through(0);
    lab.pass(4 * S);
    assert!(lab.seats[0].member.is_joined());
}
