//! How a stage moved its bytes.

use std::sync::{Arc, Mutex, PoisonError};

use cosched_linux::file::{BlockFile, Chosen, IoStats};
use serde::{Deserialize, Serialize};

/// How a file's stage moved its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct IoReport {
    /// "io_uring", "direct" or "buffered"; empty before the stage began.
    pub engine: String,
    /// Why io_uring does not serve, where it was wanted.
    pub why_not_uring: Option<String>,
    /// Why a file's bytes go through the page cache, where all of them do.
    pub why_buffered: Option<String>,
    /// Bytes past the page cache.
    pub direct_bytes: u64,
    /// Bytes through the page cache.
    pub buffered_bytes: u64,
    /// Requests to the kernel.
    pub requests: u64,
}

/// Where a stage writes its [`IoReport`], for who started it to read, while it runs or afterwards.
#[derive(Debug, Clone, Default)]
pub struct Reporting(Arc<Mutex<IoReport>>);

impl Reporting {
    /// What there is so far.
    pub fn get(&self) -> IoReport {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The engine serves, on this file among others.
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
