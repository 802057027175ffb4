//! `cosched sim decide`: a scheduler outside of the simulator decides, by Batsim's protocol.

mod scheduler;
pub(crate) mod zmtp;

use super::batsim::Means;
use super::files::{Output, distinct, is_stdout};
use crate::context::Context;
use crate::out::{EXIT_REFUSED, Failure};
use crate::parsers::flops;
use crate::workload::{input, say_left_out};
use clap::Args;
use cosched_report::short;
use cosched_sim::JobTimes;
use cosched_sim::batch::{Decided, DecidedError, DecidedJob, HOSTS_MAX, JobEnd, simulate_decided};
use cosched_sim::metrics::{BatsimRow, words_of, write_batsim_rows};
use cosched_sim::workload::batsim::{DescribedJob, DescribedWorkload, read_batsim_described};
use scheduler::{Endpoint, Scheduler};
use serde::Serialize;
use std::path::PathBuf;
use std::time::Duration;

/// Options of `cosched sim decide`.
#[derive(Args, Debug)]
#[command(after_help = super::help::DECIDE)]
pub(crate) struct Decide {
    /// The workload (JSON of Batsim 4 or 5); - is standard input
    #[arg(value_name = "WORKLOAD")]
    workload: PathBuf,

    /// Where the scheduler listens: tcp://HOST:PORT or ipc://PATH
    #[arg(long, short, value_name = "ENDPOINT", default_value = "tcp://localhost:28000")]
    scheduler: Endpoint,

    /// Hosts of the machine, each for one job at a time [default: the workload's nb_res]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(HOSTS_MAX)))]
    hosts: Option<u32>,

    /// Speed of a host in flop/s, for profiles that compute
    #[arg(long, value_name = "F", default_value_t = 1e9, value_parser = flops)]
    flops: f64,

    /// The longest wait until the scheduler listens, and for each of its answers
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = patience)]
    patience: Duration,

    /// Write Batsim's jobs.csv, for evalys; - is standard output
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
}

fn patience(text: &str) -> Result<Duration, String> {
    let time = cosched_api::parse::duration(text).map_err(|error| error.to_string())?;
    let is_possible = (Duration::from_millis(1)..=Duration::from_secs(86_400)).contains(&time);
    if is_possible { Ok(time) } else { Err("give 1ms to 1d".to_owned()) }
}

/// The result as JSON; means are over the jobs that were started.
#[derive(Serialize)]
struct Summary {
    scheduler: String,
    hosts: u32,
    jobs: usize,
    successful: usize,
    walltime_reached: usize,
    killed: usize,
    rejected: usize,
    makespan_s: f64,
    #[serde(flatten)]
    means: Means,
    messages: u64,
}

pub(crate) fn run(context: &Context, options: &Decide) -> Result<u8, Failure> {
    let shown = options.workload.display();
    let read = read_batsim_described(input::open(&options.workload)?, options.flops);
    let workload = read.map_err(|error| Failure { code: EXIT_REFUSED, message: format!("{shown}: {error}") })?;
    let hosts = options.hosts.unwrap_or(workload.procs);
    if hosts > HOSTS_MAX {
        let why = format!("the scheduler is told of each host, and at most {HOSTS_MAX} are");
        let hint = "give fewer with --hosts N";
        return Err(Failure::explained(EXIT_REFUSED, &format!("{shown}: nb_res is {hosts}"), &why, hint));
    }
    say_left_out(&workload.dropped);
    if let Some(path) = &options.csv {
        distinct(&options.workload, &[path.as_path()])?;
    }
    let csv = options.csv.as_deref().map(Output::create).transpose()?;
    let mut scheduler = Scheduler::connect(&options.scheduler, options.patience)?;
    let decided =
        simulate_decided(&workload, hosts, |message| scheduler.ask(message)).map_err(|error| match error {
            DecidedError::Exchange(failure) => failure,
            DecidedError::Wrong(why) => {
                let what = format!("the scheduler at {} decides what cannot be", options.scheduler);
                Failure::explained(
                    EXIT_REFUSED,
                    &what,
                    &why,
                    "docs/platforms.md has the part of Batsim's protocol that is simulated",
                )
            }
        })?;
    if let Some(mut out) = csv {
        let name = options.workload.file_stem().map_or("workload".into(), |name| name.to_string_lossy());
        let times: Vec<JobTimes> = decided.jobs.iter().map(times).collect();
        let rows = workload.jobs.iter().zip(&decided.jobs).map(row);
        let places = |job: usize| words_of(&decided.jobs[job].places);
        let written = write_batsim_rows(&mut out, &name, rows, &times, places);
        out.written(written)?;
    }
    if options.csv.as_deref().is_some_and(is_stdout) {
        return Ok(0);
    }
    let summary = summary(options, hosts, &workload, &decided);
    context.give(&summary, || text(&summary))
}

/// A rejected job is not in Batsim's table.
fn times(job: &DecidedJob) -> JobTimes {
    let ns = |us: u64| (job.end != JobEnd::Rejected).then_some(us * 1000);
    JobTimes { start_ns: ns(job.start_us), finish_ns: ns(job.end_us) }
}

fn row<'a>((job, decided): (&'a DescribedJob, &DecidedJob)) -> BatsimRow<'a> {
    BatsimRow {
        id: job.id.split_once('!').map_or(job.id.as_str(), |(_, id)| id).to_owned(),
        profile: &job.profile,
        arrival_ns: job.submit_us * 1000,
        tasks: job.size,
        requested_s: job.walltime_us.map(|us| us as f64 / 1e6),
        state: decided.end.name(),
    }
}

fn summary(options: &Decide, hosts: u32, workload: &DescribedWorkload, decided: &Decided) -> Summary {
    let count = |end: JobEnd| decided.jobs.iter().filter(|job| job.end == end).count();
    let times = workload.jobs.iter().zip(&decided.jobs).filter_map(|(job, decided)| {
        let JobTimes { start_ns, finish_ns } = times(decided);
        Some([job.submit_us * 1000, start_ns?, finish_ns?])
    });
    Summary {
        scheduler: options.scheduler.to_string(),
        hosts,
        jobs: decided.jobs.len(),
        successful: count(JobEnd::Successful),
        walltime_reached: count(JobEnd::WalltimeReached),
        killed: count(JobEnd::Killed),
        rejected: count(JobEnd::Rejected),
        makespan_s: decided.jobs.iter().map(|job| job.end_us).max().unwrap_or(0) as f64 / 1e6,
        means: Means::of(times),
        messages: decided.messages,
    }
}

fn text(of: &Summary) -> String {
    format!(
        "{} on {} hosts: {} jobs in {} s, {} messages\n\
         {} successful, {} at their walltime, {} killed, {} rejected\n{}\n",
        of.scheduler,
        of.hosts,
        of.jobs,
        short(of.makespan_s),
        of.messages,
        of.successful,
        of.walltime_reached,
        of.killed,
        of.rejected,
        of.means
    )
}
