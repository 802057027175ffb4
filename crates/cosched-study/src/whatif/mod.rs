//! What the jobs of a machine will do in the next minutes, under its policy and under others: observed jobs, a machine and policies in,
//! predictions out (decision 0070).
//!
//! Each job becomes a program: the rest of its recording, or what was observed of it, repeated (`model.rs`). The present policy is
//! simulated first. What a job used in reality relative to that is its *fit*: neighbours, the reserve, caches and all that the simulator
//! lacks. The same fit is applied under every policy.

mod check;
mod machine;
mod model;
mod report;
#[cfg(test)]
mod samples;

pub use check::{Checked, Found, check, summary};
pub use machine::{Machine, Setting};
pub use model::{Observed, Waits, rest_of};
pub use report::calibration;

use crate::error::Error;
use cosched_sim::general::{self, Config, Own, ProgramJob, Work};
use cosched_sim::{Activity, JobChange, Message, Observer, Outcome, Progress, Slice};
use model::{Modelled, modelled};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A job without a known end is simulated alone for at most this time.
const ALONE_S_MAX: f64 = 5.0;
/// The simulator is fitted over at least this time, in which all jobs have many turns.
const FIT_S_MIN: f64 = 10.0;
/// Beyond these bounds a job did something else than what was modelled.
const FIT: std::ops::RangeInclusive<f64> = 0.02..=1.5;

/// What a job does in the predicted time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Predicted {
    /// The CPU time that it uses, in seconds.
    pub cpu_s: f64,
    /// That part of it that is work: computation and messages, not waiting by spinning as far as this is known.
    pub work_s: f64,
    /// How much longer the same work takes than on the machine alone.
    pub slowdown: Option<f64>,
    /// It waits by polling, and how often is not known: where partners may lack a CPU, the work may be less and the slowdown more.
    #[serde(default)]
    pub is_bound: bool,
    /// When it ends, in seconds from now, if it is known how much there is to do and it ends in that time.
    #[serde(default)]
    pub ends_s: Option<f64>,
    /// The part of its recording that is done at the end of the time, 0 to 1.
    #[serde(default)]
    pub done: Option<f64>,
}

/// Predicts `seconds` for each setting: a prediction for each job, in the order of the jobs. `watch` is asked from time to time whether to go
/// on.
///
/// # Errors
/// If the machine cannot be simulated, or `watch` has returned false.
pub fn predict(
    machine: &Machine,
    jobs: &[Observed],
    settings: &[Setting],
    seconds: f64,
    watch: &mut dyn FnMut(Progress) -> bool,
) -> Result<Vec<Vec<Predicted>>, Error> {
    let models: Vec<Modelled> = jobs.iter().map(|job| modelled(machine, job)).collect();
    let looked_s = jobs.iter().map(|job| job.seconds).fold(FIT_S_MIN, f64::max);
    let lasting: Vec<Modelled> = models.iter().map(|model| model.lasting(looked_s)).collect();
    let fit = Study { machine, jobs, models: &lasting, watch: &mut *watch }.fit(looked_s)?;
    let mut study = Study { machine, jobs, models: &models, watch };
    let alone = (0..jobs.len()).map(|job| study.alone(job, seconds)).collect::<Result<Vec<Rate>, Error>>()?;
    let mut all = Vec::new();
    // A job that is faster than its simulation may end in this time, though the simulated one ends later.
    let longest = seconds * fit.iter().copied().fold(1.0, f64::max);
    for setting in settings {
        let config = study.config(*setting)?;
        let used = study.simulate(config, *setting, (seconds, longest), None)?;
        let each = (0..jobs.len()).map(|job| study.predicted(job, *setting, &used, fit[job], alone[job], seconds));
        all.push(each.collect());
    }
    Ok(all)
}

/// Work per second.
#[derive(Clone, Copy, Debug)]
struct Rate(f64);

struct Study<'a> {
    machine: &'a Machine,
    jobs: &'a [Observed],
    models: &'a [Modelled],
    watch: &'a mut dyn FnMut(Progress) -> bool,
}

