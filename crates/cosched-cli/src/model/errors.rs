//! `cosched model errors`: which assumption of the model is wrong, and by how much.

use super::help;
use super::source::Source;
use crate::bench::measured::{not_valid, read};
use crate::context::Context;
use crate::out::{Failure, terminal_width};
use crate::table::Listing;
use clap::Args;
use cosched_model::Job;
use cosched_model::errors::{Errors, Measured, slowdown_by_utilisation, split};
use cosched_study::slowdown::{Measured as Bench, Outcome, Single, positive};
use serde::Serialize;
use std::path::PathBuf;

/// The policies that the model describes, in order of preference.
const USUAL: [&str; 2] = ["local", "linux"];

#[derive(Args, Debug)]
#[command(after_help = help::ERRORS)]
pub(crate) struct ErrorsOf {
    /// The file that `cosched bench slowdown` wrote
    #[arg(long, value_name = "FILE")]
    measured: PathBuf,

    /// The policy to examine [default: local, else linux]
    #[arg(long, value_name = "POLICY")]
    policy: Option<String>,

    #[command(flatten)]
    source: Source,
}

/// One column of the paper's table.
#[derive(Serialize)]
struct Row {
    #[serde(flatten)]
    measured: Measured,
    model: f64,
    #[serde(flatten)]
    errors: Errors,
}

#[derive(Serialize)]
struct Report<'a> {
    policy: &'a str,
    measured_time_s: f64,
    measured_phase_s: Option<f64>,
    measured_cpu_share: f64,
    model_time_s: f64,
    model_shared_cpu_s: f64,
    results: Vec<Row>,
    left_out: Vec<u32>,
}

pub(crate) fn errors(context: &Context, options: &ErrorsOf) -> Result<u8, Failure> {
    let bench = read(&options.measured)?;
    let invalid = |why: &str, hint: &str| not_valid(&options.measured, why, hint);
    let single = bench.single.as_ref().filter(|single| single.time_s > 0.0);
    let single = single.ok_or_else(|| invalid("it has no time of a single job", "measure with 1 among --jobs"))?;
    let share = single.cpu_share.filter(|share| *share > 0.0);
    let share = share.ok_or_else(|| invalid("it has no CPU share of a single job", "measure with 1 among --jobs"))?;
    let policy = policy_of(&bench, options)?;
    let job = match options.source.find()? {
        Some(predicted) => predicted.job,
        None => Job::of_share(single.time_s, share.min(1.0))
            .map_err(|error| invalid(&error.to_string(), "measure again"))?,
    };
    let mut left_out = Vec::new();
    let mut results = Vec::new();
    for outcome in bench.results.iter().filter(|outcome| outcome.policy == policy && outcome.jobs > 1) {
        match row(outcome, single, share, &job) {
            Some(row) => results.push(row),
            None => left_out.push(outcome.jobs),
        }
    }
    if results.is_empty() {
        let why = format!("it has no complete result of several jobs under {policy}");
        return Err(invalid(&why, "measure with 2 or more among --jobs, or name another --policy"));
    }
    let report = Report {
        policy: &policy,
        measured_time_s: single.time_s,
        measured_phase_s: single.phase_s,
        measured_cpu_share: share,
        model_time_s: job.alone_s,
        model_shared_cpu_s: job.cpu_s,
        results,
        left_out,
    };
    context.give(&report, || page(&report))
}

fn policy_of(bench: &Bench, options: &ErrorsOf) -> Result<String, Failure> {
    let mut names: Vec<&str> = bench.results.iter().map(|outcome| outcome.policy.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let wanted: Vec<&str> = options.policy.as_deref().map_or_else(|| USUAL.to_vec(), |named| vec![named]);
    wanted.iter().find(|name| names.contains(name)).map(|name| (*name).to_owned()).ok_or_else(|| {
        let why = format!("it has no results of {}, but of: {}", wanted.join(" or "), names.join(", "));
        not_valid(&options.measured, &why, "name one with --policy")
    })
}

/// `None` when a value is missing, as for failed jobs.
fn row(outcome: &Outcome, single: &Single, share: f64, job: &Job) -> Option<Row> {
    let whole = outcome.job_slowdown(single)?;
    let cpu = slowdown_by_utilisation(outcome.jobs, share, positive(outcome.cpu_share)?)?;
    // If a program does not report its main phase, the whole run counts.
    let measured =
        Measured { jobs: outcome.jobs, job: whole, cpu, phase: outcome.phase_slowdown(single).unwrap_or(whole) };
    let model = job.local_slowdown(outcome.jobs);
    Some(Row { measured, model, errors: split(&measured, model) })
}

fn page(report: &Report<'_>) -> String {
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let two = |value: f64| format!("{value:.2}");
    let table = Listing::of(&report.results)
        .numbers("JOBS", 0, |row| row.measured.jobs.to_string())
        .numbers("JOB s_j", 0, |row| two(row.measured.job))
        .numbers("CPU s_j", 0, |row| two(row.measured.cpu))
        .numbers("ERROR A.2", 0, |row| percent(row.errors.assumption2))
        .numbers("PHASE s_j", 0, |row| two(row.measured.phase))
        .numbers("MODEL s_j", 0, |row| two(row.model))
        .numbers("ERROR TOTAL", 0, |row| percent(row.errors.total))
        .numbers("ERROR A.1", 0, |row| percent(row.errors.assumption1));
    let phase = report.measured_phase_s.map_or(String::new(), |time| format!(" (main phase {time:.3} s)"));
    let mut text = format!(
        "policy {}: t_1 measured {:.3} s{phase}, model {:.3} s; CPU of a single job {}\n\n",
        report.policy,
        report.measured_time_s,
        report.model_time_s,
        percent(report.measured_cpu_share)
    );
    text.push_str(&table.render(terminal_width()));
    text.push_str("\nA.1: a process is always ready to run; A.2: cold caches cost nothing.\n");
    if !report.left_out.is_empty() {
        let left: Vec<String> = report.left_out.iter().map(u32::to_string).collect();
        text.push_str(&format!("Left out, as a figure is missing: {} jobs.\n", left.join(", ")));
    }
    text
}
