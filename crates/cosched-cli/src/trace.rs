//! `cosched trace`: slots, jobs and switches of some seconds as a Chrome trace, which Perfetto shows on one time axis.
//!
//! The slots are computed from the plans and the clock, as the slot thread computes them; the rest is the daemon's events, and its
//! counters, which are sampled four times a second.

use crate::context::Context;
use crate::jobs;
use crate::out::{Failure, print};
use clap::Args;
use cosched_api::{Client, EventKind, Job, PlanEvent, Status, StreamEvent, StreamRequest, parse};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const SAMPLE_PERIOD: Duration = Duration::from_millis(250);
/// A trace that is too large to open is of no use.
const SLICES_MAX: u64 = 2_000_000;
/// The lanes: columns of the matrix, jobs, counters.
const SLOTS: u32 = 1;
const JOBS: u32 = 2;
const COUNTS: u32 = 3;
/// The first column's thread. Perfetto takes a thread 0 for that with the number of its process, which is another column's.
const FIRST: usize = 1;

#[derive(Args, Debug)]
#[command(after_help = crate::commands::help::TRACE)]
pub(crate) struct Trace {
    /// How long to record, as 500ms, 10s or 2min
    #[arg(long = "for", value_name = "TIME", value_parser = parse::duration, default_value = "10s")]
    pub(crate) time: Duration,
}

/// `cosched trace`
pub(crate) fn trace(context: &Context, options: &Trace) -> Result<u8, Failure> {
    let mut client = jobs::connect(context)?;
    let status = client.status()?;
    let slices = options.time.as_millis() as u64 / status.slot_length_ms.max(1) * status.cpus.len() as u64;
    if slices > SLICES_MAX {
        let why = format!("{slices} slots of CPUs would be drawn, and the maximum is {SLICES_MAX}");
        return Err(Failure::explained(2, "the trace would be too long", &why, "record a shorter time with --for"));
    }
    let recorded = record(&mut client, &status, options.time)?;
    print(&format!("{}\n", recorded.render()))?;
    Ok(0)
}

/// What was recorded, on the daemon's clock.
struct Recorded {
    node: String,
    from_us: f64,
    to_us: f64,
    /// Jobs that ran at the beginning.
    jobs: Vec<Job>,
    events: Vec<StreamEvent>,
    samples: Vec<(f64, Status, Vec<Job>)>,
}

fn record(client: &mut Client, status: &Status, time: Duration) -> Result<Recorded, Failure> {
    let stream = client.stream(&StreamRequest { after: None, follow: true })?;
    let (tell, told) = channel();
    std::thread::spawn(move || stream.map_while(Result::ok).all(|event| tell.send(event).is_ok()));
    let from_us = now_us();
    let mut recorded = Recorded {
        node: status.node.clone(),
        from_us,
        to_us: from_us,
        jobs: client.jobs(false)?.jobs,
        events: Vec::new(),
        samples: Vec::new(),
    };
    let end = Instant::now() + time;
    let mut sample = Instant::now();
    while Instant::now() < end {
        if sample <= Instant::now() {
            sample = Instant::now() + SAMPLE_PERIOD;
            recorded.samples.push((now_us(), client.status()?, client.jobs(false)?.jobs));
        }
        match told.recv_timeout(sample.min(end).saturating_duration_since(Instant::now())) {
            Ok(event) => recorded.events.push(event),
            Err(RecvTimeoutError::Timeout) => (),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Failure::explained(3, "the trace is not complete", "the daemon went away", "record again"));
            }
        }
    }
    recorded.to_us = now_us();
    Ok(recorded)
}

fn now_us() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as f64 / 1e3
}

