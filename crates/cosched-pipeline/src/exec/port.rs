//! A stage's own view of its queues.

use super::shared::{Shared, StageState};
use super::wait::Waiter;
use crate::buffer::Buffer;
use crate::graph::PathId;
use crate::monitor::{Doing, Helpers, Sitting};
use crate::queue::{Inbox, Which};

/// Where a [`Body`](crate::Body) accepts and conveys.
pub struct Port<'a> {
    shared: &'a Shared,
    stage: usize,
    sitting: &'a Sitting<'a>,
    waiter: Waiter,
    /// Buffers that it accepted and has not conveyed.
    held: usize,
}

impl<'a> Port<'a> {
    pub(super) fn new(shared: &'a Shared, stage: usize, sitting: &'a Sitting<'a>) -> Port<'a> {
        Port { shared, stage, sitting, waiter: Waiter::new(true), held: 0 }
    }

    fn state(&self) -> &'a StageState {
        &self.shared.stages[self.stage]
    }

    /// Waits for the next buffer of any predecessor; a stage that only begins paths gets an empty one. None when all
    /// paths that come in have ended, or when the pipeline stops.
    pub fn accept(&mut self) -> Option<Buffer> {
        self.take(Which::Any, self.state().is_source())
    }

    /// Waits for the next buffer of one path; of one that this stage begins, an empty one. None when it has ended, or when
    /// the pipeline stops.
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
        let sitting = (self.sitting, doing, Doing::Work(self.stage));
        self.waiter.wait(sitting, inbox.bell(), which.topic(), &shared.awake, || match inbox.try_take(which) {
            None if shared.stopping() || inbox.is_over(which) => Some(None),
            None => None,
            buffer => Some(buffer),
        })
    }

    /// The next buffer, if one waits. As [`Port::accept`] otherwise.
    pub fn try_accept(&mut self) -> Option<Buffer> {
        let state = self.state();
        let buffer = if self.shared.stopping() { None } else { state.input().try_take(Which::Any) };
        self.accepted(buffer, state.is_source())
    }

    fn accepted(&mut self, buffer: Option<Buffer>, empty: bool) -> Option<Buffer> {
        let mut buffer = buffer?;
        self.held += 1;
        let round = if empty { self.state().counters.rounds() } else { buffer.round() };
        self.sitting.accepted(round, self.held);
        if empty {
            buffer.recycle();
        } else if buffer.is_last() {
            self.state().incoming.close(buffer.path());
        }
        Some(buffer)
    }

    /// Hands a buffer to the successor on its path, or back to the pool behind the path's last stage.
    ///
    /// # Panics
    /// If the stage did not accept it.
    pub fn convey(&mut self, buffer: Buffer) {
        assert!(self.held > 0, "it conveyed a buffer that it had not accepted");
        self.held -= 1;
        self.sitting.conveyed(self.stage, buffer.round(), self.held);
        if buffer.carries_block() {
            self.state().counters.round(buffer.len());
        }
        self.sitting.conveys(self.stage, || self.shared.output_len(self.stage, buffer.path()));
        self.shared.convey(self.stage, buffer);
    }

    /// Ends a path that this stage begins, behind its last block. [`Buffer::mark_last`] on the last block does the same.
    /// False when the pipeline stops.
    pub fn end(&mut self, path: PathId) -> bool {
        let Some(mut buffer) = self.accept_from(path) else { return false };
        buffer.make_caboose();
        self.convey(buffer);
        true
    }

    /// The paths that it is on.
    pub fn paths(&self) -> &'a [PathId] {
        &self.state().paths
    }

    /// Whether it begins this path, so that the path's buffers come to it empty.
    pub fn begins(&self, path: PathId) -> bool {
        self.state().begins.contains(&path)
    }

    /// Threads that work for this stage beside its own, as the kernel numbers them; until the result is dropped.
    pub(crate) fn helpers(&self, threads: &[i32]) -> Helpers<'a> {
        self.shared.watch.helpers(self.stage, threads)
    }

    /// How many buffers wait for it. Costs no lock.
    pub fn backlog(&self) -> usize {
        self.state().incoming.len()
    }

    /// How many buffers of one path wait for it; of a path that it begins, how many are empty.
    pub fn backlog_of(&self, path: PathId) -> usize {
        let state = self.state();
        if state.begins.contains(&path) { state.empty.len_of(path) } else { state.incoming.len_of(path) }
    }

    /// How many buffers wait for its successor on a path: its output queue. Behind the path's last stage, 0.
    pub fn output_backlog(&self, path: PathId) -> usize {
        self.shared.output_len(self.stage, path).unwrap_or(0)
    }

    /// Whether the pipeline stops. A stage that works long on one buffer may ask and return.
    pub fn stopping(&self) -> bool {
        self.shared.stopping()
    }

    /// What a body has to answer for when it returns while the pipeline goes on.
    pub(super) fn complaint(&self) -> Option<String> {
        let state = self.state();
        if self.held > 0 {
            return Some(format!("it ended and kept {} buffers that it had accepted", self.held));
        }
        let open = self.state().paths.iter().find(|path| {
            let inbox = if state.begins.contains(path) { &state.empty } else { &state.incoming };
            inbox.is_open_for(**path)
        });
        open.map(|path| format!("it ended before path '{}' had ended", self.shared.path_name(*path)))
    }
}
