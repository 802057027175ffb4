//! Histories that must be refused, each beside one that must not.

use super::check::{BOUND_MS, check};
use super::history::{Ask, Entry, Fault, Heard, History, Life, Look, Ms, Register, Shown};

const LATE: Ms = 1_000 + BOUND_MS + 500;
const END: Ms = 100_000;

fn entry(begin: Ms, end: Ms, ask: Ask, heard: Heard) -> Entry {
    Entry { client: 0, node: 0, begin, end, ask, heard }
}

fn done(begin: Ms, end: Ms, ask: Ask) -> Entry {
    entry(begin, end, ask, Heard::Done(1))
}

fn shown(id: u64, state: &str) -> Shown {
    let (name, class) = (format!("j{id}"), "batch".to_owned());
    Shown { id, name, state: state.to_owned(), class, code: None, why: None }
}

fn life(name: &str, life: usize, beats: impl IntoIterator<Item = Ms>) -> Life {
    let pid = 100 + life as i32;
    Life { name: name.to_owned(), node: 0, pid, life, beats: beats.into_iter().collect(), ended: None }
}

/// Two nodes, and job 1, which was registered, keeps beating, and is reported as running.
fn sound() -> History {
    let last = (0..2).map(|node| Look { node, begin: END, end: END + 1, jobs: vec![shown(1, "running")] }).collect();
    History {
        entries: vec![entry(0, 10, Ask::Submit("j1".to_owned()), Heard::Done(1))],
        last,
        lives: vec![life("j1", 0, (100..END).step_by(100))],
        ..History::default()
    }
}

/// The same with job 1 in another state at the end, and with beats until then.
fn ends_as(state: &str, until: Ms) -> History {
    let mut history = sound();
    history.last.iter_mut().for_each(|look| look.jobs = vec![shown(1, state)]);
    history.lives = vec![life("j1", 0, (100..until).step_by(100))];
    history
}

fn with(mut history: History, more: impl IntoIterator<Item = Entry>) -> History {
    history.entries.extend(more);
    history
}

fn broken(mut history: History, from: Ms, to: Ms) -> History {
    history.faults.push(Fault { from, to, what: "n1 is cut off".to_owned(), lets_go: None });
    history
}

#[track_caller]
fn refused(history: &History, words: &str) {
    let wrong = check(history);
    assert!(wrong.len() == 1 && wrong[0].contains(words), "{words}: {wrong:#?}");
}

#[track_caller]
fn sound_is(history: &History) {
    assert_eq!(check(history), Vec::<String>::new());
}

#[test]
fn what_is_as_it_should_be_is_not_refused() {
    sound_is(&sound());
    sound_is(&History::default());
}

#[test]
fn a_number_given_twice_and_a_job_with_two_numbers() {
    let mut history = sound();
    history.looks.push(Look {
        node: 0,
        begin: 20,
        end: 21,
        jobs: vec![Shown { name: "j2".to_owned(), ..shown(1, "running") }],
    });
    refused(&history, "number 1 was given twice");
    let mut history = sound();
    history.looks.push(Look {
        node: 0,
        begin: 20,
        end: 21,
        jobs: vec![Shown { name: "j1".to_owned(), ..shown(2, "running") }],
    });
    refused(&history, "j1 is two jobs");
}

#[test]
fn an_acknowledged_job_that_nobody_knows() {
    let mut history = sound();
    history.last[1].jobs.clear();
    refused(&history, "node 1 does not know the jobs [1]");
    // It is unknown whether it was accepted: then it need not exist.
    let lost = entry(5, 6, Ask::Submit("j7".to_owned()), Heard::Unknown("gone".to_owned()));
    sound_is(&with(sound(), [lost]));
}

#[test]
fn nodes_that_do_not_agree() {
    let mut history = sound();
    history.last[1].jobs[0].class = "standby".to_owned();
    refused(&history, "nodes do not agree on job 1");
}

