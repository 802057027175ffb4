//! How a stage moved its bytes.

use std::sync::{Arc, Mutex, PoisonError};

use cosched_linux::file::{BlockFile, Chosen, IoStats};
use serde::{Deserialize, Serialize};

/// How a file's stage moved its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct IoReport {
    /// "io_uring", "direct" or "buffered"; empty before the stage began.
    pub engine: String,
    /// Why io_uring is not used, if it was wanted.
    pub why_not_uring: Option<String>,
    /// Why a file's bytes go through the page cache, if all of them do.
    pub why_buffered: Option<String>,
    /// Bytes transferred past the page cache.
    pub direct_bytes: u64,
    /// Bytes transferred through the page cache.
    pub buffered_bytes: u64,
    /// Number of requests to the kernel.
    pub requests: u64,
}

/// A shared handle to a stage's [`IoReport`], which the program can read while the stage runs or
/// afterwards.
#[derive(Debug, Clone, Default)]
pub struct Reporting(Arc<Mutex<IoReport>>);

impl Reporting {
    /// The report so far.
    pub fn get(&self) -> IoReport {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes the engine that is used, on this file among others.
    pub(super) fn begin(&self, chosen: &Chosen, file: &BlockFile) {
        let mut report = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if report.engine.is_empty() {
            report.engine = chosen.engine.name().into();
            report.why_not_uring.clone_from(&chosen.why_not_uring);
        }
        if report.why_buffered.as_deref() != file.why_buffered() {
            report.why_buffered = file.why_buffered().map(Into::into);
        }
    }

    pub(super) fn moved(&self, stats: IoStats) {
        let mut report = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        report.direct_bytes = stats.direct_bytes;
        report.buffered_bytes = stats.buffered_bytes;
        report.requests = stats.requests;
    }
}
