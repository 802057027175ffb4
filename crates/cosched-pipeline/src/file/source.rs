//! The beginning of a path: files that are read block by block.

use std::path::PathBuf;
use std::sync::Arc;

use cosched_linux::file::{BlockFile, Extent, FileError, IoOptions};

use super::blocks::{Blocks, Input, Part, block_bytes};
use super::hold::{Hold, Job, Places, Way};
use super::report::Reporting;
use super::{HELD_MAX, caching};
use crate::buffer::Buffer;
use crate::error::BoxError;
use crate::graph::{Flow, PathId, Stage};

/// How files are read.
#[derive(Debug, Clone)]
pub struct SourceOptions {
    /// The maximum size of a block in bytes: the size of the buffers, or less.
    pub block_bytes: usize,
    /// The size of a record in bytes: a block contains whole records.
    pub record_bytes: usize,
    /// How blocks are moved.
    pub io: IoOptions,
    /// The maximum number of buffers that it holds; it holds fewer if those keep the disk busy.
    pub held_max: usize,
}

impl Default for SourceOptions {
    /// Blocks of 1 MiB, records of one byte.
    fn default() -> SourceOptions {
        SourceOptions { block_bytes: 1 << 20, record_bytes: 1, io: IoOptions::default(), held_max: HELD_MAX }
    }
}

/// Why an input cannot be read as requested. Found before the pipeline starts.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// A file cannot be opened.
    #[error(transparent)]
    File(#[from] FileError),
    /// The input is not a whole number of records.
    #[error(
        "cannot read {} as records of {record} bytes: {bytes} bytes are not a multiple of that, {} are left over \
         (name the size of the records, or a range of whole ones)",
        path.display(), bytes % *record as u64
    )]
    PartRecord {
        /// The file.
        path: PathBuf,
        /// The number of bytes that were to be read.
        bytes: u64,
        /// The size of a record, in bytes.
        record: usize,
    },
    /// The range exceeds the file.
    #[error("cannot read bytes {start} to {end} of {}: it has {len} bytes (name a range that is in the file)", path.display())]
    Range {
        /// The file.
        path: PathBuf,
        /// The range's first byte.
        start: u64,
        /// The end of the range (exclusive).
        end: u64,
        /// The file's length, in bytes.
        len: u64,
    },
    /// A block is smaller than a record.
    #[error("blocks of {block} bytes hold no record of {record} bytes (make the blocks larger; neither may be 0)")]
    Block {
        /// The size of a block, in bytes.
        block: usize,
        /// The size of a record, in bytes.
        record: usize,
    },
}

/// Files that are read block by block, in order. A buffer's tag is the position of its block in the concatenation of all
/// inputs, in bytes.
#[derive(Debug)]
pub struct Source {
    blocks: Blocks,
    block: usize,
    io: IoOptions,
    held_max: usize,
    report: Reporting,
    path: Option<PathId>,
}

impl Source {
    /// Opens the inputs, and counts their blocks.
    ///
    /// # Errors
    /// If an input cannot be opened, or does not contain what was requested.
    pub fn open<I: Into<Input>>(
        inputs: impl IntoIterator<Item = I>,
        options: &SourceOptions,
    ) -> Result<Source, InputError> {
        let SourceOptions { block_bytes: block, record_bytes: record, io, held_max } = options.clone();
        if record == 0 || block < record {
            return Err(InputError::Block { block, record });
        }
        let parts: Result<Vec<Part>, InputError> =
            inputs.into_iter().map(|input| open(&input.into(), record, &io)).collect();
        let parts = parts?;
        let page = parts.iter().filter_map(|part| part.file.alignment()).map(|a| a.offset).max().unwrap_or(1);
        let block = block_bytes(block, record, page as usize);
        let blocks = Blocks::new(parts, block);
        Ok(Source { blocks, block, io, held_max, report: Reporting::default(), path: None })
    }

    /// The number of rounds that the pipeline will have.
    pub fn rounds(&self) -> u64 {
        self.blocks.count()
    }

    /// The number of bytes that will be read.
    pub fn bytes(&self) -> u64 {
        self.blocks.bytes()
    }

    /// The size of a block in bytes: the requested size, or a little less, so that a block holds whole records and, if
    /// possible, whole pages. The path's buffers must be at least this large.
    pub fn block_bytes(&self) -> usize {
        self.block
    }

    /// A handle to the stage's [`IoReport`](super::IoReport).
    pub fn report(&self) -> Reporting {
        self.report.clone()
    }

    /// The stage that reads. It begins one path.
    pub fn stage(self, name: impl Into<String>) -> Stage {
        let (io, held_max, report) = (self.io.clone(), self.held_max, self.report.clone());
        Hold { job: self, way: Way::Read, io, held_max, report }.stage(name)
    }

    /// Checks that the files that are read whole still have the length that they had when they were opened.
    fn check_unchanged(&self) -> Result<(), FileError> {
        self.blocks.parts.iter().filter(|part| part.whole).try_for_each(|part| part.file.check_unchanged())
    }
}

impl Job for Source {
    fn begin(&mut self, buffer: &mut Buffer, _round: u64) -> Result<(Flow, Option<Places>), BoxError> {
        if *self.path.get_or_insert(buffer.path()) != buffer.path() {
            return Err(
                "it begins several paths, and its files are of one (give each path a Source, or use ReadAt)".into()
            );
        }
        let Some(block) = self.blocks.next() else {
            // Only an empty input ends like this: otherwise the last block was marked.
            self.check_unchanged()?;
            return Ok((Flow::End, None));
        };
        if block.len > buffer.capacity() {
            let (len, capacity) = (block.len, buffer.capacity());
            return Err(format!(
                "a block of {len} bytes does not fit into a buffer of {capacity} (ask Source::block_bytes)"
            )
            .into());
        }
        buffer.set_len(block.len);
        buffer.set_tag(block.position);
        let flow = if block.last { Flow::Last } else { Flow::Continue };
        Ok((flow, Some(Places { file: block.file, extents: vec![Extent::start(block.offset, block.len)] })))
    }

    fn moved(&mut self, buffer: &mut Buffer) -> Result<(), BoxError> {
        // This check comes before the last buffer is conveyed: after that the output would get its name.
        if buffer.is_last() { Ok(self.check_unchanged()?) } else { Ok(()) }
    }
}

fn open(input: &Input, record: usize, io: &IoOptions) -> Result<Part, InputError> {
    let file = Arc::new(BlockFile::open(&input.path, caching(io))?);
    let (len, path) = (file.len(), || input.path.clone());
    let range = input.range.clone().unwrap_or(0..len);
    if range.start > range.end || range.end > len {
        return Err(InputError::Range { path: path(), start: range.start, end: range.end, len });
    }
    let bytes = range.end - range.start;
    if !bytes.is_multiple_of(record as u64) {
        return Err(InputError::PartRecord { path: path(), bytes, record });
    }
    Ok(Part { file, range, whole: input.range.is_none() })
}
