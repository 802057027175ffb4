//! What is refused of resources before anybody else hears of it.

use super::Driver;
use crate::refuse::{Answer, refuse};
use cosched_api::{ErrorBody, ErrorCode};

impl Driver {
    /// One machine has no others.
    pub(super) fn no_other_node(&self, node: &str) -> ErrorBody {
        let (own, what) = (self.node_name(), format!("there is no node `{node}` here"));
        let why = format!("this daemon is not part of a cluster: it knows one node, {own}");
        refuse(ErrorCode::Unsupported, what, why, format!("Ask for {own} alone."))
    }

    /// One machine knows by itself what it can never have; of a cluster whoever plans does.
    pub(super) fn check_one_machine(&self, node: &str, cpus_min: u32, memory_bytes: Option<u64>) -> Answer<()> {
        let have = self.identity.cpus.len() as u32;
        if node != self.node_name() {
            return Err(self.no_other_node(node));
        }
        if cpus_min > have {
            let (what, why) = (format!("a job cannot have {cpus_min} CPUs here"), format!("this machine has {have}"));
            return Err(refuse(ErrorCode::Invalid, what, why, format!("Ask for 1 to {have}.")));
        }
        match memory_bytes.filter(|bytes| *bytes > self.memory_bytes) {
            None => Ok(()),
            Some(bytes) => {
                let what = format!("a job cannot have {} MiB of memory here", bytes >> 20);
                let why = format!("this machine has {} MiB", self.memory_bytes >> 20);
                Err(refuse(ErrorCode::Invalid, what, why, "Ask for less."))
            }
        }
    }
}

/// Two ways of asking at once.
pub(super) fn twice() -> ErrorBody {
    refuse(
        ErrorCode::Invalid,
        "the job's resources are given twice",
        "`nodes` stands beside `cpus` or `mem_bytes`",
        "Leave `cpus` and `mem_bytes` out, or `nodes`.",
    )
}
