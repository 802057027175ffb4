//! `cosched model predict`.

use super::help;
use super::source::Source;
use crate::context::Context;
use crate::out::{Failure, terminal_width};
use crate::table::Listing;
use clap::Args;
use cosched_model::{Job, Kind, Term};
use cosched_study::predict::{Detail, Predicted, Subject};
use serde::Serialize;
use serde_with::skip_serializing_none;

#[derive(Args, Debug)]
#[command(after_help = help::PREDICT)]
pub(crate) struct Predict {
    #[command(flatten)]
    source: Source,

    /// Numbers of equal jobs
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "2,4,6,8",
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    jobs: Vec<u32>,
}

/// `--json`.
#[skip_serializing_none]
#[derive(Serialize)]
struct Report<'a> {
    machine: Option<&'a str>,
    program: Option<&'a str>,
    n: Option<u32>,
    grid: Option<String>,
    block: Option<u32>,
    profile: Option<&'a str>,
    time_s: f64,
    /// One job alone: with the CPU time of messages, without that of switches.
    cpu_share: f64,
    /// One of several jobs: with switches.
    shared_cpu_s: f64,
    compute_share: Option<f64>,
    crossing_jobs: f64,
    context_switch_us: Option<f64>,
    pollution_us: Option<f64>,
    #[serde(skip_serializing_if = "<[Term]>::is_empty")]
    terms: &'a [Term],
    results: Vec<Outcome>,
}

/// The prediction for a policy and a number of jobs.
#[derive(Serialize)]
struct Outcome {
    policy: &'static str,
    jobs: u32,
    time_s: f64,
    slowdown: f64,
    cpu_share: f64,
}

pub(crate) fn predict(context: &Context, options: &Predict) -> Result<u8, Failure> {
    let predicted = options.source.find()?.ok_or_else(|| {
        Failure::explained(
            2,
            "nothing to predict",
            "neither a program on a machine nor a time and a CPU share were given",
            "give --machine, --program, --n and --grid, or --machine and --profile, or --t1 and --cpu-share; see `cosched model predict --help`",
        )
    })?;
    context.give(&report(&predicted, &options.jobs), || page(&predicted, &options.jobs))
}

fn outcomes(job: &Job, jobs: &[u32]) -> Vec<Outcome> {
    let local = jobs.iter().map(|&jobs| Outcome {
        policy: "local",
        jobs,
        time_s: job.local_s(jobs),
        slowdown: job.local_slowdown(jobs),
        cpu_share: job.utilisation(jobs),
    });
    let gang = jobs.iter().map(|&jobs| Outcome {
        policy: "gang",
        jobs,
        time_s: job.gang_s(jobs),
        slowdown: f64::from(jobs),
        cpu_share: job.utilisation(1),
    });
    local.chain(gang).collect()
}

fn report<'a>(predicted: &'a Predicted, jobs: &[u32]) -> Report<'a> {
    let job = &predicted.job;
    let detail = predicted.detail.as_ref();
    let (known, profile) = match detail.map(|detail| &detail.subject) {
        Some(Subject::Known { program, problem }) => (Some((*program, problem)), None),
        Some(Subject::Recorded { name, .. }) => (None, Some(name.as_str())),
        None => (None, None),
    };
    Report {
        machine: detail.map(|detail| detail.machine.name.as_str()),
        program: known.map(|(program, _)| program),
        n: known.map(|(_, problem)| problem.n),
        grid: known.map(|(_, problem)| problem.grid.to_string()),
        block: known.map(|(_, problem)| problem.block),
        profile,
        time_s: job.alone_s,
        cpu_share: detail.map_or(job.cpu_s, |detail| detail.cost.cpu_s()) / job.alone_s,
        shared_cpu_s: job.cpu_s,
        compute_share: detail.map(|detail| detail.cost.compute_s() / job.alone_s),
        crossing_jobs: job.crossing(),
        context_switch_us: detail.map(|detail| detail.context_switch_us),
        pollution_us: detail.map(|detail| detail.pollution_us),
        terms: detail.map_or(&[], |detail| &detail.cost.terms),
        results: outcomes(job, jobs),
    }
}

fn page(predicted: &Predicted, jobs: &[u32]) -> String {
    let job = &predicted.job;
    let mut text = String::new();
    match &predicted.detail {
        Some(detail) => describe(&mut text, job, detail),
        None => {
            text.push_str(&format!("t_1 {}, CPU of one job {:.1} %\n", seconds(job.alone_s), percent(job.cpu_s, job)))
        }
    }
    text.push_str(&format!("the CPUs are full from {:.2} jobs on\n\n", job.crossing()));
    let results = Listing::of(jobs.iter().copied())
        .numbers("JOBS", 0, |jobs| jobs.to_string())
        .numbers("LOCAL t_j s", 0, |jobs| format!("{:.3}", job.local_s(jobs)))
        .numbers("s_j", 0, |jobs| format!("{:.2}", job.local_slowdown(jobs)))
        .numbers("GANG t_j s", 0, |jobs| format!("{:.3}", job.gang_s(jobs)))
        .numbers("s_j", 0, |jobs| format!("{jobs}.00"));
    text + &results.render(terminal_width())
}

fn describe(text: &mut String, job: &Job, detail: &Detail) {
    let Detail { machine, subject, cost, .. } = detail;
    let subject = match subject {
        Subject::Known { program, problem } => {
            format!("{program}, N = {} on {} (block {})", problem.n, problem.grid, problem.block)
        }
        Subject::Recorded { name, tasks } => format!("{name}, the mean of {tasks} tasks"),
    };
    text.push_str(&format!("{subject}, {}: t_1 {}\n\n", machine.name, seconds(job.alone_s)));
    let count = |number: f64| if number == 0.0 { String::new() } else { format!("{number:.0}") };
    let terms = Listing::of(&cost.terms)
        .words("TERM", 0, |term| term.name)
        .words("KIND", 2, |term| kind(term.kind))
        .numbers("MESSAGES", 1, |term| count(term.messages))
        .numbers("WORDS", 1, |term| count(term.words))
        .numbers("TIME s", 0, |term| format!("{:.3}", term.time_s))
        .numbers("CPU s", 0, |term| format!("{:.3}", term.cpu_s));
    text.push_str(&terms.render(terminal_width()));
    text.push_str(&format!(
        "\nCPU of one job {:.1} % ({:.1} % without messages); of one among several {:.1} %, with {:.0} switches of {:.3} us\n",
        percent(cost.cpu_s(), job),
        percent(cost.compute_s(), job),
        percent(job.cpu_s, job),
        cost.messages(),
        detail.context_switch_us + detail.pollution_us
    ));
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Compute => "compute",
        Kind::Startup => "startup",
        Kind::Volume => "volume",
        Kind::Wait => "wait",
    }
}

fn seconds(time_s: f64) -> String {
    format!("{time_s:.3} s")
}

fn percent(part_s: f64, job: &Job) -> f64 {
    part_s / job.alone_s * 100.0
}
