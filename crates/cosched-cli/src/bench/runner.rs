//! Runs one set under one policy, and reports how it ended.

use super::policy::{Choice, How};
use super::slurm::{self, Slurm};
use crate::context::Context;
use crate::format::size;
use crate::jobset::{self, End, Look, Measured, Outcome, Planned, RestorePolicy, Set};
use crate::jobset::{launcher, memory_available_bytes, output_end, unnamed_file};
use crate::out::Failure;
use crate::run::connect_or_start;
use crate::run::signals::Signals;
use cosched_api::SocketChoice;
use cosched_study::slowdown::Phase;
use cosched_study::slowdown::mix::Class;
use cosched_study::slowdown::record::{Each, Ended, Run};
use std::ffi::OsString;
use std::fs::File;
use std::path::Path;
use std::time::Duration;

/// A job to run, whatever the policy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job<'a> {
    /// Its place in the list of commands.
    pub(crate) place: usize,
    pub(crate) command: &'a [String],
    pub(crate) class: Option<Class>,
    pub(crate) start_s: f64,
}

/// Runs sets.
pub(crate) struct Runner<'a> {
    context: &'a Context,
    pub(crate) signals: Signals,
    pub(crate) phase: Phase,
    /// `None` when no policy needs the daemon.
    policy: Option<RestorePolicy>,
    slurm: Option<Slurm>,
    /// The number of sets so far, for names.
    count: u32,
}

/// A set of jobs under a policy.
#[derive(Debug)]
pub(crate) struct Wanted<'a> {
    pub(crate) choice: &'a Choice,
    pub(crate) jobs: Vec<Job<'a>>,
    pub(crate) repetition: u32,
    pub(crate) limit_s: f64,
    /// The memory that all jobs together need, as far as it is known.
    pub(crate) memory_bytes: u64,
    /// The prefix of the files that the jobs' output is written to; `None` if it is not kept.
    pub(crate) logs: Option<String>,
}

/// A finished run, with what its jobs wrote.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) run: Run,
    /// The signal that interrupted it.
    pub(crate) signal: Option<i32>,
}

