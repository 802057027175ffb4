//! One bench from its options to its report.

use super::args::Slowdown;
use super::journal::Journal;
use super::policy::Choice;
use super::progress::{Progress, estimate_s};
use super::runner::{Job, Runner, Wanted};
use super::{check, mix, output};
use crate::context::Context;
use crate::out::{Failure, print, print_json};
use cosched_study::slowdown::Phase;
use cosched_study::slowdown::plan::{Cell, LINUX, cells, single_policy};
use cosched_study::slowdown::record::{Ended, FORMAT, Head, Run};
use cosched_study::slowdown::results::document;
use jiff::Timestamp;

/// The time limit of the first run, when nothing is known yet.
const FIRST_LIMIT_S: f64 = 3600.0;
/// A set may take this many times as long as its jobs one after the other; the worst known collapse is about 20.
const LIMIT_FACTOR: f64 = 30.0;
const LIMIT_MIN_S: f64 = 60.0;

/// `cosched bench slowdown`.
pub(crate) fn slowdown(context: &Context, options: &Slowdown) -> Result<u8, Failure> {
    let (head, runs, mut journal) = match &options.resume {
        Some(directory) => {
            let (journal, head, runs) = Journal::resume(directory)?;
            check::machine(&head, &host(), crate::jobset::cpus())?;
            (head, runs, Some(journal))
        }
        None => (head(options)?, Vec::new(), None),
    };
    let choices = Choice::parse_all(&head.policies)?;
    let phase = Phase::new(head.phase_regex.as_deref()).map_err(|why| {
        let hint = "as in --phase-regex 'elapsed: ([0-9.]+) s'";
        Failure::explained_in_lines(2, "--phase-regex cannot be used", &why, hint)
    })?;
    check::commands(&head, &choices)?;
    let jobs_max = cells(&head, 0).iter().map(|cell| cell.jobs).max().unwrap_or(1);
    let runner = Runner::new(context, &choices, jobs_max, phase)?;
    if let Some(directory) = &options.out {
        journal = Some(Journal::begin(directory, &head)?);
    }
    let all = cells(&head, 0).len() * head.repeat as usize;
    let progress = Progress::new(options.quiet, all);
    let mut session = Session { head, choices, runner, journal, progress, runs, signal: None };
    let ended = session.measure();
    session.progress.done();
    session.runner.restore();
    // A closed pipe (`| head -1`) does not turn a failure into a success.
    let reported = session.report(context, options);
    ended?;
    reported?;
    let is_whole = session.runs.iter().all(|run| run.outcome == Ended::Done);
    Ok(match session.signal {
        Some(signal) => u8::try_from(128 + signal).unwrap_or(1),
        None => u8::from(!is_whole),
    })
}

fn head(options: &Slowdown) -> Result<Head, Failure> {
    let commands = options.mix.as_deref().map(mix::read).transpose()?.unwrap_or_default();
    let mut jobs = options.jobs.clone();
    jobs.sort_unstable();
    jobs.dedup();
    let choices = Choice::parse_all(&options.policies)?;
    Ok(Head {
        format: FORMAT.into(),
        host: host(),
        cpus: crate::jobset::cpus(),
        cosched: env!("CARGO_PKG_VERSION").into(),
        started: Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        command: options.command.clone(),
        jobs: if commands.is_empty() { jobs } else { vec![commands.iter().map(|job| job.count).sum()] },
        policies: choices.into_iter().map(|choice| choice.name).collect(),
        repeat: options.repeat,
        limit_s: options.limit,
        baseline: options.baseline,
        phase_regex: options.phase_regex.clone(),
        commands,
    })
}

fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

struct Session<'a> {
    head: Head,
    choices: Vec<Choice>,
    runner: Runner<'a>,
    journal: Option<Journal>,
    progress: Progress,
    runs: Vec<Run>,
    /// The signal that interrupted it.
    signal: Option<i32>,
}

