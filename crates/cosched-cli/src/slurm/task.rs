//! The task prolog: the user, in each task, as a child of the process that will execute the task's program.
//!
//! A job in which no process is left ends (a `salloc` between two steps), and where there is no prolog there is none yet:
//! then the first task registers it. Several tasks may do so at once; the oldest job is the one, and the others are withdrawn.

use super::{Context, jobs};
use crate::out::{Failure, print};
use cosched_api::{Class, Client, ClientError, ErrorCode, Job, JobState, KillRequest, ProcessRequest};
use std::time::Duration;

/// How often a job may end between finding it and entering it.
const ATTEMPTS: u32 = 5;
const SIGKILL: i32 = 9;
/// How often a task of a suspended job asks whether it is resumed.
const RESUME_POLL: Duration = Duration::from_secs(1);

/// Puts the task into its job. The task runs in any case; what it prints, Slurm puts into the task's environment.
pub(super) fn task_prolog(context: &Context<'_>) -> Result<u8, Failure> {
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

fn enter(context: &Context<'_>) -> Result<Option<(Job, String)>, Failure> {
    // The prolog knows the QOS better; what it registered is entered whatever the settings say to the task.
    let class = context.settings.class_of(&context.job);
    let pid = match context.job.task_pid {
        Some(pid) => pid,
        None => rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get()),
    };
    let mut client = context.connect()?;
    let socket = client.path().display().to_string();
    for attempt in 1.. {
        let Some(job) = find(context, &mut client, class)? else { return Ok(None) };
        if job.state == JobState::Suspended {
            await_resumed(&mut client, job.id)?;
        }
        match client.add_process(job.id, &ProcessRequest { pid, start_ticks: None }) {
            Ok(job) => return Ok(Some((job, socket))),
            Err(error) if attempt < ATTEMPTS && has_ended(&error) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}

/// A task that is frozen before its program starts is still slurmstepd to Slurm's proctrack/linuxproc, which does not kill it.
/// This process, outside of the job, it does.
fn await_resumed(client: &mut Client, id: u64) -> Result<(), Failure> {
    while client.job(id)?.state == JobState::Suspended {
        std::thread::sleep(RESUME_POLL);
    }
    Ok(())
}

fn has_ended(error: &ClientError) -> bool {
    matches!(error, ClientError::Refused(body) if matches!(body.code, ErrorCode::NotFound | ErrorCode::Conflict))
}

/// The job that is there, or a new one, unless its class is off.
fn find(context: &Context<'_>, client: &mut Client, class: Option<Class>) -> Result<Option<Job>, Failure> {
    let uid = rustix::process::getuid().as_raw();
    if let Some(job) = jobs::living(client, &context.job, uid)?.into_iter().next() {
        return Ok(Some(job));
    }
    let Some(class) = class else { return Ok(None) };
    let own = match jobs::register(client, &context.job, class, None) {
        // Express is an administrator's to give, and the task is the user's.
        Err(_) if class == Class::Express => jobs::register(client, &context.job, Class::Interactive, None)?,
        other => other?,
    };
    let oldest = jobs::living(client, &context.job, uid)?.into_iter().next().unwrap_or_else(|| own.clone());
    if oldest.id != own.id {
        client.kill(own.id, &KillRequest { signal: SIGKILL, grace_ms: None })?;
    }
    Ok(Some(oldest))
}
