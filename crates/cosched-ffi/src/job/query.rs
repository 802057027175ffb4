//! Functions that query: a job, its usage, the load of a node.

use std::ffi::{c_char, c_int};

use cosched_api::{Class, Job, JobState, NodeLoad};

use super::handle::{Connection, cosched_t, with};
use super::register::node_name;
use super::result::Wrong;
use super::types::{UNKNOWN, cosched_class, cosched_job, cosched_load, cosched_state, cosched_use, fixed};

/// What a job is, into `*result`: its state, class, the CPUs that it was given. Of any user's job, also of one that has ended
/// and is still remembered.
///
/// Errors: COSCHED_ERR_NOT_FOUND when there is no such job; COSCHED_ERR_INVALID when `result` is NULL; and those of the
/// connection.
///
/// # Safety
/// `handle` is NULL or a handle, `result` is NULL or a place; so for all functions here.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_get_job(handle: *mut cosched_t, job: u64, result: *mut cosched_job) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe {
        query("cosched_get_job", handle, result, |connection| Ok(job_facts(&connection.ask(|client| client.job(job))?)))
    }
}

/// What a job uses, into `*result`: CPU time, memory, processes, as its cgroups count them. Of any user's job, also of one that
/// has ended and is still remembered.
///
/// Errors: as for cosched_get_job.
///
/// # Safety
/// As for cosched_get_job.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_get_use(handle: *mut cosched_t, job: u64, result: *mut cosched_use) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe {
        query("cosched_get_use", handle, result, |connection| Ok(use_facts(&connection.ask(|client| client.job(job))?)))
    }
}

/// How busy a node is, into `*result`. `node` is its name; NULL or "": the daemon's. In a cluster any daemon tells of any of
/// its nodes.
///
/// Errors: COSCHED_ERR_NOT_FOUND when no node of the cluster has this name now; the message lists the present nodes;
/// COSCHED_ERR_UNSUPPORTED when the daemon is of one machine, and this is not its name; COSCHED_ERR_CONFLICT when the node has
/// just joined and said nothing yet; COSCHED_ERR_INVALID when `result` is NULL; and those of the connection.
///
/// # Safety
/// As for cosched_get_job; `node` is NULL or a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_node_load(
    handle: *mut cosched_t,
    node: *const c_char,
    result: *mut cosched_load,
) -> c_int {
    let work = |connection: &Connection| {
        // SAFETY: guaranteed by the caller.
        let name = unsafe { node_name(node, "the node's name") }?;
        let name = Some(name).filter(|name| !name.is_empty());
        Ok(load_facts(&connection.ask(|client| client.load(name))?))
    };
    // SAFETY: guaranteed by the caller.
    unsafe { query("cosched_node_load", handle, result, work) }
}

/// Writes the result of `work`.
///
/// # Safety
/// As for [`with`]; `result` is NULL or points to a place for the result.
unsafe fn query<T>(
    place: &str,
    handle: *mut cosched_t,
    result: *mut T,
    work: impl FnOnce(&Connection) -> Result<T, Wrong>,
) -> c_int {
    let work = |connection: &Connection| {
        if result.is_null() {
            return Err(Wrong::invalid("the place for the result is NULL"));
        }
        let found = work(connection)?;
        // SAFETY: guaranteed by the caller; C's place may be unaligned.
        unsafe { result.write_unaligned(found) };
        Ok(())
    };
    // SAFETY: guaranteed by the caller.
    unsafe { with(place, handle, work) }
}

fn job_facts(job: &Job) -> cosched_job {
    let disk: Option<u64> = job.nodes.iter().filter_map(|node| node.disk_bytes).reduce(u64::saturating_add);
    cosched_job {
        id: job.id,
        uid: job.uid,
        state: state(job.state),
        job_class: match job.class {
            Class::Express => cosched_class::EXPRESS,
            Class::Interactive => cosched_class::INTERACTIVE,
            Class::Batch => cosched_class::BATCH,
            Class::Standby => cosched_class::STANDBY,
        } as c_int,
        cpus: job.cpus,
        pid: job.pid,
        unused: 0,
        memory_bytes: job.mem_bytes.unwrap_or(UNKNOWN),
        disk_bytes: disk.unwrap_or(UNKNOWN),
        submitted_unix_ms: job.submitted_unix_ms,
        ended_unix_ms: job.ended_unix_ms.unwrap_or(UNKNOWN),
        name: fixed(&job.name),
        reserved: [0; 4],
    }
}

fn state(state: JobState) -> c_int {
    let state = match state {
        // As far as is known, it has not ended.
        JobState::Running | JobState::Unknown => cosched_state::RUNNING,
        JobState::Asleep => cosched_state::ASLEEP,
        JobState::Dropped => cosched_state::DROPPED,
        JobState::Waiting => cosched_state::WAITING,
        JobState::Suspended => cosched_state::SUSPENDED,
        JobState::Ended => cosched_state::ENDED,
        JobState::Lost => cosched_state::LOST,
    };
    state as c_int
}

fn use_facts(job: &Job) -> cosched_use {
    let used = job.r#use.unwrap_or_default();
    cosched_use {
        cpu_time_us: used.cpu_time_us,
        memory_bytes: used.memory_bytes.unwrap_or(UNKNOWN),
        memory_peak_bytes: used.memory_peak_bytes.unwrap_or(UNKNOWN),
        processes: used.processes.map_or(0, u64::from),
        reserved: [0; 4],
    }
}

fn load_facts(load: &NodeLoad) -> cosched_load {
    cosched_load {
        node: fixed(&load.name),
        cpus: load.cpus,
        runnable: load.runnable,
        jobs: load.jobs,
        job_cpus: load.job_cpus,
        load_1min: load.load_1min,
        load_5min: load.load_5min,
        load_15min: load.load_15min,
        memory_bytes: load.memory_bytes,
        memory_available_bytes: load.memory_available_bytes,
        memory_declared_bytes: load.memory_declared_bytes,
        measured_unix_ms: load.measured_unix_ms.unwrap_or(UNKNOWN),
        reserved: [0; 3],
    }
}
