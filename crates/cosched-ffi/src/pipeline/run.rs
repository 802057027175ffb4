//! Running a pipeline.

use std::ffi::{c_char, c_int};
use std::mem::replace;
use std::ptr::null_mut;

use ::cosched_pipeline::Running;

use super::plan::Plan;
use super::{State, cosched_pipeline, stage};
use crate::border::{guard, text_to};
use crate::error::{cosched_code, cosched_error, json};

fn invalid(place: &str, what: &str) -> cosched_error {
    cosched_error::of_call(cosched_code::INVALID, place, what)
}

/// Runs the C function `place` on a pipeline: returns 0, or -1 with an error if the caller has a place for it.
///
/// # Safety
/// `pipeline` is null or a handle; `error` is null or points to a place for a pointer.
unsafe fn call(
    place: &str,
    pipeline: *const cosched_pipeline,
    error: *mut *mut cosched_error,
    work: impl FnOnce(&cosched_pipeline) -> Result<(), cosched_error>,
) -> c_int {
    // SAFETY: guaranteed by the caller.
    let pipeline = unsafe { pipeline.as_ref() };
    let done = guard(place, || work(pipeline.ok_or_else(|| invalid(place, "the pipeline is NULL"))?));
    match done {
        Ok(()) => {
            if !error.is_null() {
                // SAFETY: guaranteed by the caller.
                unsafe { error.write(null_mut()) };
            }
            0
        }
        // SAFETY: guaranteed by the caller.
        Err(found) => unsafe { found.give(error) },
    }
}

fn check(place: &str, pipeline: &cosched_pipeline) -> Result<(), cosched_error> {
    let state = pipeline.lock();
    let State::Building(plan) = &*state else { return Ok(()) };
    if let Some(wrong) = &plan.wrong {
        return Err(wrong.clone());
    }
    plan.graph().check().map_err(|error| cosched_error::of_graph(place, &pipeline.name, &error))
}

fn start(place: &str, pipeline: &cosched_pipeline) -> Result<(), cosched_error> {
    check(place, pipeline)?;
    let plan = take_plan(place, pipeline)?;
    // Without the lock: the first callbacks are running already, and may stop the pipeline.
    let started = plan.graph().start(&plan.options);
    let mut state = pipeline.lock();
    let stopped = matches!(&*state, State::Starting { stopped: true });
    match started {
        Ok(running) => {
            let control = running.control();
            *state = State::Running(running, control.clone());
            drop(state);
            if stopped {
                control.stop();
            }
            Ok(())
        }
        Err(error) => {
            *state = State::Building(plan);
            Err(cosched_error::of_graph(place, &pipeline.name, &error))
        }
    }
}

/// Takes the plan out of the pipeline, to start it.
fn take_plan(place: &str, pipeline: &cosched_pipeline) -> Result<Box<Plan>, cosched_error> {
    let mut state = pipeline.lock();
    match replace(&mut *state, State::Starting { stopped: false }) {
        State::Building(plan) => Ok(plan),
        other => {
            *state = other;
            Err(invalid(place, &format!("pipeline '{}' was started before; it runs once", pipeline.name)))
        }
    }
}

/// Takes the running graph out of the pipeline, to wait for it.
fn take_running(place: &str, pipeline: &cosched_pipeline) -> Result<Running, cosched_error> {
    let mut state = pipeline.lock();
    let control = match &*state {
        State::Building(_) | State::Starting { .. } => {
            return Err(invalid(place, &format!("pipeline '{}' was not started", pipeline.name)));
        }
        State::Waited(_) => {
            return Err(invalid(
                place,
                &format!("another thread waits or has waited for pipeline '{}'", pipeline.name),
            ));
        }
        State::Running(_, control) => control.clone(),
    };
    match replace(&mut *state, State::Waited(control)) {
        State::Running(running, _) => Ok(running),
        _ => Err(invalid(place, "the pipeline is not running")),
    }
}

/// Waits for the pipeline, and writes the report as C text if there is a place for it.
fn wait(place: &str, pipeline: &cosched_pipeline, report: *mut *mut c_char) -> Result<(), cosched_error> {
    if stage::inside_of(pipeline.id) {
        return Err(invalid(place, "a stage cannot wait for its own pipeline"));
    }
    let ended = take_running(place, pipeline)?.wait();
    let done = ended.map_err(|failure| cosched_error::of_run(place, &failure))?;
    if !report.is_null() {
        // SAFETY: the caller of the C function guarantees that the place is valid.
        unsafe { report.write(text_to(&json(&done))) };
    }
    Ok(())
}

