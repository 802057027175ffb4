//! The simulator: the strategies of Zhang et al. 2000 and some more, on a simulated cluster, in integer nanoseconds.
//!
//! The semantics are those of the paper with every open point decided; the decisions are numbered D1 to D26 and cited where they
//! are applied (docs/simulator.md lists them all). No clock, no files: input is read from readers, and time is simulated only.

pub mod batch;
mod draw;
mod error;
pub mod general;
mod job;
pub mod metrics;
mod observe;
mod outcome;
pub mod paper;
mod params;
pub mod phases;
pub mod pipeline;
pub mod platform;
pub mod program;
pub mod report;
mod strategy;
pub mod sweep;
mod threads;
pub mod trace;
pub mod workload;

pub use cosched_core::{Class, Heuristic, OnArrival, Policy, Sharing, SlotShare, Wait};
pub use draw::Draws;
pub use error::SimError;
pub use job::{Footprint, JobSpec, JobType, Shape};
pub use observe::{Activity, Decision, JobChange, Message, Observer, Silent, Slice};
pub use outcome::{CpuTime, JobTimes, Outcome, Progress};
pub use params::{Params, ParamsError, Placement, Readings, Topology};
pub use strategy::{BatchQueue, Strategy};
