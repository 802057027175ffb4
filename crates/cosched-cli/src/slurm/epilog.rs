//! The epilog runs as root when the job's steps have ended on this node. It ends remaining processes: a process that has
//! left its session or its parent, and so is no longer visible to Slurm, is still in the job's cgroup.

use super::{HookContext, jobs};
use crate::out::Failure;
use cosched_api::{Client, Job, JobState, KillRequest};
use std::time::{Duration, Instant};

/// How long a process may take to end after SIGKILL.
const PATIENCE: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(20);
const SIGKILL: i32 = 9;

/// Ends the job. Never fails for Slurm, which would drain the node: without a daemon no job is frozen, either.
pub(super) fn epilog(context: &HookContext<'_>) -> u8 {
    if let Err(failure) = end(context) {
        context.log(&format!("its end could not be handled: {}", failure.message));
    }
    0
}

fn end(context: &HookContext<'_>) -> Result<(), Failure> {
    let uid = context.job.owner("Epilog")?;
    let mut client = context.connect()?;
    for job in jobs::living(&mut client, &context.job, uid)? {
        let spans = job.nodes.len() > 1;
        match job.processes {
            // On other nodes, Slurm still allows its processes the time of KillWait: their epilogs will follow.
            Some(_) if spans => end_part(&mut client, &job)?,
            // Its part on this node has ended, and its other parts may continue.
            None if spans && job.state != JobState::Waiting => (),
            _ => end_all(&mut client, &job)?,
        }
    }
    Ok(())
}

fn end_all(client: &mut Client, job: &Job) -> Result<(), Failure> {
    let killed = client.kill(job.id, &KillRequest { signal: SIGKILL, grace_ms: None, here: false });
    let now = client.wait(job.id, PATIENCE)?;
    if now.state.has_ended() {
        return Ok(());
    }
    killed?;
    Err(does_not_end(&now))
}

fn end_part(client: &mut Client, job: &Job) -> Result<(), Failure> {
    let deadline = Instant::now() + PATIENCE;
    let mut now = client.kill(job.id, &KillRequest { signal: SIGKILL, grace_ms: None, here: true })?;
    while now.processes.is_some_and(|processes| processes > 0) && !now.state.has_ended() {
        if Instant::now() > deadline {
            return Err(does_not_end(&now));
        }
        std::thread::sleep(POLL);
        now = client.job(job.id)?;
    }
    Ok(())
}

fn does_not_end(job: &Job) -> Failure {
    let why = format!("{} of its processes remain", job.processes.unwrap_or_default());
    let hint = "`cosched show` lists them; a process in an uninterruptible wait ends after it";
    Failure::explained(1, &format!("job {} does not end", job.id), &why, hint)
}
