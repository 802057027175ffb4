//! The node's refusals as messages for users.

use super::super::Driver;
use crate::refuse::{conflict, forbidden, internal, invalid, no_such_job, not_found, refuse, unsupported, unwritten};
use crate::users::user_name;
use cosched_api::{ErrorBody, ErrorCode};
use cosched_core::{Bound, JobId, Matter};
use cosched_node::{ForAll, Refusal};

/// The limit on the nodes that an error names.
const NAMES_MAX: usize = 20;

const NO_PROCESSES: &str = "It has no processes left";

impl Driver {
    pub(in super::super) fn refusal(&self, why: Refusal) -> ErrorBody {
        match why {
            Refusal::NoSuchJob(id) => no_such_job(id.0),
            Refusal::Ended(id) => ended(id.0),
            Refusal::SignalRemote(job, signal) => unsupported(
                format!("signal {signal} cannot be sent to job {job}"),
                "it is not on this node alone, and only signals that end programs go to all nodes",
                "Use 15 (TERM) or 9 (KILL), or ask the daemon of the job's node.",
            ),
            Refusal::NoSuchNode(name) => self.no_such_node(&name),
            Refusal::Unread => {
                let hint =
                    "Try again when it answers; `cosched status` shows its state. This node's own load needs no store.";
                refuse(ErrorCode::Internal, "the cluster's store does not answer", self.store_problem(), hint)
            }
            Refusal::NotTaken(why) => {
                let hint = "`cosched status` shows the state of the store.";
                refuse(ErrorCode::Internal, "the request is not accepted", why, hint)
            }
            Refusal::Planner { what, why, hint } => conflict(what, why, hint),
            Refusal::Lost => refuse(
                ErrorCode::Internal,
                "the outcome of the request is unknown",
                "its answer was lost with the connection to the store",
                "`cosched ps` shows the present jobs.",
            ),
            Refusal::Slow { has_process } => {
                let hint = match has_process {
                    true => "Nothing was started. Try again when `cosched status` shows that the store answers.",
                    false => {
                        "The request is queued, and carried out when the store answers again. `cosched status` shows \
                         the store's state."
                    }
                };
                refuse(ErrorCode::Internal, "the cluster's store does not answer", self.store_problem(), hint)
            }
            Refusal::Unwritten(why) => unwritten(self.store.dir(), &why),
            Refusal::LauncherGone(job) => conflict(
                format!("job {job} is not started"),
                "the process that was to run it has ended",
                "The job no longer exists.",
            ),
            Refusal::CannotBegin(job) => {
                let known = self.cluster.failures.get(&job.0).cloned();
                known.unwrap_or_else(|| internal(format!("job {job} cannot start"), "its node failed to"))
            }
            Refusal::NumberTaken(job) => number_taken(job.0),
            why => of_rights(why),
        }
    }

    /// Why the store cannot be reached.
    pub(super) fn store_problem(&self) -> String {
        self.cluster.problem.clone().unwrap_or_else(|| "it is slow".to_owned())
    }

    fn no_such_node(&self, name: &str) -> ErrorBody {
        let cluster = &self.cluster;
        let own = &cluster.own_name;
        if cluster.alone {
            let why = format!("this daemon is not part of a cluster: its only node is {own}");
            let what = format!("there is no node `{name}` here");
            return unsupported(what, why, format!("Request only {own}."));
        }
        let mut names: Vec<&str> = cluster.member().nodes().map(|(name, _)| name).collect();
        names.sort_unstable();
        let more = names.len().saturating_sub(NAMES_MAX);
        names.truncate(NAMES_MAX);
        let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
        let hint = format!("The nodes are: {}{rest}.", names.join(", "));
        let why = "no node of this name has a lease in the cluster now";
        not_found(format!("there is no node `{name}`"), why, hint)
    }
}

