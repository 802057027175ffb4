//! Errors: a code, and a message per thread.

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::io;

use cosched_api::{ClientError, ErrorCode};

use super::types::cosched_err;
use crate::border::caught;
use crate::error::text;

/// An error: a code, and the reason.
pub(super) struct Wrong {
    code: cosched_err,
    why: String,
}

impl Wrong {
    pub(super) fn new(code: cosched_err, why: impl Into<String>) -> Wrong {
        Wrong { code, why: why.into() }
    }

    pub(super) fn invalid(why: impl Into<String>) -> Wrong {
        Wrong::new(cosched_err::INVALID, why)
    }
}

impl From<ClientError> for Wrong {
    fn from(error: ClientError) -> Wrong {
        // "What\n  why: why\n  hint: hint" in one line.
        let why = error.to_string().replace("\n  why: ", ": ").replace("\n  hint: ", ". ");
        Wrong { code: code_of(&error), why }
    }
}

fn code_of(error: &ClientError) -> cosched_err {
    match error {
        ClientError::Unreachable { source, .. } => match source.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => cosched_err::TIMEOUT,
            io::ErrorKind::PermissionDenied => cosched_err::FORBIDDEN,
            _ => cosched_err::NO_DAEMON,
        },
        ClientError::NotStarted { .. } | ClientError::NoPlace { .. } => cosched_err::NO_DAEMON,
        ClientError::Version { .. } => cosched_err::VERSION,
        ClientError::Protocol(_) => cosched_err::DAEMON,
        ClientError::Refused(body) => match body.code {
            ErrorCode::Invalid => cosched_err::INVALID,
            ErrorCode::NotFound => cosched_err::NOT_FOUND,
            ErrorCode::Forbidden => cosched_err::FORBIDDEN,
            ErrorCode::Conflict | ErrorCode::Limit => cosched_err::CONFLICT,
            ErrorCode::Unsupported => cosched_err::UNSUPPORTED,
            ErrorCode::Internal => cosched_err::DAEMON,
        },
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Runs the C function `place`; returns its code, and keeps the message for this thread.
pub(super) fn answer(place: &str, work: impl FnOnce() -> Result<(), Wrong>) -> c_int {
    let done = caught(work).unwrap_or_else(|panic| Err(Wrong::new(cosched_err::INTERNAL, panic)));
    let Err(wrong) = done else { return cosched_err::OK as c_int };
    let said = text(&format!("{place}: {}", wrong.why));
    // A thread that is ending has no storage for it any more; then there is only the code.
    let _ = LAST.try_with(|last| *last.borrow_mut() = said);
    wrong.code as c_int
}

/// Why the last function of the job API that failed in this thread did: what happened, why, and what to do, in one line for
/// people. "" if none has failed. Valid until the next one fails in this thread; not to be freed.
#[unsafe(no_mangle)]
pub extern "C" fn cosched_last_error() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// What a code means, in a few words, for every number. cosched_last_error says more. Not to be freed.
#[unsafe(no_mangle)]
pub extern "C" fn cosched_strerror(code: c_int) -> *const c_char {
    let text = match code {
        0 => c"success",
        -1 => c"invalid argument",
        -2 => c"no daemon answers",
        -3 => c"no such job or process",
        -4 => c"not permitted",
        -5 => c"not in the present state of the job, the process or the cluster",
        -6 => c"not supported by this daemon or machine",
        -7 => c"incompatible versions",
        -8 => c"the daemon failed",
        -9 => c"the daemon did not answer in time",
        -10 => c"a fault in libcosched",
        _ => c"not a code of libcosched",
    };
    text.as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    fn last() -> String {
        // SAFETY: the text is valid until the next failure in this thread.
        unsafe { CStr::from_ptr(cosched_last_error()) }.to_string_lossy().into_owned()
    }

    #[test]
    fn each_thread_has_its_own_text() {
        assert_eq!(last(), "");
        assert_eq!(answer("f", || Err(Wrong::invalid("no\0pe"))), -1);
        assert_eq!(last(), "f: no\u{fffd}pe");
        assert_eq!(std::thread::spawn(last).join().unwrap(), "");
        assert_eq!(answer("g", || Ok(())), 0);
        assert_eq!(last(), "f: no\u{fffd}pe");
        assert_eq!(answer("h", || panic!("oh")), -10);
        assert!(last().starts_with("h: a fault in cosched itself: oh"));
    }

    #[test]
    fn every_code_has_a_text() {
        let texts: std::collections::BTreeSet<&CStr> =
            // SAFETY: the texts are static.
            (-11..=1).map(|code| unsafe { CStr::from_ptr(cosched_strerror(code)) }).collect();
        assert_eq!(texts.len(), 12);
    }
}
