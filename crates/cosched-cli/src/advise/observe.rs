//! Runs a program alone and with other jobs, within a time budget.

use super::Advise;
use crate::bench::check;
use crate::bench::policy::Choice;
use crate::bench::runner::{Job, Runner, Wanted};
use crate::context::Context;
use crate::jobset::{Look, memory_available_bytes};
use crate::out::{Failure, say};
use cosched_api::{Client, JobWaiting, SocketChoice};
use cosched_study::advise::{Company, Facts, Waits};
use cosched_study::slowdown::Phase;
use cosched_study::slowdown::record::{Ended, Run};
use cosched_study::slowdown::stats::{mean, median};
use std::time::Instant;

/// The policy under which waits are counted: it leaves the program as it is.
const WATCHED: &str = "local";
/// The policy under which the library acts when jobs share the CPUs, and counts waits.
const ACTING: &str = "auto";
/// The fraction of the time budget that a single run may take.
const PART: f64 = 1.0 / 6.0;
/// Two jobs are cut when they take this many times as long as one: the collapse is obvious by then.
const COLLAPSE: f64 = 6.0;
/// More rounds add little.
const ROUNDS_MAX: usize = 5;

/// Runs the program; no process of it is left when this returns.
///
/// # Errors
/// When it cannot be started, fails alone, or is interrupted.
pub(super) fn observe(context: &Context, options: &Advise) -> Result<Facts, Failure> {
    let mut names = vec!["linux".to_owned()];
    names.extend(options.policies.iter().cloned());
    let choices = Choice::parse_all(&names)?;
    let watched = Choice::parse(WATCHED)?;
    check::waits(&check::find(&options.command[0])?, &choices)?;
    let all: Vec<Choice> = choices.iter().cloned().chain([watched.clone()]).collect();
    let runner = Runner::new(context, &all, 2, Phase::Json)?;
    let mut observer = Observer { context, options, runner, started: Instant::now() };
    let facts = observer.all(&choices, &watched);
    observer.runner.restore();
    facts
}

struct Observer<'a> {
    context: &'a Context,
    options: &'a Advise,
    runner: Runner<'a>,
    started: Instant,
}

impl Observer<'_> {
    fn all(&mut self, choices: &[Choice], watched: &Choice) -> Result<Facts, Failure> {
        let first_limit_s = self.options.seconds * PART;
        self.talk(&format!("alone under plain Linux, at most {first_limit_s:.1} s"));
        let mut alone = vec![self.run(&choices[0], 1, first_limit_s, 0, &mut |_| ())?];
        let first = &alone[0];
        if matches!(first.outcome, Ended::Failed | Ended::Memory) {
            let why = first.why.clone().unwrap_or_default();
            return Err(Failure::explained_in_lines(1, "the command fails alone", &why, "run it in a shell"));
        }
        let is_whole = first.outcome == Ended::Done;
        let memory_bytes = memory(&alone);
        let limit_s = if is_whole { (COLLAPSE * first.elapsed_s).max(first_limit_s) } else { first_limit_s };
        self.talk("alone under cosched, counting its waits");
        let (seen, alone_waits) = self.watch(watched, 1, limit_s, 0)?;
        // No polls at all: the library is missing, or cannot see how this program waits (OpenMP).
        let polls_per_cpu_s =
            alone_waits.filter(|waits| waits.polls > 0).map(|waits| waits.polls as f64 / cpu_s(&seen).max(1e-3));
        let mut waits = polls_per_cpu_s.map(|polls_per_cpu_s| Waits { polls_per_cpu_s, per_s: None });
        let mut together: Vec<Vec<Run>> = vec![Vec::new(); choices.len()];
        for round in 0..ROUNDS_MAX {
            if round > 0 {
                alone.push(self.run(&choices[0], 1, limit_s, 0, &mut |_| ())?);
            }
            for (runs, choice) in together.iter_mut().zip(choices) {
                // A set that had to be cut once would have to be cut again.
                if !is_whole || !runs.iter().any(|run: &Run| run.outcome != Ended::Done) {
                    self.talk(&format!("two concurrent jobs under {}", choice.name));
                    let (run, seen) = match choice.name.as_str() {
                        ACTING => self.watch(choice, 2, limit_s, 2 * memory_bytes)?,
                        _ => (self.run(choice, 2, limit_s, 2 * memory_bytes, &mut |_| ())?, None),
                    };
                    let per_s =
                        seen.filter(|seen| seen.waits > 0).map(|seen| seen.waits as f64 / run.elapsed_s.max(1e-3));
                    if let Some(waits) = &mut waits {
                        waits.per_s = per_s.or(waits.per_s);
                    }
                    runs.push(run);
                }
            }
            let used_s = self.started.elapsed().as_secs_f64();
            if used_s + used_s / (round + 1) as f64 > self.options.seconds {
                break;
            }
        }
        Ok(facts(is_whole, &alone, waits, choices, &together))
    }

    fn run(
        &mut self,
        choice: &Choice,
        jobs: usize,
        limit_s: f64,
        memory_bytes: u64,
        tick: &mut dyn FnMut(&Look),
    ) -> Result<Run, Failure> {
        let job = Job { place: 0, command: &self.options.command, class: None, start_s: 0.0 };
        let wanted = Wanted { choice, jobs: vec![job; jobs], repetition: 0, limit_s, memory_bytes, logs: None };
        let done = self.runner.run(&wanted, tick);
        match done.signal {
            Some(signal) => Err(Failure::silent(u8::try_from(128 + signal).unwrap_or(1))),
            None => Ok(done.run),
        }
    }

    /// Runs a set while asking the daemon about its first job; also returns the daemon's last answer.
    fn watch(
        &mut self,
        choice: &Choice,
        jobs: usize,
        limit_s: f64,
        memory_bytes: u64,
    ) -> Result<(Run, Option<JobWaiting>), Failure> {
        let name = self.runner.next_name(0);
        let mut client = SocketChoice::find(self.context.socket.clone()).connect()?;
        let mut last = None;
        let mut look = || last = waiting(&mut client, &name).or(last.take());
        let run = self.run(choice, jobs, limit_s, memory_bytes, &mut |_| look())?;
        look();
        Ok((run, last))
    }

    fn talk(&self, what: &str) {
        if !self.options.quiet {
            say(what);
        }
    }
}

