//! Pipelines: a handle that is built, run once, and freed.
//!
//! A handle's state is protected by a lock, so that one thread may wait for the pipeline while another one stops it or takes
//! a snapshot. The lock is never held while a pipeline runs or ends.

pub mod buffer;
pub mod build;
pub mod options;
mod plan;
pub mod port;
pub mod report;
pub mod run;
pub mod settings;
pub mod stage;

use std::ffi::{c_char, c_int};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ::cosched_pipeline::{Control, Running};

use crate::border::{guard, text_from};
use crate::error::{cosched_code, cosched_error};
use plan::Plan;

/// A pipeline: a graph of stages and the paths of buffers through them. It is built, runs once, and is freed. Every function
/// may be called from any thread; cosched_pipeline_free must be the last one.
pub struct cosched_pipeline {
    name: String,
    /// By this the stages recognise their own pipeline.
    id: u64,
    state: Mutex<State>,
}

enum State {
    Building(Box<Plan>),
    /// Its threads are being started.
    Starting {
        stopped: bool,
    },
    Running(Running, Control),
    /// A thread is waiting for it, or has waited.
    Waited(Control),
}

impl cosched_pipeline {
    fn new(name: &str) -> cosched_pipeline {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let state = Mutex::new(State::Building(Box::new(Plan::new(name, id))));
        cosched_pipeline { name: name.to_owned(), id, state }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the plan of the pipeline. An error is kept in the plan, and reported when the pipeline is checked or started.
    fn build(&self, place: &str, change: impl FnOnce(&mut Plan) -> Result<c_int, String>) -> c_int {
        let State::Building(plan) = &mut *self.lock() else { return -1 };
        let done =
            guard(place, || change(plan).map_err(|what| cosched_error::of_call(cosched_code::INVALID, place, &what)));
        done.unwrap_or_else(|error| {
            plan.wrong.get_or_insert(error);
            -1
        })
    }
}

/// Changes the plan of a pipeline, for the C function `place`.
///
/// # Safety
/// `pipeline` is null or a handle that has not been freed.
unsafe fn build(
    pipeline: *const cosched_pipeline,
    place: &str,
    change: impl FnOnce(&mut Plan) -> Result<c_int, String>,
) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe { pipeline.as_ref() }.map_or(-1, |pipeline| pipeline.build(place, change))
}

/// Changes the plan of a pipeline in a way that is never wrong.
///
/// # Safety
/// As for `build`.
unsafe fn set(pipeline: *const cosched_pipeline, place: &str, set: impl FnOnce(&mut Plan)) -> c_int {
    let change = |plan: &mut Plan| {
        set(plan);
        Ok(0)
    };
    // SAFETY: guaranteed by the caller.
    unsafe { build(pipeline, place, change) }
}

/// Makes a pipeline without stages. The name is for reports and errors.
///
/// The building functions that follow return -1 where something is wrong, and remember the first thing that was: a program
/// may leave their results alone, cosched_pipeline_check, _start and _run report it.
///
/// Returns NULL if the name is NULL or not UTF-8. Free it with cosched_pipeline_free.
///
/// # Safety
/// `name` is NULL or a text of C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_pipeline_new(name: *const c_char) -> *mut cosched_pipeline {
    // SAFETY: guaranteed by the caller.
    let name = unsafe { text_from(name, "the name") };
    name.map_or(std::ptr::null_mut(), |name| Box::into_raw(Box::new(cosched_pipeline::new(name))))
}

/// Frees a pipeline. One that runs is stopped first, and its threads have ended then. NULL is fine.
///
/// Not for a stage's callback, which would wait for itself: there it only stops the pipeline, and the memory stays.
///
/// # Safety
/// `pipeline` is NULL or a handle that is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_pipeline_free(pipeline: *mut cosched_pipeline) {
    // SAFETY: guaranteed by the caller.
    let Some(handle) = (unsafe { pipeline.as_ref() }) else { return };
    if stage::inside_of(handle.id) {
        run::stop(handle);
        return;
    }
    // SAFETY: it came from Box::into_raw in `cosched_pipeline_new`, and the caller guarantees that there is no other user.
    let handle = unsafe { Box::from_raw(pipeline) };
    // There is no way to report a defect of ours from here; the guard only stops the panic.
    let _ = guard("cosched_pipeline_free", || {
        drop(handle);
        Ok(())
    });
}
