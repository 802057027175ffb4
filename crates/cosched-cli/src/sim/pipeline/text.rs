//! The text output of `cosched sim pipeline`.

use super::predict::Predicted;
use super::{RunPipeline, Simulated};
use crate::table::Listing;
use cosched_sim::pipeline::{PipelineOutcome, PipelineSpec, StageOutcome, Told};

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
    let first_ns = all.first().map_or(1, |one| one.outcome.elapsed_ns) as f64;
    let elapsed = |one: &Simulated, part_ns: f64| format!("{:.3}", one.outcome.elapsed_ns as f64 / part_ns);
    let stage = |one: &Simulated| one.outcome.limit.stage.map_or("all stages", |stage| &spec.stages[stage].name);
    Listing::of(all)
        .words("PRIORITIES", 0, |one| one.priorities.to_string())
        .numbers("TIME", 0, |one| elapsed(one, 1e9) + " s")
        .numbers("RATIO", 0, |one| elapsed(one, first_ns))
        .numbers("OF BOUND", 1, |one| elapsed(one, one.outcome.bound.ns().max(1) as f64))
        .words("LIMITS", 0, |one| format!("{}: {}", one.outcome.limit.resource.name(), stage(one)))
        .numbers("USED", 2, |one| percent(one.outcome.limit.share))
        .numbers("SWITCHES", 3, |one| one.outcome.switches.to_string())
        .numbers("CHANGES", 2, |one| one.outcome.changes.to_string())
        .render(width)
}

fn percent(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}

/// Each stage's time, as fractions of its threads' time.
fn stages(out: &PipelineOutcome, width: Option<usize>) -> String {
    let part = |stage: &StageOutcome, ns: u64| {
        percent(ns as f64 / (out.elapsed_ns * u64::from(stage.incarnations)).max(1) as f64)
    };
    Listing::of(&out.stages)
        .words("STAGE", 0, |stage| stage.name.as_str())
        .words("RESOURCE", 1, |stage| stage.resource.name())
        .numbers("THREADS", 2, |stage| stage.incarnations.to_string())
        .numbers("CPU", 0, |stage| part(stage, stage.cpu_ns))
        .numbers("DELAY", 0, |stage| part(stage, stage.delay_ns))
        .numbers("BLOCKED", 0, |stage| part(stage, stage.busy_ns.saturating_sub(stage.cpu_ns + stage.delay_ns)))
        .numbers("WAIT IN", 0, |stage| part(stage, stage.wait_in_ns))
        .numbers("WAIT OUT", 1, |stage| part(stage, stage.wait_out_ns))
        .numbers("QUEUE", 0, |stage| format!("{:.2}", stage.queue_mean))
        .render(width)
}

/// The changes that were tried, and their results; the comparison windows in between are left out.
fn actions(spec: &PipelineSpec, out: &PipelineOutcome, width: Option<usize>) -> String {
    let shown = out.told.iter().filter(|told| !told.why.is_some_and(|why| why.compares()));
    let why = |told: &Told| {
        let why = told.why.map_or("as the rule says".to_owned(), |why| why.to_string());
        if told.refused { format!("refused ({why})") } else { why }
    };
    Listing::of(shown)
        .numbers("AT", 0, |told| format!("{:.3} s", told.time_ns as f64 / 1e9))
        .words("STAGE", 0, |told| spec.stages[told.stage].name.as_str())
        .words("CHANGE", 0, |told| told.change.to_string())
        .words("WHY", 0, why)
        .render(width)
}
