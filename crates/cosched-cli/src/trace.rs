//! `cosched trace`: slots, jobs and switches of some seconds as a Chrome trace, which Perfetto shows on one time axis.
//!
//! The slots, and when each gang runs and stops, are computed from the plans and the clock, as the slot thread computes them; the rest
//! is the daemon's events, and its counters, which are sampled four times a second.

mod gangs;

use crate::context::Context;
use crate::jobs;
use crate::out::{Failure, print};
use clap::Args;
use cosched_api::{
    Client, EventKind, Job, JobEvent, JobState, PlanEvent, Row, Status, StreamEvent, StreamRequest, parse,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const SAMPLE_PERIOD: Duration = Duration::from_millis(250);
/// A trace that is too large to open is of no use.
const SLICES_MAX: u64 = 2_000_000;
/// The lanes: columns of the matrix, jobs, gangs, counters.
const SLOTS: u32 = 1;
const JOBS: u32 = 2;
const GANGS: u32 = 3;
const COUNTS: u32 = 4;
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
        for (pid, name) in
            [(SLOTS, "Slots of the matrix"), (JOBS, "Jobs"), (GANGS, "Gangs: run and stop"), (COUNTS, "Counted")]
        {
            all.push(json!({"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}}));
            all.push(json!({"ph": "M", "name": "process_sort_index", "pid": pid, "args": {"sort_index": pid}}));
        }
        self.slots(&mut all);
        self.lives(&mut all);
        self.gangs(&mut all);
        self.counts(&mut all);
        json!({
            "displayTimeUnit": "ms",
            "otherData": {"by": "cosched", "node": self.node, "begin_unix_us": self.from_us},
            "traceEvents": all,
        })
    }

    /// The plans, each until the next.
    fn plans(&self) -> Vec<(&PlanEvent, f64, f64)> {
        let plans: Vec<&PlanEvent> = self.events.iter().filter_map(|event| event.plan.as_ref()).collect();
        let begin = |plan: &PlanEvent| {
            ((plan.epoch_unix_ns + plan.from_slot * plan.slot_length_ns) as f64 / 1e3).max(self.from_us)
        };
        let end = |at: usize| plans.get(at + 1).map_or(self.to_us, |next| begin(next).min(self.to_us));
        plans.iter().enumerate().map(|(at, plan)| (*plan, begin(plan), end(at))).collect()
    }

    fn slots(&self, all: &mut Vec<Value>) {
        let names = self.names();
        let mut columns = BTreeMap::new();
        for (plan, from_us, to_us) in self.plans() {
            columns.extend((FIRST..).zip(&plan.matrix.columns));
            for slot in slots_of(plan, from_us, to_us) {
                let cells = slot.row.map_or(&[][..], |row| &row.cells);
                for (tid, job) in (FIRST..).zip(cells).filter_map(|(tid, job)| Some((tid, (*job)?))) {
                    let name = titled(job, names.get(&job).copied().unwrap_or_default());
                    all.push(json!({
                        "ph": "X", "cat": "slot", "name": name, "pid": SLOTS, "tid": tid, "ts": slot.from_us - self.from_us,
                        "dur": slot.to_us - slot.from_us,
                        "args": {"job": job, "row": slot.index, "slot": slot.number, "plan": plan.generation},
                    }));
                }
            }
        }
        for (tid, name) in columns {
            all.push(lane(SLOTS, tid as u64, name));
        }
    }

    fn names(&self) -> BTreeMap<u64, &str> {
        let told = self.events.iter().filter_map(|event| event.job.as_ref()).map(|job| (job.id, job.name.as_str()));
        self.jobs.iter().map(|job| (job.id, job.name.as_str())).chain(told).collect()
    }

    /// The states of the jobs, and their other events.
    fn lives(&self, all: &mut Vec<Value>) {
        for (job, name) in self.names() {
            all.push(lane(JOBS, job, &titled(job, name)));
            for (at, of) in self.told(job) {
                all.push(json!({
                    "ph": "i", "s": "t", "cat": "event", "name": of.what, "pid": JOBS, "tid": job, "ts": at - self.from_us,
                    "args": {"job": job, "detail": of.detail},
                }));
            }
            let states = self.states(job).into_iter();
            all.extend(
                states.map(|(state, from_us, to_us)| self.span(JOBS, "state", job, (state.name(), from_us, to_us))),
            );
        }
    }

    /// What a job does from when to when, in its lane.
    fn span(&self, pid: u32, cat: &str, job: u64, (what, from_us, to_us): (&str, f64, f64)) -> Value {
        json!({
            "ph": "X", "cat": cat, "name": what, "pid": pid, "tid": job, "ts": from_us - self.from_us, "dur": to_us - from_us,
            "args": {"job": job},
        })
    }

    /// What the daemon said of a job, and when.
    fn told(&self, job: u64) -> impl Iterator<Item = (f64, &JobEvent)> {
        let of_it = move |event: &StreamEvent| {
            event.kind == EventKind::Job && event.job.as_ref().is_some_and(|of| of.id == job)
        };
        self.events.iter().filter(move |event| of_it(event)).filter_map(|event| {
            Some(((event.unix_ms as f64 * 1e3).clamp(self.from_us, self.to_us), event.job.as_ref()?))
        })
    }

    /// The states of a job before its end, each from when to when.
    fn states(&self, job: u64) -> Vec<(JobState, f64, f64)> {
        let before = self.jobs.iter().find(|of| of.id == job).map(|of| (of.state, self.from_us));
        let changes: Vec<_> = before.into_iter().chain(self.told(job).map(|(at, of)| (of.state, at))).collect();
        let mut states: Vec<(JobState, f64, f64)> = Vec::new();
        for (state, at) in changes {
            match states.last_mut() {
                Some(last) if last.0 == state => continue,
                Some(last) => last.2 = at,
                None => (),
            }
            states.push((state, at, self.to_us));
        }
        states.retain(|(state, ..)| !state.has_ended());
        states
    }

    /// Switches, CPU time, waits and boosts between two samples.
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
                let mut of_job = |what: &str, now: u64, before: u64, unit: f64| {
                    count(format!("{what} {} {}", job.id, job.name), *from, more(now, before) / unit / seconds);
                };
                of_job("CPUs used by", job.cpu_time_ms, before.cpu_time_ms, 1e3);
                if let Some(boosts) = job.boosts {
                    of_job("boosts/s of", boosts, before.boosts.unwrap_or(0), 1.0);
                }
                if let (Some(now), Some(before)) = (&job.waiting, &before.waiting) {
                    of_job("waits/s of", now.waits, before.waits, 1.0);
                    of_job("spinning in", now.spin_ms, before.spin_ms, 1e3);
                    of_job("blocked in", now.block_ms, before.block_ms, 1e3);
                }
            }
        }
    }
}

