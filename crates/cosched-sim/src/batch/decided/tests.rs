//! Schedulers as closures: what they are told, what they may decide, and first come, first served beside the engine's own.

use super::*;
use crate::batch::{BatchJob, EventOrder, Policy, allocate, simulate};
use crate::workload::batsim::{DescribedJob, read_batsim_described};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

fn job(id: usize, submit_us: u64, size: u32, run_us: u64) -> DescribedJob {
    let id = format!("w0!{id}");
    let description = json!({ "id": id, "res": size, "subtime": submit_us as f64 / 1e6, "profile": "p" });
    DescribedJob { id, description, profile: "p".into(), size, submit_us, run_us, walltime_us: None }
}

fn workload(jobs: Vec<DescribedJob>, procs: u32) -> DescribedWorkload {
    DescribedWorkload { procs, jobs, profiles: serde_json::Map::new(), dropped: Vec::new() }
}

fn answer(now: &Value, decisions: &[(&str, Value)]) -> Vec<u8> {
    let event = |(kind, data): &(&str, Value)| json!({ "timestamp": now, "type": kind, "data": data });
    let events: Vec<Value> = decisions.iter().map(event).collect();
    json!({ "now": now, "events": events }).to_string().into_bytes()
}

/// First come, first served, on the lowest free hosts.
fn fcfs(procs: u32) -> impl FnMut(&str) -> Result<Vec<u8>, ()> {
    let (mut free, mut queue) = (vec![true; procs as usize], VecDeque::new());
    move |message| {
        let message: Value = serde_json::from_str(message).unwrap();
        for event in message["events"].as_array().unwrap() {
            match event["type"].as_str().unwrap() {
                "JOB_SUBMITTED" => queue.push_back(event["data"]["job"].clone()),
                "JOB_COMPLETED" => {
                    for (low, high) in hosts::parse(event["data"]["alloc"].as_str().unwrap()).unwrap() {
                        free[low as usize..=high as usize].fill(true);
                    }
                }
                _ => (),
            }
        }
        let mut decisions = Vec::new();
        while let Some(job) = queue.front() {
            let found: Vec<usize> = (0..free.len()).filter(|host| free[*host]).collect();
            let Some(found) = found.get(..job["res"].as_u64().unwrap() as usize) else { break };
            found.iter().for_each(|host| free[*host] = false);
            let words: Vec<String> = found.iter().map(usize::to_string).collect();
            decisions.push(("EXECUTE_JOB", json!({ "job_id": job["id"], "alloc": words.join(" ") })));
            queue.pop_front();
        }
        Ok(answer(&message["now"], &decisions))
    }
}

proptest! {
    #[test]
    fn first_come_first_served_from_outside_is_the_engine_s_own(
        mut times in prop::collection::vec((0..40_u64, 1..=8_u32, 1..20_u64), 1..40),
    ) {
        times.sort_by_key(|(submit_us, ..)| *submit_us);
        let of = |(number, (submit_us, size, run_us)): (usize, &(u64, u32, u64))| job(number, *submit_us, *size, *run_us);
        let outside = simulate_decided(&workload(times.iter().enumerate().map(of).collect(), 8), 8, fcfs(8)).unwrap();
        let of = |(submit_us, size, run_us): &(u64, u32, u64)| BatchJob {
            number: 0, user: 0, submit_us: *submit_us, size: *size, run_us: *run_us, estimate_us: *run_us,
        };
        let jobs: Vec<BatchJob> = times.iter().map(of).collect();
        let own = simulate(&jobs, 8, Policy::Fcfs, EventOrder::All);
        let found: Vec<(u64, u64)> = outside.jobs.iter().map(|job| (job.start_us, job.end_us)).collect();
        let expected: Vec<(u64, u64)> = own.start_us.iter().copied().zip(own.end_us.iter().copied()).collect();
        prop_assert_eq!(found, expected);
        let places: Vec<_> = outside.jobs.into_iter().map(|job| job.places).collect();
        prop_assert_eq!(places, allocate(&jobs, 8, &own));
    }
}