impl Study<'_> {
    fn config(&self, setting: Setting) -> Result<Config, Error> {
        let tasks = self.models.iter().map(|job| job.tasks).sum();
        self.machine.config(setting, self.models.len() as u32, tasks)
    }

    /// What each job used in reality, relative to the simulation of the present. All of them ran while they were looked at.
    fn fit(&mut self, seconds: f64) -> Result<Vec<f64>, Error> {
        let config = self.config(Setting::Present)?;
        let used = self.simulate(config, Setting::Present, (seconds, seconds), None)?;
        let of = |(place, job): (usize, &Observed)| {
            let simulated = used.counted_s(place).0 / seconds;
            let measured = job.cpu_s / job.seconds.max(1e-3);
            // One that does not compute has ended.
            if simulated > 0.0 && used.ends_s(place).is_none() {
                (measured / simulated).clamp(*FIT.start(), *FIT.end())
            } else {
                1.0
            }
        };
        Ok(self.jobs.iter().enumerate().map(of).collect())
    }

    /// The rate of a job's work when it has the machine for itself.
    fn alone(&mut self, job: usize, seconds: f64) -> Result<Rate, Error> {
        let seconds = if self.models[job].ends { seconds } else { seconds.min(ALONE_S_MAX) };
        let setting = Setting::ALONE;
        let config = self.config(setting)?;
        let used = self.simulate(config, setting, (seconds, seconds), Some(job))?;
        Ok(Rate(used.counted_s(0).1 / used.ends_s(0).unwrap_or(seconds).max(1e-3)))
    }

    /// All jobs, or one of them, for the longer of the two times; what they use is counted until the first.
    fn simulate(
        &mut self,
        mut config: Config,
        setting: Setting,
        (counted_s, seconds): (f64, f64),
        only: Option<usize>,
    ) -> Result<Used, Error> {
        config.params.end_ns = Some((seconds * 1e9) as u64);
        let places = only.map_or(0..self.jobs.len(), |job| job..job + 1);
        let work = |place: usize| {
            let (job, model) = (&self.jobs[place], &self.models[place]);
            let own = if setting == Setting::Present {
                job.own
            } else {
                Own { slot_share: job.own.slot_share, ..Own::default() }
            };
            Work::Program(ProgramJob {
                arrival_ns: 0,
                tasks: model.tasks,
                program: Arc::clone(&model.program),
                estimate_ns: None,
                class: job.class,
                own,
            })
        };
        let works: Vec<Work> = places.map(work).collect();
        let mut used = Used::new((counted_s * 1e9) as u64, works.len());
        used.outcome = general::simulate(&config, &works, &mut used, &mut *self.watch)?;
        Ok(used)
    }

    fn predicted(&self, job: usize, setting: Setting, used: &Used, fit: f64, alone: Rate, seconds: f64) -> Predicted {
        let (observed, model) = (&self.jobs[job], &self.models[job]);
        // What the simulator does at once takes longer by the fit.
        let ends_s = used.ends_s(job).map(|end| end / fit);
        let limit_s = observed.limit_s.unwrap_or(f64::INFINITY);
        let until_s = ends_s.unwrap_or(seconds).min(seconds).min(limit_s);
        // A job with an end does all its work until then, however long that takes; another one works at the rate that was simulated.
        let ((cpu_s, work_s), part) = match ends_s {
            Some(end) => (used.whole_s(job), until_s / end.max(1e-9)),
            None => (used.counted_s(job), fit * until_s / seconds),
        };
        let mut predicted = Predicted {
            cpu_s: cpu_s * part,
            work_s: work_s * part,
            is_bound: model.polls_unseen && setting.may_part(observed.own.policy, self.machine),
            ends_s: [ends_s, observed.limit_s].into_iter().flatten().reduce(f64::min).filter(|end| *end <= seconds),
            ..Predicted::default()
        };
        if predicted.work_s > 0.0 {
            predicted.slowdown = Some((alone.0 * until_s / predicted.work_s).max(1.0));
        }
        predicted.done = model.left_s.zip(observed.done).map(|(left_s, done)| {
            let part =
                if ends_s.is_some_and(|end| end <= until_s) { 1.0 } else { (predicted.work_s / left_s).min(1.0) };
            done + (1.0 - done) * part
        });
        predicted
    }
}

/// The CPU time and the work of each job in a simulation, in ns: until `counted_ns`, and to its end.
struct Used {
    counted_ns: u64,
    counted: Vec<(u64, u64)>,
    whole: Vec<(u64, u64)>,
    outcome: Outcome,
}

impl Used {
    fn new(counted_ns: u64, jobs: usize) -> Used {
        let none = vec![(0, 0); jobs];
        Used { counted_ns, counted: none.clone(), whole: none, outcome: Outcome::default() }
    }

    fn counted_s(&self, job: usize) -> (f64, f64) {
        seconds_of(self.counted[job])
    }

    fn whole_s(&self, job: usize) -> (f64, f64) {
        seconds_of(self.whole[job])
    }

    fn ends_s(&self, job: usize) -> Option<f64> {
        Some(self.outcome.jobs.get(job)?.finish_ns? as f64 / 1e9)
    }
}

fn seconds_of((cpu_ns, work_ns): (u64, u64)) -> (f64, f64) {
    (cpu_ns as f64 / 1e9, work_ns as f64 / 1e9)
}

impl Observer for Used {
    fn slice(&mut self, slice: Slice) {
        let Some((job, _)) = slice.process else { return };
        let is_work = matches!(slice.activity, Activity::Compute | Activity::Message);
        if !is_work && slice.activity != Activity::Spin {
            return;
        }
        let counted_ns = slice.end_ns.min(self.counted_ns).saturating_sub(slice.start_ns);
        let whole_ns = slice.end_ns - slice.start_ns;
        for ((cpu, work), ns) in
            [(&mut self.counted[job as usize], counted_ns), (&mut self.whole[job as usize], whole_ns)]
        {
            *cpu += ns;
            *work += if is_work { ns } else { 0 };
        }
    }

    fn message(&mut self, _: Message) {}
    fn job(&mut self, _: u64, _: u32, _: JobChange, _: &[u32], _: Option<u32>) {}
    fn row(&mut self, _: u64, _: u32) {}
}

#[cfg(test)]
mod tests;
