//! The resources that a job uses and the load of this node, read on request.

use super::{Driver, Live};
use crate::record::Record;
use crate::refuse::{Answer, internal};
use cosched_api::{API_VERSION, JobUse, NodeLoad, OutOfMemory, Version};

/// The resources that a job uses, from its cgroups in either layout; after its end, those recorded.
pub(super) fn job_use(record: &Record, live: Option<&Live>) -> JobUse {
    let cgroup = live.map(|live| &live.cgroup);
    JobUse {
        cpu_time_us: cgroup
            .and_then(|c| c.cpu_time_ns().ok())
            .map_or(record.cpu_time_ms.saturating_mul(1000), |ns| ns / 1000),
        memory_bytes: cgroup.and_then(|c| c.memory_current()),
        memory_peak_bytes: cgroup.and_then(|c| c.memory_peak()).or(record.memory_peak_bytes),
        processes: cgroup.and_then(|c| c.count().ok()).map(|count| count as u32),
    }
}

/// The job's processes that the kernel has killed for lack of memory.
pub(super) fn out_of_memory(record: &Record, live: Option<&Live>) -> Option<OutOfMemory> {
    let told = live.and_then(|live| live.cgroup.out_of_memory());
    told.map(|told| OutOfMemory { killed: told.killed, limit_bytes: told.limit_bytes }).or(record.out_of_memory)
}

impl Driver {
    /// `GET /v1/version`
    pub(super) fn view_version(&self) -> Version {
        Version { api: API_VERSION.to_string(), version: env!("CARGO_PKG_VERSION").to_owned(), node: self.node_name() }
    }

    /// `GET /v1/load`
    pub(super) fn view_load(&self) -> Answer<NodeLoad> {
        let load = cosched_linux::observe::load()
            .ok_or_else(|| internal("the load is not known", "/proc/loadavg or /proc/meminfo cannot be read"))?;
        let active = || self.live.keys().filter_map(|id| self.state.jobs.get(id)).filter(|record| !record.suspended);
        Ok(NodeLoad {
            name: self.node_name(),
            cpus: self.identity.cpus.len() as u32,
            runnable: load.runnable,
            load_1min: load.average[0],
            load_5min: load.average[1],
            load_15min: load.average[2],
            jobs: active().count() as u32,
            job_cpus: active().map(|record| record.cpus).sum(),
            memory_bytes: self.memory_bytes,
            memory_available_bytes: load.memory_available_bytes,
            memory_declared_bytes: active().filter_map(|r| r.mem_bytes).fold(0, u64::saturating_add),
            measured_unix_ms: None,
        })
    }
}