fn waiting(client: &mut Client, name: &str) -> Option<JobWaiting> {
    client.jobs(true).ok()?.jobs.into_iter().rev().find(|job| job.name == name)?.waiting
}

fn memory(runs: &[Run]) -> u64 {
    runs.iter().flat_map(|run| &run.each).map(|each| each.max_memory_bytes).max().unwrap_or(0)
}

/// CPU time of a job of this run.
fn cpu_s(run: &Run) -> f64 {
    run.each.iter().map(|each| each.cpu_s()).sum::<f64>() / run.each.len().max(1) as f64
}

fn share(run: &Run) -> f64 {
    cpu_s(run) * run.each.len() as f64 / (run.elapsed_s * crate::jobset::cpus() as f64)
}

fn facts(is_whole: bool, alone: &[Run], waits: Option<Waits>, choices: &[Choice], together: &[Vec<Run>]) -> Facts {
    let of = |value: &dyn Fn(&Run) -> f64| median(&alone.iter().map(value).collect::<Vec<_>>()).unwrap_or(0.0);
    let voluntary = |run: &Run| run.each.iter().map(|each| each.voluntary).sum::<u64>() as f64 / run.elapsed_s;
    let (alone_s, alone_cpu_s) = (of(&|run| run.elapsed_s), of(&cpu_s));
    let all = alone.iter().chain(together.iter().flatten());
    let others: Vec<f64> = all.filter_map(|run| run.others_cpu_share).collect();
    let company =
        choices.iter().zip(together).map(|(choice, runs)| company(&choice.name, runs, is_whole, alone_s, alone_cpu_s));
    Facts {
        cpus: crate::jobset::cpus(),
        is_whole,
        alone_s,
        cpu_share: of(&share),
        cpu_s: alone_cpu_s,
        memory_bytes: memory(alone),
        memory_available_bytes: memory_available_bytes(),
        voluntary_per_s: of(&voluntary),
        waits,
        company: company.collect(),
        others_cpu_share: mean(&others).unwrap_or(0.0),
    }
}

fn company(policy: &str, runs: &[Run], is_whole: bool, alone_s: f64, alone_cpu_s: f64) -> Company {
    let says_something = |run: &&Run| run.outcome == Ended::Done || run.outcome == Ended::Limit;
    let good: Vec<&Run> = runs.iter().filter(says_something).collect();
    let of = |value: &dyn Fn(&Run) -> f64| median(&good.iter().map(|run| value(run)).collect::<Vec<_>>());
    // A cut job got less CPU time in the same time, by this factor.
    let slowdown = |run: &Run| if is_whole { run.elapsed_s / alone_s } else { alone_cpu_s / cpu_s(run).max(1e-6) };
    Company {
        policy: policy.to_owned(),
        runs: good.len(),
        slowdown: of(&slowdown),
        is_bound: is_whole && good.iter().any(|run| run.outcome == Ended::Limit),
        cpu_share: of(&share),
        cpu_growth: of(&|run| cpu_s(run) / alone_cpu_s.max(1e-6)),
        why: runs.iter().find(|run| !says_something(run)).and_then(|run| run.why.clone()),
    }
}
