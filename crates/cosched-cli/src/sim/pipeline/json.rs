//! The JSON of `cosched sim pipeline`.

use super::Simulated;
use super::predict::Predicted;
use cosched_sim::pipeline::{PipelineSpec, StageOutcome, Told};
use serde::Serialize;

#[derive(Serialize)]
pub(super) struct Output<'a> {
    name: &'a str,
    rounds: u64,
    model: Model<'a>,
    runs: Vec<Run<'a>>,
}

#[derive(Serialize)]
struct Model<'a> {
    bound_s: f64,
    time_s: f64,
    serial_s: f64,
    limiting: &'a str,
}

#[derive(Serialize)]
struct Run<'a> {
    priorities: String,
    elapsed_s: f64,
    ratio: f64,
    rounds_per_s: f64,
    bound: Bound,
    limit: Limit<'a>,
    hogs_s: f64,
    switches: u64,
    changes: u64,
    events: u64,
    stages: Vec<Stage<'a>>,
    actions: Vec<Action<'a>>,
}

#[derive(Serialize)]
struct Bound {
    compute_s: f64,
    communicate_s: f64,
    io_s: f64,
    limiting: &'static str,
}

#[derive(Serialize)]
struct Limit<'a> {
    resource: &'static str,
    stage: Option<&'a str>,
    share: f64,
}

#[derive(Serialize)]
struct Stage<'a> {
    name: &'a str,
    resource: &'static str,
    incarnations: u32,
    rounds: u64,
    busy_s: f64,
    cpu_s: f64,
    delay_s: f64,
    wait_in_s: f64,
    wait_out_s: f64,
    queue_mean: f64,
}

#[derive(Serialize)]
struct Action<'a> {
    at_s: f64,
    stage: &'a str,
    change: String,
    why: Option<String>,
    refused: bool,
}

fn s(ns: u64) -> f64 {
    ns as f64 / 1e9
}

pub(super) fn output<'a>(spec: &'a PipelineSpec, all: &'a [Simulated], predicted: &'a Predicted) -> Output<'a> {
    let first_ns = all.first().map_or(1, |one| one.outcome.elapsed_ns) as f64;
    let Predicted { bound_s, time_s, serial_s, limiting } = predicted;
    let model = Model { bound_s: *bound_s, time_s: *time_s, serial_s: *serial_s, limiting };
    let runs = all.iter().map(|one| run(spec, one, first_ns)).collect();
    Output { name: &spec.name, rounds: spec.rounds, model, runs }
}

fn run<'a>(spec: &'a PipelineSpec, one: &'a Simulated, first_ns: f64) -> Run<'a> {
    let out = &one.outcome;
    let name = |stage: usize| spec.stages[stage].name.as_str();
    let action = |told: &'a Told| Action {
        at_s: s(told.time_ns),
        stage: name(told.stage),
        change: told.change.to_string(),
        why: told.why.map(|why| why.to_string()),
        refused: told.refused,
    };
    Run {
        priorities: one.priorities.to_string(),
        elapsed_s: s(out.elapsed_ns),
        ratio: out.elapsed_ns as f64 / first_ns,
        rounds_per_s: out.rate(),
        bound: Bound {
            compute_s: s(out.bound.compute_ns),
            communicate_s: s(out.bound.communicate_ns),
            io_s: s(out.bound.io_ns),
            limiting: out.bound.limiting().name(),
        },
        limit: Limit { resource: out.limit.resource.name(), stage: out.limit.stage.map(name), share: out.limit.share },
        hogs_s: s(out.hogs_ns),
        switches: out.switches,
        changes: out.changes,
        events: out.events,
        stages: out.stages.iter().map(stage).collect(),
        actions: out.told.iter().map(action).collect(),
    }
}

fn stage(stage: &StageOutcome) -> Stage<'_> {
    Stage {
        name: &stage.name,
        resource: stage.resource.name(),
        incarnations: stage.incarnations,
        rounds: stage.rounds,
        busy_s: s(stage.busy_ns),
        cpu_s: s(stage.cpu_ns),
        delay_s: s(stage.delay_ns),
        wait_in_s: s(stage.wait_in_ns),
        wait_out_s: s(stage.wait_out_ns),
        queue_mean: stage.queue_mean,
    }
}
