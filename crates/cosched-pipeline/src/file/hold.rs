//! The loop of all stages that move buffers to or from files: it holds several of them, and conveys them in order.

use std::sync::Arc;

use cosched_core::stage::Resource;
use cosched_linux::file::{BlockFile, Done, Extent, IoOptions, IoStats, Memory, Transfers};

use super::report::Reporting;
use crate::buffer::Buffer;
use crate::error::BoxError;
use crate::exec::Port;
use crate::graph::{Body, Flow, Stage};

/// The kernel reads into and writes from the buffer's own memory.
impl Memory for Buffer {
    fn storage(&mut self) -> &mut [u8] {
        self.storage_mut()
    }
}

/// Where one buffer's bytes are in a file.
#[derive(Debug)]
pub(super) struct Places {
    pub(super) file: Arc<BlockFile>,
    pub(super) extents: Vec<Extent>,
}

/// What the different stages decide for each buffer.
pub(super) trait Job: Send {
    /// Where the bytes of an accepted buffer are, if it has any. `round` is its number on its path. Only the first stage of a path may
    /// return that the path ends.
    fn begin(&mut self, buffer: &mut Buffer, round: u64) -> Result<(Flow, Option<Places>), BoxError>;

    /// Called when a buffer's bytes have been moved, before the buffer is conveyed.
    fn moved(&mut self, _buffer: &mut Buffer) -> Result<(), BoxError> {
        Ok(())
    }

    /// Called when all buffers have been conveyed.
    fn ended(&mut self) -> Result<(), BoxError> {
        Ok(())
    }
}

/// The direction in which the bytes are moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Read,
    Write,
}

/// A stage that moves buffers.
pub(super) struct Hold<J> {
    pub(super) job: J,
    pub(super) way: Way,
    pub(super) io: IoOptions,
    /// The maximum number of buffers that it holds.
    pub(super) held_max: usize,
    pub(super) report: Reporting,
}

impl<J: Job> Body for Hold<J> {
    fn run(&mut self, port: &mut Port) -> Result<(), BoxError> {
        let mut transfers = Transfers::start(&self.io);
        let _helpers = port.helpers(transfers.threads());
        self.go(port, &mut transfers)
    }
}

impl<J: Job + 'static> Hold<J> {
    pub(super) fn stage(self, name: impl Into<String>) -> Stage {
        Stage::body(name, Resource::Io, self)
    }
}

impl<J: Job> Hold<J> {
    fn go(&mut self, port: &mut Port, transfers: &mut Transfers<Buffer>) -> Result<(), BoxError> {
        // Rounds of the paths that this stage begins: their buffers get a number only when they are conveyed.
        let mut begun = vec![0u64; port.paths().iter().map(|path| path.index() + 1).max().unwrap_or(0)];
        while !port.stopping() {
            while let Some(done) = transfers.poll() {
                self.finish(port, transfers.stats(), done)?;
            }
            let next = if transfers.is_empty() {
                match port.accept() {
                    Some(buffer) => Some(buffer),
                    None if port.stopping() => return Ok(()),
                    None => return self.job.ended(),
                }
            } else if transfers.len() < self.held_max.max(1) && transfers.has_room() {
                port.try_accept()
            } else {
                None
            };
            match next {
                Some(buffer) => self.begin(port, transfers, buffer, &mut begun)?,
                None => self.next(port, transfers)?,
            }
        }
        Ok(())
    }

    fn begin(
        &mut self,
        port: &mut Port,
        transfers: &mut Transfers<Buffer>,
        mut buffer: Buffer,
        begun: &mut [u64],
    ) -> Result<(), BoxError> {
        if !buffer.carries_block() {
            return self.pass(port, transfers, buffer);
        }
        let path = buffer.path();
        let source = port.begins(path);
        let round = if source { begun[path.index()] } else { buffer.round() };
        begun[path.index()] += 1;
        let (flow, places) = self.job.begin(&mut buffer, round)?;
        match flow {
            Flow::Continue => {}
            _ if !source => return Err(format!("it said {flow:?}, which only the beginning of a path may").into()),
            Flow::Last => buffer.mark_last(),
            Flow::End => {
                buffer.make_caboose();
                return self.pass(port, transfers, buffer);
            }
        }
        let Some(Places { file, extents }) = places else { return self.pass(port, transfers, buffer) };
        let last = buffer.is_last();
        match self.way {
            Way::Read => transfers.read(&file, &extents, buffer),
            Way::Write => transfers.write(&file, &extents, buffer),
        }
        self.report.begin(transfers.chosen(), &file);
        // After the last buffer the path has only empty ones, which must not be accepted.
        if last { self.drain(port, transfers) } else { Ok(()) }
    }

    /// Conveys a buffer without a block, after those that are in flight.
    fn pass(&mut self, port: &mut Port, transfers: &mut Transfers<Buffer>, buffer: Buffer) -> Result<(), BoxError> {
        self.drain(port, transfers)?;
        port.convey(buffer);
        Ok(())
    }

    fn drain(&mut self, port: &mut Port, transfers: &mut Transfers<Buffer>) -> Result<(), BoxError> {
        while !transfers.is_empty() {
            self.next(port, transfers)?;
        }
        Ok(())
    }

    /// Waits for the oldest buffer and conveys it.
    fn next(&mut self, port: &mut Port, transfers: &mut Transfers<Buffer>) -> Result<(), BoxError> {
        match transfers.wait() {
            Some(done) => self.finish(port, transfers.stats(), done),
            None => Ok(()),
        }
    }

    fn finish(&mut self, port: &mut Port, stats: IoStats, done: Done<Buffer>) -> Result<(), BoxError> {
        self.report.moved(stats);
        let mut buffer = done.memory;
        done.result?;
        self.job.moved(&mut buffer)?;
        port.convey(buffer);
        Ok(())
    }
}
