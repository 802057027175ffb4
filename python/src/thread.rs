//! A stage's thread and the interpreter.
//!
//! CPython keeps a state for each thread that comes to it. Without one that stays, every round would make one and throw it
//! away, and with it all that Python code keeps per thread (`threading.local`). So a stage with a thread of its own makes it
//! before its first round and gives it back behind the last.

use std::ptr::NonNull;

use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;

/// The thread's state in the interpreter, kept between the rounds. Made and given back on one thread.
pub(crate) struct Attached {
    state: NonNull<ffi::PyThreadState>,
    entered: ffi::PyGILState_STATE,
}

// SAFETY: a stage carries it along, and uses it only in init and cleanup, which for stages with a thread of their own are
// called on that thread.
unsafe impl Send for Attached {}

impl Attached {
    /// Makes the state. The interpreter lock is not held afterwards.
    pub(crate) fn new() -> PyResult<Attached> {
        interpreter(|_| ())?;
        // SAFETY: the interpreter runs, as was seen above; runs are stopped before it ends (cosched/pipeline.py, atexit).
        let entered = unsafe { ffi::PyGILState_Ensure() };
        // SAFETY: the lock is held since the line above.
        let state = unsafe { ffi::PyEval_SaveThread() };
        let state = NonNull::new(state).ok_or_else(|| PyRuntimeError::new_err("the thread has no state"))?;
        Ok(Attached { state, entered })
    }

    /// Gives the state back.
    pub(crate) fn leave(self) {
        // SAFETY: it is this thread's own state, and the lock is not held.
        unsafe { ffi::PyEval_RestoreThread(self.state.as_ptr()) };
        // SAFETY: the other half of `new`.
        unsafe { ffi::PyGILState_Release(self.entered) };
    }
}

/// Does something with the interpreter lock.
///
/// # Errors
/// If there is no interpreter any more.
pub(crate) fn interpreter<T>(work: impl FnOnce(Python<'_>) -> T) -> PyResult<T> {
    Python::try_attach(work).ok_or_else(|| PyRuntimeError::new_err("the interpreter has ended"))
}
