//! Reports in formats for people and for other programs.

use std::ffi::c_char;
use std::ptr::null_mut;

use ::cosched_pipeline::Report;

use crate::border::{caught, text_from, text_to};

/// Converts a report in JSON to a text.
///
/// # Safety
/// `report` is null or a C string.
unsafe fn convert(report: *const c_char, how: impl FnOnce(&Report) -> String) -> *mut c_char {
    // SAFETY: guaranteed by the caller.
    let json = unsafe { text_from(report, "the report") };
    let report = json.and_then(|json| serde_json::from_str::<Report>(json).map_err(|error| error.to_string()));
    let text = report.and_then(|report| caught(|| how(&report)));
    text.map_or(null_mut(), |text| text_to(&text))
}

/// A report (JSON, of cosched_pipeline_wait, _run, _snapshot or cosched_error_report) as a table for people. Free it with
/// cosched_string_free. NULL if it is no report.
///
/// # Safety
/// `report` is NULL or a text of C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_pipeline_report_text(report: *const c_char) -> *mut c_char {
    // SAFETY: guaranteed by the caller.
    unsafe { convert(report, Report::text) }
}

/// A report as a Chrome trace (Perfetto, chrome://tracing). Rounds are in it where cosched_pipeline_set_trace said so; queues
/// and changes of priorities always. Free it with cosched_string_free. NULL if it is no report.
///
/// # Safety
/// `report` is NULL or a text of C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_pipeline_report_trace(report: *const c_char) -> *mut c_char {
    // SAFETY: guaranteed by the caller.
    unsafe { convert(report, |report| report.chrome_trace().to_string()) }
}