/// Missing rights.
fn of_rights(why: Refusal) -> ErrorBody {
    match why {
        Refusal::NotYours { job, owner, by } => forbidden(
            format!("job {job} is not yours"),
            format!("it belongs to {}, you are {}", user_name(owner), user_name(by)),
            "Ask its owner or an administrator.",
        ),
        Refusal::Decided(job, bound) => decided(job, bound),
        Refusal::StaysInClass { job, class, wanted } => {
            let (class, wanted) = (class_name(class), class_name(wanted));
            let why = format!("users may lower a class, and {wanted} is above {class}");
            forbidden(format!("job {job} stays {class}"), why, "Ask an administrator to raise it.")
        }
        Refusal::Express => forbidden(
            "you may not use class express",
            "Only administrators place jobs into it",
            "Use interactive, batch or standby, or ask an administrator.",
        ),
        Refusal::NotFor { owner, by } => forbidden(
            format!("no job for {}", user_name(owner)),
            format!("you are {}, and only administrators submit jobs for others", user_name(by)),
            "Leave out `owner_uid`: the job is yours then.",
        ),
        Refusal::InvalidOwner => invalid(
            "a job needs an owner",
            "uid 4294967295 means no user",
            "Give the uid of the user that owns the job.",
        ),
        Refusal::ForAll { what, by } => for_all(&what, by),
        resources => of_resources(resources),
    }
}

/// Requests for resources that are refused before they leave the node.
fn of_resources(why: Refusal) -> ErrorBody {
    match why {
        Refusal::WantedTwice => invalid(
            "the job's resources are given twice",
            "`nodes` is given together with `cpus` or `mem_bytes`",
            "Leave `cpus` and `mem_bytes` out, or `nodes`.",
        ),
        Refusal::NoCpus => invalid("a job cannot have 0 CPUs", "it could never run", "Request 1 or more."),
        Refusal::Cpus { node, cpus, cpus_min } => invalid(
            format!("a job cannot want {cpus} CPUs and at least {cpus_min} of node {node}"),
            "both must be 1 or more, and the second not larger than the first",
            "Correct the numbers.",
        ),
        Refusal::TooManyCpus { cpus, have } => invalid(
            format!("a job cannot have {cpus} CPUs here"),
            format!("this machine has {have}"),
            format!("Request 1 to {have}."),
        ),
        Refusal::TooManyCores { cpus, cores } => invalid(
            format!("a job cannot have {cpus} cores to itself here"),
            format!("a CPU of each of as many cores is wanted, and this machine has {cores} cores"),
            format!("Ask for 1 to {cores} CPUs, or leave out the exclusive cores."),
        ),
        Refusal::NoPlaces => invalid(
            "no job has cores to itself here",
            "gangs have no places: `places = false` in the daemon's configuration",
            "Leave out the exclusive cores, or ask an administrator to switch places on.",
        ),
        Refusal::CoresElsewhere => invalid(
            "the job cannot have cores to itself",
            "that is for jobs on the node where they are asked for alone: gangs of several nodes have any CPUs",
            "Give as many CPUs as one node has cores, on that node, or leave out the exclusive cores.",
        ),
        Refusal::TooMuchMemory { bytes, have_bytes } => invalid(
            format!("a job cannot have {} MiB of memory here", bytes >> 20),
            format!("this machine has {} MiB", have_bytes >> 20),
            "Request less.",
        ),
        Refusal::HowToDivide { job, mut nodes } => {
            let why = format!("it requested {} nodes by name", nodes.len());
            nodes.truncate(NAMES_MAX);
            let hint = format!("Give its resources on each: {}.", nodes.join(", "));
            invalid(format!("how job {job} divides that among its nodes is not given"), why, hint)
        }
        _ => {
            let why = "`nodes` is an empty list, and neither `cpus` nor `mem_bytes` is given";
            invalid("no resources are given", why, "Give one entry for each node, or `cpus`.")
        }
    }
}