type Seen = Rc<RefCell<Vec<Value>>>;

/// Answers each message with what is next in the list; with nothing when that is empty.
fn script(answers: &[Value]) -> (impl FnMut(&str) -> Result<Vec<u8>, ()> + use<>, Seen) {
    let seen = Seen::default();
    let (mut answers, log) = (VecDeque::from(answers.to_vec()), seen.clone());
    let exchange = move |message: &str| {
        let message: Value = serde_json::from_str(message).unwrap();
        let answer = answers.pop_front().unwrap_or_else(|| json!({ "now": message["now"], "events": [] }));
        log.borrow_mut().push(message);
        Ok(answer.to_string().into_bytes())
    };
    (exchange, seen)
}

fn event(at: f64, kind: &str, data: Value) -> Value {
    json!({ "timestamp": at, "type": kind, "data": data })
}

fn at(now: f64, events: &[Value]) -> Value {
    json!({ "now": now, "events": events })
}

fn execute(at: f64, id: &str, alloc: &str) -> Value {
    event(at, "EXECUTE_JOB", json!({ "job_id": id, "alloc": alloc }))
}

/// Four hosts; a job with a walltime, one that is killed after 3 of 10 s, one that is rejected, and a call.
const FOUR: &str = r#"{"nb_res": 4, "jobs": [
    {"id": "a", "subtime": 1, "res": 2, "profile": "d", "walltime": 4}, {"id": "b", "subtime": 1, "res": 2, "profile": "d"},
    {"id": "c", "subtime": 2, "res": 9, "profile": "d"}], "profiles": {"d": {"type": "delay", "delay": 10}}}"#;

#[test]
fn a_schedule_by_hand() {
    let workload = read_batsim_described(FOUR.as_bytes(), 1.0).unwrap();
    let both = [execute(1.0, "w0!a", "0-1"), execute(1.5, "w0!b", "3 2")];
    let call = event(2.0, "CALL_ME_LATER", json!({ "timestamp": 4.5 }));
    let answers = [
        at(0.0, &[]),
        // It thinks for half a second before it starts the second job.
        at(1.5, &both),
        at(2.0, &[event(2.0, "REJECT_JOB", json!({ "job_id": "w0!c" })), call]),
        at(4.5, &[event(4.5, "KILL_JOB", json!({ "job_ids": ["w0!b"] }))]),
        at(4.5, &[event(4.5, "NOTIFY", json!({ "type": "registration_finished" }))]),
    ];
    let (exchange, seen) = script(&answers);
    let found = simulate_decided(&workload, 4, exchange).unwrap();
    let jobs: Vec<_> = found.jobs.iter().map(|job| (job.start_us, job.end_us, job.end, job.places.clone())).collect();
    let expected = [
        (1_000_000, 5_000_000, JobEnd::WalltimeReached, vec![(0, 1)]),
        (1_500_000, 4_500_000, JobEnd::Killed, vec![(2, 3)]),
        (2_000_000, 2_000_000, JobEnd::Rejected, vec![]),
    ];
    assert_eq!(jobs, expected);
    let seen = seen.borrow();
    let words = |message: &Value| {
        let kinds =
            message["events"].as_array().unwrap().iter().map(|event| event["type"].as_str().unwrap().to_owned());
        (message["now"].as_f64().unwrap(), kinds.collect::<Vec<_>>().join(" "))
    };
    let told: Vec<_> = seen.iter().map(words).collect();
    let told: Vec<_> = told.iter().map(|(now, kinds)| (*now, kinds.as_str())).collect();
    let expected = [
        (0.0, "SIMULATION_BEGINS"),
        (1.0, "JOB_SUBMITTED JOB_SUBMITTED"),
        (2.0, "JOB_SUBMITTED NOTIFY"),
        (4.5, "REQUESTED_CALL"),
        (4.5, "JOB_COMPLETED JOB_KILLED"),
        (5.0, "JOB_COMPLETED"),
        (5.0, "SIMULATION_ENDS"),
    ];
    assert_eq!((told.as_slice(), found.messages), (&expected[..], 7));
    let begins = &seen[0]["events"][0]["data"];
    assert_eq!(
        (&begins["nb_compute_resources"], begins["compute_resources"].as_array().unwrap().len()),
        (&json!(4), 4)
    );
    assert_eq!(begins["profiles"]["w0"]["d"]["delay"], 10);
    let submitted =
        json!({ "job_id": "w0!a", "job": {"id": "w0!a", "subtime": 1, "res": 2, "profile": "d", "walltime": 4} });
    assert_eq!(seen[1]["events"][0]["data"], submitted);
    let killed = json!({ "job_ids": ["w0!b"], "job_progress": { "w0!b": { "profile": "d", "progress": 0.3 } } });
    assert_eq!(seen[4]["events"][1]["data"], killed);
    let ended =
        json!({ "job_id": "w0!a", "job_state": "COMPLETED_WALLTIME_REACHED", "return_code": -1, "alloc": "0-1" });
    assert_eq!(seen[5]["events"][0], json!({ "timestamp": 5.0, "type": "JOB_COMPLETED", "data": ended }));
}

