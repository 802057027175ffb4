//! Stages in C: turns callbacks into a stage of the library.

use std::cell::{Cell, RefCell};
use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;

use ::cosched_pipeline::{Body, BoxError, Buffer, Each, Flow};

use super::buffer::cosched_pipeline_buffer;
use super::port::cosched_pipeline_port;
use crate::border::text_from;

/// What a stage's callback says.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum cosched_pipeline_flow {
    /// It failed: the pipeline ends. cosched_pipeline_fail returns this.
    FAILED = -1,
    /// All went well. A stage that begins a path: there are more buffers to come.
    CONTINUE = 0,
    /// Only for a stage that begins a path: this buffer is the last.
    LAST = 1,
    /// Only for a stage that begins a path: this buffer carries nothing, the one before was the last.
    END = 2,
}

/// Works on one buffer. `state` is the stage's user pointer, or what its init callback put in its place. At the beginning of a
/// path the buffer has length 0 and is to be filled. The buffer is the callback's until it returns, and not afterwards.
/// Returns a cosched_pipeline_flow.
pub type cosched_pipeline_round_fn =
    Option<unsafe extern "C" fn(state: *mut c_void, buffer: *mut cosched_pipeline_buffer) -> c_int>;

/// Accepts and conveys by itself until its paths have ended. Returns COSCHED_PIPELINE_FLOW_CONTINUE (0) or
/// COSCHED_PIPELINE_FLOW_FAILED (-1). The port is the callback's own thread's until it returns.
pub type cosched_pipeline_body_fn =
    Option<unsafe extern "C" fn(state: *mut c_void, port: *mut cosched_pipeline_port) -> c_int>;

/// Called once before the first buffer, for each incarnation of the stage (numbered from 0). `*state` is the user pointer;
/// what it is set to goes to the incarnation's other callbacks. Returns 0, or -1 to end the pipeline.
pub type cosched_pipeline_init_fn = Option<unsafe extern "C" fn(state: *mut *mut c_void, incarnation: usize) -> c_int>;

/// Called once after the last buffer, and after a failure, if init went well. Returns 0, or -1 to end the pipeline.
pub type cosched_pipeline_cleanup_fn = Option<unsafe extern "C" fn(state: *mut c_void) -> c_int>;

/// Frees a stage's user pointer. Called once, behind the stage's last callback, by any thread, in cosched_pipeline_free at
/// the latest.
pub type cosched_pipeline_free_fn = Option<unsafe extern "C" fn(user: *mut c_void)>;

/// The callback that does the work of a stage.
#[derive(Clone, Copy)]
pub(crate) enum Work {
    Round(unsafe extern "C" fn(*mut c_void, *mut cosched_pipeline_buffer) -> c_int),
    Body(unsafe extern "C" fn(*mut c_void, *mut cosched_pipeline_port) -> c_int),
}

/// The user pointer, and the function that frees it.
pub(crate) struct User {
    pub(crate) pointer: *mut c_void,
    pub(crate) free: cosched_pipeline_free_fn,
}

// SAFETY: the header says that callbacks get the pointer on other threads, and concurrently if a stage has several
// incarnations; this library never dereferences it.
unsafe impl Send for User {}
// SAFETY: as above.
unsafe impl Sync for User {}

impl Drop for User {
    fn drop(&mut self) {
        if let Some(free) = self.free {
            // SAFETY: the last owner calls this, so it is called once, and no callback gets the pointer any more.
            unsafe { free(self.pointer) };
        }
    }
}

/// Everything that C set for a stage.
#[derive(Clone)]
pub(crate) struct Callbacks {
    pub(crate) work: Work,
    pub(crate) init: cosched_pipeline_init_fn,
    pub(crate) cleanup: cosched_pipeline_cleanup_fn,
    pub(crate) user: Arc<User>,
}

/// One incarnation of a stage in C.
pub(crate) struct Incarnation {
    calls: Callbacks,
    pipeline: u64,
    number: usize,
    state: *mut c_void,
}

// SAFETY: as for `User`: the state from init is only for the callbacks of this incarnation, which are called one after
// another.
unsafe impl Send for Incarnation {}

thread_local! {
    /// The message that the callback running on this thread set for its failure.
    static FAILURE: RefCell<Option<String>> = const { RefCell::new(None) };
    /// The pipeline whose callback is running on this thread; 0 if there is none.
    static INSIDE: Cell<u64> = const { Cell::new(0) };
}