#[test]
fn a_kill_that_was_acknowledged_and_not_done() {
    let kill = || [done(900, 1_000, Ask::Kill(1))];
    sound_is(&with(ends_as("ended", 1_500), kill()));
    refused(&with(ends_as("ended", LATE + 300), kill()), "job 1 was killed at 1000, and its process");
    refused(&with(ends_as("suspended", 1_500), kill()), "job 1 was killed at 1000, and is not over");
    // If something was broken all the time, nothing is late yet.
    sound_is(&with(broken(ends_as("ended", LATE + 300), 1_100, LATE + 200), kill()));
    // Nor is it if it was not acknowledged.
    let kept = entry(900, 1_000, Ask::Kill(1), Heard::Unknown("slow".to_owned()));
    sound_is(&with(sound(), [kept]));
}

#[test]
fn a_suspension_that_was_acknowledged_and_does_not_hold() {
    let suspend = || done(900, 1_000, Ask::Suspend(1));
    sound_is(&with(ends_as("suspended", 1_500), [suspend()]));
    refused(&with(ends_as("suspended", LATE + 300), [suspend()]), "job 1 was suspended at 1000, and its process");
    refused(&with(ends_as("asleep", 1_500), [suspend()]), "job 1 was suspended at 1000, and is not");
    // When a daemon ends, all jobs of its node run freely, and it stops them again when it is back.
    let restarted = |node: usize, beats: Ms| {
        let mut history = with(ends_as("suspended", 1_500), [suspend()]);
        history.lives[0].beats.push(beats);
        history.faults.push(Fault { from: LATE, to: LATE + 50, what: "restart".to_owned(), lets_go: Some(node) });
        history
    };
    sound_is(&restarted(0, LATE + 20));
    refused(&restarted(1, LATE + 20), "was suspended at 1000, and its process");
    refused(&restarted(0, LATE + 51 + BOUND_MS), "was suspended at 1000, and its process");
    // It was resumed, or may have been; overlapping operations may have happened in any order.
    let resume = |heard| entry(950, 1_050, Ask::Resume(1), heard);
    sound_is(&with(sound(), [suspend(), resume(Heard::Done(1))]));
    sound_is(&with(sound(), [suspend(), entry(100, 200, Ask::Resume(1), Heard::Unknown("slow".to_owned()))]));
    // A resumption that ended before it, or was refused, does not count.
    let before = done(100, 200, Ask::Resume(1));
    refused(&with(ends_as("suspended", LATE + 300), [suspend(), before]), "was suspended");
    let refusal = resume(Heard::Refused("no".to_owned()));
    refused(&with(ends_as("suspended", LATE + 300), [suspend(), refusal]), "was suspended");
}

#[test]
fn a_resumption_that_was_acknowledged_and_not_done() {
    let asked = || [done(900, 1_000, Ask::Suspend(1)), done(2_000, 2_100, Ask::Resume(1))];
    refused(&with(ends_as("suspended", 1_500), asked()), "job 1 was resumed at 2100, and is suspended");
    sound_is(&with(sound(), asked()));
}

#[test]
fn a_job_that_comes_back_from_its_end() {
    let mut history = ends_as("ended", 1_000);
    history.lives[0].ended = Some(0);
    let look = |begin, state| Look { node: 0, begin, end: begin + 1, jobs: vec![shown(1, state)] };
    history.looks = vec![look(500, "running"), look(2_000, "ended")];
    sound_is(&history);
    history.looks.push(look(3_000, "running"));
    refused(&history, "node 0: job 1 was over at 2001, and is running at 3001");
    // Reported as over, and still running.
    let mut history = ends_as("ended", END);
    history.lives[0].ended = Some(0);
    history.looks = vec![look(2_000, "ended")];
    refused(&history, "job 1 was said to be over at 2001, and its process");
}

