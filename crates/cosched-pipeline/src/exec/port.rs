//! A stage's own view of its queues.

use super::shared::{Shared, StageState};
use super::wait::Waiter;
use crate::buffer::Buffer;
use crate::graph::PathId;
use crate::monitor::{Doing, Helpers, Tracker};
use crate::queue::{Inbox, Which};

/// Through which a [`Body`](crate::Body) accepts and conveys buffers.
pub struct Port<'a> {
    shared: &'a Shared,
    stage: usize,
    tracker: &'a Tracker<'a>,
    waiter: Waiter,
    /// Number of buffers that it has accepted and not conveyed yet.
    held: usize,
}

impl<'a> Port<'a> {
    pub(super) fn new(shared: &'a Shared, stage: usize, tracker: &'a Tracker<'a>) -> Port<'a> {
        Port { shared, stage, tracker, waiter: Waiter::new(true), held: 0 }
    }

    fn state(&self) -> &'a StageState {
        &self.shared.stages[self.stage]
    }

    /// Waits for the next buffer of any predecessor; a stage that is the first of all its paths gets an empty one. None
    /// when all incoming paths have ended, or when the pipeline stops.
    pub fn accept(&mut self) -> Option<Buffer> {
        self.take(Which::Any, self.state().source)
    }

    /// Waits for the next buffer of one path; if this stage is the path's first, for an empty one. None when the path has
    /// ended, or when the pipeline stops.
    pub fn accept_from(&mut self, path: PathId) -> Option<Buffer> {
        self.take(Which::Path(path), self.state().begins.contains(&path))
    }

    fn take(&mut self, which: Which, empty: bool) -> Option<Buffer> {
        let state = self.state();
        let (inbox, doing) = if empty {
            (&state.empty, Doing::WaitOut(self.stage))
        } else {
            (&state.incoming, Doing::WaitIn(self.stage))
        };
        if self.shared.stopping() {
            return None;
        }
        let buffer = match inbox.try_take(which) {
            Some(buffer) => Some(buffer),
            None if inbox.is_over(which) => None,
            None => self.wait(inbox, which, doing),
        };
        self.accepted(buffer, empty)
    }

    fn wait(&mut self, inbox: &Inbox, which: Which, doing: Doing) -> Option<Buffer> {
        let shared = self.shared;
        let tracker = (self.tracker, doing, Doing::Work(self.stage));
        self.waiter.wait(tracker, inbox.bell(), which.topic(), &shared.awake, || match inbox.try_take(which) {
            None if shared.stopping() || inbox.is_over(which) => Some(None),
            None => None,
            buffer => Some(buffer),
        })
    }

    /// The next buffer, if one is waiting; does not block. Otherwise like [`Port::accept`].
    pub fn try_accept(&mut self) -> Option<Buffer> {
        let state = self.state();
        let buffer = if self.shared.stopping() { None } else { state.input().try_take(Which::Any) };
        self.accepted(buffer, state.source)
    }

    fn accepted(&mut self, buffer: Option<Buffer>, empty: bool) -> Option<Buffer> {
        let mut buffer = buffer?;
        self.held += 1;
        let round = if empty { self.state().counters.rounds() } else { buffer.round() };
        self.tracker.accepted(round, self.held);
        if empty {
            buffer.recycle();
        } else if buffer.is_last() {
            self.state().incoming.close(buffer.path());
        }
        Some(buffer)
    }

    /// Hands a buffer to the next stage of its path or, from the path's last stage, back to the pool.
    ///
    /// # Panics
    /// If the stage did not accept it.
    pub fn convey(&mut self, buffer: Buffer) {
        assert!(self.held > 0, "it conveyed a buffer that it had not accepted");
        self.held -= 1;
        self.tracker.conveyed(self.stage, buffer.round(), self.held);
        if buffer.carries_block() {
            self.state().counters.round(buffer.len());
        }
        self.tracker.conveys(self.stage, || self.shared.output_len(self.stage, buffer.path()));
        self.shared.convey(self.stage, buffer);
    }

    /// Ends a path that this stage begins, after its last block. [`Buffer::mark_last`] on the last block does the same.
    /// False when the pipeline stops.
    pub fn end(&mut self, path: PathId) -> bool {
        let Some(mut buffer) = self.accept_from(path) else { return false };
        buffer.make_caboose();
        self.convey(buffer);
        true
    }

    /// The paths that the stage is on.
    pub fn paths(&self) -> &'a [PathId] {
        &self.state().paths
    }

    /// Whether the stage is the first of this path, so that the path's buffers reach it empty.
    pub fn begins(&self, path: PathId) -> bool {
        self.state().begins.contains(&path)
    }

    /// Registers threads (by kernel thread ID) that work for this stage besides its own, until the result is dropped.
    pub(crate) fn helpers(&self, threads: &[i32]) -> Helpers<'a> {
        self.shared.watch.helpers(self.stage, threads)
    }

    /// The number of buffers that wait for this stage. Takes no lock.
    pub fn backlog(&self) -> usize {
        self.state().incoming.len()
    }

    /// The number of buffers of one path that wait for this stage; if it is the path's first stage, the number of empty
    /// ones.
    pub fn backlog_of(&self, path: PathId) -> usize {
        let state = self.state();
        if state.begins.contains(&path) { state.empty.len_of(path) } else { state.incoming.len_of(path) }
    }

    /// The number of buffers that wait for the next stage of a path: this stage's output queue. 0 for the path's last
    /// stage.
    pub fn output_backlog(&self, path: PathId) -> usize {
        self.shared.output_len(self.stage, path).unwrap_or(0)
    }

    /// Whether the pipeline is stopping. A stage that works on one buffer for a long time may poll this and return early.
    pub fn stopping(&self) -> bool {
        self.shared.stopping()
    }

    /// Why it is an error that the body returned while the pipeline is still running; None if it is not.
    pub(super) fn complaint(&self) -> Option<String> {
        let state = self.state();
        if self.held > 0 {
            return Some(format!("it ended while holding {} buffers that it had accepted", self.held));
        }
        let open = self.state().paths.iter().find(|path| {
            let inbox = if state.begins.contains(path) { &state.empty } else { &state.incoming };
            inbox.is_open_for(**path)
        });
        open.map(|path| format!("it ended before path '{}' had ended", self.shared.path_name(*path)))
    }
}
