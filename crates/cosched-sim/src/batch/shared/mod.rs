//! Batch machines on which a job need not have its processors for itself, or not the same ones from start to end.
//!
//! [`site`] advances jobs at their paces from event to event. A discipline starts jobs and sets the paces: gangs in rows that take turns
//! and jobs that share without turns ([`rows`]), slices for the whole machine ([`robin`]), jobs that change their size
//! ([`malleable`]). Between two events each pace is a function of time, so a slot of 10 ms costs what one of a minute costs.

mod malleable;
mod matrix;
mod pace;
mod robin;
mod rows;
mod site;
#[cfg(test)]
mod tests;

pub use malleable::Malleable;
pub use robin::RoundRobin;
pub use rows::{Oversubscribe, SoftGang};

use super::engine::Schedule;
use super::filter::BatchJob;
use serde::Serialize;
use site::Site;

/// The longest slot: a day.
const SLOT_US_MAX: u64 = 86_400_000_000;

/// The most jobs that a processor is shared by.
pub const ROWS_MAX: u32 = 16;

/// How jobs share a machine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Sharing {
    /// Rows of an Ousterhout matrix take turns; what a row leaves idle is lent.
    SoftGang(SoftGang),
    /// Jobs on the same processors share them without coordination.
    Oversubscribe(Oversubscribe),
    /// Whole jobs run and are suspended in turns, on any processors.
    RoundRobin(RoundRobin),
    /// Jobs grow and shrink.
    Malleable(Malleable),
}

impl Sharing {
    /// The name of the policy.
    pub fn name(&self) -> &'static str {
        match self {
            Sharing::SoftGang(_) => "soft-gang",
            Sharing::Oversubscribe(_) => "oversubscribe",
            Sharing::RoundRobin(_) => "round-robin",
            Sharing::Malleable(_) => "malleable",
        }
    }

    /// Says what is wrong with the values: what, and what would be right.
    pub fn check(&self) -> Result<(), (&'static str, &'static str)> {
        let rows = |rows: u32| {
            let fine = (1..=ROWS_MAX).contains(&rows);
            fine.then_some(()).ok_or(("the number of rows is out of range", "give 1 to 16"))
        };
        let slot = |slot_us: u64, switch_us: u64| match (slot_us, switch_us) {
            (1..=SLOT_US_MAX, _) if switch_us < slot_us => Ok(()),
            (1..=SLOT_US_MAX, _) => {
                Err(("a slot is no longer than its switch: no job would run", "give a longer slot"))
            }
            _ => Err(("the slot is out of range", "give 1us to 1d")),
        };
        match self {
            Sharing::SoftGang(gang) => rows(gang.rows).and(slot(gang.slot_us, gang.switch_us)),
            // A pass for each slice: shorter ones would take for ever.
            Sharing::RoundRobin(robin) if robin.slot_us < 1_000_000 => {
                Err(("a slice of round robin is below a second", "give 1s or more"))
            }
            Sharing::RoundRobin(robin) => rows(robin.rows).and(slot(robin.slot_us, robin.switch_us)),
            Sharing::Oversubscribe(over) if !(0.01..=1.0).contains(&over.speed) => {
                Err(("the speed of shared processors is out of range", "give 0.01 to 1"))
            }
            Sharing::Oversubscribe(over) => rows(over.rows),
            Sharing::Malleable(jobs) => jobs.check(),
        }
    }
}

/// Schedules jobs, sorted by submission, as [`super::simulate`] does. The values must have passed [`Sharing::check`].
pub fn simulate_shared(jobs: &[BatchJob], procs: u32, sharing: &Sharing) -> Schedule {
    let site = Site::new(jobs, procs);
    match sharing {
        Sharing::SoftGang(gang) => site.run(&mut rows::Gangs::new(*gang, procs)),
        Sharing::Oversubscribe(over) => site.run(&mut rows::Sharers::new(*over, procs)),
        Sharing::RoundRobin(robin) => site.run(&mut robin::Slices::new(*robin)),
        Sharing::Malleable(malleable) => site.run(&mut malleable::Sizes::new(*malleable)),
    }
}
