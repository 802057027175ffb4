//! Progress on standard error, for people who wait longer than two seconds.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

const QUIET: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(200);
/// The clock is looked at after so many steps.
const STEPS: u64 = 1024;

/// A line that is written over and over, if standard error is a terminal.
pub(crate) struct Progress {
    what: &'static str,
    start: Instant,
    shown: Option<Instant>,
    is_terminal: bool,
}

impl Progress {
    pub(crate) fn new(what: &'static str) -> Progress {
        Progress { what, start: Instant::now(), shown: None, is_terminal: io::stderr().is_terminal() }
    }

    /// Step number `step` was done.
    pub(crate) fn tick(&mut self, step: u64, how_far: impl FnOnce() -> String) {
        if self.is_terminal && step.is_multiple_of(STEPS) {
            self.show(how_far);
        }
    }

    /// A long step was done.
    pub(crate) fn show(&mut self, how_far: impl FnOnce() -> String) {
        let is_due = self.start.elapsed() > QUIET && self.shown.is_none_or(|shown| shown.elapsed() > PAUSE);
        if self.is_terminal && is_due {
            self.shown = Some(Instant::now());
            let _ = write!(io::stderr(), "\r\x1b[Kcosched: {}: {}", self.what, how_far());
        }
    }

    /// Clears the line.
    pub(crate) fn done(&mut self) {
        if self.shown.take().is_some() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
