//! Ports for Python: through which a body accepts and conveys buffers.

use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::thread::ThreadId;

use ::cosched_pipeline::{Buffer as Lent, PathId};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::buffer::Buffer;

/// The library's port, without the lifetime, which Python cannot express.
#[derive(Clone, Copy)]
struct Pointer(NonNull<::cosched_pipeline::Port<'static>>);

// SAFETY: it is dereferenced only on the body's own thread, which `Port::with` checks.
unsafe impl Send for Pointer {}

/// Through which a body accepts and conveys buffers. Only for the body's own thread, until the body returns.
#[pyclass(frozen, module = "cosched.pipeline")]
pub(crate) struct Port {
    port: Mutex<Option<Pointer>>,
    thread: ThreadId,
}

/// Takes the port away from Python when it is dropped.
pub(crate) struct End<'py>(Bound<'py, Port>);

impl Drop for End<'_> {
    fn drop(&mut self) {
        *self.0.get().port.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl Port {
    /// Lends a port to Python until the `End` is dropped.
    pub(crate) fn lend<'py>(
        py: Python<'py>,
        port: &mut ::cosched_pipeline::Port,
    ) -> PyResult<(Bound<'py, Port>, End<'py>)> {
        let pointer = Pointer(NonNull::from(port).cast());
        let object = Bound::new(py, Port { port: Mutex::new(Some(pointer)), thread: std::thread::current().id() })?;
        Ok((object.clone(), End(object)))
    }

    /// Calls `work` with the library's port, without the interpreter lock, because it may block.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut ::cosched_pipeline::Port<'static>) -> T + Send,
    ) -> PyResult<T> {
        if std::thread::current().id() != self.thread {
            return Err(PyRuntimeError::new_err("a port is for the thread of its body"));
        }
        let pointer = *self.port.lock().unwrap_or_else(PoisonError::into_inner);
        let pointer = pointer.ok_or_else(|| PyValueError::new_err("the body of this port has returned"))?;
        py.detach(move || {
            let Pointer(mut port) = { pointer };
            // SAFETY: `lend` got it as an exclusive borrow that lives until `End` takes it away, and this is the only thread
            // that uses it; `work` never calls back into Python.
            Ok(work(unsafe { port.as_mut() }))
        })
    }

    fn path(&self, py: Python<'_>, number: usize) -> PyResult<PathId> {
        let found = self.with(py, |port| port.paths().iter().copied().find(|path| path.index() == number))?;
        found.ok_or_else(|| PyValueError::new_err(format!("the body is not on path {number}")))
    }
}

fn object(py: Python<'_>, buffer: Option<Lent>) -> PyResult<Option<Py<Buffer>>> {
    buffer.map(|buffer| Ok(Buffer::lend(py, buffer)?.unbind())).transpose()
}

#[pymethods]
impl Port {
    /// Waits for the next buffer of any path; a body that is the first stage of all its paths gets an empty one. None when all
    /// incoming paths have ended, or when the pipeline stops.
    fn accept(&self, py: Python<'_>) -> PyResult<Option<Py<Buffer>>> {
        object(py, self.with(py, |port| port.accept())?)
    }

    /// Waits for the next buffer of one path; if the body is the path's first stage, for an empty one.
    fn accept_from(&self, py: Python<'_>, path: usize) -> PyResult<Option<Py<Buffer>>> {
        let path = self.path(py, path)?;
        object(py, self.with(py, |port| port.accept_from(path))?)
    }

    /// The next buffer, if one is waiting; does not block.
    fn try_accept(&self, py: Python<'_>) -> PyResult<Option<Py<Buffer>>> {
        object(py, self.with(py, |port| port.try_accept())?)
    }

    /// Hands a buffer to the next stage of its path or, from the path's last stage, back to the pool.
    fn convey(&self, py: Python<'_>, buffer: &Bound<'_, Buffer>) -> PyResult<()> {
        let lent = buffer.get().take_back(py)?;
        self.with(py, |port| port.convey(lent))
    }

    /// Ends a path that the body begins, after its last block. False if the pipeline is stopping.
    fn end(&self, py: Python<'_>, path: usize) -> PyResult<bool> {
        let path = self.path(py, path)?;
        self.with(py, |port| port.end(path))
    }

    /// The indices of the paths that the body is on.
    #[getter]
    fn paths(&self, py: Python<'_>) -> PyResult<Vec<usize>> {
        self.with(py, |port| port.paths().iter().map(|path| path.index()).collect())
    }

    /// The number of buffers that wait for the body.
    #[getter]
    fn backlog(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, |port| port.backlog())
    }

    /// The number of buffers that wait for the next stage on a path.
    fn output_backlog(&self, py: Python<'_>, path: usize) -> PyResult<usize> {
        let path = self.path(py, path)?;
        self.with(py, |port| port.output_backlog(path))
    }

    /// Whether the pipeline is stopping: the body should return.
    #[getter]
    fn stopping(&self, py: Python<'_>) -> PyResult<bool> {
        self.with(py, |port| port.stopping())
    }

    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    /// Like accept, for `for buffer in port`.
    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<Buffer>>> {
        self.accept(py)
    }
}
