//! Compares measurement, model and simulation (DESIGN.md, chapter 7).
//!
//! Model and simulator get the same profile of the program and the same machine. The report contains the numbers and their
//! differences.

use crate::error::{Error, Reason};
use crate::live::Live;
use crate::profile::Profile;
use crate::program::{self, slowdowns};
use crate::slowdown::{Measured, Outcome, Single};
use cosched_model::{Job, Machine};
use cosched_sim::general::Config;
use cosched_sim::{Footprint, Params, Progress, Strategy};
use serde::Serialize;
use std::sync::Arc;

/// Noise decides who meets whom: the mean of this number of drawings is compared, as one is up to 15 % off.
const DRAWS: u64 = 5;

/// One policy with one number of jobs.
#[derive(Debug, Serialize)]
#[allow(missing_docs, reason = "the fields are named by what they are")]
pub struct Row {
    pub policy: String,
    pub jobs: u32,
    pub measured: f64,
    pub measured_stderr: Option<f64>,
    pub model: Option<f64>,
    /// (model - measured) / measured.
    pub model_difference: Option<f64>,
    /// The simulator's name of the policy.
    pub strategy: Option<&'static str>,
    pub simulated: Option<f64>,
    pub simulated_difference: Option<f64>,
}

/// The whole comparison.
#[derive(Debug, Serialize)]
#[allow(missing_docs, reason = "the fields are named by what they are")]
pub struct Report {
    /// `main phase` or `whole job`: the time to which the measured slowdowns refer.
    pub of: &'static str,
    pub measured_t1_s: f64,
    pub recorded_t1_s: f64,
    pub model_t1_s: f64,
    pub simulated_t1_s: Option<f64>,
    pub results: Vec<Row>,
}

/// What to model and simulate.
pub struct Subject<'a> {
    /// The name of the measurement in messages: its file.
    pub measured_name: String,
    /// The name of the profile in messages: its file.
    pub profile_name: String,
    /// The job, for the model.
    pub job: Job,
    /// The machine on which it was measured.
    pub machine: Machine,
    /// The program.
    pub profile: Profile,
    /// What each task wants of the machine's cache.
    pub footprint: Footprint,
    /// The number of CPUs on which it was measured.
    pub cpus: u32,
    /// Length of a gang's slot, in nanoseconds.
    pub slot_ns: u64,
    /// Maps a policy of the measurement to the simulator's strategy.
    pub strategy_of: &'a dyn Fn(&str) -> Option<Strategy>,
}

impl Subject<'_> {
    /// Models and simulates what was measured.
    ///
    /// # Errors
    /// If the measurement lacks required data, or the program cannot be simulated.
    pub fn report(&self, measured: &Measured) -> Result<Report, Error> {
        let single = measured
            .single
            .as_ref()
            .filter(|single| single.time_s > 0.0)
            .ok_or_else(|| self.not_valid("it has no time of a single job", "measure with 1 among --jobs"))?;
        let several: Vec<&Outcome> =
            measured.results.iter().filter(|outcome| outcome.jobs > 1 && !outcome.has_no_median()).collect();
        // The time to start a program is unknown to the model and to the simulator, so the main phase is preferred.
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
            return Err(
                self.not_valid("it has no complete result of several jobs", "measure with 2 or more among --jobs")
            );
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

    fn not_valid(&self, why: &str, hint: &str) -> Error {
        Error::Document(Reason::new(format!("{} cannot be analysed", self.measured_name), why, hint))
    }

    /// None if jobs failed.
    fn row(
        &self,
        outcome: &Outcome,
        single: &Single,
        phases: bool,
        simulated: &mut Simulated<'_>,
    ) -> Result<Option<Row>, Error> {
        let found = if phases { outcome.phase_slowdown(single) } else { outcome.job_slowdown(single) };
        let Some(measured) = found else { return Ok(None) };
        let strategy = (self.strategy_of)(&outcome.policy);
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

/// Equation 6, if waiting processes yield their CPUs, with the number of processes per CPU; strict gangs take turns.
fn modelled(job: &Job, tasks: u32, cpus: u32, strategy: Strategy, jobs: u32) -> f64 {
    if strategy == Strategy::Gang {
        let together = (cpus / tasks).max(1);
        return f64::from(jobs.div_ceil(together));
    }
    let per_cpu = f64::from(jobs) * f64::from(tasks) / f64::from(cpus);
    (per_cpu * job.cpu_s / job.alone_s).max(1.0)
}

/// Cache of simulations: for each strategy all numbers of jobs are simulated at once, because each call also simulates one
/// job alone.
struct Simulated<'a> {
    subject: &'a Subject<'a>,
    /// 1 and the measured numbers of jobs.
    jobs: Vec<u32>,
    /// Of all drawings.
    known: Vec<program::Row>,
}

impl Simulated<'_> {
    /// s_j of the time until all have ended; None if a copy did not end.
    fn slowdown(&mut self, strategy: Strategy, jobs: u32) -> Result<Option<f64>, Error> {
        if self.makespan_s(strategy.name(), 1).is_none() {
            self.known.extend(self.simulate(strategy)?);
        }
        let (alone, several) = (self.makespan_s(strategy.name(), 1), self.makespan_s(strategy.name(), jobs));
        Ok(alone.zip(several).map(|(alone, several)| several / alone))
    }

    /// The mean of the drawings; None if a copy did not end in one of them.
    fn makespan_s(&self, strategy: &str, copies: u32) -> Option<f64> {
        let is_asked = |row: &&program::Row| row.strategy == strategy && row.copies == copies;
        let ended = |row: &program::Row| (row.unfinished == 0 && row.makespan_s > 0.0).then_some(row.makespan_s);
        let drawn: Vec<f64> = self.known.iter().filter(is_asked).map(ended).collect::<Option<_>>()?;
        (!drawn.is_empty()).then(|| drawn.iter().sum::<f64>() / drawn.len() as f64)
    }

    fn simulate(&self, strategy: Strategy) -> Result<Vec<program::Row>, Error> {
        let Subject { profile_name, machine, profile, footprint, cpus, slot_ns, .. } = self.subject;
        let most = self.jobs.iter().copied().max().unwrap_or(1);
        let live = Live::new(machine, *cpus, most.saturating_mul(profile.tasks.div_ceil(*cpus)), *slot_ns)?;
        let subject = program::Subject {
            name: profile_name.clone(),
            program: Arc::new(profile.program()?),
            tasks: profile.tasks,
            footprint: *footprint,
        };
        let drawn = |seed: u64| {
            let config = |strategy| {
                let config = live.config(strategy);
                Config { params: Params { seed, ..config.params }, ..config }
            };
            slowdowns(&subject, None, &[strategy], &self.jobs, config, || |_: Progress| true)
        };
        let rows: Vec<Vec<program::Row>> = (1..=DRAWS).map(drawn).collect::<Result<_, _>>()?;
        Ok(rows.into_iter().flatten().collect())
    }

    /// The time alone under the first strategy that was simulated.
    fn alone_s(&self) -> Option<f64> {
        self.makespan_s(self.known.first()?.strategy, 1)
    }
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