impl Recorded {
    /// The trace as JSON; times are microseconds since its beginning.
    fn render(&self) -> Value {
        let mut all = Vec::new();
        for (pid, name) in [(SLOTS, "Slots of the matrix"), (JOBS, "Jobs"), (COUNTS, "Counted")] {
            all.push(json!({"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}}));
            all.push(json!({"ph": "M", "name": "process_sort_index", "pid": pid, "args": {"sort_index": pid}}));
        }
        self.slots(&mut all);
        self.lives(&mut all);
        self.counts(&mut all);
        json!({
            "displayTimeUnit": "ms",
            "otherData": {"by": "cosched", "node": self.node, "begin_unix_us": self.from_us},
            "traceEvents": all,
        })
    }

    /// The slots of each plan, until the next plan.
    fn slots(&self, all: &mut Vec<Value>) {
        let names = self.names();
        let plans: Vec<&PlanEvent> = self.events.iter().filter_map(|event| event.plan.as_ref()).collect();
        let begin = |plan: &PlanEvent| {
            ((plan.epoch_unix_ns + plan.from_slot * plan.slot_length_ns) as f64 / 1e3).max(self.from_us)
        };
        let mut columns = BTreeMap::new();
        for (at, plan) in plans.iter().enumerate() {
            columns.extend((FIRST..).zip(&plan.matrix.columns));
            let to_us = plans.get(at + 1).map_or(self.to_us, |next| begin(next).min(self.to_us));
            self.slots_of(plan, begin(plan), to_us, &names, all);
        }
        for (tid, name) in columns {
            all.push(json!({"ph": "M", "name": "thread_name", "pid": SLOTS, "tid": tid, "args": {"name": name}}));
        }
    }

    fn slots_of(&self, plan: &PlanEvent, from_us: f64, to_us: f64, names: &BTreeMap<u64, &str>, all: &mut Vec<Value>) {
        let (slot_us, epoch_us) = (plan.slot_length_ns as f64 / 1e3, plan.epoch_unix_ns as f64 / 1e3);
        let turns = &plan.matrix.turns;
        if turns.is_empty() || slot_us <= 0.0 {
            return;
        }
        let mut slot = ((from_us - epoch_us) / slot_us) as u64;
        while epoch_us + slot as f64 * slot_us < to_us {
            let begin = (epoch_us + slot as f64 * slot_us).max(from_us);
            let end = (epoch_us + (slot + 1) as f64 * slot_us).min(to_us);
            let row = turns[(slot % turns.len() as u64) as usize];
            let cells = plan.matrix.rows.get(row as usize).map_or(&[][..], |row| &row.cells);
            for (tid, job) in (FIRST..).zip(cells).filter_map(|(tid, job)| Some((tid, (*job)?))) {
                let name = format!("{job} {}", names.get(&job).copied().unwrap_or_default());
                all.push(json!({
                    "ph": "X", "cat": "slot", "name": name.trim_end(), "pid": SLOTS, "tid": tid, "ts": begin - self.from_us,
                    "dur": end - begin, "args": {"job": job, "row": row, "slot": slot, "plan": plan.generation},
                }));
            }
            slot += 1;
        }
    }

    fn names(&self) -> BTreeMap<u64, &str> {
        let told = self.events.iter().filter_map(|event| event.job.as_ref()).map(|job| (job.id, job.name.as_str()));
        self.jobs.iter().map(|job| (job.id, job.name.as_str())).chain(told).collect()
    }

    /// The states of the jobs, and their other events.
    fn lives(&self, all: &mut Vec<Value>) {
        for (job, name) in self.names() {
            let title = format!("{job} {name}");
            all.push(json!({"ph": "M", "name": "thread_name", "pid": JOBS, "tid": job, "args": {"name": title}}));
            let before = self.jobs.iter().find(|of| of.id == job).map(|of| (self.from_us, of.state));
            let mut state = before;
            let slice = |state: &str, from_us: f64, to_us: f64| {
                let ts = from_us - self.from_us;
                json!({"ph": "X", "cat": "state", "name": state, "pid": JOBS, "tid": job, "ts": ts, "dur": to_us - from_us, "args": {"job": job}})
            };
            for event in self.events.iter().filter(|event| event.kind == EventKind::Job) {
                let Some(of) = event.job.as_ref().filter(|of| of.id == job) else { continue };
                let at = (event.unix_ms as f64 * 1e3).clamp(self.from_us, self.to_us);
                all.push(json!({
                    "ph": "i", "s": "t", "cat": "event", "name": of.what, "pid": JOBS, "tid": job, "ts": at - self.from_us,
                    "args": {"job": job, "detail": of.detail},
                }));
                if state.is_none_or(|(_, state)| state != of.state) {
                    all.extend(state.map(|(from, state)| slice(state.name(), from, at)));
                    state = Some((at, of.state));
                }
            }
            all.extend(state.filter(|(_, of)| !of.has_ended()).map(|(from, of)| slice(of.name(), from, self.to_us)));
        }
    }

    /// Switches, CPU time and boosts between two samples.
    fn counts(&self, all: &mut Vec<Value>) {
        let mut count = |name: String, at: f64, value: f64| {
            all.push(
                json!({"ph": "C", "name": name, "pid": COUNTS, "ts": at - self.from_us, "args": {"value": value}}),
            );
        };
        for pair in self.samples.windows(2) {
            let [(from, was, jobs_were), (to, is, jobs_are)] = pair else { continue };
            let seconds = (to - from) / 1e6;
            let more = |now: u64, before: u64| now.saturating_sub(before) as f64;
            count("switches/s".to_owned(), *from, more(is.switches.count, was.switches.count) / seconds);
            count("late switches".to_owned(), *from, more(is.switches.late, was.switches.late));
            for job in jobs_are {
                let Some(before) = jobs_were.iter().find(|of| of.id == job.id) else { continue };
                let cpus = more(job.cpu_time_ms, before.cpu_time_ms) / 1e3 / seconds;
                count(format!("CPUs used by {} {}", job.id, job.name), *from, cpus);
                if let Some(boosts) = job.boosts {
                    count(
                        format!("boosts/s of {} {}", job.id, job.name),
                        *from,
                        more(boosts, before.boosts.unwrap_or(0)) / seconds,
                    );
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::tests::job;

    /// Two gangs in turn, slots of 1 ms on two CPUs, one of which the second gang does not have.
    fn recorded() -> Recorded {
        let plan = json!({"generation": 4, "epoch_unix_ns": 0, "from_slot": 0, "slot_length_ns": 1_000_000, "policy": "gang", "sharing": "soft",
            "matrix": {"columns": ["cpu0", "cpu1"], "text": "", "slot": 0, "current": [], "cycle_slots": 2, "turns": [0, 1],
                "rows": [{"index": 0, "cells": [7, 7], "also": [], "slots": 1}, {"index": 1, "cells": [8, null], "also": [], "slots": 1}]}});
        let event = |of: Value| serde_json::from_value::<StreamEvent>(of).expect("the literal is an event");
        let ended = json!({"what": "ended", "detail": "exit code 0", "id": 7, "name": "a", "uid": 1, "user": "ann",
            "class": "batch", "cpus": 2, "state": "ended"});
        Recorded {
            node: "n".into(),
            from_us: 10_000.0,
            to_us: 14_500.0,
            jobs: vec![job(7, "a"), job(8, "b")],
            events: vec![
                event(json!({"unix_ms": 9, "kind": "plan", "plan": plan})),
                event(json!({"unix_ms": 13, "kind": "job", "job": ended})),
            ],
            samples: Vec::new(),
        }
    }

    #[test]
    fn slots_and_states_are_where_the_clock_has_them() {
        let trace = recorded().render();
        let all = trace["traceEvents"].as_array().unwrap();
        let of = |cat: &str| {
            let one = |e: &Value| {
                (
                    e["name"].as_str().unwrap().to_owned(),
                    e["tid"].as_u64().unwrap(),
                    e["ts"].as_f64().unwrap(),
                    e["dur"].as_f64(),
                )
            };
            all.iter().filter(|e| e["cat"] == cat).map(one).collect::<Vec<_>>()
        };
        let slot = |name: &str, tid, ts, dur| (name.to_owned(), tid, ts, Some(dur));
        assert_eq!(
            of("slot"),
            [
                slot("7 a", 1, 0.0, 1000.0),
                slot("7 a", 2, 0.0, 1000.0),
                slot("8 b", 1, 1000.0, 1000.0),
                slot("7 a", 1, 2000.0, 1000.0),
                slot("7 a", 2, 2000.0, 1000.0),
                slot("8 b", 1, 3000.0, 1000.0),
                slot("7 a", 1, 4000.0, 500.0),
                slot("7 a", 2, 4000.0, 500.0),
            ]
        );
        assert_eq!(of("state"), [slot("running", 7, 0.0, 3000.0), slot("running", 8, 0.0, 4500.0)]);
        assert_eq!(of("event"), [("ended".to_owned(), 7, 3000.0, None)]);
    }
}
