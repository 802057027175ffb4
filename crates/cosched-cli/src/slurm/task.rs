//! The task prolog runs as the user, in each task, as a child of the process that will execute the task's program.
//!
//! A job in which no process is left on any of its nodes ends (a `salloc` between two steps), and without a prolog no job exists yet:
//! then the first task registers it. Several tasks, on several nodes, may do so at the same time: the daemons make one job of it.

use super::settings::Target;
use super::{HookContext, jobs};
use crate::out::{Failure, print};
use cosched_api::{Class, Client, ClientError, ErrorCode, Job, JobState, ProcessRequest};
use std::time::{Duration, Instant};

/// How often a job on this node may refuse a process: it may end between the lookup and the entry.
const ATTEMPTS: u32 = 5;
/// How long a job may take to begin on this node.
const BEGIN_TIME_MAX: Duration = Duration::from_secs(10);
const BEGIN_POLL: Duration = Duration::from_millis(50);
/// A job that has not begun on this node for this time may be about to end on all its nodes: it is looked up or registered again.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// How often a task of a job that is suspended, or waits for memory, checks whether that is over.
const TURN_POLL: Duration = Duration::from_secs(1);

/// Puts the task into its job. The task runs in any case; Slurm puts what this prints into the task's environment.
pub(super) fn task_prolog(context: &HookContext<'_>) -> Result<u8, Failure> {
    match enter(context) {
        Ok(Some((job, socket))) => {
            print(&format!("export COSCHED_JOB={}\nexport COSCHED_SOCKET={socket}\n", job.id))?;
        }
        Ok(None) => print("unset COSCHED_JOB\n")?,
        Err(failure) => {
            context.log(&format!("a task runs without cosched: {}", failure.message));
            print("unset COSCHED_JOB\n")?;
        }
    }
    Ok(0)
}

fn enter(context: &HookContext<'_>) -> Result<Option<(Job, String)>, Failure> {
    let pid = match context.job.task_pid {
        Some(pid) => pid,
        None => rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get()),
    };
    let mut client = context.connect()?;
    let socket = client.path().display().to_string();
    let Some(mut job) = find(context, &mut client)? else { return Ok(None) };
    let (mut refused, mut since, mut asked) = (0, Instant::now(), Instant::now());
    loop {
        if await_turn(context, &mut client, &job)? {
            (since, asked) = (Instant::now(), Instant::now());
        }
        let error = match client.add_process(job.id, &ProcessRequest { pid, start_ticks: None }) {
            Ok(job) => return Ok(Some((job, socket))),
            Err(error) => error,
        };
        let now = client.job(job.id).ok().filter(|job| !job.state.has_ended());
        // A process count means that the job is on this node.
        refused += u32::from(now.as_ref().is_some_and(|job| job.processes.is_some()));
        if !is_missing(&error) || refused >= ATTEMPTS || since.elapsed() > BEGIN_TIME_MAX {
            return Err(error.into());
        }
        std::thread::sleep(BEGIN_POLL);
        job = match now {
            Some(now) if asked.elapsed() < ASK_AGAIN => now,
            Some(now) => {
                asked = Instant::now();
                register(context, &mut client)?.unwrap_or(now)
            }
            None => match find(context, &mut client)? {
                Some(found) => found,
                None => return Ok(None),
            },
        };
    }
}

/// Waits while the job may not run; returns whether it had to. A task that is frozen before its program starts still looks like
/// slurmstepd to Slurm's proctrack/linuxproc, which does not kill it. It does kill this process, which is outside the job.
fn await_turn(context: &HookContext<'_>, client: &mut Client, job: &Job) -> Result<bool, Failure> {
    let stands = |job: &Job| matches!(job.state, JobState::Suspended | JobState::Waiting);
    // A job that was only just registered waits for a moment.
    let brief = Instant::now();
    let mut said = false;
    let mut now = job.clone();
    while stands(&now) {
        if !said && (now.state == JobState::Suspended || brief.elapsed() >= TURN_POLL) {
            let why = now.waits_for.as_deref().unwrap_or("it is suspended");
            context.log(&format!("its tasks wait: cosched job {} is not running: {why}", now.id));
            said = true;
        }
        std::thread::sleep(if said { TURN_POLL } else { BEGIN_POLL });
        now = match client.job(job.id) {
            // Entering the job will then report that it no longer exists.
            Err(error) if is_missing(&error) => break,
            answer => answer?,
        };
    }
    if said {
        context.log(&format!("its tasks continue: cosched job {} is {}", now.id, now.state.name()));
    }
    Ok(said)
}

fn is_missing(error: &ClientError) -> bool {
    matches!(error, ClientError::Refused(body) if matches!(body.code, ErrorCode::NotFound | ErrorCode::Conflict))
}

/// The existing job, or a new one unless its class is off.
fn find(context: &HookContext<'_>, client: &mut Client) -> Result<Option<Job>, Failure> {
    let uid = rustix::process::getuid().as_raw();
    match jobs::living(client, &context.job, uid)?.into_iter().next() {
        Some(job) => Ok(Some(job)),
        None => register(context, client),
    }
}

fn register(context: &HookContext<'_>, client: &mut Client) -> Result<Option<Job>, Failure> {
    // The prolog knows the QOS better; what it registered is entered whatever the settings say for the task.
    let Some(target) = context.settings.target_of(&context.job) else { return Ok(None) };
    let job = match jobs::register(context, client, &context.job, &target, None) {
        // Only an administrator can give class express, and the task runs as the user.
        Err(_) if target.class == Class::Express => {
            let lower = Target { class: Class::Interactive, ..target };
            jobs::register(context, client, &context.job, &lower, None)?
        }
        other => other?,
    };
    Ok(Some(job))
}
