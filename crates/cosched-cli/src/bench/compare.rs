//! `cosched bench compare`: the three lives side by side: measured, modelled, simulated (DESIGN.md, chapter 7).
//!
//! The measurement is a document of `cosched bench slowdown`. Model and simulator get the same profile of the program
//! and the same machine file. The differences stand beside the numbers.

use super::measured::{not_valid, read};
use super::policy::Choice;
use crate::context::Context;
use crate::format::command_line;
use crate::model::machines;
use crate::model::source::of_profile;
use crate::out::{Failure, print, print_json, say, terminal_width};
use crate::table::{Cell, Column, numbers, render, words};
use clap::Args;
use cosched_model::{Job, Machine};
use cosched_sim::{Progress, Strategy};
use cosched_study::live::Live;
use cosched_study::profile::Profile;
use cosched_study::program::{self, slowdowns};
use cosched_study::slowdown::{Measured, Outcome, Single};
use serde::Serialize;
use std::path::PathBuf;
use std::sync::Arc;

/// Options of `cosched bench compare`.
#[derive(Args, Debug)]
#[command(after_help = super::help::COMPARE)]
pub(crate) struct Compare {
    /// What was measured: slowdown.json of `cosched bench slowdown`, or the directory of its --out
    #[arg(value_name = "MEASURED")]
    measured: PathBuf,

    /// The program, as `cosched record` wrote it
    #[arg(long, value_name = "FILE")]
    profile: PathBuf,

    /// The machine: a file of `cosched model calibrate`, or the name of a shipped one
    #[arg(long, value_name = "MACHINE")]
    machine: String,

    /// Length of a gang's slot in the simulator
    #[arg(long, value_name = "MS", default_value_t = 100.0)]
    slot_ms: f64,
}

/// One policy with one number of jobs.
#[derive(Debug, Serialize)]
struct Row {
    policy: String,
    jobs: u32,
    measured: f64,
    measured_stderr: Option<f64>,
    model: Option<f64>,
    /// (model - measured) / measured.
    model_difference: Option<f64>,
    /// What the simulator calls the policy.
    strategy: Option<&'static str>,
    simulated: Option<f64>,
    simulated_difference: Option<f64>,
}

/// `--json`.
#[derive(Debug, Serialize)]
struct Report {
    /// `main phase` or `whole job`: of what the measured slowdowns are.
    of: &'static str,
    measured_t1_s: f64,
    recorded_t1_s: f64,
    model_t1_s: f64,
    simulated_t1_s: Option<f64>,
    results: Vec<Row>,
}

pub(crate) fn compare(context: &Context, options: &Compare) -> Result<u8, Failure> {
    if !(options.slot_ms > 0.0 && options.slot_ms.is_finite()) {
        return Err(Failure::explained(2, "--slot-ms must be above 0", "a slot has a length", "give ms, such as 100"));
    }
    let measured = read(&options.measured)?;
    let profile = crate::profile::read(&options.profile)?;
    let machine = machines::find(&options.machine)?;
    if !measured.command.is_empty() && measured.command != profile.command {
        let [measured, recorded] = [&measured.command, &profile.command].map(|command| command_line(command));
        say(&format!("note: measured was `{measured}`, recorded `{recorded}`: compare the same work only"));
    }
    let cpus = measured.cpus.filter(|cpus| *cpus > 0).unwrap_or(profile.tasks);
    let predicted = of_profile(machine.clone(), &profile, &options.profile, 0.0)?;
    let subject = Subject { options, job: predicted.job, machine, profile, cpus };
    let report = subject.report(&measured)?;
    if context.json {
        print_json(&report)?
    } else {
        print(&page(&report))?
    }
    Ok(0)
}

/// What is modelled and simulated.
struct Subject<'a> {
    options: &'a Compare,
    job: Job,
    machine: Machine,
    profile: Profile,
    cpus: u32,
}

