//! The input of a simulation in addition to its jobs: the machine, its costs, and the readings of the paper.

use crate::strategy::{BatchQueue, Strategy};
use cosched_core::{Heuristic, OnArrival, Wait};

const MS: u64 = 1_000_000;

/// Which tasks of a job communicate with each other (D8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Topology {
    /// Task i with i ± 1 modulo the number of tasks.
    #[default]
    Ring,
    /// Like a ring, but the first and the last task have only one neighbour.
    Line,
}

/// The nodes for a job's tasks, for all strategies without a matrix (D7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Placement {
    /// The nodes with the fewest processes, among equals those with the lowest numbers.
    #[default]
    LeastLoaded,
    /// The nodes with room, lowest number first.
    First,
}

/// The readings of the paper that are options: `Default` is that of D1 to D26, each field selects the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Readings {
    /// D2: each node's ticks have a phase of their own (drawn from the seed).
    pub random_phase: bool,
    /// D2: simultaneous events of one kind run in the reverse order.
    pub reverse_ties: bool,
    /// D3: the quanta of Solaris instead of linear ones.
    pub solaris_quanta: bool,
    /// D4: a preempted process goes to the head of its level.
    pub preempted_to_head: bool,
    /// D5: a process that PB or SY has boosted does not preempt an equal.
    pub no_boost_tie: bool,
    /// D5: a process that DCS has boosted does not preempt an equal.
    pub no_dcs_tie: bool,
    /// D5: a woken process preempts an equal.
    pub wake_tie: bool,
    /// D6: no switch cost after idling, or after the last process has exited.
    pub free_switch_from_idle: bool,
    /// D7.
    pub placement: Placement,
    /// D8.
    pub topology: Topology,
    /// D12: the end of an I/O costs an interrupt.
    pub io_interrupt: bool,
    /// D14: any message wakes a blocked process.
    pub any_message_wakes: bool,
    /// D14: SY yields again after every further spin time.
    pub yield_again: bool,
    /// D15: PB runs just after the scheduler.
    pub boost_after_scheduler: bool,
    /// D17: empty rows take turns, too.
    pub empty_rows: bool,
    /// D17: the switch of gangs is part of the quantum.
    pub switch_in_quantum: bool,
}

/// Everything except the jobs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// The strategy.
    pub strategy: Strategy,
    /// Nodes, at least one; each with one CPU.
    pub nodes: u32,
    /// Multiprogramming level: the maximum number of processes per node (rows of the matrix); at least one.
    pub mpl: u32,
    /// Seed of all random draws.
    pub seed: u64,
    /// Skewness s: computation and I/O are multiplied by 1 + s·(u − 1/2); 0 to 2.
    pub skew: f64,
    /// Context switch; for gangs it includes the synchronisation of the nodes.
    pub switch_ns: u64,
    /// An interrupt, without the queue move that it causes.
    pub interrupt_ns: u64,
    /// The quantum of a row (gang scheduling).
    pub quantum_ns: u64,
    /// Moving a process between queues.
    pub queue_move_ns: u64,
    /// Checking one endpoint.
    pub check_ns: u64,
    /// How long SB and SY spin.
    pub spin_ns: u64,
    /// A message in the sender's network interface.
    pub send_ns: u64,
    /// A message on the wire.
    pub wire_ns: u64,
    /// A message in the receiver's network interface.
    pub receive_ns: u64,
    /// The time between two activations of a node's scheduler.
    pub tick_ns: u64,
    /// Which processes PB and SY boost.
    pub heuristic: Heuristic,
    /// D10: the factor by which computation and I/O are longer than the types' shares give, while messages are unchanged; 1 to
    /// 1000.
    pub cd_scale: u64,
    /// Readings of the paper.
    pub readings: Readings,
    /// Stop at this time; jobs that have not ended by then have no end.
    pub end_ns: Option<u64>,
    /// Check the invariants of run queues and messages after every event (slow).
    pub check_invariants: bool,
}

/// Parameters that are invalid for any simulation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}\n  why: {why}\n  hint: {hint}")]
pub struct ParamsError {
    /// What is wrong.
    pub what: String,
    /// Why it is impossible.
    pub why: String,
    /// What to do.
    pub hint: String,
}

impl ParamsError {
    /// From its three parts.
    pub fn new(what: impl Into<String>, why: impl Into<String>, hint: impl Into<String>) -> ParamsError {
        ParamsError { what: what.into(), why: why.into(), hint: hint.into() }
    }
}

