//! Runs all cells on all cores.

use super::error::SweepError;
use super::journal::{Journal, line};
use super::plan::{Cell, Plan, Wanted};
use super::result::{CellResult, Simulated, Taken, hash_jobs, key};
use crate::error::SimError;
use crate::general::Config;
use crate::job::{JobSpec, Shape};
use crate::outcome::Progress;
use crate::threads::share_out;
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// The functions that a sweep gets from its caller. Job lists and outcomes must depend on their arguments alone.
#[derive(Clone, Copy)]
#[expect(missing_debug_implementations, reason = "functions have nothing to show")]
pub struct Hooks<'a> {
    /// Creates a list of jobs; an error is a message for the user.
    pub jobs: &'a (dyn Fn(&Wanted) -> Result<Vec<JobSpec>, String> + Sync),
    /// Simulates; the callback gets the progress, and says whether to continue.
    pub simulate: &'a Simulate<'a>,
    /// The time in s from any origin, for the journal.
    pub now_s: &'a (dyn Fn() -> f64 + Sync),
    /// Gets the progress from time to time, from any thread.
    pub progress: &'a (dyn Fn(SweepProgress) + Sync),
}

/// An engine.
pub type Simulate<'a> =
    dyn Fn(&Config, &[JobSpec], &mut (dyn FnMut(Progress) -> bool + Send)) -> Result<Simulated, SimError> + Sync + 'a;

/// The progress of a sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SweepProgress {
    /// Cells that are done, including those of the journal.
    pub cells: usize,
    /// Cells that came from the journal.
    pub resumed: usize,
    /// All cells.
    pub cells_all: usize,
    /// Work that was done in this call, in task-iterations weighted by their cost.
    pub work: u64,
    /// All work to be done in this call.
    pub work_all: u64,
}

/// A cell to be simulated.
struct Task<'a> {
    place: usize,
    cell: &'a Cell,
    jobs: Arc<Vec<JobSpec>>,
    key: u64,
    work: u64,
}

/// Task-iterations under dynamic strategies cost this many times those of gangs.
const DYNAMIC_WEIGHT: u64 = 4;

/// Simulates the cells that the journal does not have, the largest first, on `threads` threads. `append` gets a whole
/// line for each and has to save it durably before it returns. The results are in the order of the plan.
///
/// # Errors
/// Job lists that cannot be created, a journal that cannot be written. A simulation without a result is not an error of
/// the sweep: it is [`Taken::Failed`], and will be tried again next time.
pub fn run(
    plan: &Plan,
    journal: &Journal,
    threads: usize,
    hooks: Hooks<'_>,
    append: &mut (dyn FnMut(&str) -> io::Result<()> + Send),
) -> Result<Vec<Taken>, SweepError> {
    let (mut taken, mut tasks) = (vec![None; plan.cells.len()], Vec::new());
    for task in prepare(plan, hooks)? {
        match journal.results.get(&task.key) {
            Some(result) => taken[task.place] = Some(Taken::Done(Box::new(result.clone()))),
            None => tasks.push(task),
        }
    }
    tasks.sort_by_key(|task| (std::cmp::Reverse(task.work), task.place));
    let resumed = plan.cells.len() - tasks.len();
    let shared = Shared {
        plan,
        hooks,
        resumed,
        work_all: tasks.iter().map(|task| task.work).sum(),
        cells: AtomicUsize::new(resumed),
        work: AtomicU64::new(0),
        stop: AtomicBool::new(false),
        sink: Mutex::new(Sink { append, taken: &mut taken, error: None }),
    };
    share_out(tasks.len(), threads, &|task| shared.work(&tasks[task]));
    let sink = shared.sink.into_inner().unwrap_or_else(PoisonError::into_inner);
    match sink.error {
        Some(error) => Err(SweepError::Journal(error)),
        None => Ok(taken.into_iter().map(|one| one.unwrap_or_else(|| Taken::Failed("stopped".to_owned()))).collect()),
    }
}

/// The results in a journal, without any simulation; the others are [`Taken::Failed`].
///
/// # Errors
/// Job lists that cannot be created.
pub(super) fn recall(plan: &Plan, journal: &Journal, hooks: Hooks<'_>) -> Result<Vec<Taken>, SweepError> {
    let of = |task: &Task<'_>| match journal.results.get(&task.key) {
        Some(result) => Taken::Done(Box::new(result.clone())),
        None => Taken::Failed("it is not in the journal".to_owned()),
    };
    Ok(prepare(plan, hooks)?.iter().map(of).collect())
}