/// Whether this thread is in a callback of that pipeline.
pub(crate) fn inside_of(pipeline: u64) -> bool {
    INSIDE.get() == pipeline
}

impl Incarnation {
    pub(crate) fn new(calls: Callbacks, pipeline: u64, number: usize) -> Incarnation {
        let state = calls.user.pointer;
        Incarnation { calls, pipeline, number, state }
    }

    /// Calls a callback and converts its return value.
    fn call(&mut self, what: &str, callback: impl FnOnce(&mut Incarnation) -> c_int) -> Result<Flow, BoxError> {
        FAILURE.with_borrow_mut(|failure| *failure = None);
        let outer = INSIDE.replace(self.pipeline);
        let said = callback(self);
        INSIDE.set(outer);
        match said {
            0 => Ok(Flow::Continue),
            1 => Ok(Flow::Last),
            2 => Ok(Flow::End),
            -1 => Err(failure_or(|| format!("its {what} callback failed and did not say why")).into()),
            other => Err(format!("its {what} callback returned {other}, which is not a cosched_pipeline_flow").into()),
        }
    }

    /// Like `call`, for callbacks that only return success or failure.
    fn call_plainly(&mut self, what: &str, callback: impl FnOnce(&mut Incarnation) -> c_int) -> Result<(), BoxError> {
        match self.call(what, callback)? {
            Flow::Continue => Ok(()),
            flow => Err(format!("its {what} callback returned {}, and may return 0 or -1", flow as c_int).into()),
        }
    }

    fn begin(&mut self) -> Result<(), BoxError> {
        let Some(init) = self.calls.init else { return Ok(()) };
        // SAFETY: C's own callback, called as the header specifies.
        self.call_plainly("init", |own| unsafe { init(&mut own.state, own.number) })
    }

    fn finish(&mut self) -> Result<(), BoxError> {
        let Some(cleanup) = self.calls.cleanup else { return Ok(()) };
        // SAFETY: as above.
        self.call_plainly("cleanup", |own| unsafe { cleanup(own.state) })
    }
}

impl Each for Incarnation {
    fn init(&mut self) -> Result<(), BoxError> {
        self.begin()
    }

    fn round(&mut self, buffer: &mut Buffer) -> Result<Flow, BoxError> {
        let Work::Round(round) = self.calls.work else { return Err("a body does no rounds".into()) };
        let buffer = cosched_pipeline_buffer::lend(buffer);
        // SAFETY: C's own callback; the buffer is valid until it returns.
        self.call("round", |own| unsafe { round(own.state, buffer) })
    }

    fn cleanup(&mut self) -> Result<(), BoxError> {
        self.finish()
    }
}

impl Body for Incarnation {
    fn init(&mut self) -> Result<(), BoxError> {
        self.begin()
    }

    fn run(&mut self, port: &mut cosched_pipeline::Port) -> Result<(), BoxError> {
        let Work::Body(body) = self.calls.work else { return Err("it has no body".into()) };
        let mut port = cosched_pipeline_port::new(port);
        let port: *mut cosched_pipeline_port = (&raw mut port).cast();
        // SAFETY: C's own callback; the port is valid until it returns.
        let said = self.call_plainly("body", |own| unsafe { body(own.state, port) });
        // SAFETY: it is the local variable above, and C does not use it any more.
        let misused = unsafe { (*port).misused() };
        misused.map_or(said, |what| Err(what.into()))
    }

    fn cleanup(&mut self) -> Result<(), BoxError> {
        self.finish()
    }
}

fn failure_or(other: impl FnOnce() -> String) -> String {
    FAILURE.with_borrow_mut(Option::take).unwrap_or_else(other)
}

/// For a stage's callback: says why it fails, and returns COSCHED_PIPELINE_FLOW_FAILED, so that a callback may write
/// `return cosched_pipeline_fail("…");`. The text is copied. Outside of callbacks it has no effect.
///
/// # Safety
/// `why` is NULL or a text of C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_pipeline_fail(why: *const c_char) -> c_int {
    // SAFETY: guaranteed by the caller.
    let why = unsafe { text_from(why, "what a stage said about its failure") };
    let why = why.map_or_else(|complaint| complaint, str::to_owned);
    FAILURE.with_borrow_mut(|failure| *failure = Some(why));
    cosched_pipeline_flow::FAILED as c_int
}