fn titled(job: u64, name: &str) -> String {
    format!("{job} {name}").trim_end().to_owned()
}

/// The name of a lane.
fn lane(pid: u32, tid: u64, name: &str) -> Value {
    json!({"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": name}})
}

/// A slot, or what the record has of it.
struct Slot<'a> {
    number: u64,
    index: u32,
    row: Option<&'a Row>,
    from_us: f64,
    to_us: f64,
}

/// The slots of a plan within a time; none while no gang has any.
fn slots_of(plan: &PlanEvent, from_us: f64, to_us: f64) -> impl Iterator<Item = Slot<'_>> {
    let (slot_us, epoch_us) = (plan.slot_length_ns as f64 / 1e3, plan.epoch_unix_ns as f64 / 1e3);
    let turns = &plan.matrix.turns;
    let begin = move |number: u64| epoch_us + number as f64 * slot_us;
    let first = (!turns.is_empty() && slot_us > 0.0).then(|| ((from_us - epoch_us) / slot_us) as u64);
    let numbers = first.into_iter().flat_map(|first| first..).take_while(move |number| begin(*number) < to_us);
    numbers.map(move |number| {
        let index = turns[(number % turns.len() as u64) as usize];
        let row = plan.matrix.rows.get(index as usize);
        Slot { number, index, row, from_us: begin(number).max(from_us), to_us: begin(number + 1).min(to_us) }
    })
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

    /// The slices of a kind: name, lane, beginning, length.
    fn of(recorded: &Recorded, cat: &str) -> Vec<(String, u64, f64, Option<f64>)> {
        let trace = recorded.render();
        let all = trace["traceEvents"].as_array().unwrap().iter().filter(|e| e["cat"] == cat);
        let text = |e: &Value| e["name"].as_str().unwrap().to_owned();
        all.map(|e| (text(e), e["tid"].as_u64().unwrap(), e["ts"].as_f64().unwrap(), e["dur"].as_f64())).collect()
    }

    fn slice(name: &str, tid: u64, ts: f64, dur: f64) -> (String, u64, f64, Option<f64>) {
        (name.to_owned(), tid, ts, Some(dur))
    }

    #[test]
    fn slots_and_states_are_where_the_clock_has_them() {
        let recorded = recorded();
        assert_eq!(
            of(&recorded, "slot"),
            [
                slice("7 a", 1, 0.0, 1000.0),
                slice("7 a", 2, 0.0, 1000.0),
                slice("8 b", 1, 1000.0, 1000.0),
                slice("7 a", 1, 2000.0, 1000.0),
                slice("7 a", 2, 2000.0, 1000.0),
                slice("8 b", 1, 3000.0, 1000.0),
                slice("7 a", 1, 4000.0, 500.0),
                slice("7 a", 2, 4000.0, 500.0),
            ]
        );
        assert_eq!(of(&recorded, "state"), [slice("running", 7, 0.0, 3000.0), slice("running", 8, 0.0, 4500.0)]);
        assert_eq!(of(&recorded, "event"), [("ended".to_owned(), 7, 3000.0, None)]);
    }

    #[test]
    fn gangs_run_in_their_rows_and_what_else_they_may_do_follows_from_sharing_and_share() {
        let mut recorded = recorded();
        let gangs = |recorded: &Recorded, job| -> Vec<_> {
            of(recorded, "gang").into_iter().filter(|of| of.1 == job).map(|of| (of.0, of.2, of.3.unwrap())).collect()
        };
        let turns = |other: &str| {
            [
                (other, 0.0, 1000.0),
                ("runs", 1000.0, 1000.0),
                (other, 2000.0, 1000.0),
                ("runs", 3000.0, 1000.0),
                (other, 4000.0, 500.0),
            ]
            .map(|(what, ts, dur)| (what.to_owned(), ts, dur))
        };
        assert_eq!(gangs(&recorded, 8), turns("may run"), "soft gangs use what others leave idle");
        recorded.jobs[1].share_max = Some(0.5);
        assert_eq!(gangs(&recorded, 8), turns("stopped"), "a share is not exceeded");
        recorded.jobs[1].share_max = None;
        let plan = recorded.events[0].plan.as_mut().unwrap();
        plan.sharing = cosched_api::Sharing::Strict;
        assert_eq!(gangs(&recorded, 8), turns("stopped"));
        // In the other's row it fills what is free.
        recorded.events[0].plan.as_mut().unwrap().matrix.rows[0].also = vec![8];
        assert_eq!(gangs(&recorded, 8), turns("may run"));
    }

    /// The daemon tells states up to 100 ms late: here a plan without a gang begins before it is told that the gang is suspended,
    /// and one with it before it is told that it is resumed.
    #[test]
    fn a_suspension_lasts_from_plan_to_plan_and_nothing_overlaps() {
        let mut recorded = recorded();
        let plan = recorded.events.remove(0);
        let event = |what: &str, state: &str, unix_ms: u64| {
            let job = json!({"what": what, "detail": "", "id": 8, "name": "b", "uid": 1, "user": "ann", "class": "batch", "cpus": 1, "state": state});
            serde_json::from_value::<StreamEvent>(json!({"unix_ms": unix_ms, "kind": "job", "job": job})).unwrap()
        };
        let later = |from_slot: u64, turns: Vec<u32>| {
            let mut later = plan.clone();
            let of = later.plan.as_mut().unwrap();
            (of.from_slot, of.matrix.turns) = (from_slot, turns);
            if !of.matrix.turns.contains(&1) {
                of.matrix.rows.truncate(1);
            }
            later
        };
        recorded.events = vec![
            plan.clone(),
            later(11, vec![0]),
            event("suspended", "suspended", 12),
            later(13, vec![1]),
            event("resumed", "running", 14),
        ];
        let spans: Vec<_> =
            of(&recorded, "gang").into_iter().filter(|of| of.1 == 8).map(|of| (of.0, of.2, of.3.unwrap())).collect();
        let expected = [("may run", 0.0, 1000.0), ("suspended", 2000.0, 1000.0), ("runs", 3000.0, 1500.0)];
        assert_eq!(spans, expected.map(|(what, ts, dur)| (what.to_owned(), ts, dur)));
    }
}
