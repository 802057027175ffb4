//! The epilog: root, when the job's steps have ended on this node. Ends what is left: also what has left its session or its
//! parent, and so Slurm's sight, is still in the job's cgroup.

use super::{Context, jobs};
use crate::out::{EXIT_REFUSED, Failure};
use cosched_api::{JobState, KillRequest};
use std::time::Duration;

/// How long a process may take to go after SIGKILL.
const PATIENCE: Duration = Duration::from_secs(10);
const SIGKILL: i32 = 9;

/// Ends the job. Never a failure for Slurm, which would drain the node: without a daemon nothing is frozen either.
pub(super) fn epilog(context: &Context<'_>) -> u8 {
    if let Err(failure) = end(context) {
        context.log(&format!("its end could not be seen to: {}", failure.message));
    }
    0
}

fn end(context: &Context<'_>) -> Result<(), Failure> {
    let Some(uid) = context.job.uid else {
        let why = "SLURM_JOB_UID is not in the environment";
        return Err(Failure::explained(
            EXIT_REFUSED,
            "the job's owner is not known",
            why,
            "Call it from Slurm's Epilog",
        ));
    };
    let mut client = context.connect()?;
    for job in jobs::living(&mut client, &context.job, uid)? {
        let killed = client.kill(job.id, &KillRequest { signal: SIGKILL, grace_ms: None });
        let ended = client.wait(job.id, PATIENCE)?;
        if !matches!(ended.state, JobState::Ended | JobState::Lost) {
            killed?;
            let why = format!("{} of its processes are left", ended.processes.unwrap_or_default());
            let hint = "`cosched show` lists them; a process in an uninterruptible wait ends after it";
            return Err(Failure::explained(1, &format!("job {} does not end", job.id), &why, hint));
        }
    }
    Ok(())
}