impl Subject<'_> {
    fn report(&self, measured: &Measured) -> Result<Report, Failure> {
        let path = &self.options.measured;
        let single = measured
            .single
            .as_ref()
            .filter(|single| single.time_s > 0.0)
            .ok_or_else(|| not_valid(path, "it has no time of a single job", "measure with 1 among --jobs"))?;
        let several: Vec<&Outcome> = measured.results.iter().filter(|outcome| outcome.jobs > 1).collect();
        // Starting a program takes time too, which neither the model nor the simulator knows: rather the main phase.
        let phases = single.phase_s.is_some() && several.iter().all(|outcome| outcome.phase_slowdown(single).is_some());
        let mut jobs: Vec<u32> = std::iter::once(1).chain(several.iter().map(|outcome| outcome.jobs)).collect();
        jobs.sort_unstable();
        jobs.dedup();
        let mut simulated = Simulated { subject: self, jobs, known: Vec::new() };
        let mut results = Vec::new();
        for outcome in several {
            results.extend(self.row(outcome, single, phases, &mut simulated)?);
        }
        if results.is_empty() {
            return Err(not_valid(
                path,
                "it has no complete result of several jobs",
                "measure with 2 or more among --jobs",
            ));
        }
        Ok(Report {
            of: if phases { "main phase" } else { "whole job" },
            measured_t1_s: single.phase_s.filter(|_| phases).unwrap_or(single.time_s),
            recorded_t1_s: self.job.alone_s,
            model_t1_s: self.job.alone_s,
            simulated_t1_s: simulated.alone_s(),
            results,
        })
    }

    /// None when jobs failed.
    fn row(
        &self,
        outcome: &Outcome,
        single: &Single,
        phases: bool,
        simulated: &mut Simulated<'_>,
    ) -> Result<Option<Row>, Failure> {
        let found = if phases { outcome.phase_slowdown(single) } else { outcome.job_slowdown(single) };
        let Some(measured) = found else { return Ok(None) };
        let strategy = Choice::parse(&outcome.policy).ok().and_then(|choice| choice.strategy());
        let model = strategy.map(|strategy| modelled(&self.job, self.profile.tasks, self.cpus, strategy, outcome.jobs));
        let simulation = match strategy {
            Some(strategy) => simulated.slowdown(strategy, outcome.jobs)?,
            None => None,
        };
        let difference = |value: Option<f64>| value.map(|value| value / measured - 1.0);
        Ok(Some(Row {
            policy: outcome.policy.clone(),
            jobs: outcome.jobs,
            measured,
            measured_stderr: outcome.slowdown_stderr.filter(|_| !phases),
            model,
            model_difference: difference(model),
            strategy: strategy.map(Strategy::name),
            simulated: simulation,
            simulated_difference: difference(simulation),
        }))
    }
}

/// Equation 6, where who waits gives its CPU away, with as many processes as a CPU has; strict gangs take turns.
fn modelled(job: &Job, tasks: u32, cpus: u32, strategy: Strategy, jobs: u32) -> f64 {
    if strategy == Strategy::Gang {
        let together = (cpus / tasks).max(1);
        return f64::from(jobs.div_ceil(together));
    }
    let per_cpu = f64::from(jobs) * f64::from(tasks) / f64::from(cpus);
    (per_cpu * job.cpu_s / job.alone_s).max(1.0)
}

/// Simulations that were run already: of each strategy all numbers of jobs at once, because each call runs one alone.
struct Simulated<'a> {
    subject: &'a Subject<'a>,
    /// 1 and those that were measured.
    jobs: Vec<u32>,
    known: Vec<program::Row>,
}

