//! For the fuzzer: parsers of Slurm's output, with checks of what must hold of the results.

use super::environment::SlurmJob;
use super::{controller, hostlist};

/// Slurm's list of nodes; without brackets it is a list of the same nodes.
pub fn host_list(data: &[u8]) {
    let Some(names) = std::str::from_utf8(data).ok().and_then(hostlist::expand) else { return };
    assert_eq!(hostlist::expand(&names.join(",")), Some(names));
}

/// squeue's output for a job with two nodes.
pub fn squeue(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut job = SlurmJob { id: 17, node_count: 2, cpu_counts: vec![2, 1], ..SlurmJob::default() };
    if controller::add(&mut job, text) {
        assert!(job.shares.is_empty() || job.shares.len() == 2, "{job:?}");
        assert!(job.label.lines().count() == 1, "{job:?}");
    }
    assert!(controller::shown(text).is_none_or(|name| !name.contains(char::is_control)));
}

/// A hook's environment, one variable per line: a task prolog's is controlled by the user.
pub fn slurm_environment(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let variable = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    if let Ok(job) = SlurmJob::of(|name| variable(name).map(str::to_owned)) {
        assert!(job.shares.is_empty() || job.shares.len() == job.node_count as usize, "{job:?}");
        assert!(job.command().len() <= 3 && job.cosched_name().starts_with("slurm-"));
    }
}
