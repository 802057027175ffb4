//! Pipelines of stages: which resource limits a pipeline, and how its stages should be scheduled.
//!
//! The problem: the stages of a pipeline compute, communicate and do I/O at the same time, each on another buffer. In the
//! best case its running time is that of the limiting resource, max(compute, communicate, I/O), not their sum. Whether a
//! stage of that resource gets its CPU at once is the kernel's decision, which priorities influence.
//! Source: Roysden 2004, "Scheduling Pipelined, Multi-Threaded Programs in Linux", sections 1, 2 and 4.
//!
//! This module has the rules, without a clock and without threads: a host (a live pipeline, or the simulator) reports what its
//! stages did in a [`Window`], and the length of a stage's output queue at a convey; a rule answers with [`Change`]s.

pub mod adjust;
pub mod autotune;
pub mod fixed;
mod limit;
mod setting;
mod window;

pub use limit::{Bound, Limit, bottleneck, bound, limiting};
pub use setting::{Change, Class, Setting};
pub use window::{StageView, Window};

/// The main resource of a stage (Roysden 2004, section 1: "each stage predominantly has one of …").
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resource {
    /// CPU time.
    Compute,
    /// Messages between processes.
    Communicate,
    /// Files and devices.
    Io,
}

impl Resource {
    /// All of them, in the order in which reports list them.
    pub const ALL: [Resource; 3] = [Resource::Compute, Resource::Communicate, Resource::Io];

    /// The name in reports and files.
    pub const fn name(self) -> &'static str {
        match self {
            Resource::Compute => "compute",
            Resource::Communicate => "communicate",
            Resource::Io => "io",
        }
    }
}
