//! The boundary between C and Rust: converts texts in both directions, and stops panics.

use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::{cosched_code, cosched_error, text};

/// Calls `work`. A panic in it is returned as a text and does not unwind through C frames.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let what = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
        let what = what.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        format!("a fault in cosched itself: {what}")
    })
}

/// Calls `work` for the C function `place`; a panic in it becomes an error.
pub(crate) fn guard<T>(place: &str, work: impl FnOnce() -> Result<T, cosched_error>) -> Result<T, cosched_error> {
    caught(work).unwrap_or_else(|panic| Err(cosched_error::of_call(cosched_code::INTERNAL, place, &panic)))
}

/// Converts a text from C.
///
/// # Safety
/// `from` is NULL, or is terminated by NUL and lives for as long as the result is used.
pub(crate) unsafe fn text_from<'a>(from: *const c_char, what: &str) -> Result<&'a str, String> {
    if from.is_null() {
        return Err(format!("{what} is NULL"));
    }
    // SAFETY: guaranteed by the caller.
    let bytes = unsafe { CStr::from_ptr(from) };
    bytes.to_str().map_err(|_| format!("{what} is not UTF-8: '{}'", bytes.to_string_lossy()))
}

/// Converts a text from C that may be left out: NULL is the empty text.
///
/// # Safety
/// As for `text_from`.
pub(crate) unsafe fn text_or_empty<'a>(from: *const c_char, what: &str) -> Result<&'a str, String> {
    // SAFETY: guaranteed by the caller.
    if from.is_null() { Ok("") } else { unsafe { text_from(from, what) } }
}

/// Allocates a text for C, which frees it with cosched_string_free.
pub(crate) fn text_to(from: &str) -> *mut c_char {
    text(from).into_raw()
}

/// Frees a text that a function of this library returned as char *. NULL is fine. Texts returned as const char * are not to
/// be freed.
///
/// # Safety
/// `text` is NULL or came from this library, and is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_string_free(text: *mut c_char) {
    if !text.is_null() {
        // SAFETY: it came from CString::into_raw in `text_to`.
        drop(unsafe { CString::from_raw(text) });
    }
}
