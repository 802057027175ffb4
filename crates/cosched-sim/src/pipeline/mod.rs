//! A pipeline of stages on one machine, under the same rules for priorities as a live one.
//!
//! Discrete events, whole nanoseconds, no clock: the same description and seed give the same bytes on every machine. The
//! stages of Roysden 2004 (section 2) work on recycled buffers; the CPUs have run queues like those of Linux 6.17, as far
//! as priorities, slices and classes matter (`fair.rs`); the rules are core's (`cosched_core::stage`), called with what a
//! live pipeline would see: a queue's length when a buffer is conveyed, and the times and rounds of a window.
//! docs/pipeline-rules.md has the semantics, and the simplifications.

mod books;
mod cpus;
mod device;
mod drive;
mod engine;
mod event;
pub(crate) mod fair;
mod outcome;
mod settings;
mod spec;
#[cfg(test)]
mod tests;
mod thread;

pub use engine::{MAX_SIM_S, simulate};
pub use outcome::{PipelineOutcome, StageOutcome, Told};
pub use settings::{Priorities, UnknownPriorities};
pub use spec::{DiskSpec, HogSpec, MachineSpec, PipelineError, PipelineSpec, StageKind, StageSpec};