#[test]
fn a_scheduler_that_thinks_is_told_afterwards() {
    // The second job is submitted, and the first one ends, while the scheduler thinks until 10 s.
    let jobs = vec![job(0, 0, 1, 3_000_000), job(1, 5_000_000, 1, 1_000_000)];
    let answers = [at(0.0, &[]), at(10.0, &[execute(0.0, "w0!0", "0")]), at(10.0, &[execute(10.0, "w0!1", "0")])];
    let (exchange, seen) = script(&answers);
    let found = simulate_decided(&workload(jobs, 1), 1, exchange).unwrap();
    let times: Vec<_> = found.jobs.iter().map(|job| (job.start_us, job.end_us)).collect();
    assert_eq!(times, [(0, 3_000_000), (10_000_000, 11_000_000)]);
    let second = &seen.borrow()[2];
    let stamps: Vec<_> = second["events"].as_array().unwrap().iter().map(|event| event["timestamp"].clone()).collect();
    assert_eq!((&second["now"], stamps.as_slice()), (&json!(10.0), &[json!(3.0), json!(5.0), json!(5.0)][..]));
}

#[test]
fn what_cannot_be_is_named() {
    let of = |kind: &str, data: Value| at(1.0, &[event(1.0, kind, data)]);
    let run = |id: &str, alloc: &str| at(1.0, &[execute(1.0, id, alloc)]);
    let twice = at(1.0, &[execute(1.0, "w0!a", "0-1"), execute(1.0, "w0!b", "1-2")]);
    let again = at(1.0, &[execute(1.0, "w0!a", "0-1"), execute(1.0, "w0!a", "2-3")]);
    let kill = |ids: Value| of("KILL_JOB", json!({ "job_ids": ids }));
    let mapped = json!({ "job_id": "w0!a", "alloc": "0-1", "mapping": { "0": "0" } });
    let cases = [
        (json!([]), "it is not a message of Batsim's protocol: invalid"),
        (json!({ "now": 1 }), "missing field `events`"),
        (json!({ "now": 1, "events": [{ "timestamp": 1 }] }), "missing field `type`"),
        (at(0.5, &[]), "`now` is 0.5, and it is 1 s already: the past cannot be changed"),
        (at(1e300, &[]), "`now` is 1e300, which is no time"),
        (at(2.0, &[execute(0.5, "w0!a", "0-1")]), "the timestamp of EXECUTE_JOB is 0.5: times begin at 1"),
        (at(2.0, &[execute(3.0, "w0!a", "0-1")]), "the timestamp of EXECUTE_JOB is 3"),
        (run("w0!x", "0"), "EXECUTE_JOB of `w0!x`: there is no such job"),
        (run("w0!c", "0"), "EXECUTE_JOB of `w0!c`: it has not been submitted"),
        (run("w0!a", "0-4"), "it gets 5 hosts, and has requested 2"),
        (run("w0!a", ""), "it gets 0 hosts"),
        (run("w0!a", "3-4"), "there is no host 4"),
        (run("w0!a", "a-b"), "`a-b` is no interval of hosts"),
        (twice, "EXECUTE_JOB of `w0!b`: host 1 is used by `w0!a`"),
        (again, "EXECUTE_JOB of `w0!a`: it runs already"),
        (of("EXECUTE_JOB", mapped), "EXECUTE_JOB: data.mapping is not simulated"),
        (of("EXECUTE_JOB", json!(7)), "EXECUTE_JOB: data.job_id is not a text"),
        (of("REJECT_JOB", json!({ "job_id": "w0!c" })), "REJECT_JOB of `w0!c`: it has not been submitted"),
        (kill(json!(["w0!a"])), "KILL_JOB of `w0!a`: it does not run"),
        (kill(json!(["w0!\u{1b}[2J"])), "KILL_JOB of `w0!·[2J`: there is no such job"),
        (kill(json!([1])), "KILL_JOB: data.job_ids has something else than ids"),
        (of("CALL_ME_LATER", json!({ "timestamp": 1 })), "CALL_ME_LATER: 1 s is not later"),
        (of("CALL_ME_LATER", json!({ "timestamp": -1 })), "data.timestamp is -1.0, which is no time"),
        (of("NOTIFY", json!({ "type": "hello" })), "no notification is called `hello`"),
        (of("REGISTER_JOB", json!({})), "REGISTER_JOB: it is not simulated; there are EXECUTE_JOB"),
        (at(1.0, &[]), "3 jobs wait, none runs or is to come, and the scheduler awaits no call"),
    ];
    let workload = read_batsim_described(FOUR.as_bytes(), 1.0).unwrap();
    for (answer, part) in cases {
        let (exchange, _) = script(&[at(0.0, &[]), answer.clone()]);
        let found = simulate_decided(&workload, 4, exchange);
        let Err(DecidedError::Wrong(what)) = found else { panic!("{answer}: {found:?}") };
        assert!(what.starts_with("at ") && what.contains(part), "{answer}: {what}");
    }
}

