//! The fast engine: the paper's model (D1 to D26), exact to the nanosecond, and only what changes state costs time.
//!
//! Problem: a straightforward simulator spends two thirds of its time in one heap of events, and most of these events
//! change nothing: ticks at which nobody is preempted, messages for which nobody waits, ends of I/O on a busy node.
//! Rule: every node knows when it next does something that matters, a tournament finds the node that is first, and
//! what happened meanwhile is caught up when somebody looks. Ticks are computed, not stepped through.
//! One node's events have the order of D2 by a number for their kind in the lowest bits of the key.

mod admit;
mod cpu;
mod engine;
mod gang;
mod network;
mod node;
mod short;
mod tick;
mod tree;

use crate::error::SimError;
use crate::job::JobSpec;
use crate::observe::Observer;
use crate::outcome::{Outcome, Progress};
use crate::params::{Params, Readings};
use crate::strategy::Strategy;
use cosched_core::{OnArrival, Wait};
use engine::Engine;

/// Whether this engine can do it: the ten strategies of the paper, under the default readings, with at most 16 processes a
/// node, and switches that take time (else too much happens at one instant).
pub fn handles(params: &Params) -> bool {
    let dynamic = matches!(params.strategy, Strategy::Dynamic(..))
        && params.mpl as usize <= short::PLACES_MAX
        && params.tick_ns == node::TICK_NS
        && params.switch_ns > 0;
    params.readings == Readings::default() && (dynamic || params.strategy == Strategy::Gang)
}

/// Runs the jobs to their end. `watch` is asked now and then whether to go on.
pub fn run(
    params: &Params,
    jobs: &[JobSpec],
    observer: &mut impl Observer,
    watch: &mut dyn FnMut(Progress) -> bool,
) -> Result<Outcome, SimError> {
    use {OnArrival as A, Wait as W};
    params.check()?;
    if params.strategy == Strategy::Gang {
        return gang::Gangs::new(params, jobs, observer)?.run(watch);
    }
    let (wait, arrival) = params.dynamic();
    match (wait, arrival) {
        (W::Busy, A::None) => go::<BUSY, NOTHING>(params, jobs, observer, watch),
        (W::SpinBlock, A::None) => go::<BLOCK, NOTHING>(params, jobs, observer, watch),
        (W::SpinYield, A::None) => go::<YIELD, NOTHING>(params, jobs, observer, watch),
        (W::Busy, A::Interrupt) => go::<BUSY, DEMAND>(params, jobs, observer, watch),
        (W::SpinBlock, A::Interrupt) => go::<BLOCK, DEMAND>(params, jobs, observer, watch),
        (W::SpinYield, A::Interrupt) => go::<YIELD, DEMAND>(params, jobs, observer, watch),
        (W::Busy, A::Periodic) => go::<BUSY, BOOST>(params, jobs, observer, watch),
        (W::SpinBlock, A::Periodic) => go::<BLOCK, BOOST>(params, jobs, observer, watch),
        (W::SpinYield, A::Periodic) => go::<YIELD, BOOST>(params, jobs, observer, watch),
    }
}

fn go<const W: u8, const A: u8>(
    params: &Params,
    jobs: &[JobSpec],
    observer: &mut impl Observer,
    watch: &mut dyn FnMut(Progress) -> bool,
) -> Result<Outcome, SimError> {
    Engine::<_, W, A>::new(params, jobs, observer)?.run(watch)
}

// How to wait and what to do on arrival, as constants: each strategy is compiled for itself.
const BUSY: u8 = 0;
const BLOCK: u8 = 1;
const YIELD: u8 = 2;
const NOTHING: u8 = 0;
const DEMAND: u8 = 1;
const BOOST: u8 = 2;

/// Refuses jobs that could never start.
fn check_jobs(params: &Params, jobs: &[JobSpec]) -> Result<(), SimError> {
    for (index, job) in jobs.iter().enumerate() {
        match job.tasks {
            0 => return Err(SimError::NoTasks { index }),
            tasks if tasks > params.nodes => return Err(SimError::TooLarge { index, tasks, places: params.nodes }),
            _ => {}
        }
    }
    Ok(())
}
