//! The desired state of a job on this node, compared with its present one.

use super::*;
use crate::member::tests::{Lab, S, USER, job, submit};
use crate::wire::{Exit, JobAsk, OnNodeLoss};
use cosched_core::cluster::Capacity;

const JOB: JobId = JobId(1);

/// A member that has joined and knows the record of a job, in this attempt.
fn member(attempt: Attempt) -> Lab {
    let mut lab = Lab::new(1);
    let member = &mut lab.seats[0].member;
    let mut known = crate::wire::Job::new(1, USER, job("a", 1), 5_000_000);
    known.attempt = attempt;
    member.replica.jobs.insert(1, crate::member::replica::At { value: known, revision: 3 });
    lab
}

fn wanted(attempt: Attempt) -> Wanted {
    let part = Part { node: cosched_core::NodeId(0), cpus: 1, memory_bytes: 0, disk_bytes: 0 };
    Wanted { attempt, submitted_ms: 5, part, ends: None, closing: false }
}

/// The host's actions when a job is in `status` on this node and wanted as in `wanted`, its status afterwards, and the number of reports.
fn wants(status: Option<(Attempt, Status)>, wanted: &Wanted) -> (Vec<Action>, Option<(Attempt, Status)>, usize) {
    let mut lab = member(wanted.attempt);
    let member = &mut lab.seats[0].member;
    if let Some(status) = status {
        member.local.jobs.insert(JOB, status);
    }
    let asked = member.outbox.len();
    member.want(JOB, wanted);
    let told = member.outbox.len() - asked;
    let does: Vec<Action> = std::iter::from_fn(|| member.poll_action()).collect();
    (does, member.local.jobs.get(&JOB).copied(), told)
}

#[test]
fn a_job_that_has_a_place_here_begins_once_in_each_life() {
    for (status, begins) in [
        (None, true),
        (Some((1, Status::Running)), false),
        (Some((1, Status::Closing)), false),
        (Some((0, Status::Ended(PartEnd::default(), true))), true),
        (Some((1, Status::Ended(PartEnd::default(), true))), false),
    ] {
        let (does, now, _) = wants(status, &wanted(1));
        assert_eq!(matches!(does[..], [Action::StartPart { .. }]), begins, "{status:?}: {does:?}");
        assert_eq!(now.map(|(attempt, _)| attempt), Some(1), "{status:?}");
    }
}

#[test]
fn processes_of_an_earlier_life_are_ended() {
    for status in [Status::Running, Status::Closing] {
        let (does, now, _) = wants(Some((0, status)), &wanted(1));
        assert_eq!(does, [Action::KillPart { job: JOB, attempt: 0, reason: Reason::NodeLost }]);
        assert_eq!(now, Some((0, Status::Killing(None, false))));
    }
    let (does, ..) = wants(Some((0, Status::Killing(None, false))), &wanted(1));
    assert_eq!(does, [], "they are being ended");
}

#[test]
fn what_is_to_end_is_ended_and_what_never_began_is_over() {
    let ends = Wanted { ends: Some(Reason::TimeLimit), ..wanted(0) };
    let (does, ..) = wants(Some((0, Status::Running)), &ends);
    assert_eq!(does, [Action::KillPart { job: JOB, attempt: 0, reason: Reason::TimeLimit }]);
    for over in [ends, Wanted { closing: true, ..wanted(0) }] {
        let (does, now, told) = wants(None, &over);
        assert_eq!((does, now, told), (vec![], Some((0, Status::Ended(PartEnd::default(), true))), 1));
    }
}

#[test]
fn who_is_asked_again_in_another_way_kills_again() {
    let ends = Wanted { ends: Some(Reason::UserRequest), ..wanted(0) };
    let mut lab = member(0);
    let member = &mut lab.seats[0].member;
    let polite = KillHow { signal: 15, grace_ms: None };
    for (how, again) in [(polite, true), (polite, false), (KillHow::FORCE, true)] {
        member.replica.jobs.get_mut(&1).unwrap().value.kill_how = Some(how);
        member.local.jobs.entry(JOB).or_insert((0, Status::Running));
        member.want(JOB, &ends);
        let does: Vec<Action> = std::iter::from_fn(|| member.poll_action()).collect();
        assert_eq!(does.len(), usize::from(again), "{how:?}: {does:?}");
    }
}

