//! When each round began and ended, if a trace was requested.

use std::sync::{Mutex, PoisonError};

use crate::report::Span;

/// The maximum number of spans per thread: a longer trace is of no use in a viewer.
const KEPT_MAX: usize = 100_000;

/// The spans of one thread, which adds them; the lock is contended only while a snapshot is taken.
#[derive(Debug, Default)]
pub(crate) struct Spans {
    kept: Option<Mutex<Kept>>,
}

#[derive(Debug, Default)]
struct Kept {
    spans: Vec<Span>,
    dropped: u64,
}

impl Spans {
    pub(super) fn new(is_wanted: bool) -> Spans {
        Spans { kept: is_wanted.then(Mutex::default) }
    }

    pub(super) fn add(&self, span: Span) {
        let Some(kept) = &self.kept else { return };
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.spans.len() < KEPT_MAX {
            kept.spans.push(span);
        } else {
            kept.dropped += 1;
        }
    }

    /// All spans so far, and the number of those that were dropped.
    pub(super) fn all(&self) -> (Vec<Span>, u64) {
        let Some(kept) = &self.kept else { return (Vec::new(), 0) };
        let kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        (kept.spans.clone(), kept.dropped)
    }
}
