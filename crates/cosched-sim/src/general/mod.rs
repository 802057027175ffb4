//! The general engine: one queue of events, every tick an event, all queues explicit.
//!
//! It favours clarity over speed, is the oracle for the fast engine of the paper's model, and supports what goes beyond
//! the paper. D-numbers are the decisions in docs/simulator.md.

mod admit;
mod ask;
mod auto;
mod check;
mod config;
mod contention;
mod cpu;
mod custom;
mod engine;
mod estimate;
mod event;
mod fair;
mod fcs;
mod filling;
mod gang;
mod grain;
mod levels;
mod linux;
mod live;
mod memory;
mod messages;
mod network;
mod process;
mod sched;
#[cfg(test)]
mod tests;
mod traffic;
mod transfers;

pub use config::{Config, Finer, Linux, Live, NodeModel, Noise, Own, ProgramJob, Spin, Work, slice_ns};
pub use custom::{Begin, Custom, View, Waiting};
pub use memory::{Cache, Memory, Socket};
pub use messages::{Messages, Route};

use crate::error::SimError;
use crate::job::JobSpec;
use crate::observe::Observer;
use crate::outcome::{Outcome, Progress};
use crate::params::Params;
use crate::platform::Platform;

/// Simulates a list of jobs of the paper's kind: [`simulate`] with [`Config::paper`].
pub fn run<O: Observer>(
    params: &Params,
    jobs: &[JobSpec],
    observer: &mut O,
    watch: &mut dyn FnMut(Progress) -> bool,
) -> Result<Outcome, SimError> {
    let works: Vec<Work> = jobs.iter().map(|job| Work::Paper(*job)).collect();
    simulate(&Config::paper(*params), &works, observer, watch)
}

/// Simulates a list of jobs. Job numbers are places in the list, which need not be sorted by arrival; jobs that arrive
/// at the same time do so in the order of the list.
///
/// `watch` is called from time to time with the progress so far; when it returns `false` the run ends with
/// [`SimError::Stopped`].
pub fn simulate<O: Observer>(
    config: &Config,
    works: &[Work],
    observer: &mut O,
    watch: &mut dyn FnMut(Progress) -> bool,
) -> Result<Outcome, SimError> {
    simulate_on(config, None, works, observer, watch)
}

/// The same on a platform: its hosts, in their order, are the nodes; its links carry the messages.
pub fn simulate_on<O: Observer>(
    config: &Config,
    platform: Option<&Platform>,
    works: &[Work],
    observer: &mut O,
    watch: &mut dyn FnMut(Progress) -> bool,
) -> Result<Outcome, SimError> {
    engine::Sim::new(*config, platform, works, observer, None)?.run(watch)
}

/// The same with a strategy whose decisions `custom` takes, above the mechanism of the strategy that `config` names.
pub fn simulate_custom<O: Observer>(
    config: &Config,
    works: &[Work],
    custom: &mut dyn Custom,
    observer: &mut O,
    watch: &mut dyn FnMut(Progress) -> bool,
) -> Result<Outcome, SimError> {
    custom::check(&config.params)?;
    engine::Sim::new(*config, None, works, observer, Some(custom))?.run(watch)
}
