//! Programs as pipelines of stages on recycled buffers.
//!
//! A program is divided into *stages*, its data into *blocks* carried by *buffers*. Stages work concurrently, each on
//! a different buffer, so that the running time tends to max(compute, communicate, I/O) and not to their sum. The
//! model is FG's (Roysden 2004, section 2): a stage *accepts* a buffer from its predecessor and *conveys* it to its
//! successor; buffers come from a fixed pool, by pointer, and return to it from the last stage; the last buffer is
//! marked (*caboose*), and after it the pipeline shuts itself down.
//!
//! ```
//! use cosched_pipeline::{Flow, Options, Pipeline, Resource, Stage};
//!
//! let mut next = 0u8;
//! let mut sum = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
//! let total = sum.clone();
//! let report = Pipeline::new("squares")
//!     .buffers(4, 4096)
//!     .stage(Stage::source("count", Resource::Compute, move |buffer: &mut cosched_pipeline::Buffer| {
//!         buffer.set_len(1);
//!         buffer.bytes_mut()[0] = next;
//!         next += 1;
//!         Ok(if next == 10 { Flow::Last } else { Flow::Continue })
//!     }))
//!     .stage(Stage::compute("square", |buffer| {
//!         let byte = &mut buffer.bytes_mut()[0];
//!         *byte *= *byte;
//!         Ok(())
//!     }))
//!     .stage(Stage::compute("add", move |buffer| {
//!         total.fetch_add(buffer.bytes()[0].into(), std::sync::atomic::Ordering::Relaxed);
//!         Ok(())
//!     }))
//!     .run(&Options::default())
//!     .unwrap();
//! assert_eq!(sum.load(std::sync::atomic::Ordering::Relaxed), 285);
//! assert_eq!(report.stages[1].rounds, 10);
//! ```

mod buffer;
mod counters;
mod error;
mod exec;
pub mod file;
mod graph;
pub mod live;
mod monitor;
mod options;
mod priority;
mod queue;
mod report;

pub use buffer::Buffer;
pub use cosched_core::stage::fixed::FixedRule;
pub use cosched_core::stage::{Class, Resource, autotune};
pub use error::{BoxError, Cause, Failure, GraphError};
pub use exec::{Control, Port, Running};
pub use graph::{Body, Each, Flow, Graph, Kind, Part, Path, PathId, Pipeline, Stage, StageId};
pub use monitor::STALL_WARNING;
pub use options::Options;
pub use priority::{Priorities, Settings, SettingsError, UnknownPriorities};
pub use report::{Action, Bound, Occupancy, Report, ReportError, Span, StageReport, Stall, Trace};

/// Runs the code examples of the guide as doctests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/pipeline.md")]
struct Guide;
