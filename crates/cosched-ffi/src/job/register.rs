//! Registers jobs and their processes.

use std::ffi::{c_char, c_int};
use std::fs;
use std::io::Read;

use cosched_api::{Class, JobRequest, NodeResources, ProcessRequest, ResourcesRequest};

use super::handle::{Connection, cosched_t, with};
use super::result::Wrong;
use super::types::{cosched_class, cosched_err, cosched_resources};
use crate::border::text_or_empty;

/// More nodes than any cluster has: a larger count is a mistake and is refused.
const NODES_MAX: usize = 65_536;

/// The longest name of a node (HOST_NAME_MAX of POSIX).
const NODE_NAME_BYTES_MAX: usize = 255;

/// The command line for display is cut off at this length.
const COMMAND_BYTES_MAX: u64 = 4096;

/// Registers a job for this user and puts its number into `*job`.
///
/// `name` is for display; NULL: the program's name. `job_class` is a cosched_class. `nodes` says what the job wants of each
/// of its nodes, `node_count` of them; NULL and 0: the daemon's node with all its CPUs.
///
/// The job has no process yet. Each process of the program puts itself into it, or is put, by cosched_add_process; children
/// that it starts afterwards are in it by birth. A job that has got no process after 60 seconds ends, and so does one whose
/// processes have all ended or left.
///
/// A daemon of one machine knows one node: more nodes, or the name of another, are refused with COSCHED_ERR_UNSUPPORTED.
///
/// Errors: COSCHED_ERR_INVALID for what can never fit; COSCHED_ERR_FORBIDDEN for class express, unless the caller is an
/// administrator; COSCHED_ERR_CONFLICT when this user has 16 jobs without a process already, and when a cluster has no such
/// node or none that can ever fit it; and those of the connection: COSCHED_ERR_NO_DAEMON, COSCHED_ERR_TIMEOUT,
/// COSCHED_ERR_DAEMON.
///
/// # Safety
/// `handle` is NULL or a handle, `name` NULL or a text, `nodes` points to `node_count` entries, `job` is NULL or a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_register(
    handle: *mut cosched_t,
    name: *const c_char,
    job_class: c_int,
    nodes: *const cosched_resources,
    node_count: usize,
    job: *mut u64,
) -> c_int {
    let work = |connection: &Connection| {
        if job.is_null() {
            return Err(Wrong::invalid("the place for the job's number is NULL"));
        }
        // SAFETY: guaranteed by the caller.
        let name = unsafe { text_or_empty(name, "the name") }.map_err(Wrong::invalid)?;
        let request = JobRequest {
            command: command_line(),
            pid: 0,
            name: Some(name.to_owned()).filter(|name| !name.is_empty()),
            class: class(job_class)?,
            // SAFETY: guaranteed by the caller.
            nodes: unsafe { resources(nodes, node_count) }?,
            cwd: std::env::current_dir().ok().map(|dir| dir.to_string_lossy().into_owned()),
            ..JobRequest::default()
        };
        let registered = connection.ask(|client| client.register(&request))?;
        // SAFETY: guaranteed by the caller.
        unsafe { job.write(registered.id) };
        Ok(())
    };
    // SAFETY: guaranteed by the caller.
    unsafe { with("cosched_register", handle, work) }
}

/// Puts a process with all its threads into a job: it is scheduled with the job when this returns. `pid` 0: the calling
/// process. Its present children stay where they are; those that it starts afterwards are in the job by birth. A process that
/// is in this job already stays, and that is no error.
///
/// The process must run as the job's owner, and the caller must be the owner or an administrator. Should the process end and
/// its number be given to another one before the daemon has it, the other one is not taken for it.
///
/// Errors: COSCHED_ERR_NOT_FOUND when there is no such job or process; COSCHED_ERR_FORBIDDEN when one of the two is not the
/// caller's; COSCHED_ERR_CONFLICT when the process is in another job, or this job has ended; COSCHED_ERR_INVALID when `pid` is
/// negative or a thread's; and those of the connection.
///
/// # Safety
/// `handle` is NULL or a handle; so for all functions here.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_add_process(handle: *mut cosched_t, job: u64, pid: c_int) -> c_int {
    let work = |connection: &Connection| {
        let request = process(pid)?;
        connection.ask(|client| client.add_process(job, &request)).map(drop)
    };
    // SAFETY: guaranteed by the caller.
    unsafe { with("cosched_add_process", handle, work) }
}

