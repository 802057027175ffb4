//! The prolog runs as root, once for each job and node, before the job's first step there.

use super::settings::WhenDown;
use super::{HookContext, controller, jobs};
use crate::out::Failure;

/// Registers the job. Slurm drains the node if the result is not 0.
pub(super) fn prolog(context: &HookContext<'_>) -> u8 {
    let Err(failure) = register(context) else { return 0 };
    match context.settings.when_down {
        WhenDown::Run => {
            context.log(&format!("it runs without cosched: {}", failure.message));
            0
        }
        WhenDown::Fail => {
            context.log(&format!("it is not run here: {}", failure.message));
            failure.code.max(1)
        }
    }
}

fn register(context: &HookContext<'_>) -> Result<(), Failure> {
    let mut slurm = context.job.clone();
    if context.settings.ask_slurmctld
        && let Err(why) = controller::complete(&mut slurm)
    {
        context.log(&format!("its name, QOS and memory are not known: {why}"));
    }
    let Some(target) = context.settings.target_of(&slurm) else { return Ok(()) };
    let uid = slurm.owner("Prolog")?;
    let mut client = context.connect()?;
    // Without slurmctld the prolog of a step may not know the job's other nodes: its tasks do, and register it.
    let left_to_tasks = slurm.node_count > 1
        && slurm.shares.is_empty()
        && client.status()?.cluster.is_some_and(|cluster| !cluster.alone);
    if left_to_tasks {
        return Ok(());
    }
    let jobs = jobs::living(&mut client, &slurm, uid)?;
    // A requeued job may have left one on this node, whose processes Slurm has ended.
    if jobs.iter().any(|job| job.by_admin) {
        return Ok(());
    }
    if let Some(job) = jobs.first() {
        context.log(&format!("job {} has its name, but was registered by its user: tasks do not join it", job.id));
    }
    jobs::register(context, &mut client, &slurm, &target, Some(uid))?;
    Ok(())
}
