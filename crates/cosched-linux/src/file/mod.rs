//! Files for pipelines: whole blocks at offsets, several at a time, bypassing the page cache.
//!
//! The problem: a program that reads a file once and writes another gains nothing from the page cache, but pays for it with a copy of every byte and
//! with contention for memory. And a disk is busy only while it has several requests. So:
//! - [`BlockFile`] opens a file so that it bypasses the page cache where its file system allows that ([`Caching`]), and reports the reason where not;
//! - [`Transfers`] moves blocks between memory and files: each block is a list of [`Extent`]s, cut into requests, of which [`IoOptions::depth`] are
//!   in the kernel at a time. Blocks come back in the order in which they were given;
//! - an [`Engine`] carries out the requests: io_uring, or threads with pread and pwrite; [`Chosen`] reports which one, and why;
//! - [`Output`] is a file that gets its name when it is complete.
//!
//! No byte of a block is copied here: the kernel gets the address of the [`Memory`] itself. The unaligned ends of an extent, for which O_DIRECT does
//! not work, go through the page cache; [`IoStats`] counts both.

mod blocking;
mod engine;
mod error;
mod extent;
mod held;
mod open;
mod output;
mod threads;
mod transfers;
mod uring;

pub use engine::{Chosen, Engine, IoOptions};
pub use error::{Cause, Doing, FileError};
pub use extent::{Alignment, Extent};
pub use held::Memory;
pub use open::{BlockFile, Caching};
pub use output::{Output, OutputOptions};
pub use transfers::{Done, IoStats, Transfers};