/// As cosched_add_process, for the process behind a descriptor of pidfd_open(2) or clone(2): it never means another process,
/// however long ago it was opened.
///
/// Errors: as for cosched_add_process; COSCHED_ERR_INVALID when it is no pidfd.
///
/// # Safety
/// As for cosched_add_process.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_add_pidfd(handle: *mut cosched_t, job: u64, pidfd: c_int) -> c_int {
    let work = |connection: &Connection| {
        let request = process_of_pidfd(pidfd)?;
        connection.ask(|client| client.add_process(job, &request)).map(drop)
    };
    // SAFETY: guaranteed by the caller.
    unsafe { with("cosched_add_pidfd", handle, work) }
}

/// Takes a process with all its threads out of a job: back to the cgroups that the job's first process came from, where
/// Linux schedules it. `pid` 0: the calling process. The CPU time that it used stays the job's.
///
/// Errors: COSCHED_ERR_NOT_FOUND when there is no such job, or the process is not in it; COSCHED_ERR_FORBIDDEN when the job is
/// not the caller's; COSCHED_ERR_CONFLICT when the job has ended, or there is no cgroup to go back to; and those of the
/// connection.
///
/// # Safety
/// As for cosched_add_process.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_remove_process(handle: *mut cosched_t, job: u64, pid: c_int) -> c_int {
    let work = |connection: &Connection| {
        let request = process(pid)?;
        connection.ask(|client| client.remove_process(job, &request)).map(drop)
    };
    // SAFETY: guaranteed by the caller.
    unsafe { with("cosched_remove_process", handle, work) }
}

/// Changes what a job wants, while it runs, as for cosched_register: all that is said there is replaced. A job that has
/// started keeps its nodes, and gets what it wants more at once or not at all; one that waits keeps its place in its queue.
///
/// Errors: COSCHED_ERR_INVALID for what can never fit, and when `node_count` is 0; COSCHED_ERR_UNSUPPORTED for a node that a
/// daemon of one machine does not have; COSCHED_ERR_CONFLICT when a cluster has no such node, can never fit it, or has no room
/// for more now (cosched_last_error tells what is lacking), and when the job has ended; COSCHED_ERR_NOT_FOUND,
/// COSCHED_ERR_FORBIDDEN as for cosched_add_process; and those of the connection. The job stays as it was then.
///
/// # Safety
/// As for cosched_register.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_set_resources(
    handle: *mut cosched_t,
    job: u64,
    nodes: *const cosched_resources,
    node_count: usize,
) -> c_int {
    let work = |connection: &Connection| {
        // SAFETY: guaranteed by the caller.
        let nodes = unsafe { resources(nodes, node_count) }?;
        let request = ResourcesRequest { nodes, ..ResourcesRequest::default() };
        connection.ask(|client| client.set_resources(job, &request)).map(drop)
    };
    // SAFETY: guaranteed by the caller.
    unsafe { with("cosched_set_resources", handle, work) }
}

/// The class with a number; None for the default.
pub(super) fn class(number: c_int) -> Result<Option<Class>, Wrong> {
    const EXPRESS: c_int = cosched_class::EXPRESS as c_int;
    const INTERACTIVE: c_int = cosched_class::INTERACTIVE as c_int;
    const BATCH: c_int = cosched_class::BATCH as c_int;
    const STANDBY: c_int = cosched_class::STANDBY as c_int;
    Ok(Some(match number {
        0 => return Ok(None),
        EXPRESS => Class::Express,
        INTERACTIVE => Class::Interactive,
        BATCH => Class::Batch,
        STANDBY => Class::Standby,
        other => return Err(Wrong::invalid(format!("{other} is not a cosched_class"))),
    }))
}

/// The resources that C requests for a job.
///
/// # Safety
/// `nodes` points to `count` entries, unless `nodes` is null, or `count` is 0 or larger than the maximum.
unsafe fn resources(nodes: *const cosched_resources, count: usize) -> Result<Vec<NodeResources>, Wrong> {
    if count == 0 {
        return Ok(Vec::new());
    }
    if nodes.is_null() || !nodes.is_aligned() {
        return Err(Wrong::invalid(format!("there are {count} nodes, and the pointer to them is NULL or not aligned")));
    }
    if count > NODES_MAX {
        return Err(Wrong::invalid(format!("{count} nodes are more than the {NODES_MAX} that a job may have")));
    }
    // SAFETY: guaranteed by the caller.
    let nodes = unsafe { std::slice::from_raw_parts(nodes, count) };
    // SAFETY: as above, also for the texts in the entries.
    nodes.iter().enumerate().map(|(index, node)| unsafe { wanted(index, node) }).collect()
}

