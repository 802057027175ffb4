//! The machine of the daemon, and its settings as configurations of the simulator.

use crate::error::{Error, Reason};
use crate::live::Live;
use cosched_sim::general::{self, Config, Messages, Route};
use cosched_sim::{OnArrival, Policy, Sharing, Strategy, Wait};

/// A message between processes of one node: 0.4 µs one way with both MPIs on this project's machine (docs/record.md, Overhead).
const MESSAGE_NS: u64 = 400;
/// A context switch with its cold caches.
const SWITCH_NS: u64 = 5_000;

/// The machine, and its settings now.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// Its CPUs.
    pub cpus: u32,
    /// The length of a slot.
    pub slot_ns: u64,
    /// The policy of jobs without one of their own: gang or local.
    pub policy: Policy,
    /// What gangs that are not current may do.
    pub sharing: Sharing,
    /// The most CPU time for all gangs, in thousandths.
    pub ceiling_permille: u32,
    /// The part of the CPU time that is used by processes outside of jobs, 0 to 1.
    pub others: f64,
    /// Its context switch and messages, as measured; absent: those of this project's machine.
    pub costs: Option<(u64, Messages)>,
}

/// How the jobs are scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// As now: each by its own policy.
    Present,
    /// All of them so. Gangs are simulated by the shipped planner.
    As(Strategy),
}

impl Setting {
    /// Where no job has rivals nothing matters: plain Linux.
    pub(super) const ALONE: Setting = Setting::As(Strategy::Dynamic(Wait::Busy, OnArrival::None));

    /// Whether the processes of a job may run without each other under this setting, where they did not before.
    pub(super) fn may_part(self, own: Option<Policy>, machine: &Machine) -> bool {
        let was_gang = own.unwrap_or(machine.policy) == Policy::Gang;
        was_gang && matches!(self, Setting::As(strategy) if !strategy.is_gang())
    }
}

impl Machine {
    /// The configuration for a setting, with room for this number of jobs with this number of tasks together.
    ///
    /// # Errors
    /// If it has no CPU.
    pub(super) fn config(&self, setting: Setting, jobs: u32, tasks: u32) -> Result<Config, Error> {
        if self.cpus == 0 {
            let why = "the daemon says that it has none";
            return Err(Error::Document(Reason::new("the machine has no CPUs", why, "look at `cosched status`")));
        }
        let mpl = tasks.div_ceil(self.cpus).max(jobs).clamp(1, 1000);
        let message = Route { latency_ns: MESSAGE_NS, byte_ps: 0, cpu_ns: MESSAGE_NS, cpu_byte_ps: 0, poll_ns: None };
        let own = (SWITCH_NS, Messages { network: message, memory: message });
        let (switch_ns, messages) = self.costs.unwrap_or(own);
        let live = Live::of_costs(self.cpus, mpl, self.slot_ns, switch_ns, messages);
        let shipped = |policy, sharing| {
            let settings =
                general::Live { policy, sharing, ceiling_permille: self.ceiling_permille, ..general::Live::default() };
            live.shipped(settings)
        };
        Ok(match setting {
            Setting::Present => shipped(self.policy, self.sharing),
            Setting::As(Strategy::Gang) => shipped(Policy::Gang, Sharing::Strict),
            Setting::As(Strategy::PairedGang) => shipped(Policy::Gang, Sharing::Paired),
            Setting::As(Strategy::SoftGang) => shipped(Policy::Gang, Sharing::Soft),
            Setting::As(strategy) => live.config(strategy),
        })
    }
}
