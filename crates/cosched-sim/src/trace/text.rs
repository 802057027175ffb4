//! A trace as text: one line per event, columns at fixed positions.

use super::{Window, word};
use crate::metrics::seconds;
use crate::observe::{JobChange, Message, Observer, Slice};
use std::io::{self, Write};

/// Writes a window of time as text. Lines are in the order in which activities ended, times are those of their
/// beginning; `-` means that there is no value.
#[derive(Debug)]
pub struct TextTrace<W> {
    out: W,
    window: Window,
    result: io::Result<()>,
}

impl<W: Write> TextTrace<W> {
    /// Writes the header line at once.
    pub fn new(mut out: W, window: Window) -> TextTrace<W> {
        let result = writeln!(
            out,
            "{:>18} {:>15} {:>5} {:>6} {:>5} {:<9} details",
            "time_s", "duration_s", "node", "job", "task", "event"
        );
        TextTrace { out, window, result }
    }

    /// Writes what is left.
    ///
    /// # Errors
    /// The first error of the writer.
    pub fn finish(mut self) -> io::Result<()> {
        self.result.and_then(|()| self.out.flush())
    }

    fn line(&mut self, time_ns: u64, duration_ns: u64, who: [Option<u32>; 3], event: &str, details: &str) {
        if self.result.is_ok() {
            let [node, job, task] = who.map(|number| number.map_or("-".to_owned(), |number| number.to_string()));
            let (time, duration) = (seconds(time_ns), seconds(duration_ns));
            let line = format!("{time:>18} {duration:>15} {node:>5} {job:>6} {task:>5} {event:<9} {details}");
            self.result = writeln!(self.out, "{}", line.trim_end());
        }
    }
}

impl<W: Write> Observer for TextTrace<W> {
    fn slice(&mut self, slice: Slice) {
        if let Some((start, end)) = self.window.cut(slice.start_ns, slice.end_ns) {
            let (job, task) = slice.process.unzip();
            self.line(start, end - start, [Some(slice.node), job, task], word(slice.activity), "");
        }
    }

    fn message(&mut self, message: Message) {
        if self.window.has(message.sent_ns) || self.window.has(message.delivered_ns) {
            let ((from, from_node), (to, to_node)) = (message.from, message.to);
            let details = format!("to task {to} on node {to_node}");
            let duration = message.delivered_ns.saturating_sub(message.sent_ns);
            let who = [Some(from_node), Some(message.job), Some(from)];
            self.line(message.sent_ns, duration, who, "message", &details);
        }
    }

    fn job(&mut self, time_ns: u64, job: u32, change: JobChange, nodes: &[u32], row: Option<u32>) {
        if !self.window.has(time_ns) {
            return;
        }
        let event = match change {
            JobChange::Arrived => "arrived",
            JobChange::Started => "started",
            JobChange::Finished => "finished",
        };
        let mut details = String::new();
        if !nodes.is_empty() {
            details = format!("nodes {}", crate::metrics::interval_set(nodes));
        }
        if let Some(row) = row {
            details = format!("{details} row {row}");
        }
        self.line(time_ns, 0, [None, Some(job), None], event, details.trim_start());
    }

    fn row(&mut self, time_ns: u64, row: u32) {
        if self.window.has(time_ns) {
            self.line(time_ns, 0, [None; 3], "row", &format!("row {row}"));
        }
    }
}