/// Creates the job lists, each once, and the keys.
fn prepare<'a>(plan: &'a Plan, hooks: Hooks<'_>) -> Result<Vec<Task<'a>>, SweepError> {
    let mut lists: BTreeMap<String, (u64, Arc<Vec<JobSpec>>)> = BTreeMap::new();
    // Lists that do not depend on the seed are stored once.
    let mut by_hash: BTreeMap<u64, Arc<Vec<JobSpec>>> = BTreeMap::new();
    let mut tasks = Vec::new();
    for (place, cell) in plan.cells.iter().enumerate() {
        let name = format!("{:?}", cell.wanted);
        if !lists.contains_key(&name) {
            let workload = &cell.wanted.workload;
            let jobs =
                (hooks.jobs)(&cell.wanted).map_err(|reason| SweepError::Jobs { workload: workload.clone(), reason })?;
            let hash = hash_jobs(&jobs);
            let jobs = by_hash.entry(hash).or_insert_with(|| Arc::new(jobs));
            lists.insert(name.clone(), (hash, Arc::clone(jobs)));
        }
        let (hash, jobs) = &lists[&name];
        let weight = if cell.config.params.strategy.is_gang() { 1 } else { DYNAMIC_WEIGHT };
        let iterations =
            |job: &JobSpec| Shape::new(job, &cell.config.params).iterations.saturating_mul(job.tasks.into());
        let sum = jobs.iter().map(iterations).fold(0_u64, u64::saturating_add);
        let work = sum.saturating_mul(weight).clamp(1, u64::MAX >> 20);
        tasks.push(Task { place, cell, jobs: Arc::clone(jobs), key: key(plan, &cell.config, *hash), work });
    }
    Ok(tasks)
}

/// The state that the threads share.
struct Shared<'a> {
    plan: &'a Plan,
    hooks: Hooks<'a>,
    resumed: usize,
    work_all: u64,
    cells: AtomicUsize,
    work: AtomicU64,
    stop: AtomicBool,
    sink: Mutex<Sink<'a>>,
}

/// The destination of results.
struct Sink<'a> {
    append: &'a mut (dyn FnMut(&str) -> io::Result<()> + Send),
    taken: &'a mut Vec<Option<Taken>>,
    error: Option<io::Error>,
}

impl Shared<'_> {
    /// Simulates a cell and saves its result. False once the sweep is to stop.
    fn work(&self, task: &Task<'_>) -> bool {
        let start_s = (self.hooks.now_s)();
        let run = self.simulate(task);
        if self.stop.load(Relaxed) {
            return false;
        }
        let taken = match run {
            Ok(run) => {
                let result = CellResult::new(&task.cell.config, &task.jobs, &run, self.plan.bound_s);
                Taken::Done(Box::new(result))
            }
            Err(error) => Taken::Failed(error.to_string()),
        };
        self.put(task, taken, (self.hooks.now_s)() - start_s);
        !self.stop.load(Relaxed)
    }

    fn simulate(&self, task: &Task<'_>) -> Result<Simulated, SimError> {
        // This task's part of the shared sum; at its end it is the whole work of the task.
        let mut told = 0;
        let outcome = (self.hooks.simulate)(&task.cell.config, &task.jobs, &mut |progress| {
            let (done, all) = progress.task_iterations;
            let part = (u128::from(task.work) * u128::from(done.min(all)) / u128::from(all.max(1))) as u64;
            self.work.fetch_add(part.saturating_sub(told), Relaxed);
            told = told.max(part);
            self.tell();
            !self.stop.load(Relaxed)
        });
        self.work.fetch_add(task.work - told, Relaxed);
        outcome
    }

    /// Saves a result; the order in which cells end affects only the order of the journal's lines.
    fn put(&self, task: &Task<'_>, taken: Taken, wall_s: f64) {
        let mut sink = self.sink.lock().unwrap_or_else(PoisonError::into_inner);
        if let Taken::Done(result) = &taken {
            let label = format!("{} seed={}", task.cell.label(), task.cell.config.params.seed);
            if let Err(error) = (sink.append)(&line(task.key, &label, wall_s, result)) {
                sink.error.get_or_insert(error);
                self.stop.store(true, Relaxed);
                return;
            }
        }
        sink.taken[task.place] = Some(taken);
        drop(sink);
        self.cells.fetch_add(1, Relaxed);
        self.tell();
    }

    fn tell(&self) {
        (self.hooks.progress)(SweepProgress {
            cells: self.cells.load(Relaxed),
            resumed: self.resumed,
            cells_all: self.plan.cells.len(),
            work: self.work.load(Relaxed),
            work_all: self.work_all,
        });
    }
}
