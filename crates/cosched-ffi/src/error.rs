//! Errors with texts, as handles that the caller frees.

use std::ffi::{CString, c_char, c_int};
use std::ptr::null;

use cosched_pipeline::{Cause, Failure, GraphError, Report};

/// What kind of error it is.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum cosched_code {
    /// None.
    OK = 0,
    /// An argument that cannot be, or a call at the wrong time.
    INVALID = 1,
    /// The pipeline's graph cannot run.
    GRAPH = 2,
    /// Memory or threads that the system does not give.
    SYSTEM = 3,
    /// A stage failed.
    STAGE = 4,
    /// A stage broke the framework's rules.
    MISUSE = 5,
    /// It was stopped by cosched_pipeline_stop.
    STOPPED = 6,
    /// A stage held a buffer for longer than cosched_pipeline_set_stall_limit says. Its callback may still run: its user
    /// pointer is not freed then.
    STALLED = 7,
    /// A fault in cosched itself.
    INTERNAL = 8,
}

/// An error and its texts. Immutable: any thread may read it. The caller frees it with cosched_error_free.
#[derive(Clone)]
pub struct cosched_error {
    code: cosched_code,
    message: CString,
    what: CString,
    place: CString,
    stage: Option<CString>,
    report: Option<CString>,
}

impl cosched_error {
    /// An error of a call of the function `place`.
    pub(crate) fn of_call(code: cosched_code, place: &str, what: &str) -> cosched_error {
        cosched_error {
            code,
            message: text(&format!("{place}: {what}")),
            what: text(what),
            place: text(place),
            stage: None,
            report: None,
        }
    }

    /// An error of a graph that was refused.
    pub(crate) fn of_graph(place: &str, pipeline: &str, error: &GraphError) -> cosched_error {
        let what = error.to_string();
        cosched_error {
            message: text(&format!("pipeline '{pipeline}': {what}")),
            ..cosched_error::of_call(code_of_graph(error), place, &what)
        }
    }

    /// The error of a run that failed.
    pub(crate) fn of_run(place: &str, failure: &Failure) -> cosched_error {
        cosched_error {
            message: text(&failure.to_string()),
            stage: failure.stage.as_deref().map(text),
            report: Some(text(&json(&failure.report))),
            ..cosched_error::of_call(code_of(&failure.cause), place, &failure.cause.to_string())
        }
    }

    /// Gives the error to the caller, if `to` is not null. Returns -1.
    ///
    /// # Safety
    /// `to` is null or points to a place for a pointer.
    pub(crate) unsafe fn give(self, to: *mut *mut cosched_error) -> c_int {
        if !to.is_null() {
            // SAFETY: the caller of the C function guarantees that the place is valid.
            unsafe { to.write(Box::into_raw(Box::new(self))) };
        }
        -1
    }
}

fn code_of(cause: &Cause) -> cosched_code {
    match cause {
        Cause::Graph(error) => code_of_graph(error),
        Cause::Stage(_) => cosched_code::STAGE,
        Cause::Misuse(_) => cosched_code::MISUSE,
        Cause::Stopped => cosched_code::STOPPED,
        Cause::Stalled(_) => cosched_code::STALLED,
        // Stages in C cannot panic.
        Cause::Panic(_) => cosched_code::INTERNAL,
    }
}

fn code_of_graph(error: &GraphError) -> cosched_code {
    match error {
        GraphError::Memory { .. } | GraphError::Thread(_) => cosched_code::SYSTEM,
        _ => cosched_code::GRAPH,
    }
}

/// The report as JSON, for C programs.
pub(crate) fn json(report: &Report) -> String {
    serde_json::to_string(report).unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}"))
}

/// A text for C: NULs are replaced, because what follows one would be lost.
pub(crate) fn text(from: &str) -> CString {
    CString::new(from.replace('\0', "\u{fffd}")).unwrap_or_default()
}

/// What kind of error it is; COSCHED_CODE_OK of NULL.
///
/// # Safety
/// `error` is NULL or came from this library and was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_error_code(error: *const cosched_error) -> cosched_code {
    // SAFETY: guaranteed by the caller.
    unsafe { error.as_ref() }.map_or(cosched_code::OK, |error| error.code)
}

/// The whole error in one sentence, for people. Valid until the error is freed; "" of NULL.
///
/// # Safety
/// As for cosched_error_code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_error_message(error: *const cosched_error) -> *const c_char {
    // SAFETY: guaranteed by the caller.
    unsafe { error.as_ref() }.map_or(c"".as_ptr(), |error| error.message.as_ptr())
}

/// What happened, without where: of a stage that failed, the text that it gave. Valid until the error is freed; "" of NULL.
///
/// # Safety
/// As for cosched_error_code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_error_what(error: *const cosched_error) -> *const c_char {
    // SAFETY: guaranteed by the caller.
    unsafe { error.as_ref() }.map_or(c"".as_ptr(), |error| error.what.as_ptr())
}

/// The function of this library whose call was at fault. Valid until the error is freed; "" of NULL.
///
/// # Safety
/// As for cosched_error_code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_error_where(error: *const cosched_error) -> *const c_char {
    // SAFETY: guaranteed by the caller.
    unsafe { error.as_ref() }.map_or(c"".as_ptr(), |error| error.place.as_ptr())
}

/// The name of the stage at fault, or NULL if none is. Valid until the error is freed.
///
/// # Safety
/// As for cosched_error_code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_error_stage(error: *const cosched_error) -> *const c_char {
    // SAFETY: guaranteed by the caller.
    let stage = unsafe { error.as_ref() }.and_then(|error| error.stage.as_ref());
    stage.map_or(null(), |stage| stage.as_ptr())
}

/// What the stages had done when the run failed, as JSON, or NULL if nothing ran. Valid until the error is freed.
///
/// # Safety
/// As for cosched_error_code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_error_report(error: *const cosched_error) -> *const c_char {
    // SAFETY: guaranteed by the caller.
    let report = unsafe { error.as_ref() }.and_then(|error| error.report.as_ref());
    report.map_or(null(), |report| report.as_ptr())
}

/// Frees an error. NULL is fine.
///
/// # Safety
/// As for cosched_error_code; the error is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_error_free(error: *mut cosched_error) {
    if !error.is_null() {
        // SAFETY: it came from Box::into_raw in `give`.
        drop(unsafe { Box::from_raw(error) });
    }
}
