//! Stages that read and write files.
//!
//! - [`Source`] reads files block by block, each block of whole records, into the buffers of the path that it begins;
//! - [`Sink`] writes the buffers one after the other to a file that gets its name when the pipeline has ended;
//! - [`ReadAt`] and [`WriteAt`] move each buffer from or to places that the program chooses: a list of [`Extent`]s per buffer.
//!
//! All of them hold several buffers at once, to keep the disk busy, and convey them in the order in which they arrived. They
//! hold no more than needed for that: the others wait in queues, where the pipeline's counters see them. If offsets are
//! multiples of a page, the bytes are transferred directly between the disk and the buffers ([`IoReport::direct_bytes`]); the
//! rest goes through the page cache. `cosched_linux::file` chooses the engine: io_uring, or threads with O_DIRECT, or threads
//! with buffered I/O.
//!
//! ```
//! use cosched_pipeline::{Options, Pipeline};
//! use cosched_pipeline::file::{Sink, SinkOptions, Source, SourceOptions};
//!
//! # let dir = tempfile::tempdir().unwrap();
//! # let (from, to) = (dir.path().join("from"), dir.path().join("to"));
//! # std::fs::write(&from, vec![7; 100_000]).unwrap();
//! let source = Source::open([from.as_path()], &SourceOptions { block_bytes: 16 << 10, ..Default::default() })?;
//! let sink = Sink::create(&to, &SinkOptions { expect_bytes: Some(source.bytes()), ..Default::default() })?;
//! let (size, read) = (source.block_bytes(), source.report());
//! Pipeline::new("copy").buffers(4, size).stage(source.stage("read")).stage(sink.stage("write")).run(&Options::default())?;
//! assert_eq!(std::fs::read(&to)?, std::fs::read(&from)?);
//! println!("read by {}", read.get().engine);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod at;
mod blocks;
mod hold;
mod report;
mod sink;
mod source;

pub use at::{Plan, ReadAt, WriteAt};
pub use blocks::Input;
pub use cosched_linux::file::{
    Alignment, BlockFile, Caching, Cause as FileCause, Engine, Extent, FileError, IoOptions, Output, OutputOptions,
};
pub use report::{IoReport, Reporting};
pub use sink::{Sink, SinkOptions};
pub use source::{InputError, Source, SourceOptions};

/// The default of the maximum number of buffers that a stage holds.
const HELD_MAX: usize = 16;

/// How files are opened for the given engine, or for the best available one.
fn caching(io: &IoOptions) -> Caching {
    io.engine.map_or(Caching::Direct, Engine::caching)
}