#[test]
fn what_was_asked_to_end_and_is_over_its_time_is_ended_once_more() {
    let polite = Some(KillHow { signal: 1, grace_ms: None });
    let mut lab = member(0);
    let member = &mut lab.seats[0].member;
    member.local.jobs.insert(JOB, (0, Status::Running));
    let steps = [
        (Reason::UserRequest, polite, Some(Reason::UserRequest)),
        (Reason::TimeLimit, polite, Some(Reason::TimeLimit)),
        (Reason::TimeLimit, polite, None),
        (Reason::TimeLimit, Some(KillHow::FORCE), Some(Reason::UserRequest)),
        (Reason::TimeLimit, Some(KillHow::FORCE), None),
    ];
    for (ends, how, told) in steps {
        member.replica.jobs.get_mut(&1).unwrap().value.kill_how = how;
        member.want(JOB, &Wanted { ends: Some(ends), ..wanted(0) });
        let does: Vec<Action> = std::iter::from_fn(|| member.poll_action()).collect();
        let told: Vec<Action> =
            told.into_iter().map(|reason| Action::KillPart { job: JOB, attempt: 0, reason }).collect();
        assert_eq!(does, told, "{ends:?}, {how:?}");
    }
    let lost = Wanted { ends: Some(Reason::NodeLost), ..wanted(0) };
    assert_eq!(wants(Some((0, Status::Killing(polite, false))), &lost).0, [], "it was ended by force");
}

#[test]
fn a_job_that_closes_is_closed_once() {
    let closes = Wanted { closing: true, ..wanted(0) };
    let (does, now, _) = wants(Some((0, Status::Running)), &closes);
    assert_eq!((does, now), (vec![Action::ClosePart { job: JOB, attempt: 0 }], Some((0, Status::Closing))));
    assert_eq!(wants(Some((0, Status::Closing)), &closes).0, []);
}

#[test]
fn an_end_is_told_once_and_one_by_the_fence_is_a_loss() {
    let end = PartEnd { exit: Some(Exit { code: Some(3), signal: None }), ..PartEnd::default() };
    let (does, now, told) = wants(Some((0, Status::Ended(end, false))), &wanted(0));
    assert_eq!((does, now, told), (vec![], Some((0, Status::Ended(end, true))), 1));
    assert_eq!(wants(Some((0, Status::Ended(end, true))), &wanted(0)).2, 0);
    let mut lab = member(0);
    let member = &mut lab.seats[0].member;
    member.local.jobs.insert(JOB, (0, Status::Ended(end, false)));
    member.local.fenced.insert((JOB, 0));
    member.want(JOB, &wanted(0));
    assert!(matches!(member.outbox.newest(), Some(Ask::PartLost { job: 1, attempt: 0 })));
}

/// A copy of the store was restored, and the number was used again.
#[test]
fn another_job_of_the_same_number_goes_on_and_this_one_does_not_begin_beside_it() {
    let mut lab = member(0);
    let member = &mut lab.seats[0].member;
    member.local.jobs.insert(JOB, (0, Status::Running));
    for (submitted_ms, other) in [(0, false), (5, false), (4, true)] {
        member.local.jobs.insert(JOB, (0, Status::Running));
        member.local.submitted_ms.insert(JOB, submitted_ms);
        member.want(JOB, &wanted(0));
        let does: Vec<Action> = std::iter::from_fn(|| member.poll_action()).collect();
        assert_eq!(does.contains(&Action::Forgotten(JOB)), other, "{submitted_ms}: {does:?}");
        assert!(!does.iter().any(|action| matches!(action, Action::KillPart { .. } | Action::StartPart { .. })));
    }
}

#[test]
fn what_has_no_place_here_any_more_is_ended_and_then_forgotten() {
    let mut lab = member(0);
    let member = &mut lab.seats[0].member;
    member.local.jobs.insert(JOB, (0, Status::Running));
    member.local_changed();
    let killed = Action::KillPart { job: JOB, attempt: 0, reason: Reason::NodeLost };
    assert_eq!(member.poll_action(), Some(killed));
    member.local_changed();
    assert_eq!(member.poll_action(), None, "once");
    member.local.jobs.insert(JOB, (0, Status::Ended(PartEnd::default(), true)));
    member.local_changed();
    assert!(member.local.jobs.is_empty());
}

/// Found by cosched-swarm (076b21c): the watch has yet to report what belongs to a state that a renewal has read.
#[test]
fn nobody_is_judged_by_records_older_than_the_state() {
    let mut lab = member(0);
    let member = &mut lab.seats[0].member;
    member.local.jobs.insert(JOB, (0, Status::Running));
    member.replica.state.iter_mut().for_each(|state| state.revision += 100);
    member.local_changed();
    assert_eq!(member.poll_action(), None);
}

