//! What a job wants of its nodes, fitted to what this node has (LLNL, "Gang Scheduler Design": processors desired and at
//! least, memory, disk).
//!
//! CPUs: as many as wanted, or all that there are if the job says that fewer are enough. Memory is compared with the
//! machine's. Disk is kept and shown; this node does not know which disk the job means.

use super::Driver;
use super::change::by;
use crate::clock::unix_ms;
use crate::record::Record;
use crate::refuse::{Answer, refuse};
use crate::rights::Peer;
use cosched_api::{ErrorBody, ErrorCode, Job, NodeResources, ResourcesRequest};
use cosched_core::{JobId, PlannerInput};

/// What a job gets.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fitted {
    /// CPUs at a time.
    pub(super) cpus: u32,
    /// Declared memory.
    pub(super) mem_bytes: Option<u64>,
    /// The same node by node, when it was asked so.
    pub(super) nodes: Vec<NodeResources>,
}

impl Driver {
    /// `POST /v1/jobs/{id}/resources`
    pub(super) fn change_resources(&mut self, peer: Peer, id: u64, request: ResourcesRequest) -> Answer<Job> {
        let mut record = self.changeable(peer, id)?;
        let nodes = wanted(&record, request)?;
        let fitted = self.fit(&nodes)?;
        record.event(unix_ms(), "resources", format!("{} CPUs {}", fitted.cpus, by(peer)));
        (record.cpus, record.mem_bytes, record.nodes) = (fitted.cpus, fitted.mem_bytes, fitted.nodes);
        self.commit(&record)?;
        self.plan_change(PlannerInput::Cpus(JobId(id), record.cpus))?;
        self.view_job(id)
    }

    /// What a new job gets, from either way of asking.
    pub(super) fn fit_new(&self, cpus: Option<u32>, mem: Option<u64>, nodes: &[NodeResources]) -> Answer<Fitted> {
        if nodes.is_empty() {
            let asked = NodeResources { cpus, memory_bytes: mem, ..NodeResources::default() };
            return Ok(Fitted { nodes: Vec::new(), ..self.fit(&[asked])? });
        }
        if cpus.is_some() || mem.is_some() {
            return Err(twice());
        }
        self.fit(nodes)
    }

    fn fit(&self, nodes: &[NodeResources]) -> Answer<Fitted> {
        let [asked] = nodes else {
            let own = self.own_node("")?;
            return Err(refuse(
                ErrorCode::Unsupported,
                format!("a job cannot have {} nodes here", nodes.len()),
                format!("this daemon is not part of a cluster: it knows one node, {own}"),
                format!("Ask for {own} alone."),
            ));
        };
        let name = self.own_node(&asked.name)?;
        let cpus = fit_cpus(asked, self.identity.cpus.len() as u32)?;
        if let Some(bytes) = asked.memory_bytes.filter(|bytes| *bytes > self.memory_bytes) {
            return Err(invalid(
                format!("a job cannot have {} MiB of memory here", bytes >> 20),
                format!("this machine has {} MiB", self.memory_bytes >> 20),
                "Ask for less.",
            ));
        }
        let given = NodeResources { name, cpus: Some(cpus), ..asked.clone() };
        Ok(Fitted { cpus, mem_bytes: asked.memory_bytes, nodes: vec![given] })
    }
}

/// What a job wants from now on, node by node. CPUs and memory alone leave the rest as it is.
fn wanted(record: &Record, request: ResourcesRequest) -> Answer<Vec<NodeResources>> {
    let ResourcesRequest { nodes, cpus, mem_bytes } = request;
    if cpus.is_none() && mem_bytes.is_none() {
        let why = "`nodes` is an empty list, and neither `cpus` nor `mem_bytes` is there";
        return match nodes.is_empty() {
            true => Err(invalid("no resources are given", why, "Give one entry for each node, or `cpus`.")),
            false => Ok(nodes),
        };
    }
    if !nodes.is_empty() {
        return Err(twice());
    }
    let disk_bytes = record.nodes.first().and_then(|node| node.disk_bytes);
    let memory_bytes = mem_bytes.or(record.mem_bytes);
    Ok(vec![NodeResources { cpus: cpus.or(Some(record.cpus)), memory_bytes, disk_bytes, ..NodeResources::default() }])
}

/// Two ways of asking at once.
pub(super) fn twice() -> ErrorBody {
    invalid(
        "the job's resources are given twice",
        "`nodes` stands beside `cpus` or `mem_bytes`",
        "Leave `cpus` and `mem_bytes` out, or `nodes`.",
    )
}

/// As many CPUs as wanted, or all of `have` if at least so many are enough.
fn fit_cpus(asked: &NodeResources, have: u32) -> Answer<u32> {
    let wanted = asked.cpus.unwrap_or(have);
    let least = asked.cpus_min.unwrap_or(asked.cpus.unwrap_or(1));
    if least > wanted {
        return Err(invalid(
            format!("a job cannot want {wanted} CPUs and at least {least}"),
            "the second number is the larger one",
            "Give at least 1 and at most what is wanted.",
        ));
    }
    if wanted == 0 || least == 0 || least > have {
        return Err(invalid(
            format!("a job cannot have {} CPUs here", if wanted == 0 { 0 } else { least }),
            format!("this machine has {have}"),
            format!("Ask for 1 to {have}."),
        ));
    }
    Ok(wanted.min(have))
}

fn invalid(what: impl Into<String>, why: impl Into<String>, hint: impl Into<String>) -> ErrorBody {
    refuse(ErrorCode::Invalid, what, why, hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit(cpus: Option<u32>, cpus_min: Option<u32>) -> Result<u32, String> {
        fit_cpus(&NodeResources { cpus, cpus_min, ..NodeResources::default() }, 4).map_err(|e| e.what)
    }

    #[test]
    fn a_job_gets_what_it_wants_or_what_there_is_if_that_is_enough() {
        assert_eq!(fit(None, None), Ok(4));
        assert_eq!(fit(Some(3), None), Ok(3));
        assert_eq!(fit(Some(3), Some(1)), Ok(3));
        assert_eq!(fit(Some(12), Some(2)), Ok(4));
        assert_eq!(fit(None, Some(4)), Ok(4));
    }

    #[test]
    fn what_can_never_fit_is_refused() {
        assert_eq!(fit(Some(12), None).unwrap_err(), "a job cannot have 12 CPUs here");
        assert_eq!(fit(Some(12), Some(5)).unwrap_err(), "a job cannot have 5 CPUs here");
        assert_eq!(fit(Some(0), None).unwrap_err(), "a job cannot have 0 CPUs here");
        assert_eq!(fit(Some(2), Some(3)).unwrap_err(), "a job cannot want 2 CPUs and at least 3");
        assert!(fit(Some(0), Some(0)).is_err() && fit(Some(1), Some(0)).is_err() && fit(None, Some(5)).is_err());
    }
}