impl Session<'_> {
    fn measure(&mut self) -> Result<(), Failure> {
        for repetition in 0..self.head.repeat {
            let cells = cells(&self.head, repetition);
            for (place, cell) in cells.iter().enumerate() {
                if self.is_behind(cell, repetition) {
                    self.progress.skip();
                    continue;
                }
                let run = self.run(cell, repetition, &cells[place..]);
                let kept = self.journal.as_mut().map_or(Ok(()), |journal| journal.add(&run));
                let is_hopeless = self.is_single(cell) && run.outcome != Ended::Done;
                // Sets that the disk has no room for are in the report, too.
                self.runs.push(run);
                kept?;
                if let Some(journal) = &self.journal {
                    journal.write(&document(&self.head, &self.runs))?;
                }
                if self.signal.is_some() {
                    return Ok(());
                }
                if is_hopeless && !self.has_single() {
                    return Err(self.hopeless());
                }
            }
        }
        Ok(())
    }

    /// Whether it was already run (before a resumption), or already took too long or too much memory, which it would do
    /// again.
    fn is_behind(&self, cell: &Cell, repetition: u32) -> bool {
        let of_cell = || self.runs.iter().filter(|run| cell.is_of(run));
        of_cell().any(|run| run.repetition == repetition || matches!(run.outcome, Ended::Limit | Ended::Memory))
    }

    fn is_single(&self, cell: &Cell) -> bool {
        cell.policy == single_policy(&self.head) && cell.jobs == 1 && cell.alone.is_none()
    }

    fn has_single(&self) -> bool {
        !self.singles().is_empty()
    }

    /// The runs of one job alone.
    fn singles(&self) -> Vec<&Run> {
        let policy = single_policy(&self.head);
        let is_single = |run: &&Run| run.policy == policy && run.jobs == 1 && run.outcome == Ended::Done;
        self.runs.iter().filter(is_single).collect()
    }

    fn hopeless(&self) -> Failure {
        let why = self.runs.last().and_then(|run| run.why.clone()).unwrap_or_default();
        let hint = "it must run alone before anything can be compared; run it in a shell";
        Failure::explained_in_lines(
            1,
            &format!("one job alone under {} did not complete", single_policy(&self.head)),
            &why,
            hint,
        )
    }

    fn run(&mut self, cell: &Cell, repetition: u32, later: &[Cell]) -> Run {
        let choice = self.choice(cell);
        let head = self.head.clone();
        let jobs = jobs_of(&head, cell);
        let wanted = Wanted {
            choice: &choice,
            limit_s: self.limit_s(cell),
            memory_bytes: self.memory_bytes(cell),
            jobs,
            repetition,
            logs: self.journal.as_ref().map(|journal| journal.logs(&log_name(cell, repetition))),
        };
        let title = cell.title(&head.commands);
        let left_s = self.left_s(later, repetition);
        let progress = &self.progress;
        let done = self.runner.run(&wanted, &mut |look| progress.tick(&title, look, left_s));
        self.signal = done.signal;
        let run = Run { alone: cell.alone, ..done.run };
        self.progress.end(&title, &run);
        run
    }

    fn choice(&self, cell: &Cell) -> Choice {
        let found = self.choices.iter().find(|choice| choice.name == cell.policy);
        // Plain Linux is measured even if it is not among the policies.
        found.cloned().unwrap_or(Choice { name: LINUX.into(), how: super::policy::How::Linux })
    }

    /// The sum of the times of a set's jobs, each run alone, if they are known.
    fn serial_s(&self, cell: &Cell) -> Option<f64> {
        let longest = |runs: Vec<&Run>| runs.iter().map(|run| run.elapsed_s).reduce(f64::max);
        if self.head.commands.is_empty() {
            return Some(f64::from(cell.jobs) * longest(self.singles())?);
        }
        let alone = |place: usize| {
            longest(self.runs.iter().filter(|run| run.alone == Some(place) && run.outcome == Ended::Done).collect())
        };
        let each = self.head.commands.iter().enumerate().map(|(place, job)| Some(f64::from(job.count) * alone(place)?));
        let last_start = self.head.commands.iter().map(|job| job.start_s).fold(0.0, f64::max);
        Some(each.sum::<Option<f64>>()? + last_start)
    }

    fn limit_s(&self, cell: &Cell) -> f64 {
        let known = || self.serial_s(cell).map(|serial| (LIMIT_FACTOR * serial).max(LIMIT_MIN_S));
        self.head.limit_s.or_else(known).unwrap_or(FIRST_LIMIT_S)
    }

    /// The memory that the jobs of a set need, from what they used alone; 0 when that is not known.
    fn memory_bytes(&self, cell: &Cell) -> u64 {
        let peak = |runs: &mut dyn Iterator<Item = &Run>| {
            runs.flat_map(|run| &run.each).map(|each| each.max_memory_bytes).max().unwrap_or(0)
        };
        if self.head.commands.is_empty() {
            return u64::from(cell.jobs) * peak(&mut self.singles().into_iter());
        }
        let alone = |place: usize| peak(&mut self.runs.iter().filter(|run| run.alone == Some(place)));
        match cell.alone {
            Some(place) => alone(place),
            None => self.head.commands.iter().enumerate().map(|(place, job)| u64::from(job.count) * alone(place)).sum(),
        }
    }

    fn left_s(&self, later: &[Cell], repetition: u32) -> Option<f64> {
        let whole = estimate_s(&cells(&self.head, 0), &self.runs)?;
        Some(estimate_s(later, &self.runs)? + whole * f64::from(self.head.repeat - repetition - 1))
    }

    fn report(&self, context: &Context, options: &Slowdown) -> Result<(), Failure> {
        let document = document(&self.head, &self.runs);
        // To the disk first, since the printed text may be lost; but what cannot be written is printed all the same.
        let written = self.journal.as_ref().map_or(Ok(()), |journal| journal.write(&document));
        let directory = options.out.as_deref().or(options.resume.as_deref()).filter(|_| written.is_ok());
        let printed = match (context.json, options.csv) {
            (true, _) => print_json(&document),
            (_, true) => print(&output::results_csv(&document)),
            _ => print(&output::text(&document, directory)),
        };
        written.and(printed)
    }
}

fn jobs_of<'a>(head: &'a Head, cell: &Cell) -> Vec<Job<'a>> {
    if head.commands.is_empty() {
        let job = Job { place: 0, command: &head.command, class: None, start_s: 0.0 };
        return vec![job; cell.jobs as usize];
    }
    let of = |place: usize| {
        let job = &head.commands[place];
        Job { place, command: &job.command, class: job.class, start_s: job.start_s }
    };
    match cell.alone {
        Some(place) => vec![Job { start_s: 0.0, ..of(place) }],
        None => {
            let copies = head.commands.iter().enumerate();
            copies.flat_map(|(place, job)| std::iter::repeat_n(of(place), job.count as usize)).collect()
        }
    }
}

fn log_name(cell: &Cell, repetition: u32) -> String {
    let policy: String =
        cell.policy.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect();
    let alone = cell.alone.map_or(String::new(), |place| format!("-alone{}", place + 1));
    format!("r{}-{policy}-j{}{alone}", repetition + 1, cell.jobs)
}
