//! The cosched job of a Slurm job: found by name, owner and node, or registered.

use super::HookContext;
use super::environment::SlurmJob;
use super::settings::Target;
use super::spread::Spread;
use crate::out::Failure;
use cosched_api::{Client, ClientError, ErrorCode, Job, JobRequest, OnNodeLoss, Status};
use std::time::{Duration, Instant};

/// How long news of a job may take from one node of a cluster to another.
const NEWS_TIME_MAX: Duration = Duration::from_secs(2);
const NEWS_POLL: Duration = Duration::from_millis(50);

/// The live jobs on this node that belong to this Slurm job, the best first: the prolog's, the one with the most nodes, the
/// oldest. If the daemons of other nodes are in the same cluster, each of them may have registered one of this name.
pub(super) fn living(client: &mut Client, slurm: &SlurmJob, uid: u32) -> Result<Vec<Job>, Failure> {
    let (name, own) = (slurm.cosched_name(), client.version()?.node);
    let mut jobs = client.jobs(false)?.jobs;
    jobs.retain(|job| job.name == name && job.uid == uid && !job.state.has_ended() && is_of(job, slurm, &own));
    jobs.sort_by_key(|job| std::cmp::Reverse((job.by_admin, job.nodes.len(), std::cmp::Reverse(job.id))));
    Ok(jobs)
}

/// Whether it is on this node, and on no node that Slurm's job does not have: an earlier run of a requeued job may have had
/// others.
fn is_of(job: &Job, slurm: &SlurmJob, own: &str) -> bool {
    let here = job.nodes.is_empty() || job.nodes.iter().any(|node| node.name.is_empty() || node.name == own);
    let among = |name: &str| slurm.shares.iter().any(|share| share.node == name);
    here && (job.nodes.len() < 2 || slurm.shares.is_empty() || job.nodes.iter().all(|node| among(&node.name)))
}

/// Registers the job without a process, or gets the one that a hook on another node has registered meanwhile; `owner_uid` is
/// set if the job belongs to another user.
pub(super) fn register(
    context: &HookContext<'_>,
    client: &mut Client,
    slurm: &SlurmJob,
    target: &Target,
    owner_uid: Option<u32>,
) -> Result<Job, Failure> {
    let status = client.status()?;
    if let Some(cluster) = status.cluster.as_ref().filter(|cluster| !cluster.store_answers) {
        let why = format!("the store of cluster {} does not answer", cluster.name);
        return Err(Failure::explained(1, "jobs cannot be registered now", &why, "see `cosched status`"));
    }
    let spread = Spread::of(slurm, &status);
    let spans = spread.nodes.len() > 1;
    let alone_because = match register_once(client, &request(slurm, target, owner_uid, &status, spread.nodes)) {
        Err(ClientError::Refused(body)) if spans && body.code != ErrorCode::Internal => {
            Some(format!("{}: {}", body.what, body.why))
        }
        answer => {
            if let Some(why) = spread.alone_because {
                context.log(&format!("it is a separate cosched job on each of its nodes, not one gang: {why}"));
            }
            return Ok(answer?);
        }
    };
    let spread = Spread::here(slurm, &status, alone_because);
    let job = register_once(client, &request(slurm, target, owner_uid, &status, spread.nodes))?;
    context.log(&format!(
        "it is a separate cosched job on each of its nodes, not one gang: {}",
        spread.alone_because.unwrap_or_default()
    ));
    Ok(job)
}

/// This node may not know the job of another node's hook yet.
fn register_once(client: &mut Client, request: &JobRequest) -> Result<Job, ClientError> {
    let deadline = Instant::now() + NEWS_TIME_MAX;
    loop {
        match client.register(request) {
            Err(ClientError::Refused(body)) if body.code == ErrorCode::NotFound && Instant::now() < deadline => {
                std::thread::sleep(NEWS_POLL);
            }
            answer => return answer,
        }
    }
}

/// Whether queues are configured: otherwise the one default queue takes every job.
fn has_queues(status: &Status) -> bool {
    let queues = status.cluster.as_ref().map_or(&[][..], |cluster| &cluster.queues);
    status.cluster.as_ref().is_some_and(|cluster| !cluster.alone) || queues.iter().any(|queue| queue.name != "default")
}

fn request(
    slurm: &SlurmJob,
    target: &Target,
    owner_uid: Option<u32>,
    status: &Status,
    nodes: Vec<cosched_api::NodeResources>,
) -> JobRequest {
    JobRequest {
        command: slurm.command(),
        name: Some(slurm.cosched_name()),
        class: Some(target.class),
        queue: target.queue.clone().filter(|_| has_queues(status)),
        cwd: slurm.work_dir.clone(),
        detached: true,
        nodes,
        // Slurm ends a job that loses a node, unless its user requests otherwise (--no-kill).
        on_node_loss: status.cluster.as_ref().map(|_| OnNodeLoss::Keep),
        owner_uid,
        once: true,
        ..JobRequest::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::environment::Share;
    use super::*;

    #[test]
    fn a_job_of_this_node_is_told_from_those_of_others_and_of_earlier_runs() {
        let job = |nodes: &[&str]| {
            let nodes: Vec<_> = nodes.iter().map(|name| serde_json::json!({ "name": name })).collect();
            let job = serde_json::json!({
                "id": 7, "name": "slurm-17", "uid": 1, "user": "u", "class": "batch", "policy": "gang", "cpus": 1,
                "state": "running", "command": [], "pid": 0, "submitted_unix_ms": 0, "cpu_time_ms": 0, "detached": true,
                "cgroup": "", "nodes": nodes,
            });
            serde_json::from_value::<Job>(job).unwrap()
        };
        let shares = ["a", "b"].map(|node| Share { node: node.into(), ..Share::default() }).to_vec();
        let slurm = SlurmJob { shares, ..SlurmJob::default() };
        for (nodes, here) in [
            (&[][..], true),
            (&["a"], true),
            (&["b"], false),
            (&["a", "b"], true),
            (&["b", "c"], false),
            (&["a", "c"], false),
        ] {
            assert_eq!(is_of(&job(nodes), &slurm, "a"), here, "{nodes:?}");
        }
        assert!(is_of(&job(&["a", "c"]), &SlurmJob::default(), "a"), "where Slurm's nodes are not known");
    }
}