/// Stops a running pipeline.
pub(super) fn stop(pipeline: &cosched_pipeline) {
    let control = match &mut *pipeline.lock() {
        State::Building(_) => return,
        State::Starting { stopped } => {
            *stopped = true;
            return;
        }
        State::Running(_, control) | State::Waited(control) => control.clone(),
    };
    control.stop();
}

/// The memory that all buffers of the pipeline will take, in bytes; 0 once it was started.
///
/// # Safety
/// `pipeline` is NULL or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_pipeline_memory_bytes(pipeline: *const cosched_pipeline) -> u64 {
    // SAFETY: guaranteed by the caller.
    unsafe { pipeline.as_ref() }.map_or(0, |pipeline| match &*pipeline.lock() {
        State::Building(plan) => plan.memory_bytes(),
        _ => 0,
    })
}

/// Whether the pipeline can run as it was built. Returns 0, or -1 and the first thing that is wrong.
///
/// # Safety
/// `pipeline` is NULL or a handle, `error` is NULL or a place for a pointer; so for all functions here.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_pipeline_check(
    pipeline: *mut cosched_pipeline,
    error: *mut *mut cosched_error,
) -> c_int {
    let place = "cosched_pipeline_check";
    // SAFETY: guaranteed by the caller.
    unsafe { call(place, pipeline, error, |pipeline| check(place, pipeline)) }
}

/// Starts the pipeline and returns. Returns 0, or -1 and why it cannot run: nothing has run then.
///
/// # Safety
/// As for cosched_pipeline_check.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_pipeline_start(
    pipeline: *mut cosched_pipeline,
    error: *mut *mut cosched_error,
) -> c_int {
    let place = "cosched_pipeline_start";
    // SAFETY: guaranteed by the caller.
    unsafe { call(place, pipeline, error, |pipeline| start(place, pipeline)) }
}

/// Waits for the end of a pipeline that was started. All its threads have ended then. Once for each pipeline.
///
/// Returns 0 and, where `report` is not NULL, what the stages did, as JSON; free it with cosched_string_free. Or -1 and the
/// first failure, with cosched_error_stage and cosched_error_report; `report` is left alone then.
///
/// # Safety
/// As for cosched_pipeline_check; `report` is NULL or a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_pipeline_wait(
    pipeline: *mut cosched_pipeline,
    report: *mut *mut c_char,
    error: *mut *mut cosched_error,
) -> c_int {
    let place = "cosched_pipeline_wait";
    // SAFETY: guaranteed by the caller.
    unsafe { call(place, pipeline, error, |pipeline| wait(place, pipeline, report)) }
}

/// cosched_pipeline_start and cosched_pipeline_wait in one.
///
/// # Safety
/// As for cosched_pipeline_wait.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_pipeline_run(
    pipeline: *mut cosched_pipeline,
    report: *mut *mut c_char,
    error: *mut *mut cosched_error,
) -> c_int {
    let place = "cosched_pipeline_run";
    let both = |pipeline: &cosched_pipeline| {
        start(place, pipeline)?;
        wait(place, pipeline, report)
    };
    // SAFETY: guaranteed by the caller.
    unsafe { call(place, pipeline, error, both) }
}

/// Ends a running pipeline, as soon as each stage is done with its present buffer; its waiting caller gets
/// COSCHED_CODE_STOPPED. From any thread, a stage's callback too. On one that does not run it has no effect. It takes a
/// lock: not for signal handlers.
///
/// # Safety
/// `pipeline` is NULL or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_pipeline_stop(pipeline: *mut cosched_pipeline) {
    // SAFETY: guaranteed by the caller.
    if let Some(pipeline) = unsafe { pipeline.as_ref() } {
        let _ = guard("cosched_pipeline_stop", || {
            stop(pipeline);
            Ok(())
        });
    }
}

/// What the stages of a pipeline that runs or ran have done so far, as JSON; free it with cosched_string_free. From any
/// thread. NULL if it was not started.
///
/// # Safety
/// `pipeline` is NULL or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_pipeline_snapshot(pipeline: *const cosched_pipeline) -> *mut c_char {
    // SAFETY: guaranteed by the caller.
    let Some(pipeline) = (unsafe { pipeline.as_ref() }) else { return null_mut() };
    let snapshot = guard("cosched_pipeline_snapshot", || {
        let control = match &*pipeline.lock() {
            State::Building(_) | State::Starting { .. } => return Ok(null_mut()),
            State::Running(_, control) | State::Waited(control) => control.clone(),
        };
        Ok(text_to(&json(&control.snapshot())))
    });
    snapshot.unwrap_or(null_mut())
}