impl Simulated<'_> {
    /// s_j of the time until all have ended; none when a copy did not end.
    fn slowdown(&mut self, strategy: Strategy, jobs: u32) -> Result<Option<f64>, Failure> {
        if self.makespan_s(strategy, 1).is_none() {
            self.known.extend(self.simulate(strategy)?);
        }
        let (alone, several) = (self.makespan_s(strategy, 1), self.makespan_s(strategy, jobs));
        Ok(alone.zip(several).map(|(alone, several)| several / alone))
    }

    fn makespan_s(&self, strategy: Strategy, copies: u32) -> Option<f64> {
        let row = self.known.iter().find(|row| row.strategy == strategy.name() && row.copies == copies)?;
        (row.unfinished == 0 && row.makespan_s > 0.0).then_some(row.makespan_s)
    }

    fn simulate(&self, strategy: Strategy) -> Result<Vec<program::Row>, Failure> {
        let Subject { options, machine, profile, cpus, .. } = self.subject;
        let most = self.jobs.iter().copied().max().unwrap_or(1);
        let slot_ns = (options.slot_ms * 1e6).round() as u64;
        let live = Live::new(machine, *cpus, most.saturating_mul(profile.tasks.div_ceil(*cpus)), slot_ns)?;
        let subject = program::Subject {
            name: options.profile.display().to_string(),
            program: Arc::new(profile.program()?),
            tasks: profile.tasks,
        };
        let go_on = || |_: Progress| true;
        Ok(slowdowns(&subject, &[strategy], &self.jobs, |strategy| live.config(strategy), go_on)?)
    }

    /// Of the first strategy that was simulated.
    fn alone_s(&self) -> Option<f64> {
        self.known.iter().find(|row| row.copies == 1).map(|row| row.makespan_s)
    }
}

const COLUMNS: [Column; 8] = [
    words("POLICY", 0),
    numbers("JOBS", 0),
    numbers("MEASURED s_j", 0),
    numbers("MODEL", 0),
    numbers("DIFFERENCE", 0),
    numbers("SIMULATED", 0),
    numbers("DIFFERENCE", 0),
    words("AS", 1),
];

fn page(report: &Report) -> String {
    let two = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.2}"));
    let percent = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{:+.0} %", value * 100.0));
    let measured = |row: &Row| match row.measured_stderr {
        Some(stderr) => format!("{:.2} ±{stderr:.2}", row.measured),
        None => format!("{:.2}", row.measured),
    };
    let cells = |row: &Row| -> Vec<Cell> {
        vec![
            row.policy.as_str().into(),
            row.jobs.to_string().into(),
            measured(row).into(),
            two(row.model).into(),
            percent(row.model_difference).into(),
            two(row.simulated).into(),
            percent(row.simulated_difference).into(),
            row.strategy.unwrap_or("-").into(),
        ]
    };
    let rows: Vec<Vec<Cell>> = report.results.iter().map(cells).collect();
    let simulated = report.simulated_t1_s.map_or("-".to_owned(), |time| format!("{time:.3} s"));
    format!(
        "t_1 of the {}: measured {:.3} s, recorded {:.3} s, simulated {simulated}\n\n{}\n\
        MODEL: equation 6 of Strazdins & Uhlmann, which lets whoever waits give its CPU away; of strict gangs j. \
        DIFFERENCE is from what was measured.\n",
        report.of,
        report.measured_t1_s,
        report.recorded_t1_s,
        render(&COLUMNS, &rows, terminal_width()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn the_model_counts_processes_for_each_cpu() {
        let local: Strategy = "SB".parse().unwrap();
        let modelled = |tasks, cpus, strategy, jobs| {
            super::modelled(&Job { alone_s: 2.0, cpu_s: 1.0 }, tasks, cpus, strategy, jobs)
        };
        assert_eq!(modelled(2, 2, local, 2), 1.0);
        assert_eq!(modelled(2, 2, local, 4), 2.0);
        assert_eq!(modelled(1, 2, local, 8), 2.0);
        assert_eq!(modelled(2, 2, Strategy::Gang, 4), 4.0);
        // Two gangs of one CPU share a row.
        assert_eq!(modelled(1, 2, Strategy::Gang, 4), 2.0);
        assert_eq!(modelled(4, 2, Strategy::Gang, 2), 2.0);
    }
}
