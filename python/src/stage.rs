//! Stages in Python: callables as stages of the library. The interpreter lock is held only while the callable runs.

use std::mem;
use std::sync::Arc;

use ::cosched_pipeline::{Body, BoxError, Buffer as Lent, Each, Flow as Said};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;

use crate::buffer::Buffer;
use crate::port::Port;
use crate::thread::{Attached, interpreter};

/// What the first stage of a path returns. All other stages return None.
#[pyclass(frozen, eq, eq_int, hash, module = "cosched.pipeline", from_py_object)]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[allow(clippy::upper_case_acronyms)]
pub(crate) enum Flow {
    /// More buffers follow. None means the same.
    MORE,
    /// This buffer is the last.
    LAST,
    /// This buffer carries no block; the previous one was the last.
    END,
}

/// Converts the callable's result to the library's type.
fn said(result: &Bound<'_, PyAny>) -> PyResult<Said> {
    if result.is_none() {
        return Ok(Said::Continue);
    }
    match result.cast::<Flow>() {
        Ok(flow) => Ok(match *flow.get() {
            Flow::MORE => Said::Continue,
            Flow::LAST => Said::Last,
            Flow::END => Said::End,
        }),
        Err(_) => Err(PyTypeError::new_err(format!("a stage returns None or a Flow, not {}", result.get_type()))),
    }
}

/// What all incarnations of a stage have in common.
pub(crate) struct Recipe {
    /// Called with an incarnation's index, it returns that incarnation's callable.
    pub(crate) make: Py<PyAny>,
    /// Whether all calls of an incarnation are made on one thread.
    pub(crate) own_thread: bool,
}

/// One incarnation of a stage in Python.
pub(crate) struct Incarnation {
    recipe: Arc<Recipe>,
    number: usize,
    work: Option<Py<PyAny>>,
    attached: Option<Attached>,
    /// A buffer that takes the place of the stage's buffer while Python has that one.
    stand_in: Option<Lent>,
}

impl Incarnation {
    pub(crate) fn new(recipe: Arc<Recipe>, number: usize) -> Incarnation {
        Incarnation { recipe, number, work: None, attached: None, stand_in: None }
    }

    fn begin(&mut self) -> Result<(), BoxError> {
        self.stand_in = Some(Lent::auxiliary(1)?);
        if self.recipe.own_thread {
            self.attached = Some(Attached::new()?);
        }
        let made = interpreter(|py| {
            let work = self.recipe.make.bind(py).call1((self.number,))?;
            call_if_there(&work, "init")?;
            Ok(work.unbind())
        })
        .flatten();
        self.work = made.inspect_err(|_| self.leave())?.into();
        Ok(())
    }

    fn finish(&mut self) -> Result<(), BoxError> {
        let work = self.work.take();
        let called = interpreter(|py| work.map_or(Ok(()), |work| call_if_there(work.bind(py), "cleanup")));
        self.leave();
        Ok(called.flatten()?)
    }

    /// The callable. It exists between init and cleanup.
    fn work<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let work = self.work.as_ref().ok_or_else(|| PyRuntimeError::new_err("the stage has not started"))?;
        Ok(work.bind(py).clone())
    }

    fn leave(&mut self) {
        if let Some(attached) = self.attached.take() {
            attached.leave();
        }
    }

    /// Calls the stage with a buffer, and takes the buffer back afterwards. If Python keeps the buffer, this is an error,
    /// and the stand-in stays in its place.
    fn call_with(&mut self, py: Python<'_>, buffer: &mut Lent) -> PyResult<Said> {
        let stand_in = self.stand_in.take().ok_or_else(|| PyRuntimeError::new_err("its buffer was not given back"))?;
        let object = Buffer::lend(py, mem::replace(buffer, stand_in))?;
        // The result is dropped before the views are counted, because it may be one itself.
        let flow = self.work(py)?.call1((&object,)).and_then(|result| said(&result));
        match object.get().take_back(py) {
            Ok(lent) => self.stand_in = Some(mem::replace(buffer, lent)),
            // An exception's traceback keeps the views in its frames alive; in this case the exception is the error to
            // report.
            Err(kept) => return flow.and(Err(kept)),
        }
        flow
    }
}

/// Calls a method without arguments, if the callable has it.
fn call_if_there(work: &Bound<'_, PyAny>, method: &str) -> PyResult<()> {
    match work.getattr_opt(method)? {
        Some(method) => method.call0().map(drop),
        None => Ok(()),
    }
}

impl Each for Incarnation {
    fn init(&mut self) -> Result<(), BoxError> {
        self.begin()
    }

    fn round(&mut self, buffer: &mut Lent) -> Result<Said, BoxError> {
        Ok(interpreter(|py| self.call_with(py, buffer))??)
    }

    fn cleanup(&mut self) -> Result<(), BoxError> {
        self.finish()
    }
}

impl Body for Incarnation {
    fn init(&mut self) -> Result<(), BoxError> {
        self.begin()
    }

    fn run(&mut self, port: &mut ::cosched_pipeline::Port) -> Result<(), BoxError> {
        interpreter(|py| -> PyResult<()> {
            let (object, _end) = Port::lend(py, port)?;
            let result = self.work(py)?.call1((object,))?;
            match result.is_none() {
                true => Ok(()),
                false => Err(PyTypeError::new_err(format!("a body returns None, not {}", result.get_type()))),
            }
        })??;
        Ok(())
    }

    fn cleanup(&mut self) -> Result<(), BoxError> {
        self.finish()
    }
}
