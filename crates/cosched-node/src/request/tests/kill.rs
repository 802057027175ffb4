//! The end of a job: signals, grace times, limits, and putting it off.

use super::*;

#[test]
fn what_an_administrator_has_suspended_runs_to_its_end() {
    let mut node = node();
    let of = PartOf { decided: Decided { suspended_by: Some(0), ..Decided::default() }, ..LEAD };
    let stopped = LocalJob { suspended: true, ..job() };
    node.find(ID, &FoundPart { of, job: stopped, has_begun: true, populated: true });
    let kill = |grace_ms| Request::Kill { job: ID, how: KillHow { signal: 15, grace_ms }, here: false };
    let latest = at(S).steady + KillHow::GRACE_MS * 1_000_000;
    node.request(at(S), USER, RequestId(1), kill(Some(99_000)));
    assert_eq!((node.part(ID).unwrap().1.suspended, node.kills_at(ID)), (false, Some(latest)));
    node.request(at(2 * S), USER, RequestId(2), kill(None));
    assert_eq!(node.kills_at(ID), Some(latest), "asking again does not put it off");
    node.request(at(2 * S), ADMIN, RequestId(3), kill(None));
    assert_eq!(node.kills_at(ID), None, "whoever suspended it knows what he does");
}

#[test]
fn only_an_administrator_puts_off_an_end_that_was_set() {
    let mut node = with(LEAD, true, true);
    let after = |s, ms: u64| Some(at(s * S).steady + ms * 1_000_000);
    for (s, by, grace_ms, kills_at) in [
        (1, ADMIN, Some(5000), after(1, 5000)),
        (2, USER, None, after(1, 5000)),
        (3, USER, Some(99_000), after(1, 5000)),
        (4, USER, Some(500), after(4, 500)),
        (4, ADMIN, Some(7000), after(4, 7000)),
        (5, ADMIN, None, None),
    ] {
        let how = KillHow { signal: 15, grace_ms };
        node.request(at(s * S), by, RequestId(s), Request::Kill { job: ID, how, here: true });
        assert_eq!(node.kills_at(ID), kills_at, "after {s} s");
    }
}

#[test]
fn a_restart_begins_the_grace_time_again_and_does_not_lift_it() {
    let mut node = with(LEAD, true, true);
    let how = KillHow { signal: 15, grace_ms: Some(5000) };
    let kill = Request::Kill { job: ID, how, here: true };
    node.request(at(S), USER, RequestId(1), kill.clone());
    let keeps = |node: &mut Node| std::iter::from_fn(|| node.poll_action()).any(|action| action == Action::Keep(ID));
    assert!(keeps(&mut node));
    let (of, job) = node.part(ID).map(|(of, job)| (*of, *job)).unwrap();
    let mut next = super::node();
    next.find(ID, &FoundPart { of, job, has_begun: true, populated: true });
    assert_eq!(next.kills_at(ID), Some(at(0).steady + 5_000_000_000));
    node.request(at(2 * S), USER, RequestId(2), kill);
    assert!(!keeps(&mut node), "what does not change is not written");
    node.request(at(2 * S), ADMIN, RequestId(3), Request::Kill { job: ID, how: TERM, here: true });
    assert_eq!(node.part(ID).unwrap().0.grace_ms, None);
}

#[test]
fn an_administrator_puts_an_end_off_by_way_of_the_planner_and_its_owner_does_not() {
    let mut lab = Lab::new();
    let id = lab.running();
    let mut kill = |by, signal, grace_ms| {
        lab.run(S);
        lab.ask(by, Request::Kill { job: id, how: KillHow { signal, grace_ms }, here: false });
        (at(lab.ns).steady, lab.node.kills_at(id))
    };
    let after = |from: Time, ms: u64| Some(from + ms * 1_000_000);
    let (begun, first) = kill(ADMIN, 15, Some(50_000));
    assert_eq!(first, after(begun, 50_000));
    for (signal, grace_ms) in [(2, Some(50_000)), (15, Some(60_000)), (15, None), (1, None)] {
        assert_eq!(kill(USER, signal, grace_ms).1, first, "{signal}, {grace_ms:?}");
    }
    let (now, longer) = kill(ADMIN, 15, Some(90_000));
    assert_eq!(longer, after(now, 90_000));
    let (now, sooner) = kill(USER, 15, Some(20_000));
    assert_eq!(sooner, after(now, 20_000));
    assert_eq!(kill(ADMIN, 15, None).1, None);
}

