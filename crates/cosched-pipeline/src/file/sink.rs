//! The end of a path: a file that gets its name when it is complete.

use std::path::{Path, PathBuf};

use cosched_linux::file::{Extent, FileError, IoOptions, Output, OutputOptions};

use super::hold::{Hold, Job, Places, Way};
use super::report::Reporting;
use super::{HELD_MAX, caching};
use crate::buffer::Buffer;
use crate::error::BoxError;
use crate::graph::{Flow, Stage};

/// How an output is written.
#[derive(Debug, Clone)]
pub struct SinkOptions {
    /// The expected length, if known: the space is then reserved before the pipeline starts, so that a disk that is too small
    /// is reported at once. A different actual length is not an error.
    pub expect_bytes: Option<u64>,
    /// Input files: the output must not be one of these.
    pub inputs: Vec<PathBuf>,
    /// Sync the file to the disk before it gets its name.
    pub sync: bool,
    /// How blocks are moved.
    pub io: IoOptions,
    /// The maximum number of buffers that it holds; it holds fewer if those keep the disk busy.
    pub held_max: usize,
}

impl Default for SinkOptions {
    fn default() -> SinkOptions {
        let io = IoOptions::default();
        SinkOptions { expect_bytes: None, inputs: Vec::new(), sync: false, io, held_max: HELD_MAX }
    }
}

/// A file to which buffers are written one after the other. The file has no name until the pipeline has ended successfully;
/// until then an existing file of that name stays as it is.
#[derive(Debug)]
pub struct Sink {
    output: Option<Output>,
    /// Where the next buffer is written, in bytes.
    position: u64,
    io: IoOptions,
    held_max: usize,
    report: Reporting,
}

impl Sink {
    /// Creates the output.
    ///
    /// # Errors
    /// If the target cannot be written, if it is one of the inputs, or if the disk is too small.
    pub fn create(target: &Path, options: &SinkOptions) -> Result<Sink, FileError> {
        let SinkOptions { expect_bytes, inputs, sync, io, held_max } = options.clone();
        let mut output = Output::create(target, &OutputOptions { caching: caching(&io), inputs, named: false, sync })?;
        output.reserve(expect_bytes.unwrap_or(0))?;
        Ok(Sink { output: Some(output), position: 0, io, held_max, report: Reporting::default() })
    }

    /// A handle to the stage's [`IoReport`](super::IoReport).
    pub fn report(&self) -> Reporting {
        self.report.clone()
    }

    /// The stage that writes.
    pub fn stage(self, name: impl Into<String>) -> Stage {
        let (io, held_max, report) = (self.io.clone(), self.held_max, self.report.clone());
        Hold { job: self, way: Way::Write, io, held_max, report }.stage(name)
    }
}

impl Job for Sink {
    fn begin(&mut self, buffer: &mut Buffer, _round: u64) -> Result<(Flow, Option<Places>), BoxError> {
        let Some(output) = &mut self.output else { return Err("a buffer came behind the end".into()) };
        let offset = self.position;
        self.position += buffer.len() as u64;
        output.ensure(self.position)?;
        Ok((
            Flow::Continue,
            Some(Places { file: output.file().clone(), extents: vec![Extent::start(offset, buffer.len())] }),
        ))
    }

    fn ended(&mut self) -> Result<(), BoxError> {
        match self.output.take() {
            Some(output) => Ok(output.publish(self.position)?),
            None => Ok(()),
        }
    }
}