/// A request to change a job that is over.
pub(in super::super) fn ended(id: u64) -> ErrorBody {
    let hint = "`cosched ps` lists the running jobs.";
    conflict(format!("job {id} has ended"), NO_PROCESSES, hint)
}

/// A job of a cluster that no longer exists runs here with this number.
pub(super) fn number_taken(id: u64) -> ErrorBody {
    let why = format!("another job {id}, of a cluster whose store was lost, still runs here");
    conflict(format!("job {id} cannot start"), why, "End that job, and try again.")
}

fn for_all(what: &ForAll, by: u32) -> ErrorBody {
    let what = match what {
        ForAll::Node(name) => format!("node {name} is not"),
        ForAll::Queues => "the queues are not".to_owned(),
        ForAll::Store => "the cluster's store is not".to_owned(),
        ForAll::Policy => {
            return forbidden(
                "the machine's policy is not yours to change",
                format!("you are uid {by}, and it applies to the jobs of all users"),
                "Ask an administrator, or change one job's policy: `cosched policy --job JOB gang`.",
            );
        }
    };
    forbidden(
        format!("{what} yours to change"),
        format!("you are {}, and it affects the jobs of all users", user_name(by)),
        "Ask an administrator: root, or a user listed in `admins` in /etc/cosched.toml.",
    )
}

fn decided(job: JobId, Bound { by, matter }: Bound) -> ErrorBody {
    let who = user_name(by);
    let (why, back) = match matter {
        Matter::Suspension => (format!("{who}, an administrator, has suspended it"), format!("`cosched resume {job}`")),
        Matter::Class => (
            format!("{who}, an administrator, has decided its class"),
            format!("by `cosched class {job}` with the previous class"),
        ),
        Matter::Share => (
            format!("{who}, an administrator, has decided its share"),
            format!("by `cosched share {job}` with the previous share"),
        ),
        Matter::Policy => (
            format!("{who}, an administrator, has decided its policy"),
            format!("by `cosched policy --job {job}` with the previous policy"),
        ),
    };
    let hint = format!("Ask {who} or another administrator to take that back ({back}). You can end the job.");
    forbidden(format!("the {matter} of job {job} is not yours to change"), why, hint)
}

fn class_name(class: cosched_core::Class) -> &'static str {
    crate::words::api_class(class.into()).name()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_hears_who_has_decided_and_what_to_do() {
        for (matter, way) in [
            (Matter::Suspension, "cosched resume 7"),
            (Matter::Class, "cosched class 7"),
            (Matter::Share, "cosched share 7"),
            (Matter::Policy, "cosched policy --job 7"),
        ] {
            let refused = decided(JobId(7), Bound { by: 0, matter });
            assert_eq!(refused.code, ErrorCode::Forbidden);
            assert!(refused.what.contains(&matter.to_string()) && refused.why.contains("root, an administrator"));
            assert!(refused.hint.contains(way), "{refused:?}");
        }
    }

    #[test]
    fn what_concerns_everybody_is_called_by_its_name() {
        assert_eq!(for_all(&ForAll::Queues, 1).what, "the queues are not yours to change");
        assert_eq!(for_all(&ForAll::Node("n1".to_owned()), 1).what, "node n1 is not yours to change");
        assert!(for_all(&ForAll::Policy, 1).hint.contains("cosched policy --job"));
    }

    #[test]
    fn resources_that_cannot_be_are_told_with_what_can() {
        let many = (1..=30).map(|n| format!("n{n}")).collect();
        let divide = of_resources(Refusal::HowToDivide { job: JobId(7), nodes: many });
        assert!(divide.why.contains("30 nodes") && divide.hint.contains("n20.") && !divide.hint.contains("n21"));
        assert!(of_resources(Refusal::TooManyCpus { cpus: 9, have: 4 }).hint.contains("1 to 4"));
        assert!(of_resources(Refusal::NothingWanted).why.contains("empty list"));
    }
}
