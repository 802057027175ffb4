//! How a pipeline is to run.

use std::ffi::c_int;

use super::{build, cosched_pipeline};

/// So many workers for the stages that compute; 0 for one per CPU that the process may use, as unless told otherwise.
/// Returns 0 or -1.
///
/// # Safety
/// `pipeline` is NULL or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_pipeline_set_workers(pipeline: *mut cosched_pipeline, workers: usize) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        build(pipeline, "cosched_pipeline_set_workers", |plan| {
            plan.options.workers = (workers > 0).then_some(workers);
            Ok(0)
        })
    }
}
