//! `cosched demo`: the same jobs under plain Linux, cosched local and cosched gang, in turn.
//!
//! The amount of work is determined once (by a run alone under plain Linux) and is the same in every run. The arms take
//! turns for each number of jobs, so that a machine that gets slower or faster meanwhile affects them alike.

mod display;
mod measure;
mod options;
mod program;
mod report;

use crate::context::Context;
use crate::jobset::{Others, RestorePolicy};
use crate::out::{Failure, print, print_json, say};
use crate::run::connect_or_start;
use crate::run::signals::Signals;
use cosched_api::{Policy, SocketChoice, Status};
use display::Display;
use measure::{Measured, Set, run};
use options::Arm;
pub(crate) use options::Demo;
use program::{Program, Work};
use report::{Results, sentence, table};
use std::time::Duration;

/// A set may take this many times the ideal before it is cut off; the worst known collapse is about 20.
const LIMIT_FACTOR: f64 = 30.0;
const LIMIT_MIN_S: f64 = 60.0;

/// `cosched demo`.
pub(crate) fn demo(context: &Context, options: &Demo) -> Result<u8, Failure> {
    let socket = SocketChoice::find(context.socket.clone());
    let mut client = connect_or_start(&socket, None)?;
    let status = client.status()?;
    let program = Program::find(options.program.as_deref(), status.cpus.len().max(2))?;
    let signals = Signals::take().map_err(|e| Failure::other(format!("cannot read signals: {e}")))?;
    let mut stage = Stage {
        context,
        options,
        signals,
        display: Display::new(context, options),
        results: Results::default(),
        others: Others::default(),
        policy: RestorePolicy::new(socket, &status),
    };
    stage.introduce(&program, &status)?;
    let work = stage.calibrate(&program)?;
    for repetition in 0..options.repeat {
        for &jobs in std::iter::once(&1).chain(options.jobs.iter().filter(|jobs| **jobs > 1)) {
            for arm in arms(&options.policies, jobs, repetition) {
                stage.measure(&program, work, arm, jobs)?;
            }
        }
    }
    stage.policy.restore();
    stage.conclude(&program, work)?;
    Ok(0)
}

/// The arms for one number of jobs. Plain Linux alone is the baseline, so it is always included; the order rotates with
/// each repetition.
fn arms(chosen: &[Arm], jobs: u32, repetition: u32) -> Vec<Arm> {
    let mut arms: Vec<Arm> = [Arm::Linux, Arm::Local, Arm::Gang]
        .into_iter()
        .filter(|arm| chosen.contains(arm) || (jobs == 1 && *arm == Arm::Linux))
        .collect();
    if !arms.is_empty() {
        let shift = repetition as usize % arms.len();
        arms.rotate_left(shift);
    }
    arms
}

struct Stage<'a> {
    context: &'a Context,
    options: &'a Demo,
    signals: Signals,
    display: Display,
    results: Results,
    others: Others,
    policy: RestorePolicy,
}

impl Stage<'_> {
    fn introduce(&mut self, program: &Program, status: &Status) -> Result<(), Failure> {
        let count = status.cpus.len();
        self.display.line(&format!("each job: {}  ({count} CPUs on {})", program.description, status.node))?;
        let running: u32 = status.jobs.iter().filter(|(state, _)| is_living(**state)).map(|(_, count)| count).sum();
        if running > 0 {
            say(&format!(
                "{running} other jobs are running; they share the CPUs with the demo and disturb its measurements"
            ));
        }
        Ok(())
    }

    fn calibrate(&mut self, program: &Program) -> Result<Work, Failure> {
        let seconds = self.options.seconds;
        let command = program.calibration(seconds);
        let measured = self.run(program, command, Arm::Linux, 1)?;
        let report = measured.report.ok_or_else(|| {
            let what = "the program's output has no line of JSON with iterations and grain_loops";
            Failure::other(format!("the amount of work could not be determined: {what}"))
        })?;
        program.check(report)?;
        let work = report.work;
        let text = format!("the work of a job: {} iterations ({:.2} s alone)", work.iterations, measured.time.seconds);
        self.display.line(&text)?;
        Ok(work)
    }

    fn measure(&mut self, program: &Program, work: Work, arm: Arm, jobs: u32) -> Result<(), Failure> {
        let measured = self.run(program, program.command(work), arm, jobs)?;
        if measured.time.finished && measured.report.map(|report| report.work) != Some(work) {
            return Err(Failure::other("a job of the demo did not do the work it was given"));
        }
        self.results.add(jobs, arm, measured.time);
        self.display.end(arm, jobs, measured.time)
    }

    fn run(
        &mut self,
        program: &Program,
        command: Vec<std::ffi::OsString>,
        arm: Arm,
        jobs: u32,
    ) -> Result<Measured, Failure> {
        let mut client = self.policy.enter(machine_policy(arm), None)?;
        self.others.look();
        let limit_s = (LIMIT_FACTOR * f64::from(jobs) * self.options.seconds).max(LIMIT_MIN_S);
        let limit = Duration::from_secs_f64(limit_s);
        let set = Set { arm, jobs, command, environment: &program.environment, limit };
        let (display, results) = (&mut self.display, &self.results);
        display.begin();
        run(self.context, &set, &self.signals, &mut client, |client, progress| {
            display.tick(arm, progress, client, results)
        })
    }

    fn conclude(&mut self, program: &Program, work: Work) -> Result<(), Failure> {
        let lines = self.results.lines();
        let others = self.others.share();
        let sentence = sentence(&lines, others);
        if self.context.json {
            return print_json(&serde_json::json!({
                "program": program.description, "work": work, "repetitions": self.options.repeat, "results": lines,
                "others_cpu_share": others, "sentence": sentence,
            }));
        }
        self.display.line("")?;
        print(&format!("{}\n{sentence}\n", table(&lines)))
    }
}

/// `None` for jobs that do not depend on the machine's policy.
fn machine_policy(arm: Arm) -> Option<Policy> {
    match arm {
        Arm::Linux => None,
        Arm::Local => Some(Policy::Local),
        Arm::Gang => Some(Policy::Gang),
    }
}

fn is_living(state: cosched_api::JobState) -> bool {
    use cosched_api::JobState::{Asleep, Dropped, Running, Suspended};
    matches!(state, Running | Asleep | Dropped | Suspended)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arms_take_turns_and_linux_alone_is_always_measured() {
        let all = [Arm::Gang, Arm::Linux, Arm::Local];
        assert_eq!(arms(&all, 2, 0), [Arm::Linux, Arm::Local, Arm::Gang]);
        assert_eq!(arms(&all, 2, 1), [Arm::Local, Arm::Gang, Arm::Linux]);
        assert_eq!(arms(&[Arm::Gang], 1, 0), [Arm::Linux, Arm::Gang]);
        assert_eq!(arms(&[Arm::Gang], 4, 0), [Arm::Gang]);
    }
}
