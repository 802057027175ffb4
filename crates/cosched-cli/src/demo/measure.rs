//! Running the demo's jobs side by side and taking their time.

use super::options::Arm;
use super::program::{Report, read_report};
use crate::context::Context;
use crate::jobset::{self, End, Look, Outcome, Planned, output_end, unnamed_file};
use crate::out::Failure;
use crate::run::signals::Signals;
use cosched_api::Client;
use std::ffi::OsString;
use std::time::Duration;

/// How long a set of jobs took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Time {
    /// From the first start to the last end, in seconds; up to the limit if some had not ended.
    pub(crate) seconds: f64,
    /// Whether all had ended within the limit.
    pub(crate) finished: bool,
}

/// A set of equal jobs to run at the same time.
#[derive(Debug)]
pub(crate) struct Set<'a> {
    pub(crate) arm: Arm,
    pub(crate) jobs: u32,
    pub(crate) command: Vec<OsString>,
    pub(crate) environment: &'a [(&'static str, &'static str)],
    /// When the set is ended and counts as not finished.
    pub(crate) limit: Duration,
}

/// The result of a set: its time, and what all its jobs report.
pub(crate) struct Measured {
    pub(crate) time: Time,
    pub(crate) report: Option<Report>,
}

/// Runs the set. `tick` is called a few times a second; an interruption or a failing job is a failure, and everything
/// that was started is ended before this returns.
pub(crate) fn run(
    context: &Context,
    set: &Set<'_>,
    signals: &Signals,
    client: &mut Client,
    mut tick: impl FnMut(&mut Client, &Look) -> Result<(), Failure>,
) -> Result<Measured, Failure> {
    let jobs = (1..=set.jobs).map(|number| planned(context, set, number)).collect::<Result<_, _>>()?;
    let measured = jobset::run(jobset::Set { jobs, limit: set.limit }, signals, |look| tick(client, look))?;
    let time = |finished| Time { seconds: measured.elapsed_s, finished };
    match measured.outcome {
        Outcome::Done => Ok(Measured { time: time(true), report: same_report(&measured.jobs)? }),
        Outcome::Limit => Ok(Measured { time: time(false), report: None }),
        Outcome::Interrupted(signal) => Err(Failure::silent(u8::try_from(128 + signal).unwrap_or(1))),
        Outcome::Failed(job) => {
            let end = measured.jobs.get(job).and_then(Option::as_ref);
            let (ending, said) = end.map(|end| (end.ending(), output_end(&end.output))).unwrap_or_default();
            Err(Failure::other(format!("a job of the demo failed ({ending}); it said:{said}")))
        }
    }
}

fn planned(context: &Context, set: &Set<'_>, number: u32) -> Result<Planned, Failure> {
    let mut command = Vec::new();
    if set.arm != Arm::Linux {
        let name = format!("demo-{}-{number}", std::process::id());
        command = crate::jobset::launcher(context, &["--name", &name])?;
    }
    command.extend(set.command.iter().cloned());
    let environment = set.environment.iter().map(|(name, value)| (name.into(), value.into())).collect();
    Ok(Planned { command, environment, start: Duration::ZERO, output: unnamed_file()?, on_early_end: Vec::new() })
}

/// The report of all jobs, which must have done the same work.
fn same_report(jobs: &[Option<End>]) -> Result<Option<Report>, Failure> {
    let mut reports = jobs.iter().map(|job| job.as_ref().and_then(|job| read_report(&job.output)));
    let first = reports.next().flatten();
    if reports.all(|report| report == first) {
        Ok(first)
    } else {
        Err(Failure::other("the jobs of the demo did not do the same work, so their times cannot be compared"))
    }
}
