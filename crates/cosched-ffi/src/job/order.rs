//! Functions that control a job: change its class, suspend, resume, kill.

use std::ffi::c_int;

use cosched_api::{ClassRequest, KillRequest};

use super::handle::{Connection, cosched_t, with};
use super::register::class;
use super::result::Wrong;

/// Gives a job another class, a cosched_class. Users lower the class of their own jobs; administrators set any.
///
/// Errors: COSCHED_ERR_FORBIDDEN when the job is not the caller's or the class is above its present one; COSCHED_ERR_INVALID
/// when it is no class; COSCHED_ERR_NOT_FOUND when there is no such job; COSCHED_ERR_CONFLICT when it has ended; and those of
/// the connection.
///
/// # Safety
/// `handle` is NULL or a handle; so for all functions here.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_set_class(handle: *mut cosched_t, job: u64, job_class: c_int) -> c_int {
    let work = |connection: &Connection| {
        let class = class(job_class)?.ok_or_else(|| Wrong::invalid("COSCHED_CLASS_DEFAULT is for new jobs"))?;
        connection.ask(|client| client.set_class(job, &ClassRequest { class })).map(drop)
    };
    // SAFETY: guaranteed by the caller.
    unsafe { with("cosched_set_class", handle, work) }
}

/// Stops a job, on all its nodes, until it is resumed. One that is suspended stays so. A process that suspends its own job
/// is stopped before or soon after this returns.
///
/// Errors: COSCHED_ERR_NOT_FOUND when there is no such job; COSCHED_ERR_FORBIDDEN when it is not the caller's;
/// COSCHED_ERR_CONFLICT when it has ended; and those of the connection.
///
/// # Safety
/// As for cosched_set_class.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_suspend(handle: *mut cosched_t, job: u64) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe { with("cosched_suspend", handle, |connection| connection.ask(|client| client.suspend(job)).map(drop)) }
}

/// Resumes a suspended job. One that is not suspended stays as it is.
///
/// Errors: as for cosched_suspend.
///
/// # Safety
/// As for cosched_set_class.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_resume(handle: *mut cosched_t, job: u64) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe { with("cosched_resume", handle, |connection| connection.ask(|client| client.resume(job)).map(drop)) }
}

/// Sends a signal to every process of a job, on all its nodes: SIGTERM to ask it to end, SIGKILL to force it; what remains
/// after another signal is not killed. A suspended job that is asked to end is resumed for it.
///
/// Errors: COSCHED_ERR_INVALID when the signal is not 1 to 64; and as for cosched_suspend.
///
/// # Safety
/// As for cosched_set_class.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_kill(handle: *mut cosched_t, job: u64, signal: c_int) -> c_int {
    let request = KillRequest { signal, grace_ms: None, here: false };
    // SAFETY: guaranteed by the caller.
    unsafe { with("cosched_kill", handle, |connection| connection.ask(|client| client.kill(job, &request)).map(drop)) }
}