#[test]
fn an_end_that_nobody_asked_for_and_a_code_that_is_lost() {
    refused(&ends_as("ended", 1_000), "job 1 is over, and nobody ended it");
    let lost = |mut history: History| {
        history.last.iter_mut().for_each(|look| look.jobs[0].why = Some("node n1 was lost".to_owned()));
        history
    };
    refused(&lost(ends_as("ended", 1_000)), "job 1 is over, and nobody ended it");
    sound_is(&broken(lost(ends_as("ended", 1_000)), 500, 900));
    let told = [done(1_000, 1_010, Ask::Exit(1, 3))];
    refused(&with(ends_as("ended", 900), told.clone()), "the exit code 3 of job 1 was acknowledged");
    let mut history = with(ends_as("ended", 900), told);
    history.last.iter_mut().for_each(|look| look.jobs[0].code = Some(3));
    sound_is(&history);
    // A node that is cut off for longer than a lease is given up, and what it was told last is lost with it.
    let mut history = with(ends_as("ended", 900), [done(1_000, 1_010, Ask::Exit(1, 3))]);
    history.lease_ms = 6_000;
    sound_is(&broken(history.clone(), 500, 6_600));
    refused(&broken(history, 500, 2_600), "the exit code 3 of job 1 was acknowledged");
}

#[test]
fn a_value_that_is_not_the_last_one() {
    let class = |begin, class: &str| done(begin, begin + 10, Ask::Set(Register::Class(1), class.to_owned()));
    sound_is(&with(sound(), [class(100, "standby"), class(200, "batch")]));
    refused(&with(sound(), [class(100, "batch"), class(200, "standby")]), "Class(1) is batch");
    // Two overlapping ones may happen in any order, and one that was not acknowledged may happen at any time.
    sound_is(&with(sound(), [class(195, "batch"), class(200, "standby")]));
    let late = entry(100, 110, Ask::Set(Register::Class(1), "batch".to_owned()), Heard::Unknown("slow".to_owned()));
    sound_is(&with(sound(), [late, class(200, "standby")]));
    let drained = |value: &str| {
        let mut history = sound();
        let drains = Register::Drains("n1".to_owned());
        history.initial = vec![(drains.clone(), "false".to_owned())];
        history.values = vec![(drains.clone(), value.to_owned())];
        with(history, [done(100, 110, Ask::Set(drains, "true".to_owned()))])
    };
    sound_is(&drained("true"));
    refused(&drained("false"), "is false");
}

#[test]
fn two_lives_of_one_job() {
    let mut history = sound();
    history.lives = vec![life("j1", 0, (100..5_000).step_by(100)), life("j1", 1, (5_000..END).step_by(100))];
    sound_is(&history);
    history.lives[0].beats.push(5_100);
    refused(&history, "j1 lives twice at 5000");
    // Its processes on several nodes are one life.
    let mut history = sound();
    history.lives.push(Life { node: 1, pid: 7, ..life("j1", 0, (100..END).step_by(100)) });
    sound_is(&history);
}

#[test]
fn a_job_that_is_said_to_run_and_does_not() {
    refused(&ends_as("running", END - BOUND_MS - 1_000), "job 1 is said to run, and nobody of it has beaten");
    refused(&ends_as("waiting", END), "job 1 waits, where there is room");
    // Its launcher was not told of it, and has ended: no process will ever enter it.
    let orphan = |seen: Ms| {
        let mut history = ends_as("running", 0);
        history.entries[0].heard = Heard::Unknown("gone".to_owned());
        history.looks.push(Look { node: 0, begin: seen, end: seen, jobs: vec![shown(1, "running")] });
        history
    };
    sound_is(&orphan(END - 20_000));
    refused(&orphan(END - 80_000), "job 1 is said to run, and nobody of it has beaten");
}

#[test]
fn two_gangs_in_one_slot() {
    let two = |other: Ms| {
        let mut history = sound();
        history.slot_ms = 50;
        history.entries.push(entry(0, 10, Ask::Submit("j2".to_owned()), Heard::Done(2)));
        history.last.iter_mut().for_each(|look| look.jobs.push(shown(2, "running")));
        // One beats in the middle of each even slot.
        history.lives = vec![life("j1", 0, (125..END).step_by(100)), life("j2", 0, (other..END).step_by(100))];
        history
    };
    sound_is(&two(175));
    let wrong = check(&two(127));
    assert!(!wrong.is_empty() && wrong.iter().all(|words| words.contains("j1 and j2 shared")), "{wrong:?}");
    // On different nodes they are on different CPUs.
    let mut history = two(127);
    history.lives[1].node = 1;
    sound_is(&history);
    // While something is broken, and for a while after it, Linux may schedule them.
    sound_is(&broken(two(127), 0, END - 2_000));
}
