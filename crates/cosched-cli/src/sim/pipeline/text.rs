//! The text output of `cosched sim pipeline`.

use super::predict::Predicted;
use super::{RunPipeline, Simulated};
use crate::table::{Cell, numbers, render, words};
use cosched_sim::pipeline::{PipelineOutcome, PipelineSpec};

pub(super) fn output(
    options: &RunPipeline,
    spec: &PipelineSpec,
    all: &[Simulated],
    predicted: &Predicted,
    width: Option<usize>,
) -> String {
    let mut text = rules(spec, all, width);
    let Predicted { bound_s, time_s, limiting, .. } = predicted;
    text += &format!("\nmodel: {time_s:.3} s, at least {bound_s:.3} s; {limiting} would limit{}\n", beside(spec));
    for one in all {
        if options.stages || all.len() == 1 {
            text += &format!("\n{}:\n{}", one.priorities, stages(&one.outcome, width));
        }
        if options.actions && !one.outcome.told.is_empty() {
            text += &format!("\nactions under {}:\n{}", one.priorities, actions(spec, &one.outcome, width));
        }
    }
    text
}

fn beside(spec: &PipelineSpec) -> &'static str {
    if spec.hogs.is_empty() { "" } else { ", without the hogs" }
}

fn rules(spec: &PipelineSpec, all: &[Simulated], width: Option<usize>) -> String {
    let columns = [
        words("PRIORITIES", 0),
        numbers("TIME", 0),
        numbers("RATIO", 0),
        numbers("OF BOUND", 1),
        words("LIMITS", 0),
        numbers("USED", 2),
        numbers("SWITCHES", 3),
        numbers("CHANGES", 2),
    ];
    let first_ns = all.first().map_or(1, |one| one.outcome.elapsed_ns) as f64;
    let row = |one: &Simulated| -> Vec<Cell> {
        let out = &one.outcome;
        let stage = out.limit.stage.map_or("all stages", |stage| &spec.stages[stage].name);
        vec![
            one.priorities.to_string().into(),
            format!("{:.3} s", out.elapsed_ns as f64 / 1e9).into(),
            format!("{:.3}", out.elapsed_ns as f64 / first_ns).into(),
            format!("{:.3}", out.elapsed_ns as f64 / out.bound.ns().max(1) as f64).into(),
            format!("{}: {stage}", out.limit.resource.name()).into(),
            percent(out.limit.share).into(),
            out.switches.to_string().into(),
            out.changes.to_string().into(),
        ]
    };
    render(&columns, &all.iter().map(row).collect::<Vec<_>>(), width)
}

fn percent(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}

/// Each stage's time, as fractions of its threads' time.
fn stages(out: &PipelineOutcome, width: Option<usize>) -> String {
    let columns = [
        words("STAGE", 0),
        words("RESOURCE", 1),
        numbers("THREADS", 2),
        numbers("CPU", 0),
        numbers("DELAY", 0),
        numbers("BLOCKED", 0),
        numbers("WAIT IN", 0),
        numbers("WAIT OUT", 1),
        numbers("QUEUE", 0),
    ];
    let cells = |stage: &cosched_sim::pipeline::StageOutcome| -> Vec<Cell> {
        let all_ns = (out.elapsed_ns * u64::from(stage.incarnations)).max(1) as f64;
        let part = |ns: u64| percent(ns as f64 / all_ns);
        let blocked_ns = stage.busy_ns.saturating_sub(stage.cpu_ns + stage.delay_ns);
        vec![
            stage.name.as_str().into(),
            stage.resource.name().into(),
            stage.incarnations.to_string().into(),
            part(stage.cpu_ns).into(),
            part(stage.delay_ns).into(),
            part(blocked_ns).into(),
            part(stage.wait_in_ns).into(),
            part(stage.wait_out_ns).into(),
            format!("{:.2}", stage.queue_mean).into(),
        ]
    };
    render(&columns, &out.stages.iter().map(cells).collect::<Vec<_>>(), width)
}

/// The changes that were tried, and their results; the comparison windows in between are left out.
fn actions(spec: &PipelineSpec, out: &PipelineOutcome, width: Option<usize>) -> String {
    let columns = [numbers("AT", 0), words("STAGE", 0), words("CHANGE", 0), words("WHY", 0)];
    let shown = out.told.iter().filter(|told| !told.why.is_some_and(|why| why.compares()));
    let cells = |told: &cosched_sim::pipeline::Told| -> Vec<Cell> {
        let why = told.why.map_or("as the rule says".to_owned(), |why| why.to_string());
        vec![
            format!("{:.3} s", told.time_ns as f64 / 1e9).into(),
            spec.stages[told.stage].name.as_str().into(),
            told.change.to_string().into(),
            if told.refused { format!("refused ({why})") } else { why }.into(),
        ]
    };
    render(&columns, &shown.map(cells).collect::<Vec<_>>(), width)
}