impl<'a> Runner<'a> {
    /// Finds or starts what the policies need.
    ///
    /// # Errors
    /// When there is no daemon, or a policy cannot be set.
    pub(crate) fn new(
        context: &'a Context,
        choices: &[Choice],
        jobs_max: u32,
        phase: Phase,
    ) -> Result<Runner<'a>, Failure> {
        let slurm =
            if choices.iter().any(|choice| choice.how == How::Slurm) { Some(Slurm::find(jobs_max)?) } else { None };
        let mut policy = None;
        if choices.iter().any(Choice::needs_daemon) {
            let socket = SocketChoice::find(context.socket.clone());
            let status = connect_or_start(&socket, None)?.status()?;
            let mut restore = RestorePolicy::new(socket, &status);
            // Not every user may change the machine's settings: better to know now than in an hour.
            for choice in choices {
                if let How::Cosched { sharing: Some(sharing), .. } = choice.how {
                    restore.enter(None, Some(sharing))?;
                }
            }
            restore.restore();
            policy = Some(restore);
        }
        let signals = Signals::take().map_err(|e| Failure::other(format!("cannot read signals: {e}")))?;
        Ok(Runner { context, signals, phase, policy, slurm, count: 0 })
    }

    /// Runs a set. A failing set is reported as its outcome, not as a failure.
    pub(crate) fn run(&mut self, wanted: &Wanted<'_>, tick: &mut dyn FnMut(&Look)) -> Done {
        self.count += 1;
        let available = memory_available_bytes().unwrap_or(u64::MAX);
        if wanted.memory_bytes > available {
            let (need, have) = (size(wanted.memory_bytes), size(available));
            let count = wanted.jobs.len();
            return not_run(wanted, Ended::Memory, format!("{count} jobs need {need}, and {have} are available"));
        }
        match self.measure(wanted, tick) {
            Ok(done) => done,
            Err(failure) => not_run(wanted, Ended::Failed, failure.message),
        }
    }

    /// Restores the machine's settings.
    pub(crate) fn restore(&mut self) {
        if let Some(policy) = &mut self.policy {
            policy.restore();
        }
    }

    fn measure(&mut self, wanted: &Wanted<'_>, tick: &mut dyn FnMut(&Look)) -> Result<Done, Failure> {
        if let (How::Cosched { sharing, .. }, Some(policy)) = (&wanted.choice.how, &mut self.policy) {
            policy.enter(None, *sharing)?;
        }
        let jobs = wanted.jobs.iter().enumerate().map(|(number, job)| self.planned(wanted, number, job));
        let set = Set { jobs: jobs.collect::<Result<_, _>>()?, limit: Duration::from_secs_f64(wanted.limit_s) };
        let mut measured = jobset::run(set, &self.signals, |look| {
            tick(look);
            Ok(())
        })?;
        if let (How::Slurm, Some(slurm)) = (&wanted.choice.how, &self.slurm) {
            for (number, end) in measured.jobs.iter_mut().enumerate() {
                end.iter_mut().for_each(|end| slurm.add_report(&self.name(number), end));
            }
            slurm::correct(&mut measured, crate::jobset::cpus());
        }
        let signal = if let Outcome::Interrupted(signal) = measured.outcome { Some(signal) } else { None };
        Ok(Done { run: self.record(wanted, &measured), signal })
    }

    /// The name that a job of the next set will have.
    pub(crate) fn next_name(&self, number: usize) -> String {
        job_name(self.count + 1, number)
    }

    fn name(&self, number: usize) -> String {
        job_name(self.count, number)
    }

    fn planned(&self, wanted: &Wanted<'_>, number: usize, job: &Job<'_>) -> Result<Planned, Failure> {
        let name = self.name(number);
        let mut environment = Vec::new();
        let mut on_early_end = Vec::new();
        let command: Vec<OsString> = match (&wanted.choice.how, &self.slurm) {
            (How::Cosched { options, .. }, _) => {
                let class = job.class.map(Class::name);
                let class = class.iter().flat_map(|class| ["--class", class]);
                let options: Vec<&str> =
                    options.iter().map(String::as_str).chain(class).chain(["--name", &name]).collect();
                // A daemon started by a job would be one of its processes. One runs already, and if it has ended since
                // then, the job has to fail instead.
                environment.push(("COSCHED_DAEMON".into(), "/dev/null".into()));
                launcher(self.context, &options)?.into_iter().chain(job.command.iter().map(OsString::from)).collect()
            }
            (How::Slurm, Some(slurm)) => {
                on_early_end = slurm::cancel(&name);
                slurm.submit(&name, job.command, wanted.limit_s)?
            }
            _ => job.command.iter().map(OsString::from).collect(),
        };
        let output = match &wanted.logs {
            None => unnamed_file()?,
            Some(start) => log_file(Path::new(&format!("{start}-{}.log", number + 1)))?,
        };
        Ok(Planned { command, environment, start: Duration::from_secs_f64(job.start_s), output, on_early_end })
    }

    fn record(&self, wanted: &Wanted<'_>, measured: &Measured) -> Run {
        let each = measured.jobs.iter().zip(&wanted.jobs).enumerate();
        let each = each.filter_map(|(number, (end, job))| Some(self.each(number, job.place, end.as_ref()?))).collect();
        let (outcome, why) = judge(measured, wanted);
        Run {
            policy: wanted.choice.name.clone(),
            jobs: wanted.jobs.len() as u32,
            repetition: wanted.repetition,
            outcome,
            why,
            elapsed_s: measured.elapsed_s,
            others_cpu_share: measured.others_cpu_share,
            each,
            alone: None,
        }
    }

    fn each(&self, job: usize, command: usize, end: &End) -> Each {
        let usage = end.usage.clone().unwrap_or_default();
        Each {
            job,
            command,
            start_s: end.start_s,
            end_s: end.end_s,
            user_s: usage.user_us as f64 / 1e6,
            system_s: usage.system_us as f64 / 1e6,
            max_memory_bytes: end.max_memory_bytes,
            voluntary: usage.voluntary,
            involuntary: usage.involuntary,
            phase_s: self.phase.find(&end.output),
            exit: usage.code.or(usage.signal.map(|signal| 128 + signal)),
        }
    }
}

fn job_name(set: u32, number: usize) -> String {
    format!("bench-{}-{set}-{}", std::process::id(), number + 1)
}

fn not_run(wanted: &Wanted<'_>, outcome: Ended, why: String) -> Done {
    let run = Run {
        policy: wanted.choice.name.clone(),
        jobs: wanted.jobs.len() as u32,
        repetition: wanted.repetition,
        outcome,
        why: Some(why),
        elapsed_s: 0.0,
        others_cpu_share: None,
        each: Vec::new(),
        alone: None,
    };
    Done { run, signal: None }
}

fn judge(measured: &Measured, wanted: &Wanted<'_>) -> (Ended, Option<String>) {
    match measured.outcome {
        Outcome::Done => (Ended::Done, None),
        Outcome::Interrupted(signal) => (Ended::Interrupted, Some(format!("signal {signal}"))),
        Outcome::Limit => {
            let left = measured.jobs.iter().flatten().filter(|end| end.end_s >= wanted.limit_s).count();
            (
                Ended::Limit,
                Some(format!("{left} of {} jobs had not ended after {:.0} s", wanted.jobs.len(), wanted.limit_s)),
            )
        }
        Outcome::Failed(job) => {
            let Some(end) = measured.jobs.get(job).and_then(Option::as_ref) else { return (Ended::Failed, None) };
            let said = output_end(&end.output);
            let said = if said.is_empty() { "; it wrote nothing".to_owned() } else { format!("; it wrote:{said}") };
            let why = format!("job {}: {}{said}", job + 1, end.ending());
            if measured.oom_kills > 0 {
                (Ended::Memory, Some(format!("the kernel ran out of memory; {why}")))
            } else {
                (Ended::Failed, Some(why))
            }
        }
    }
}

fn log_file(path: &Path) -> Result<File, Failure> {
    let options = File::options().read(true).append(true).create(true).open(path);
    options.map_err(|e| Failure::other(format!("cannot write {}: {e}", path.display())))
}