/// A restored store lacks the reports made since its copy.
#[test]
fn a_node_says_again_how_its_parts_have_ended_and_who_is_empty() {
    let mut lab = member(0);
    let member = &mut lab.seats[0].member;
    member.local.jobs.insert(JOB, (0, Status::Ended(PartEnd::default(), true)));
    member.local.jobs.insert(JobId(2), (3, Status::Running));
    member.local.jobs.insert(JobId(3), (0, Status::Killing(None, false)));
    for (id, empty) in [(1, true), (2, true), (3, true), (4, true)] {
        member.local.note_empty(JobId(id), empty);
    }
    assert_eq!(member.local.say_again(), [(JobId(2), 3, true)], "the others are over, or being ended, or gone");
    assert_eq!(member.local.jobs[&JOB], (0, Status::Ended(PartEnd::default(), false)), "is told again");
    assert!(!member.local.empty.contains_key(&JobId(4)));
}

#[test]
fn jobs_of_another_tree_are_forgotten_and_those_that_live_are_named() {
    let found = |job, tree, ended| Found { job: JobId(job), attempt: 0, tree, submitted_ms: 0, ended, fence_at: None };
    let ended = Some(PartEnd::default());
    let mut local = LocalJobs::new(&[found(1, 7, None), found(2, 0, None), found(3, 8, None), found(4, 8, ended)]);
    assert!(local.is_busy());
    assert_eq!(local.forget_others(7), [JobId(3)]);
    assert_eq!(local.jobs.keys().copied().collect::<Vec<_>>(), [JobId(1), JobId(2)], "0: it is not known of which");
}

#[test]
fn only_a_life_that_runs_is_spoken_of() {
    let mut local = LocalJobs::new(&[]);
    for (id, status) in [(1, Status::Running), (2, Status::Closing), (3, Status::Killing(None, false))] {
        local.jobs.insert(JobId(id), (2, status));
    }
    local.jobs.insert(JobId(4), (2, Status::Ended(PartEnd::default(), false)));
    let running = [1, 2, 3, 4].map(|id| local.running(JobId(id)).is_some());
    assert_eq!(running, [true, true, false, false]);
    let end = PartEnd { cpu_time_ns: 9, ..PartEnd::default() };
    local.ended(JobId(1), 1, end);
    assert_eq!(local.jobs[&JobId(1)].1, Status::Running, "of another life");
    local.ended(JobId(1), 2, end);
    assert_eq!(local.jobs[&JobId(1)].1, Status::Ended(end, false));
    local.ended(JobId(1), 2, PartEnd::default());
    assert_eq!(local.jobs[&JobId(1)].1, Status::Ended(end, false), "the first end counts");
}

/// Other nodes restart such jobs when this node is unreachable; see `fence.rs`.
#[test]
fn a_node_that_nobody_hears_ends_what_others_will_begin_anew() {
    let mut lab = Lab::new(1);
    let requeue = Box::new(JobAsk { on_node_loss: OnNodeLoss::Requeue, lead: None, ..job("r", 1) });
    lab.asks(0, USER, Ask::Submit(requeue));
    lab.asks(0, USER, submit("k", 1));
    let heard_at = lab.seats[0].member.heard_at.unwrap();
    let dead_after_ns = lab.seats[0].member.state().unwrap().config.node_dead_after_ns;
    let fences: Vec<_> = lab.seats[0].member.fences().map(|fenced| (fenced.job, fenced.at)).collect();
    assert_eq!(fences, [(JOB, heard_at + dead_after_ns)], "the other one is ended by its rule, when the node is back");
    lab.hangs_for(0);
    lab.seats[0].said.clear();
    lab.pass(dead_after_ns - 3 * S);
    let killed =
        |lab: &Lab| lab.seats[0].said.iter().filter(|action| matches!(action, Action::KillPart { .. })).count();
    assert_eq!(killed(&lab), 0);
    lab.pass(3 * S);
    assert_eq!(killed(&lab), 1, "{:?}", lab.seats[0].said);
    assert!(lab.seats[0].member.local.fenced.contains(&(JOB, 0)));
}

#[test]
fn a_machine_that_was_started_anew_has_nothing_to_say_until_somebody_has_planned_with_it() {
    let mut lab = member(0);
    let member = &mut lab.seats[0].member;
    member.local.jobs.insert(JOB, (0, Status::Running));
    member.settings.boot = "another start".to_owned();
    member.local_changed();
    assert_eq!(member.poll_action(), None);
}

#[test]
fn a_capacity_that_has_changed_is_told() {
    let mut lab = Lab::new(1);
    let now = lab.moment();
    let capacity = Capacity { cpus: 2, memory_bytes: 1 << 30, disk_bytes: 1 << 30 };
    lab.seats[0].member.capacity(now, capacity);
    lab.pass(S);
    let planned = lab.seats[0].member.state().unwrap().nodes.values().map(|node| node.capacity).collect::<Vec<_>>();
    assert_eq!(planned, [capacity]);
}