#[test]
fn a_kill_goes_by_way_of_the_planner_and_another_signal_straight_to_the_job() {
    let mut lab = Lab::new();
    let id = lab.running();
    let usr1 = KillHow { signal: 10, grace_ms: None };
    let kill = |how| Request::Kill { job: id, how, here: false };
    assert_eq!(lab.ask(USER, kill(usr1)), [signal(id, 10, 2), answer(2, Outcome::Job(id))]);
    assert!(matches!(lab.ask(OTHER, kill(usr1))[..], [_, Action::Answer(_, Err(Refusal::NotYours { .. }))]));
    let killed = lab.ask(USER, kill(TERM));
    let by_planner = Action::Signal { job: id, signal: 15, why: Why::User(1), asked: None };
    assert_eq!(killed, [by_planner, answer(4, Outcome::Job(id))]);
    assert!(lab.node.part(id).unwrap().0.closing);
}

#[test]
fn a_polite_signal_that_is_ignored_evades_no_limit() {
    let year_ms = 31_536_000_000;
    for (signal, grace_ms) in [(1, None), (15, None), (15, Some(year_ms))] {
        let (mut lab, id) = limited(None, None);
        let kill = Request::Kill { job: id, how: KillHow { signal, grace_ms }, here: false };
        let is_asked = |action: &Action| matches!(action, Action::Signal { why: Why::User(_), .. });
        assert!(lab.ask(USER, kill).iter().any(is_asked), "{signal}");
        assert_eq!(lab.node.kills_at(id).is_some(), grace_ms.is_some(), "it has its time");
        let why = Why::Reason(cosched_core::Reason::RunTime);
        let over = [Action::Signal { job: id, signal: 15, why, asked: None }, Action::KillRest(id)];
        assert_eq!(lab.run(25 * S), over, "{signal}, {grace_ms:?}: once each");
        assert_eq!(lab.run(100 * S), []);
    }
}

#[test]
fn at_a_limit_a_users_kill_stays_a_kill_and_no_signal_puts_the_end_off() {
    let (mut lab, id) = limited(Some(30_000), None);
    lab.ask(USER, Request::Kill { job: id, how: KillHow::FORCE, here: false });
    assert!(matches!(lab.run(11 * S)[..], [Action::Signal { signal: SIGKILL, .. }]), "not TERM and half a minute");
    let (mut lab, id, _) = over_its_time(Some(30_000), None);
    let latest = lab.node.kills_at(id).unwrap();
    lab.node.kill_part(USER, RequestId(99), id, KillHow { signal: 1, grace_ms: None }).unwrap();
    assert_eq!(lab.node.kills_at(id), Some(latest));
}

#[test]
fn where_the_queue_has_a_limit_no_user_puts_the_end_off() {
    let (mut lab, id, said) = over_its_time(Some(3_000_000), Some(60));
    assert_eq!(said.len(), 1, "{said:?}");
    let latest = lab.node.kills_at(id).unwrap();
    assert!(latest <= at(lab.ns + KillHow::GRACE_MS * 1_000_000).steady, "{latest:?}");
    let kill = |grace_ms| Request::Kill { job: id, how: KillHow { signal: 15, grace_ms }, here: false };
    lab.ask(USER, kill(Some(3_000_000)));
    assert_eq!(lab.node.kills_at(id), Some(latest));
    let force = Request::Kill { job: id, how: KillHow::FORCE, here: false };
    assert!(
        lab.ask(USER, force).iter().any(|action| matches!(action, Action::Signal { signal: SIGKILL, .. })),
        "sooner he may"
    );
}
