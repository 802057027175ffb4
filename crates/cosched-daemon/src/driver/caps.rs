//! A job lifts no limit of the caller's cgroup: the limit is kept, or the process is refused (decision 0037).

use super::Driver;
use crate::config::CallerCgroup;
use crate::refuse::{Answer, forbidden, internal, unsupported};
use cosched_api::ErrorBody;
use cosched_linux::process::{Held, facts};
use cosched_linux::{Caps, JobCgroup, Resource};
use std::io;

impl Driver {
    /// The limits on a process in its present cgroups that a job would not have. A task limit of at least `tasks_per_job` is not counted.
    fn caps_left_by(&self, held: &Held) -> Answer<Caps> {
        let tasks_max = self.config.limits.tasks_per_job;
        let mut caps = self.machinery.tree.caps_left_by(held.pid()).map_err(|e| hidden(held.pid(), &e))?;
        caps.caps.retain(|cap| cap.resource != Resource::Tasks || cap.most < tasks_max);
        Ok(caps)
    }

    /// Refuses a process that would escape limits in a job. A job that may be requeued is started by a daemon, outside all such limits, so it must
    /// have none.
    pub(super) fn check_caps(&self, held: &Held, requeues: bool) -> Answer<Caps> {
        let caps = self.caps_left_by(held)?;
        let keeps = self.config.limits.caller_cgroup == CallerCgroup::PerJob || self.is_of_its_starter(held);
        if requeues && caps != Caps::default() {
            let hint = "Leave out `--on-node-loss requeue`, or run it from a cgroup without limits.";
            return Err(unsupported("the job cannot be requeued", told(&caps), hint));
        }
        let all_kept = caps.unkept.is_empty() && (caps.caps.is_empty() || keeps);
        if all_kept { Ok(caps) } else { Err(refused(held.pid(), &caps)) }
    }

    /// Whether this is a process of the user whose `cosched run` has started this daemon: it is his to say what his jobs have, and in a container whose
    /// memory is limited no other daemon would do.
    fn is_of_its_starter(&self, held: &Held) -> bool {
        let own = rustix::process::getuid().as_raw();
        self.identity.embedded && facts(held.pid()).is_some_and(|facts| facts.uid == own)
    }

    /// Applies the limits of a job's first process to the job.
    pub(super) fn keep_caps(&self, cgroup: &JobCgroup, held: &Held) -> Answer<()> {
        let caps = self.check_caps(held, false)?;
        cgroup.keep(&caps).map_err(|e| internal(format!("{} cannot be kept for the job", told(&caps)), e))
    }

    /// A further process may only enter a job whose limits are as strict.
    pub(super) fn compare_caps(&self, cgroup: &JobCgroup, held: &Held) -> Answer<()> {
        let rest = self.caps_left_by(held)?.beyond(&cgroup.caps());
        if rest == Caps::default() { Ok(()) } else { Err(refused(held.pid(), &rest)) }
    }
}

fn hidden(pid: i32, e: &io::Error) -> ErrorBody {
    forbidden(
        format!("process {pid} cannot enter a job"),
        format!("its limits cannot be read: /proc/{pid}/cgroup: {e}"),
        "Run it in a cgroup that is nested less deeply.",
    )
}

fn told(caps: &Caps) -> String {
    let cpus = caps.cpus.iter().map(|cpus| format!("CPUs {cpus} (cpuset.cpus)"));
    let unkept = caps.unkept.iter().map(ToString::to_string);
    let all: Vec<String> = caps.caps.iter().map(ToString::to_string).chain(cpus).chain(unkept).collect();
    format!("the cgroup that it is in limits it to {}", all.join(", "))
}

fn refused(pid: i32, caps: &Caps) -> ErrorBody {
    let per_job = match caps.unkept.is_empty() {
        true => " An administrator can set caller_cgroup = \"per-job\" in [limits]: then each job gets the same limit.",
        // No job can have this limit.
        false => "",
    };
    forbidden(
        format!("process {pid} cannot enter a job"),
        format!("{}, and in a job's own cgroup that limit would not apply", told(caps)),
        format!(
            "Run it where that limit does not apply, or with a daemon of your own below it \
             (docs/jobs-on-nodes.md).{per_job}"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use cosched_api::ErrorCode;
    use cosched_linux::Cap;

    #[test]
    fn who_is_refused_hears_which_limit_of_which_cgroup_would_be_lifted() {
        let cap = |resource, most| Cap { resource, most, of: "/user.slice".into() };
        let caps = Caps {
            caps: vec![cap(Resource::Cpu, 1_500_000), cap(Resource::Memory, 2 << 30)],
            cpus: Some("0-1".to_owned()),
            ..Caps::default()
        };
        let e = refused(7, &caps);
        assert_eq!(e.code, ErrorCode::Forbidden);
        for words in ["1.50 CPUs (cpu.max of /user.slice)", "2048 MiB (memory.max of /user.slice)", "CPUs 0-1"] {
            assert!(e.why.contains(words), "{words}: {}", e.why);
        }
        assert!(e.hint.contains("caller_cgroup = \"per-job\""), "{}", e.hint);
    }
}
