//! Buffers whose bytes lie where the program says: a column of a matrix, records for other columns, one of many runs.

use std::ops::Range;
use std::sync::Arc;

use cosched_core::stage::Resource;
use cosched_linux::file::{BlockFile, Extent, IoOptions};

use super::HELD_MAX;
use super::hold::{Hold, Job, Places, Way};
use super::report::Reporting;
use crate::buffer::Buffer;
use crate::error::BoxError;
use crate::graph::{Flow, Stage};

/// Where one buffer's bytes lie. Its extents go to the kernel at once.
#[derive(Debug)]
pub struct Plan {
    file: Arc<BlockFile>,
    extents: Vec<Extent>,
    round: u64,
}

impl Plan {
    /// The buffer's number on its path, from 0, also where the stage begins the path.
    pub fn round(&self) -> u64 {
        self.round
    }

    /// Another file than the stage's own, for this buffer.
    pub fn file(&mut self, file: &Arc<BlockFile>) -> &mut Plan {
        self.file = file.clone();
        self
    }

    /// One more extent: the buffer's bytes `range` lie at `offset` of the file. Two may not overlap.
    pub fn extent(&mut self, offset: u64, range: Range<usize>) -> &mut Plan {
        self.extents.push(Extent { offset, range });
        self
    }
}

/// What says where a buffer's bytes lie.
type Planner = Box<dyn FnMut(&mut Buffer, &mut Plan) -> Result<Flow, BoxError> + Send>;

struct At {
    file: Arc<BlockFile>,
    planner: Planner,
    way: Way,
    io: IoOptions,
    held_max: usize,
    report: Reporting,
}

impl At {
    fn new(
        file: Arc<BlockFile>,
        way: Way,
        planner: impl FnMut(&mut Buffer, &mut Plan) -> Result<Flow, BoxError> + Send + 'static,
    ) -> At {
        let (io, report) = (IoOptions::default(), Reporting::default());
        At { file, planner: Box::new(planner), way, io, held_max: HELD_MAX, report }
    }

    fn stage(self, name: impl Into<String>) -> Stage {
        let (way, io, held_max, report) = (self.way, self.io.clone(), self.held_max, self.report.clone());
        Stage::body(name, Resource::Io, Hold { job: self, way, io, held_max, report })
    }
}

impl Job for At {
    fn begin(&mut self, buffer: &mut Buffer, round: u64) -> Result<(Flow, Option<Places>), BoxError> {
        let mut plan = Plan { file: self.file.clone(), extents: Vec::new(), round };
        let flow = (self.planner)(buffer, &mut plan)?;
        let Plan { file, extents, .. } = plan;
        if self.way == Way::Read {
            let end = extents.iter().map(|extent| extent.range.end).max().unwrap_or(0);
            // An extent outside of the buffer is refused with its numbers when it is moved.
            buffer.set_len(end.min(buffer.capacity()));
        }
        Ok((flow, Some(Places { file, extents })))
    }
}

/// A stage that fills each buffer from places of a file, at the beginning of paths or in their middle. The buffer's length is
/// then where its last extent ends in it.
pub struct ReadAt(At);

/// A stage that writes each buffer to places of a file, in the middle of paths or at their end.
pub struct WriteAt(At);

impl ReadAt {
    /// A stage that reads `file` where `plan` says for each buffer. At the beginning of a path `plan` also says which buffer
    /// is the last, or that the one before was; otherwise it says [`Flow::Continue`].
    pub fn new(
        file: &Arc<BlockFile>,
        plan: impl FnMut(&mut Buffer, &mut Plan) -> Result<Flow, BoxError> + Send + 'static,
    ) -> ReadAt {
        ReadAt(At::new(file.clone(), Way::Read, plan))
    }

    /// How blocks are moved.
    pub fn io(mut self, io: &IoOptions) -> ReadAt {
        self.0.io = io.clone();
        self
    }

    /// How many buffers it holds at most; fewer where they keep the disk busy.
    pub fn held_max(mut self, buffers: usize) -> ReadAt {
        self.0.held_max = buffers;
        self
    }

    /// Where to see how it reads.
    pub fn report(&self) -> Reporting {
        self.0.report.clone()
    }

    /// The stage.
    pub fn stage(self, name: impl Into<String>) -> Stage {
        self.0.stage(name)
    }
}

impl WriteAt {
    /// A stage that writes to `file` where `plan` says for each buffer. Room for all is best reserved before
    /// ([`Output::reserve`](super::Output::reserve), [`BlockFile::reserve`]): writes behind a file's end wait for each other.
    pub fn new(
        file: &Arc<BlockFile>,
        mut plan: impl FnMut(&Buffer, &mut Plan) -> Result<(), BoxError> + Send + 'static,
    ) -> WriteAt {
        WriteAt(At::new(file.clone(), Way::Write, move |buffer, places| plan(buffer, places).map(|()| Flow::Continue)))
    }

    /// How blocks are moved.
    pub fn io(mut self, io: &IoOptions) -> WriteAt {
        self.0.io = io.clone();
        self
    }

    /// How many buffers it holds at most; fewer where they keep the disk busy.
    pub fn held_max(mut self, buffers: usize) -> WriteAt {
        self.0.held_max = buffers;
        self
    }

    /// Where to see how it writes.
    pub fn report(&self) -> Reporting {
        self.0.report.clone()
    }

    /// The stage.
    pub fn stage(self, name: impl Into<String>) -> Stage {
        self.0.stage(name)
    }
}
