//! The cosched job of a Slurm job: found by name and owner, or registered.

use super::environment::SlurmJob;
use crate::out::Failure;
use cosched_api::{Class, Client, Job, JobRequest, JobState, NodeResources};

/// The jobs of this Slurm job that live, the oldest first.
pub(super) fn living(client: &mut Client, slurm: &SlurmJob, uid: u32) -> Result<Vec<Job>, Failure> {
    let name = slurm.cosched_name();
    let mut jobs = client.jobs(false)?.jobs;
    jobs.retain(|job| job.name == name && job.uid == uid && !matches!(job.state, JobState::Ended | JobState::Lost));
    jobs.sort_by_key(|job| job.id);
    Ok(jobs)
}

/// Registers it without a process; `owner_uid` when it is another user's.
pub(super) fn register(
    client: &mut Client,
    slurm: &SlurmJob,
    class: Class,
    owner_uid: Option<u32>,
) -> Result<Job, Failure> {
    // Slurm's idea of a node may be larger than the machine: then the job has what there is.
    let there_bytes = client.load(None)?.memory_bytes;
    let here = NodeResources {
        cpus: slurm.cpus,
        cpus_min: slurm.cpus.map(|_| 1),
        memory_bytes: slurm.memory_bytes.map(|bytes| bytes.min(there_bytes)),
        ..NodeResources::default()
    };
    let request = JobRequest {
        command: slurm.command(),
        name: Some(slurm.cosched_name()),
        class: Some(class),
        cwd: slurm.work_dir.clone(),
        detached: true,
        nodes: vec![here],
        owner_uid,
        ..JobRequest::default()
    };
    Ok(client.register(&request)?)
}
