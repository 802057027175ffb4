//! `cosched-columnsort sort`.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use cosched_columnsort::mpi;
use cosched_columnsort::peers::Peers;
use cosched_columnsort::run::{Job, Outcome, SortError};
use cosched_pipeline::Options;

use super::args::SortArgs;
use super::out::{self, EXIT_FAILED, Problem};
use super::progress::Progress;
use super::{common, files, matrix, report, stop};

/// How long a launcher has to pass on why a process gives up.
const HEARD: Duration = Duration::from_millis(200);

pub(crate) fn run(args: &SortArgs) -> Result<u8, Problem> {
    let named = stop::on_signals();
    let peers = mpi::connect(args.mpi.as_deref()).map_err(|e| {
        Problem::explained(
            EXIT_FAILED,
            "the processes of the sort cannot be joined",
            e,
            "see --mpi, or run one process with --mpi none",
        )
    })?;
    let result = sort(args, peers.clone(), &named);
    let Some(peers) = peers else { return result };
    match result {
        Ok(code) => {
            peers.finish();
            Ok(if peers.rank() == 0 { code } else { 0 })
        }
        Err(problem) => {
            // The other processes may be waiting for this one. All of them end, and one reports
            // why.
            problem.say();
            named.remove();
            // A launcher that is told to end its processes may drop what it has not read from them yet.
            std::thread::sleep(HEARD);
            peers.abort(i32::from(problem.code));
            Err(Problem::silent(problem.code))
        }
    }
}

fn sort(args: &SortArgs, peers: Option<Arc<mpi::Mpi>>, named: &stop::Named) -> Result<u8, Problem> {
    let first = peers.as_ref().is_none_or(|peers| peers.rank() == 0);
    let job = prepare(args, peers.as_deref())?;
    if first && !args.quiet {
        let text = matrix::describe(&job.plan, job.temp.is_some());
        text.lines().for_each(out::say);
    }
    let done_bytes = Arc::new(AtomicU64::new(0));
    let mine = job.plan.moved_bytes / 2 / job.plan.shape.processes;
    let progress = Progress::start(args.quiet || !first, &done_bytes, mine, job.plan.passes.clone());
    let outcome = job.run(peers.map(|peers| peers as Arc<dyn Peers>), done_bytes, |path| named.set(path));
    drop(progress);
    let outcome = outcome.map_err(|error| explain(&error))?;
    if !first {
        return Ok(0);
    }
    let value = report::json(&job.plan, &outcome);
    write_reports(args, &value, &outcome)?;
    out::give(args.json, &value, &report::text(&job.plan, &outcome))
}

/// Checks everything that can be checked before the work.
fn prepare(args: &SortArgs, peers: Option<&mpi::Mpi>) -> Result<Job, Problem> {
    let format = common::format(&args.records)?;
    let records = common::records_of(&args.input, &format)?;
    // The first process may already have created its temporary file, but not the output.
    files::may_write(&args.output, args.force)?;
    let processes = peers.map_or(1, Peers::size);
    // The available memory varies over time, and all processes need the same plan.
    let mut memory = common::memory(&args.matrix, processes).to_le_bytes();
    if let Some(peers) = peers {
        peers.broadcast(&mut memory).map_err(Problem::failed)?;
    }
    let plan =
        common::plan(&args.matrix, format, records, processes, u64::from_le_bytes(memory), &args.pipeline.priorities)?;
    Ok(Job {
        input: args.input.clone(),
        output: args.output.clone(),
        temp: args.temp.clone(),
        plan,
        io: common::io(args.pipeline.io),
        kind: args.pipeline.executor,
        sync: args.sync,
        options: options(args),
    })
}

fn options(args: &SortArgs) -> Options {
    let mut options = Options::default();
    options.workers = args.matrix.threads;
    options.priorities = args.pipeline.priorities.clone();
    options.pin_in_turn = args.pipeline.affinity;
    options.trace = args.pipeline.trace.is_some();
    options.serve = args.pipeline.serve;
    options.stall_limit = args.pipeline.stall_limit;
    options
}

/// Writes the requested files besides the output.
fn write_reports(args: &SortArgs, value: &serde_json::Value, outcome: &Outcome) -> Result<(), Problem> {
    if let Some(path) = &args.pipeline.report {
        files::write(path, &format!("{value:#}\n"))?;
    }
    if let Some(path) = &args.pipeline.trace {
        files::write(path, &format!("{}\n", report::trace(outcome)))?;
    }
    Ok(())
}

fn explain(error: &SortError) -> Problem {
    match error {
        SortError::File(file) => Problem::failed(file),
        SortError::Changed { .. } => {
            let hint = "another program is writing it; start again when it is complete";
            Problem::explained(EXIT_FAILED, "the input changed before the sort began", error, hint)
        }
        SortError::Pass(_) | SortError::Peers(_) => Problem::failed(error),
    }
}
