//! A stage's thread and the interpreter.
//!
//! CPython keeps a state for each thread that uses it. Without a permanent one, every round would create and delete a state,
//! and with it everything that Python code keeps per thread (`threading.local`). So a stage with a thread of its own creates
//! it before its first round and deletes it after the last one.

use std::ptr::NonNull;

use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;

/// The thread's state in the interpreter, kept between the rounds. Created and deleted on the same thread.
pub(crate) struct Attached {
    state: NonNull<ffi::PyThreadState>,
    entered: ffi::PyGILState_STATE,
}

// SAFETY: a stage moves it between threads, but uses it only in init and cleanup, which for stages with a thread of their
// own are called on that thread.
unsafe impl Send for Attached {}

impl Attached {
    /// Creates the state. The interpreter lock is not held afterwards.
    pub(crate) fn new() -> PyResult<Attached> {
        interpreter(|_| ())?;
        // SAFETY: the interpreter is running, which was checked above; runs are stopped before it ends (cosched/pipeline.py,
        // atexit).
        let entered = unsafe { ffi::PyGILState_Ensure() };
        // SAFETY: the lock has been held since the line above.
        let state = unsafe { ffi::PyEval_SaveThread() };
        let state = NonNull::new(state).ok_or_else(|| PyRuntimeError::new_err("the thread has no state"))?;
        Ok(Attached { state, entered })
    }

    /// Deletes the state.
    pub(crate) fn leave(self) {
        // SAFETY: it is this thread's own state, and the lock is not held.
        unsafe { ffi::PyEval_RestoreThread(self.state.as_ptr()) };
        // SAFETY: the counterpart of PyGILState_Ensure in `new`.
        unsafe { ffi::PyGILState_Release(self.entered) };
    }
}

/// Runs `work` with the interpreter lock.
///
/// # Errors
/// If the interpreter has ended.
pub(crate) fn interpreter<T>(work: impl FnOnce(Python<'_>) -> T) -> PyResult<T> {
    Python::try_attach(work).ok_or_else(|| PyRuntimeError::new_err("the interpreter has ended"))
}