#[test]
fn a_scheduler_that_has_itself_called_for_ever_is_ended() {
    let mut asked = 0_u32;
    let exchange = |message: &str| {
        asked += 1;
        let message: Value = serde_json::from_str(message).unwrap();
        let later = json!({ "timestamp": message["now"].as_f64().unwrap() + 1.0 });
        Ok::<_, ()>(answer(&message["now"], &[("CALL_ME_LATER", later)]))
    };
    let workload = workload(vec![job(0, 0, 1, 1)], 1);
    let mut machine = Machine::new(&workload, 1);
    machine.told.begins(&workload, 1);
    machine.idle_messages_max = 1000;
    let found = run(machine, exchange);
    assert!(matches!(found, Err(DecidedError::Wrong(what)) if what.contains("called 1000 times in a row")));
    assert_eq!(asked, 1001, "the job's submission is no call");
}

#[test]
fn a_scheduler_that_is_gone_is_an_error_until_all_is_decided() {
    let mut left = 3;
    let mut own = fcfs(1);
    let mut exchange = |message: &str| {
        left -= 1;
        if left < 0 { Err("gone") } else { own(message).map_err(|()| "") }
    };
    let jobs = vec![job(0, 0, 1, 5)];
    // It begins, is told of the job and of its end, and is gone before it is told that all has ended.
    assert!(simulate_decided(&workload(jobs.clone(), 1), 1, &mut exchange).is_ok());
    assert_eq!(simulate_decided(&workload(jobs, 1), 1, &mut exchange), Err(DecidedError::Exchange("gone")));
}
