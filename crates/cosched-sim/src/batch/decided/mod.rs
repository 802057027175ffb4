//! A batch machine on which a scheduler outside of the simulator decides, by Batsim's protocol (its JSON form, as Batsim 2 to 4 speak it).
//!
//! At each instant all ends come first, then all submissions, then calls, then the decisions whose time has come. What has happened is
//! told in one message as soon as the scheduler is ready: it may take simulated time to decide. Each job has its hosts for itself.

mod answer;
mod hosts;
mod job;
mod machine;
#[cfg(test)]
mod tests;
mod told;

pub use job::{DecidedJob, JobEnd};

use crate::workload::batsim::DescribedWorkload;
use machine::{Machine, State};

/// The most hosts: the scheduler is told of each.
pub const HOSTS_MAX: u32 = 200_000;

/// A schedule that was decided outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decided {
    /// In the order of the workload's jobs.
    pub jobs: Vec<DecidedJob>,
    /// Messages to the scheduler.
    pub messages: u64,
}

/// Why there is no schedule.
#[derive(Debug, PartialEq, Eq)]
pub enum DecidedError<E> {
    /// The scheduler cannot be asked.
    Exchange(E),
    /// It decided what cannot be.
    Wrong(String),
}

/// Schedules jobs on `hosts` hosts, at most [`HOSTS_MAX`]. `exchange` sends a message and returns the answer.
///
/// # Errors
/// One of `exchange`; an answer that is not of the protocol or cannot be done; jobs that are left waiting for ever.
pub fn simulate_decided<E>(
    workload: &DescribedWorkload,
    hosts: u32,
    exchange: impl FnMut(&str) -> Result<Vec<u8>, E>,
) -> Result<Decided, DecidedError<E>> {
    let mut machine = Machine::new(workload, hosts);
    machine.told.begins(workload, hosts);
    run(machine, exchange)
}

fn run<E>(
    mut machine: Machine<'_>,
    mut exchange: impl FnMut(&str) -> Result<Vec<u8>, E>,
) -> Result<Decided, DecidedError<E>> {
    loop {
        if !machine.told.is_empty() && machine.now >= machine.ready_us {
            let message = machine.message().map_err(DecidedError::Wrong)?;
            let answer = exchange(&message).map_err(DecidedError::Exchange)?;
            machine.take(&answer).map_err(|what| DecidedError::Wrong(machine.at(&what)))?;
        }
        if machine.left == 0 && machine.told.is_empty() {
            break;
        }
        let Some(time_us) = machine.next_time() else { return Err(DecidedError::Wrong(machine.stuck())) };
        machine.advance(time_us).map_err(|what| DecidedError::Wrong(machine.at(&what)))?;
    }
    machine.told.ends(machine.now);
    let farewell = machine.told.message(machine.now);
    // All is decided: how the scheduler takes its leave does not matter.
    let _ = exchange(&farewell);
    let jobs = machine.states.into_iter().filter_map(|state| match state {
        State::Ended(job) => Some(job),
        _ => None,
    });
    Ok(Decided { jobs: jobs.collect(), messages: machine.messages + 1 })
}
