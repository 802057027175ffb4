//! The strategies and their names.

use cosched_core::{OnArrival, Wait};
use std::fmt;
use std::str::FromStr;

/// How space sharing chooses the next job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BatchQueue {
    /// First come, first served.
    Fcfs,
    /// First come, first served, and later jobs may start earlier if the first is not delayed (EASY backfilling).
    Easy,
}

/// A strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Strategy {
    /// Gang scheduling: rows of the Ousterhout matrix take turns, and CPU time that a gang leaves idle is lost (GS).
    Gang,
    /// Gang scheduling in which a gang's idle CPUs go to the job in the next row only (paired gang).
    PairedGang,
    /// Gang scheduling in which a gang's idle CPUs go to the others, in the order of their rows (soft gang).
    SoftGang,
    /// Every node schedules for itself, with the two parameters of message handling: Local, SB, SY, DCS, PB and their
    /// combinations.
    Dynamic(Wait, OnArrival),
    /// Each job is a gang or local, with spin block, according to its observed behaviour (auto).
    Auto,
    /// Gang scheduling only for processes that need it, according to their observed granularity and waits (FCS).
    Fcs,
    /// Every node switches only when a process blocks or ends (SCHED_COOP).
    Coop,
    /// The production code: the planner, the local schedulers and the filling of idle CPUs of the live nodes (live).
    Live,
    /// Space sharing: a job has its nodes for itself.
    Batch(BatchQueue),
}

/// Names, in the paper's order; the second names are accepted, too.
const NAMES: [(Strategy, &str, &str); 18] = [
    (Strategy::Gang, "GS", "gang"),
    (Strategy::Dynamic(Wait::Busy, OnArrival::None), "Local", "local"),
    (Strategy::Dynamic(Wait::SpinBlock, OnArrival::None), "SB", "spin-block"),
    (Strategy::Dynamic(Wait::SpinYield, OnArrival::None), "SY", "spin-yield"),
    (Strategy::Dynamic(Wait::Busy, OnArrival::Interrupt), "DCS", "demand"),
    (Strategy::Dynamic(Wait::Busy, OnArrival::Periodic), "PB", "periodic-boost"),
    (Strategy::Dynamic(Wait::SpinBlock, OnArrival::Interrupt), "DCS-SB", ""),
    (Strategy::Dynamic(Wait::SpinBlock, OnArrival::Periodic), "PB-SB", ""),
    (Strategy::Dynamic(Wait::SpinYield, OnArrival::Interrupt), "DCS-SY", ""),
    (Strategy::Dynamic(Wait::SpinYield, OnArrival::Periodic), "PB-SY", ""),
    (Strategy::PairedGang, "paired-gang", "paired"),
    (Strategy::SoftGang, "soft-gang", "soft"),
    (Strategy::Auto, "auto", ""),
    (Strategy::Fcs, "FCS", "flexible"),
    (Strategy::Coop, "COOP", "sched-coop"),
    (Strategy::Live, "live", ""),
    (Strategy::Batch(BatchQueue::Fcfs), "FCFS", "batch-fcfs"),
    (Strategy::Batch(BatchQueue::Easy), "EASY", "batch-easy"),
];

impl Strategy {
    /// All strategies: the paper's ten first.
    pub fn all() -> impl Iterator<Item = Strategy> {
        NAMES.iter().map(|(strategy, ..)| *strategy)
    }

    /// The ten strategies of Zhang et al. 2000.
    pub fn paper() -> impl Iterator<Item = Strategy> {
        Strategy::all().take(10)
    }

    /// The name in the papers' spelling.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(strategy, ..)| *strategy == self).map_or("", |(_, name, _)| name)
    }

    /// Whether rows of a matrix take turns, and nothing else.
    pub fn is_gang(self) -> bool {
        matches!(self, Strategy::Gang | Strategy::PairedGang | Strategy::SoftGang | Strategy::Fcs)
    }

    /// Whether there are turns, whose length is the quantum.
    pub fn has_turns(self) -> bool {
        self.has_rows() || self == Strategy::Live
    }

    /// Whether jobs have cells of a matrix.
    pub fn has_rows(self) -> bool {
        self.is_gang() || self == Strategy::Auto
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Strategy {
    type Err = String;

    /// Reads a name, in any case.
    fn from_str(text: &str) -> Result<Strategy, String> {
        let named = |(_, name, other): &&(Strategy, &str, &str)| {
            !text.is_empty() && (name.eq_ignore_ascii_case(text) || other.eq_ignore_ascii_case(text))
        };
        NAMES.iter().find(named).map(|(strategy, ..)| *strategy).ok_or_else(|| {
            let names: Vec<&str> = NAMES.iter().map(|(_, name, _)| *name).collect();
            format!("no strategy '{text}'; there are {}", names.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for strategy in Strategy::all() {
            assert_eq!(strategy.name().parse(), Ok(strategy));
            assert_eq!(strategy.name().to_lowercase().parse(), Ok(strategy));
        }
        assert!("XB".parse::<Strategy>().unwrap_err().contains("PB-SB"));
        assert!("".parse::<Strategy>().is_err());
    }
}