/// # Safety
/// The node's name is NULL or a text.
unsafe fn wanted(index: usize, from: &cosched_resources) -> Result<NodeResources, Wrong> {
    if from.reserved != [0; 4] {
        let why = format!("nodes[{index}].reserved is not 0: set the struct to zero before you fill it");
        return Err(Wrong::invalid(why));
    }
    // SAFETY: guaranteed by the caller.
    let name = unsafe { node_name(from.node, &format!("nodes[{index}].node")) }?;
    Ok(NodeResources {
        name: name.to_owned(),
        cpus: Some(from.cpus).filter(|cpus| *cpus > 0),
        cpus_min: Some(from.cpus_min).filter(|cpus| *cpus > 0),
        memory_bytes: Some(from.memory_bytes).filter(|bytes| *bytes > 0),
        disk_bytes: Some(from.disk_bytes).filter(|bytes| *bytes > 0),
    })
}

/// The name of a node; empty for NULL.
///
/// # Safety
/// `name` is NULL or a text.
pub(super) unsafe fn node_name<'a>(name: *const c_char, what: &str) -> Result<&'a str, Wrong> {
    // SAFETY: guaranteed by the caller.
    let name = unsafe { text_or_empty(name, what) }.map_err(Wrong::invalid)?;
    match name.len() {
        0..=NODE_NAME_BYTES_MAX => Ok(name),
        long => Err(Wrong::invalid(format!(
            "{what} is {long} bytes long; names of nodes have {NODE_NAME_BYTES_MAX} at most"
        ))),
    }
}

/// The process with this ID (0 for this process), with its start time.
fn process(pid: c_int) -> Result<ProcessRequest, Wrong> {
    let pid = match pid {
        0 => std::process::id() as i32,
        1.. => pid,
        _ => return Err(Wrong::invalid(format!("{pid} is not a process"))),
    };
    let ticks = start_ticks(pid).ok_or_else(|| gone(pid))?;
    Ok(ProcessRequest { pid, start_ticks: Some(ticks) })
}

/// The process that a pidfd refers to.
fn process_of_pidfd(pidfd: c_int) -> Result<ProcessRequest, Wrong> {
    let pid = pid_of(pidfd)?;
    let start_ticks = Some(start_ticks(pid).ok_or_else(|| gone(pid))?);
    // It still has this process ID, so the start time was its own.
    match pid_of(pidfd)? == pid {
        true => Ok(ProcessRequest { pid, start_ticks }),
        false => Err(gone(pid)),
    }
}

fn gone(pid: i32) -> Wrong {
    Wrong::new(cosched_err::NOT_FOUND, format!("there is no process {pid}: it has ended, or never existed"))
}

fn pid_of(pidfd: c_int) -> Result<i32, Wrong> {
    let content = fs::read_to_string(format!("/proc/self/fdinfo/{pidfd}")).unwrap_or_default();
    let pid = content.lines().find_map(|line| line.strip_prefix("Pid:")?.trim().parse().ok());
    match pid.ok_or_else(|| Wrong::invalid(format!("descriptor {pidfd} is not a pidfd")))? {
        pid @ 1.. => Ok(pid),
        _ => Err(Wrong::new(cosched_err::NOT_FOUND, "the process of the pidfd has ended")),
    }
}

/// The start time of a process, in clock ticks since boot.
fn start_ticks(pid: i32) -> Option<u64> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name may contain blanks and parentheses, and need not be UTF-8; the first field after it is field 3.
    let rest = stat.get(stat.iter().rposition(|byte| *byte == b')')? + 1..)?;
    std::str::from_utf8(rest).ok()?.split_whitespace().nth(22 - 3)?.parse().ok()
}

/// The program's command line, for display.
fn command_line() -> Vec<String> {
    let mut words = Vec::new();
    // Best effort: parts that cannot be read are omitted.
    let _ = fs::File::open("/proc/self/cmdline").and_then(|file| file.take(COMMAND_BYTES_MAX).read_to_end(&mut words));
    let words = words.strip_suffix(b"\0").unwrap_or(&words).split(|byte| *byte == 0);
    words.map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_a_start_and_a_command_line() {
        let request = process(0).ok().unwrap();
        assert_eq!(request.pid, std::process::id() as i32);
        assert!(request.start_ticks.unwrap() > 0);
        assert!(command_line()[0].contains("cosched"));
        assert!(process(-1).is_err() && process(c_int::MAX).is_err());
        assert!(process_of_pidfd(-1).is_err() && process_of_pidfd(0).is_err() && process_of_pidfd(c_int::MAX).is_err());
    }
}
