//! The fast engine: the paper's model (D1 to D26), exact to the nanosecond, and only what changes state costs time.
//!
//! Problem: a straightforward simulator spends two thirds of its time in one heap of events, and most of these events
//! change nothing: ticks that preempt no process, messages for which no process waits, ends of I/O on a busy node.
//! Rule: every node knows when it next does something that matters, and what happened meanwhile is caught up on when it is
//! needed. Ticks are computed, not stepped through. An event sees one node (`site.rs`, decision 0066).
//! The events of one node have the order of D2 by a number for their kind in the lowest bits of the key.

mod admit;
mod books;
mod copies;
mod cpu;
mod engine;
mod gang;
mod jump;
mod keys;
mod network;
mod node;
mod queue;
mod sampled;
mod short;
mod site;
mod tick;
mod tree;

use crate::error::SimError;
use crate::job::JobSpec;
use crate::observe::{Observer, Silent};
use crate::outcome::{Outcome, Progress};
use crate::params::{Params, Readings};
use crate::strategy::Strategy;
pub use copies::{Sampled, run_sampled};
use cosched_core::{OnArrival, Wait};
use engine::Engine;
pub use sampled::{Sampling, Skipped};

/// Whether this engine supports the parameters: the ten strategies of the paper, under the default readings, with at most
/// 16 processes per node, and switches that take time (otherwise too much happens at the same instant).
pub fn handles(params: &Params) -> bool {
    let dynamic = matches!(params.strategy, Strategy::Dynamic(..))
        && params.mpl as usize <= short::PLACES_MAX
        && params.tick_ns == node::TICK_NS
        && params.switch_ns > 0;
    params.readings == Readings::default() && (dynamic || params.strategy == Strategy::Gang)
}

/// Runs the jobs to their end. `watch` is asked from time to time whether to continue.
pub fn run<O: Observer>(
    params: &Params,
    jobs: &[JobSpec],
    observer: &mut O,
    watch: &mut dyn FnMut(Progress) -> bool,
) -> Result<Outcome, SimError> {
    if !O::TELL {
        return Ok(silent(params, jobs, None, watch)?.0);
    }
    Ok(choose(params, jobs, observer, None, watch)?.0)
}

/// Compiled here, once, for speed: the crates of callers are compiled to be small.
fn silent(
    params: &Params,
    jobs: &[JobSpec],
    sampling: Option<&Sampling>,
    watch: &mut dyn FnMut(Progress) -> bool,
) -> Result<(Outcome, Skipped), SimError> {
    choose(params, jobs, &mut Silent, sampling, watch)
}

/// Each strategy is compiled separately.
fn choose(
    params: &Params,
    jobs: &[JobSpec],
    observer: &mut impl Observer,
    sampling: Option<&Sampling>,
    watch: &mut dyn FnMut(Progress) -> bool,
) -> Result<(Outcome, Skipped), SimError> {
    use {OnArrival as A, Wait as W};
    params.check()?;
    if params.strategy == Strategy::Gang {
        let mut engine = gang::Gangs::new(params, jobs, observer)?;
        let Some(sampling) = sampling else { return Ok((engine.run(watch)?, Skipped::default())) };
        let sampling = Sampling { first: sampling.windows.0, ..*sampling };
        let (report, more) = sampled::drive(&mut engine, &sampling, watch)?;
        return Ok((with(engine.finish()?, &more, params), report));
    }
    let job = Job { params, jobs, sampling };
    match params.dynamic() {
        (W::Busy, A::None) => job.go::<_, BUSY, NOTHING>(observer, watch),
        (W::SpinBlock, A::None) => job.go::<_, BLOCK, NOTHING>(observer, watch),
        (W::SpinYield, A::None) => job.go::<_, YIELD, NOTHING>(observer, watch),
        (W::Busy, A::Interrupt) => job.go::<_, BUSY, DEMAND>(observer, watch),
        (W::SpinBlock, A::Interrupt) => job.go::<_, BLOCK, DEMAND>(observer, watch),
        (W::SpinYield, A::Interrupt) => job.go::<_, YIELD, DEMAND>(observer, watch),
        (W::Busy, A::Periodic) => job.go::<_, BUSY, BOOST>(observer, watch),
        (W::SpinBlock, A::Periodic) => job.go::<_, BLOCK, BOOST>(observer, watch),
        (W::SpinYield, A::Periodic) => job.go::<_, YIELD, BOOST>(observer, watch),
    }
}

struct Job<'a> {
    params: &'a Params,
    jobs: &'a [JobSpec],
    sampling: Option<&'a Sampling>,
}

impl Job<'_> {
    fn go<O: Observer, const W: u8, const A: u8>(
        &self,
        observer: &mut O,
        watch: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<(Outcome, Skipped), SimError> {
        let mut engine = Engine::<O, W, A>::new(self.params, self.jobs, observer)?;
        let Some(sampling) = self.sampling else { return Ok((engine.run(watch)?, Skipped::default())) };
        let (report, more) = sampled::drive(&mut engine, sampling, watch)?;
        Ok((with(engine.finish()?, &more, self.params), report))
    }
}

fn with(mut out: Outcome, more: &sampled::Totals, params: &Params) -> Outcome {
    sampled::add_totals(&mut out, more, params.nodes.into());
    out
}

// How to wait and what to do on arrival, as constants: each strategy is compiled separately.
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
