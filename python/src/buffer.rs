//! Buffers for Python: objects with the buffer protocol, valid while a stage has them.
//!
//! A stage lends its buffer to Python by moving it into a `Buffer` object. Views (NumPy arrays, memoryviews) are counted. The
//! buffer is taken back only when no view is left, so a view never sees the block of another round, and never freed memory: if a
//! view is left, the object keeps the memory for as long as the view exists, and the stage fails.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ::cosched_pipeline::Buffer as Lent;
use pyo3::exceptions::{PyBufferError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyMemoryView, PyType};

use crate::export::{self, Exports};

/// A buffer of a path's pool, valid while the stage has it.
///
/// It supports the buffer protocol, writable and without a copy, over its contents (`len(buffer)` bytes): memoryview(buffer),
/// numpy.frombuffer(buffer, dtype). `storage` is a view of all its memory. No view may outlive the round.
#[pyclass(frozen, subclass, module = "cosched.pipeline")]
pub(crate) struct Buffer {
    lent: Mutex<Option<Lent>>,
    views: AtomicUsize,
}

impl Buffer {
    /// A buffer that a stage lends to Python.
    pub(crate) fn lend(py: Python<'_>, buffer: Lent) -> PyResult<Bound<'_, Buffer>> {
        let object = Self::exporting(py)?.call0()?.cast_into::<Buffer>()?;
        *object.get().lock() = Some(buffer);
        Ok(object)
    }

    /// The class with the buffer protocol.
    pub(crate) fn exporting(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
        static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        export::class::<Buffer>(py, &CLASS, c"cosched.pipeline.Buffer")
    }

    /// Takes the buffer back.
    ///
    /// # Errors
    /// BufferError if there are still views of it; ValueError if it has been taken back before.
    pub(crate) fn take_back(&self, py: Python<'_>) -> PyResult<Lent> {
        if self.views.load(Ordering::Acquire) > 0 {
            // A view may be part of a reference cycle (a frame, a closure) that is unreachable.
            py.import("gc")?.call_method0("collect")?;
        }
        let mut lent = self.lock();
        match self.views.load(Ordering::Acquire) {
            0 => lent.take().ok_or_else(over),
            views => Err(PyBufferError::new_err(format!(
                "{views} views of the buffer (NumPy arrays, memoryviews) still exist at the end of its round; keep a \
                 copy instead, as numpy.array(view) or bytes(view)"
            ))),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Lent>> {
        self.lent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, what: impl FnOnce(&mut Lent) -> T) -> PyResult<T> {
        self.lock().as_mut().map(what).ok_or_else(over)
    }

    /// Lends a view the first bytes of the memory, or all.
    fn export(&self, all: bool) -> PyResult<(*mut u8, usize)> {
        let mut lent = self.lock();
        let lent = lent.as_mut().ok_or_else(over)?;
        let len = if all { lent.capacity() } else { lent.len() };
        // The memory is not moved or freed while there are views: `take_back` counts them.
        self.views.fetch_add(1, Ordering::AcqRel);
        Ok((lent.storage_mut().as_mut_ptr(), len))
    }

    fn release(&self) {
        self.views.fetch_sub(1, Ordering::AcqRel);
    }
}

// SAFETY: `take_back` leaves the memory alone while `views` counts.
unsafe impl Exports for Buffer {
    fn export(&self) -> PyResult<(*mut u8, usize)> {
        self.export(false)
    }

    fn release(&self) {
        self.release();
    }
}

fn over() -> PyErr {
    PyValueError::new_err("the round of this buffer is over: it belongs to another stage now")
}

#[pymethods]
impl Buffer {
    /// One whose round is over.
    #[new]
    fn new() -> Buffer {
        Buffer { lent: Mutex::new(None), views: AtomicUsize::new(0) }
    }

    /// The length of its contents in bytes.
    fn __len__(&self) -> PyResult<usize> {
        self.with(|lent| lent.len())
    }

    /// A buffer is always true, also if it is empty.
    fn __bool__(&self) -> bool {
        true
    }

    /// Its capacity in bytes.
    #[getter]
    fn capacity(&self) -> PyResult<usize> {
        self.with(|lent| lent.capacity())
    }

    /// All of its memory, regardless of the length of the contents, as a writable memoryview.
    #[getter]
    fn storage(slf: &Bound<'_, Self>) -> PyResult<Py<PyMemoryView>> {
        let storage = Storage::exporting(slf.py())?.call1((slf,))?;
        Ok(PyMemoryView::from(&storage)?.unbind())
    }

    /// Sets the length of its contents in bytes.
    fn resize(&self, size_bytes: usize) -> PyResult<()> {
        self.with(|lent| match lent.capacity() {
            capacity if size_bytes > capacity => {
                Err(PyValueError::new_err(format!("{size_bytes} bytes in a buffer of {capacity}")))
            }
            _ => {
                lent.set_len(size_bytes);
                Ok(())
            }
        })?
    }

    /// The number of its round on its path, from 0; known only after the path's first stage.
    #[getter]
    fn round(&self) -> PyResult<u64> {
        self.with(|lent| lent.round())
    }

    /// The index of its path, as returned by Graph.path.
    #[getter]
    fn path(&self) -> PyResult<usize> {
        self.with(|lent| lent.path().index())
    }

    /// Whether it is the last one of its path.
    #[getter]
    fn is_last(&self) -> PyResult<bool> {
        self.with(|lent| lent.is_last())
    }

    /// Marks it as the last one of its path: for a body that begins the path, before it conveys the buffer.
    fn mark_last(&self) -> PyResult<()> {
        self.with(Lent::mark_last)
    }

    /// Whether it carries a block. One without a block only ends its path, and is only seen by bodies.
    #[getter]
    fn carries_block(&self) -> PyResult<bool> {
        self.with(|lent| lent.carries_block())
    }

    /// A number that the program may attach to the buffer; 0 at the beginning of a path.
    #[getter]
    fn tag(&self) -> PyResult<u64> {
        self.with(|lent| lent.tag())
    }

    /// Sets the number that the program attaches to the buffer.
    #[setter]
    fn set_tag(&self, tag: u64) -> PyResult<()> {
        self.with(|lent| lent.set_tag(tag))
    }

    fn __repr__(&self) -> String {
        match &*self.lock() {
            Some(lent) => format!(
                "<cosched.pipeline.Buffer round {} of path {}, {} of {} bytes>",
                lent.round(),
                lent.path().index(),
                lent.len(),
                lent.capacity()
            ),
            None => "<cosched.pipeline.Buffer whose round is over>".to_owned(),
        }
    }
}

/// All of a buffer's memory: the object behind the view `Buffer.storage`.
#[pyclass(frozen, subclass, module = "cosched.pipeline")]
pub(crate) struct Storage {
    buffer: Py<Buffer>,
}

impl Storage {
    fn exporting(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
        static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        export::class::<Storage>(py, &CLASS, c"cosched.pipeline.Storage")
    }
}

// SAFETY: as of its buffer, which it keeps alive.
unsafe impl Exports for Storage {
    fn export(&self) -> PyResult<(*mut u8, usize)> {
        self.buffer.get().export(true)
    }

    fn release(&self) {
        self.buffer.get().release();
    }
}

#[pymethods]
impl Storage {
    #[new]
    fn new(buffer: Py<Buffer>) -> Storage {
        Storage { buffer }
    }
}
