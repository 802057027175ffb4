//! The options of a pipeline's run.

use std::ffi::{c_char, c_int};
use std::time::Duration;

use ::cosched_pipeline::Priorities;

use super::{build, cosched_pipeline, set};
use crate::border::text_from;

/// The number of workers for the stages that compute; 0, the default, for one per CPU that the process may use.
/// Returns 0 or -1.
///
/// # Safety
/// `pipeline` is NULL or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_pipeline_set_workers(pipeline: *mut cosched_pipeline, workers: usize) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe {
        set(pipeline, "cosched_pipeline_set_workers", |plan| plan.options.workers = (workers > 0).then_some(workers))
    }
}

/// How the scheduling of the stages' threads is chosen: "default", "auto" (autotune), "adjust-once", "adjust-up-down", or a
/// fixed rule as "nice-up-io" (docs/pipeline.md lists them). What a stage asks for itself comes first. Returns 0 or -1.
///
/// # Safety
/// `pipeline` is NULL or a handle, `rule` NULL or a text of C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_pipeline_set_priorities(
    pipeline: *mut cosched_pipeline,
    rule: *const c_char,
) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe {
        build(pipeline, "cosched_pipeline_set_priorities", |plan| {
            let rule = text_from(rule, "the rule")?;
            plan.options.priorities = rule.parse::<Priorities>().map_err(|error| error.to_string())?;
            Ok(0)
        })
    }
}

/// Whether each stage that has a thread of its own gets one CPU, in turn, of those that the process may use. Returns 0 or -1.
///
/// # Safety
/// `pipeline` is NULL or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_pipeline_set_pin_in_turn(pipeline: *mut cosched_pipeline, pin: bool) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe { set(pipeline, "cosched_pipeline_set_pin_in_turn", |plan| plan.options.pin_in_turn = pin) }
}

/// A stage that works on one buffer for longer than `limit_s` seconds ends the run with COSCHED_CODE_STALLED and its name; so
/// does a graph in which all wait for each other. 0, as unless told otherwise: nothing is ended. Returns 0 or -1.
///
/// # Safety
/// `pipeline` is NULL or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_pipeline_set_stall_limit(pipeline: *mut cosched_pipeline, limit_s: f64) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe {
        build(pipeline, "cosched_pipeline_set_stall_limit", |plan| {
            plan.options.stall_limit = seconds(limit_s)?;
            Ok(0)
        })
    }
}

/// A call of a stage that takes longer than `limit_s` seconds is named on standard error and in the report, and continues; 0 for the
/// library's own limit of 30 s. Returns 0 or -1.
///
/// # Safety
/// `pipeline` is NULL or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_pipeline_set_stall_warning(pipeline: *mut cosched_pipeline, limit_s: f64) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe {
        build(pipeline, "cosched_pipeline_set_stall_warning", |plan| {
            plan.options.stall_warning = seconds(limit_s)?;
            Ok(0)
        })
    }
}

/// Whether the begin and the end of every round are kept, for cosched_pipeline_report_trace. Returns 0 or -1.
///
/// # Safety
/// `pipeline` is NULL or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_pipeline_set_trace(pipeline: *mut cosched_pipeline, trace: bool) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe { set(pipeline, "cosched_pipeline_set_trace", |plan| plan.options.trace = trace) }
}

/// Whether `cosched pipeline show` may look at it while it runs. Returns 0 or -1.
///
/// # Safety
/// `pipeline` is NULL or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_pipeline_set_serve(pipeline: *mut cosched_pipeline, serve: bool) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe { set(pipeline, "cosched_pipeline_set_serve", |plan| plan.options.serve = serve) }
}

/// A time from C in seconds; 0 means None.
fn seconds(time_s: f64) -> Result<Option<Duration>, String> {
    match Duration::try_from_secs_f64(time_s) {
        Ok(Duration::ZERO) => Ok(None),
        Ok(time) => Ok(Some(time)),
        Err(_) => Err(format!("{time_s} is not a time in seconds")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds_and_none_is_0() {
        assert_eq!(seconds(0.0), Ok(None));
        assert_eq!(seconds(1.5), Ok(Some(Duration::from_millis(1500))));
        for wrong in [-1.0, f64::NAN, f64::INFINITY] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
