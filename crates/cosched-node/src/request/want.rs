//! Requested resources: from the form in which users give them to the form for the member that plans.

use super::{Refusal, Want, WantOfNode};
use crate::Node;
use cosched_cluster::wire::{NodeAsk, WantAsk};
use cosched_core::JobId;

impl Node {
    /// The resources of a new job: nodes by name, or CPUs of this node, where the program starts, if it has enough, otherwise any nodes.
    ///
    /// # Errors
    /// The request contradicts itself, or no node could ever satisfy it.
    pub fn want(&self, want: &Want) -> Result<WantAsk, Refusal> {
        if !want.nodes.is_empty() {
            return self.per_node(want);
        }
        match want.cpus {
            Some(0) => Err(Refusal::NoCpus),
            Some(cpus) if cpus > self.machine.cpus && !self.machine.is_single => {
                let memory_per_cpu_bytes = want.memory_bytes.unwrap_or(0).div_ceil(u64::from(cpus));
                Ok(WantAsk::Total { cpus, memory_per_cpu_bytes, disk_bytes: 0 })
            }
            cpus => {
                let here = WantOfNode { cpus, memory_bytes: want.memory_bytes, ..WantOfNode::default() };
                Ok(WantAsk::PerNode(vec![self.of_node(&here)?]))
            }
        }
    }

    /// Whether a job can have its cores to itself.
    ///
    /// # Errors
    /// It is not on this node alone, or the node has fewer cores, or no places.
    pub fn whole_cores(&self, want: &WantAsk) -> Result<(), Refusal> {
        let ask = match want {
            WantAsk::PerNode(asks) if asks.len() == 1 => asks.first().filter(|ask| ask.node == self.name),
            _ => None,
        };
        let cpus = ask.ok_or(Refusal::CoresElsewhere)?.cpus;
        match self.local.cores() {
            None => Err(Refusal::NoPlaces),
            Some(cores) if cores < cpus => Err(Refusal::TooManyCores { cpus, cores }),
            Some(_) => Ok(()),
        }
    }

    fn per_node(&self, want: &Want) -> Result<WantAsk, Refusal> {
        if want.cpus.is_some() || want.memory_bytes.is_some() {
            return Err(Refusal::WantedTwice);
        }
        Ok(WantAsk::PerNode(want.nodes.iter().map(|node| self.of_node(node)).collect::<Result<_, _>>()?))
    }

    fn of_node(&self, want: &WantOfNode) -> Result<NodeAsk, Refusal> {
        let name = want.node.as_deref().unwrap_or(&self.name);
        let has = || match self.member.nodes().find(|(known, _)| *known == name) {
            Some((_, node)) => node.cpus,
            None if name == self.name => self.machine.cpus,
            // The member that plans refuses it, because there is no such node.
            None => 1,
        };
        let cpus = want.cpus.unwrap_or_else(has);
        let cpus_min = want.cpus_min.unwrap_or(cpus);
        if cpus == 0 || cpus_min == 0 || cpus_min > cpus {
            return Err(Refusal::Cpus { node: name.to_owned(), cpus, cpus_min });
        }
        if self.machine.is_single {
            self.check_machine(name, cpus_min, want.memory_bytes)?;
        }
        let (memory_bytes, disk_bytes) = (want.memory_bytes.unwrap_or(0), want.disk_bytes.unwrap_or(0));
        Ok(NodeAsk { node: name.to_owned(), cpus, cpus_min, memory_bytes, disk_bytes })
    }

    /// A single machine knows by itself which requests it can never satisfy; in a cluster the member that plans does.
    fn check_machine(&self, node: &str, cpus_min: u32, memory_bytes: Option<u64>) -> Result<(), Refusal> {
        let (have, have_bytes) = (self.machine.cpus, self.machine.memory_bytes);
        match memory_bytes {
            _ if node != self.name => Err(Refusal::NoSuchNode(node.to_owned())),
            _ if cpus_min > have => Err(Refusal::TooManyCpus { cpus: cpus_min, have }),
            Some(bytes) if bytes > have_bytes => Err(Refusal::TooMuchMemory { bytes, have_bytes }),
            _ => Ok(()),
        }
    }

    /// The node of the main process of a job that is submitted here, if it has one. For a job that is registered without a process it is unknown on
    /// which node its first process will appear, or whether on all: then each part reports when it has no process.
    pub fn lead(&self, want: &WantAsk, has_process: bool, once: bool) -> Option<String> {
        match want {
            WantAsk::Total { .. } => has_process.then(|| self.name.clone()),
            WantAsk::PerNode(asks) if once && asks.len() > 1 => None,
            WantAsk::PerNode(asks) if !has_process && !asks.iter().any(|ask| ask.node == self.name) => {
                // The job ends when it has no process there.
                asks.first().map(|ask| ask.node.clone())
            }
            WantAsk::PerNode(_) => Some(self.name.clone()),
        }
    }

    /// A job's new request.
    pub(crate) fn other_want(&self, job: JobId, want: &Want) -> Result<WantAsk, Refusal> {
        let other = self.changed(job, want)?;
        if self.member.job(job).is_some_and(|known| known.ask.terms.exclusive_cores) {
            self.whole_cores(&other)?;
        }
        Ok(other)
    }

    fn changed(&self, job: JobId, want: &Want) -> Result<WantAsk, Refusal> {
        let Want { ref nodes, cpus, memory_bytes } = *want;
        if cpus.is_none() && memory_bytes.is_none() {
            return if nodes.is_empty() { Err(Refusal::NothingWanted) } else { self.per_node(want) };
        }
        if !nodes.is_empty() {
            return Err(Refusal::WantedTwice);
        }
        if cpus == Some(0) {
            return Err(Refusal::NoCpus);
        }
        match &self.member.job(job).ok_or(Refusal::NoSuchJob(job))?.ask.want {
            WantAsk::Total { cpus: had, memory_per_cpu_bytes, disk_bytes } => {
                let cpus = cpus.unwrap_or(*had);
                let each = memory_bytes.map_or(*memory_per_cpu_bytes, |bytes| bytes.div_ceil(u64::from(cpus)));
                Ok(WantAsk::Total { cpus, memory_per_cpu_bytes: each, disk_bytes: *disk_bytes })
            }
            WantAsk::PerNode(asks) => match &asks[..] {
                [had] => Ok(WantAsk::PerNode(vec![of_one_node(had, cpus, memory_bytes)])),
                many => Err(Refusal::HowToDivide { job, nodes: many.iter().map(|ask| ask.node.clone()).collect() }),
            },
        }
    }
}

/// The CPUs and the memory of a job of one node; the rest is unchanged.
fn of_one_node(had: &NodeAsk, cpus: Option<u32>, memory_bytes: Option<u64>) -> NodeAsk {
    let wanted = cpus.unwrap_or(had.cpus);
    // A minimum below the request is kept.
    let cpus_min = if had.cpus_min < had.cpus { had.cpus_min.min(wanted) } else { wanted };
    NodeAsk { cpus: wanted, cpus_min, memory_bytes: memory_bytes.unwrap_or(had.memory_bytes), ..had.clone() }
}
