//! Stages that read or write buffers at places that the program chooses: a column of a matrix, records for other columns, one
//! of many runs.

use std::ops::Range;
use std::sync::Arc;

use cosched_linux::file::{BlockFile, Extent, IoOptions};

use super::HELD_MAX;
use super::hold::{Hold, Job, Places, Way};
use super::report::Reporting;
use crate::buffer::Buffer;
use crate::error::BoxError;
use crate::graph::{Flow, Stage};

/// Where one buffer's bytes are in a file. All its extents are submitted to the kernel at once.
#[derive(Debug)]
pub struct Plan {
    file: Arc<BlockFile>,
    extents: Vec<Extent>,
    round: u64,
}

impl Plan {
    /// The buffer's round on its path, from 0; valid also if the stage is the first of the path.
    pub fn round(&self) -> u64 {
        self.round
    }

    /// Uses another file than the stage's own for this buffer.
    pub fn file(&mut self, file: &Arc<BlockFile>) -> &mut Plan {
        self.file = file.clone();
        self
    }

    /// Adds an extent: the buffer's bytes `range` are at `offset` of the file. Extents must not overlap.
    pub fn extent(&mut self, offset: u64, range: Range<usize>) -> &mut Plan {
        self.extents.push(Extent { offset, range });
        self
    }
}

/// The program's function that chooses the extents of a buffer.
type Planner = Box<dyn FnMut(&mut Buffer, &mut Plan) -> Result<Flow, BoxError> + Send>;

struct At {
    file: Arc<BlockFile>,
    planner: Planner,
    way: Way,
}

impl At {
    fn hold(
        file: &Arc<BlockFile>,
        way: Way,
        planner: impl FnMut(&mut Buffer, &mut Plan) -> Result<Flow, BoxError> + Send + 'static,
    ) -> Hold<At> {
        let job = At { file: file.clone(), planner: Box::new(planner), way };
        Hold { job, way, io: IoOptions::default(), held_max: HELD_MAX, report: Reporting::default() }
    }
}

impl Job for At {
    fn begin(&mut self, buffer: &mut Buffer, round: u64) -> Result<(Flow, Option<Places>), BoxError> {
        let mut plan = Plan { file: self.file.clone(), extents: Vec::new(), round };
        let flow = (self.planner)(buffer, &mut plan)?;
        let Plan { file, extents, .. } = plan;
        if self.way == Way::Read {
            let end = extents.iter().map(|extent| extent.range.end).max().unwrap_or(0);
            // An extent outside of the buffer is refused when it is moved, with an error that names its numbers.
            buffer.set_len(end.min(buffer.capacity()));
        }
        Ok((flow, Some(Places { file, extents })))
    }
}

/// A stage that fills each buffer from places of a file, as the first stage of paths or between others. It sets the buffer's
/// length to the highest end of the buffer's extents.
pub struct ReadAt(Hold<At>);

/// A stage that writes each buffer to places of a file, between other stages or as the last one of paths.
pub struct WriteAt(Hold<At>);

impl ReadAt {
    /// A stage that reads `file` at the places that `plan` adds for each buffer. In the first stage of a path `plan` also
    /// returns whether the buffer is the last one, or whether the previous one was; otherwise it returns [`Flow::Continue`].
    pub fn new(
        file: &Arc<BlockFile>,
        plan: impl FnMut(&mut Buffer, &mut Plan) -> Result<Flow, BoxError> + Send + 'static,
    ) -> ReadAt {
        ReadAt(At::hold(file, Way::Read, plan))
    }
}

impl WriteAt {
    /// A stage that writes to `file` at the places that `plan` adds for each buffer. It is best to reserve the space for all
    /// of it first ([`Output::reserve`](super::Output::reserve), [`BlockFile::reserve`]): writes beyond the end of a file
    /// wait for each other.
    pub fn new(
        file: &Arc<BlockFile>,
        mut plan: impl FnMut(&Buffer, &mut Plan) -> Result<(), BoxError> + Send + 'static,
    ) -> WriteAt {
        WriteAt(At::hold(file, Way::Write, move |buffer, places| plan(buffer, places).map(|()| Flow::Continue)))
    }
}

/// What is set and read alike on both stages.
macro_rules! settings {
    ($stage:ident) => {
        impl $stage {
            /// Sets how blocks are moved.
            pub fn io(mut self, io: &IoOptions) -> $stage {
                self.0.io = io.clone();
                self
            }

            /// Sets the maximum number of buffers that it holds; it holds fewer if those keep the disk busy.
            pub fn held_max(mut self, buffers: usize) -> $stage {
                self.0.held_max = buffers;
                self
            }

            /// A handle to the stage's [`IoReport`](super::IoReport).
            pub fn report(&self) -> Reporting {
                self.0.report.clone()
            }

            /// Turns it into a stage of a graph.
            pub fn stage(self, name: impl Into<String>) -> Stage {
                self.0.stage(name)
            }
        }
    };
}

settings!(ReadAt);
settings!(WriteAt);