impl Params {
    /// The paper's defaults for this strategy (Table 3): MPL 5, skewness 20 %, switches of 200 µs (gangs 2 ms), interrupts of 50
    /// µs, rows of 200 ms, 3 µs per queue move, 2 µs per endpoint, 200 µs of spinning, messages of 80 + 25.48 + 80 µs,
    /// activations every millisecond.
    pub fn paper(strategy: Strategy, nodes: u32) -> Params {
        Params {
            strategy,
            nodes,
            mpl: 5,
            seed: 1,
            skew: 0.2,
            switch_ns: if strategy.is_gang() { 2 * MS } else { MS / 5 },
            interrupt_ns: 50_000,
            quantum_ns: 200 * MS,
            queue_move_ns: 3_000,
            check_ns: 2_000,
            spin_ns: 200_000,
            send_ns: 80_000,
            wire_ns: 25_480,
            receive_ns: 80_000,
            tick_ns: MS,
            heuristic: Heuristic::Paper,
            cd_scale: 1,
            readings: Readings::default(),
            end_ns: None,
            check_invariants: false,
        }
    }

    /// Coarser iterations: message times and the spin time are multiplied by `factor`, and with them computation and I/O.
    pub fn coarser(mut self, factor: u64) -> Params {
        for part in [&mut self.send_ns, &mut self.wire_ns, &mut self.receive_ns, &mut self.spin_ns] {
            *part *= factor;
        }
        self
    }

    /// How processes wait and what arrivals do.
    pub fn dynamic(&self) -> (Wait, OnArrival) {
        match self.strategy {
            Strategy::Dynamic(wait, on_arrival) => (wait, on_arrival),
            Strategy::Coop => (Wait::SpinBlock, OnArrival::None),
            Strategy::Gang
            | Strategy::PairedGang
            | Strategy::SoftGang
            | Strategy::Auto
            | Strategy::Fcs
            | Strategy::Live
            | Strategy::Batch(_) => (Wait::Busy, OnArrival::None),
        }
    }

    /// The maximum number of rows or processes per node: space sharing has one.
    pub fn level_max(&self) -> u32 {
        if matches!(self.strategy, Strategy::Batch(BatchQueue::Fcfs | BatchQueue::Easy)) { 1 } else { self.mpl }
    }

    /// Checks the values.
    pub fn check(&self) -> Result<(), ParamsError> {
        let at_least_one = |name: &str, value: u64| {
            if value > 0 {
                return Ok(());
            }
            Err(ParamsError::new(format!("{name} is 0"), "then nothing could ever run", "give more than 0"))
        };
        at_least_one("the number of nodes", self.nodes.into())?;
        at_least_one("the multiprogramming level (MPL)", self.mpl.into())?;
        at_least_one("the quantum", self.quantum_ns)?;
        at_least_one("the tick", self.tick_ns)?;
        if !(1..=1000).contains(&self.cd_scale) {
            let what = format!("the scale of computation and I/O is {}", self.cd_scale);
            return Err(ParamsError::new(what, "a whole factor is meant", "give 1 to 1000"));
        }
        if self.spin_ns == 0 {
            let why = "a process would give up its CPU before it has looked for the message";
            return Err(ParamsError::new("the spin time is 0", why, "give more than 0 µs, if only 0.001"));
        }
        if self.nodes.max(self.mpl) > MACHINE_MAX {
            let what = format!("{} nodes with an MPL of {}", self.nodes, self.mpl);
            let why = format!("at most {MACHINE_MAX} of each can be simulated");
            return Err(ParamsError::new(what, why, "give less"));
        }
        at_least_one("the time of a message", self.send_ns.min(self.receive_ns))?;
        if !(0.0..=2.0).contains(&self.skew) {
            let why = "1 + s·(u − 1/2) must not be negative for any u in [0, 1)";
            return Err(ParamsError::new(format!("the skewness is {}", self.skew), why, "give 0 to 2 (0.2 is 20 %)"));
        }
        let largest = [self.switch_ns, self.interrupt_ns, self.quantum_ns, self.spin_ns, self.send_ns, self.receive_ns];
        let others = [self.queue_move_ns, self.check_ns, self.wire_ns, self.tick_ns];
        if largest.iter().chain(&others).any(|ns| *ns > COST_NS_MAX) {
            return Err(ParamsError::new(
                "a cost is above an hour",
                "that is surely a mistake",
                "costs are in µs or ms",
            ));
        }
        Ok(())
    }
}

/// The maximum number of nodes, and of processes per node, so that memory stays within bounds.
const MACHINE_MAX: u32 = 60_000;

/// The maximum of any single cost, so that sums stay far from overflow.
const COST_NS_MAX: u64 = 3_600_000 * MS;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_parameters_are_named() {
        let good = Params::paper(Strategy::Gang, 32);
        assert_eq!(good.check(), Ok(()));
        let wrong = [
            Params { mpl: 0, ..good },
            Params { nodes: 0, ..good },
            Params { skew: -0.1, ..good },
            Params { skew: f64::NAN, ..good },
            Params { quantum_ns: 0, ..good },
            Params { switch_ns: u64::MAX, ..good },
        ];
        for params in wrong {
            assert!(params.check().is_err(), "{params:?}");
        }
        let error = Params { mpl: 0, ..good }.check().unwrap_err();
        assert!(error.to_string().contains("MPL"));
    }
}
