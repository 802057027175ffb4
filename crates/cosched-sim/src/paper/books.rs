//! Code that both fast engines share: keys of events, and the accounts at the end of a run.

use super::tree::NEVER;
use crate::error::SimError;
use crate::job::{JobSpec, Shape};
use crate::outcome::Outcome;
use crate::params::Params;

// Kinds of events in the order of D2; a key is time · 8 + kind.
pub(super) const CPU_ENDS: u64 = 0;
pub(super) const IO_ENDS: u64 = 1;
pub(super) const DELIVERED: u64 = 2;
pub(super) const ARRIVES: u64 = 4;
pub(super) const TURNS: u64 = 5;
pub(super) const TICK: u64 = 6;

/// Times above this do not fit into a key.
const TIME_NS_MAX: u64 = NEVER >> 4;

#[inline]
pub(super) fn key(time_ns: u64, kind: u64) -> u64 {
    if time_ns == NEVER { NEVER } else { time_ns << 3 | kind }
}

/// The key of a time that is at most [`super::node::NEVER_NS`].
#[inline]
pub(super) fn due(time_ns: u64, kind: u64) -> u64 {
    time_ns << 3 | kind
}

/// The latest time at which a simulation stops.
pub(super) fn end_ns(params: &Params) -> u64 {
    params.end_ns.unwrap_or(TIME_NS_MAX).min(TIME_NS_MAX)
}

/// When a simulation has stopped: with its last job, or where it was cut.
pub(super) fn stopped_ns(out: &Outcome, params: &Params) -> u64 {
    let last = out.jobs.iter().filter_map(|job| job.finish_ns).max().unwrap_or(0);
    let ended = out.jobs.iter().all(|job| job.finish_ns.is_some());
    if ended { last } else { params.end_ns.unwrap_or(last) }
}

/// Counters of an engine in addition to its outcome.
pub(super) struct Counted {
    /// The total of all computation that was drawn.
    pub(super) drawn_ns: u64,
    /// Messages.
    pub(super) sent: u64,
    /// Iterations that were skipped (sampled mode).
    pub(super) skipped: u64,
}

/// Closes the accounts: the work that was done (D26), the remainder as idle time, and the conservation laws. `done` returns
/// the iterations that the tasks of an unfinished job have completed.
pub(super) fn close(
    mut out: Outcome,
    params: &Params,
    (jobs, shapes): (&[JobSpec], &[Shape]),
    counted: &Counted,
    done: impl Fn(usize) -> u64,
) -> Result<Outcome, SimError> {
    let mut iterations = 0;
    for (job, shape) in shapes.iter().enumerate() {
        let finished = out.jobs[job].finish_ns.is_some();
        let count = if finished { shape.iterations * u64::from(jobs[job].tasks) } else { done(job) };
        iterations += count;
        out.nominal_ns += count * shape.iteration_ns();
        out.useful_ns += count * (shape.iteration_ns() - shape.io_ns);
    }
    let ended = out.jobs.iter().all(|job| job.finish_ns.is_some());
    if ended && (counted.drawn_ns != out.cpu.compute_ns || counted.sent != out.messages) {
        return Err(broken("computation or messages were lost"));
    }
    out.task_iterations += counted.skipped;
    if iterations != out.task_iterations {
        return Err(broken("iterations were lost"));
    }
    let cpu = &mut out.cpu;
    let busy = cpu.compute_ns + cpu.spin_ns + cpu.switch_ns + cpu.interrupt_ns + cpu.sched_ns;
    let all = out.sim_end_ns * u64::from(params.nodes);
    cpu.idle_ns = all.checked_sub(busy).ok_or_else(|| broken("the CPUs were busy for longer than they existed"))?;
    Ok(out)
}

pub(super) fn broken(what: &str) -> SimError {
    SimError::Broken(what.to_owned())
}
