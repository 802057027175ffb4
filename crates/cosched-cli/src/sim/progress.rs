//! Progress of a simulation with the time left, on standard error.

use cosched_sim::Progress;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// Nothing is said before.
const QUIET: Duration = Duration::from_secs(2);
const EVERY: Duration = Duration::from_millis(200);

/// Shows progress on a terminal.
pub(crate) struct Meter {
    start: Instant,
    shown: Option<Instant>,
    enabled: bool,
}

impl Meter {
    pub(crate) fn new(quiet: bool) -> Meter {
        Meter { start: Instant::now(), shown: None, enabled: !quiet && io::stderr().is_terminal() }
    }

    pub(crate) fn show(&mut self, progress: &Progress) {
        let elapsed = self.start.elapsed();
        if !self.enabled || elapsed < QUIET || self.shown.is_some_and(|shown| shown.elapsed() < EVERY) {
            return;
        }
        self.shown = Some(Instant::now());
        let (done, all) = progress.task_iterations;
        let part = done as f64 / all.max(1) as f64;
        let left = if part > 0.0 { elapsed.as_secs_f64() * (1.0 - part) / part } else { 0.0 };
        let (ended, jobs) = progress.jobs;
        let simulated = progress.time_ns as f64 / 1e9;
        let left = crate::format::duration_ms((left * 1e3) as u64);
        let _ = write!(
            io::stderr(),
            "\r\x1b[K{:3.0} %  {ended} of {jobs} jobs ended  simulated {simulated:.1} s  {left} left",
            part * 100.0
        );
    }
}

impl Drop for Meter {
    /// Takes the line away.
    fn drop(&mut self) {
        if self.shown.is_some() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
