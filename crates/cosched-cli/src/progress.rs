//! Progress on standard error, for users at a terminal who wait longer than two seconds: one line, which is removed at the end.

use crate::out::plain;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressStyle};
use std::time::Duration;

/// Nothing is shown before.
const QUIET: Duration = Duration::from_secs(2);

/// A changing line, if standard error is a terminal.
#[derive(Debug)]
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// A line of text.
    pub(crate) fn new(quiet: bool) -> Progress {
        Progress::with("{wide_msg}", quiet)
    }

    /// A line with the fraction that is done and the time left.
    pub(crate) fn of_parts(quiet: bool) -> Progress {
        Progress::with("{percent:>3} %  {msg}  {eta} left", quiet)
    }

    fn with(template: &str, quiet: bool) -> Progress {
        let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner());
        Progress(ProgressBar::with_draw_target(None, target).with_style(style).with_finish(ProgressFinish::AndClear))
    }

    /// Whether the line is visible.
    pub(crate) fn is_seen(&self) -> bool {
        !self.0.is_hidden()
    }

    /// Updates the text.
    pub(crate) fn show(&self, text: impl FnOnce() -> String) {
        if self.is_seen() && self.0.elapsed() > QUIET {
            self.0.set_message(plain(&text()));
        }
    }

    /// Updates the text, the amount done and the total.
    pub(crate) fn show_part(&self, (done, all): (u64, u64), text: impl FnOnce() -> String) {
        if self.is_seen() && self.0.elapsed() > QUIET {
            self.0.set_message(plain(&text()));
            self.0.set_length(all);
            self.0.set_position(done);
        }
    }

    /// Prints a lasting line above the changing one.
    pub(crate) fn keep(&self, text: &str) {
        self.0.println(plain(text));
    }

    /// Removes the line.
    pub(crate) fn done(&self) {
        self.0.finish_and_clear();
    }
}
