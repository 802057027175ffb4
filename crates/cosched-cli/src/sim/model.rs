//! The simulated machine, its costs and the readings of the paper, as options.

use crate::parsers::named;
use clap::Args;
use clap::builder::TypedValueParser;
use cosched_sim::{Heuristic, Params, Placement, Readings, Strategy, Topology};

/// The number of nodes in the paper.
const NODES: u32 = 32;

/// Options that make [`Params`]. Costs that are not given are the paper's (Table 3).
#[derive(Args, Clone, Debug)]
pub(crate) struct Model {
    /// Nodes [default: 32]
    #[arg(long, value_name = "N", value_parser = at_least_one, allow_negative_numbers = true)]
    pub(crate) nodes: Option<u32>,

    /// Multiprogramming level: processes per node, or rows of the matrix
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = at_least_one, allow_negative_numbers = true)]
    pub(crate) mpl: u32,

    /// Skewness: computation and I/O vary by this share, 0.2 is 20 %
    #[arg(long, value_name = "S", default_value_t = 0.2, allow_negative_numbers = true)]
    pub(crate) skew: f64,

    /// Seed of the random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Coarser iterations: message times and the spin time are multiplied by this
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) grain: u64,

    /// Context switch [default: 200; gangs 2000]
    #[arg(long, value_name = "US", value_parser = cost_us, allow_negative_numbers = true, help_heading = "Costs")]
    pub(crate) cs_us: Option<Cost>,

    /// Interrupt [default: 50]
    #[arg(long, value_name = "US", value_parser = cost_us, allow_negative_numbers = true, help_heading = "Costs")]
    pub(crate) intr_us: Option<Cost>,

    /// Quantum: time slice of a row (gangs)
    #[arg(long, value_name = "MS", default_value = "200", value_parser = cost_ms, allow_negative_numbers = true, help_heading = "Costs")]
    pub(crate) quantum_ms: Cost,

    /// Stop at this simulated time; jobs still running then have no end
    #[arg(long, value_name = "S", value_parser = cost_s, allow_negative_numbers = true)]
    pub(crate) max_sim_s: Option<Cost>,

    #[command(flatten)]
    pub(crate) rules: Rules,
}

/// What no sweep varies: every command that simulates jobs has it.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Rules")]
pub(crate) struct Rules {
    /// Moving a process between queues [default: 3]
    #[arg(long, value_name = "US", value_parser = cost_us, allow_negative_numbers = true, help_heading = "Costs")]
    pub(crate) qmove_us: Option<Cost>,

    /// Checking an endpoint for messages (PB, SY)
    #[arg(long, value_name = "US", default_value = "2", value_parser = cost_us, allow_negative_numbers = true, help_heading = "Costs")]
    pub(crate) check_us: Cost,

    /// How long to spin before blocking or yielding (SB, SY)
    #[arg(long, value_name = "US", default_value = "200", value_parser = cost_us, allow_negative_numbers = true, help_heading = "Costs")]
    pub(crate) spin_us: Cost,

    /// Which processes PB and SY boost: paper, others-first, served-only, computing-first
    #[arg(long, value_name = "RULE", default_value = "paper", value_parser = heuristic(), hide_possible_values = true)]
    pub(crate) heuristic: Heuristic,

    /// Check the invariants of queues after every event (slow)
    #[arg(long)]
    pub(crate) check: bool,

    /// D10: computation and I/O are K times as long as the shares of a type give, while messages stay as they are
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1000))]
    cd_scale: u64,

    #[command(flatten)]
    readings: ReadingArgs,
}

/// The other readings of the paper (D2 to D17); each is off by default.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Other readings of the paper (docs/simulator.md)")]
struct ReadingArgs {
    /// D2: 1: nodes tick at times of their own
    #[arg(long, value_name = "0|1", default_value = "0", value_parser = switch(), action = clap::ArgAction::Set)]
    random_phase: bool,
    /// D2: 1: simultaneous events in the reverse order
    #[arg(long, value_name = "0|1", default_value = "0", value_parser = switch(), action = clap::ArgAction::Set)]
    reverse_ties: bool,
    /// D3: quanta by level, linear or solaris
    #[arg(long, value_name = "TABLE", default_value = "linear", value_parser = ["linear", "solaris"], hide_possible_values = true)]
    qtable: String,
    /// D4: 0: a preempted process goes to the head of its level
    #[arg(long, value_name = "0|1", default_value = "1", value_parser = switch(), action = clap::ArgAction::Set)]
    preempt_tail: bool,
    /// D5: 0: a process boosted by PB or SY does not preempt an equal
    #[arg(long, value_name = "0|1", default_value = "1", value_parser = switch(), action = clap::ArgAction::Set)]
    pb_tie: bool,
    /// D5: 0: a process boosted by DCS does not preempt an equal
    #[arg(long, value_name = "0|1", default_value = "1", value_parser = switch(), action = clap::ArgAction::Set)]
    dcs_tie: bool,
    /// D5: 1: a woken process preempts an equal
    #[arg(long, value_name = "0|1", default_value = "0", value_parser = switch(), action = clap::ArgAction::Set)]
    wake_tie: bool,
    /// D6: 0: no switch cost after idling
    #[arg(long, value_name = "0|1", default_value = "1", value_parser = switch(), action = clap::ArgAction::Set)]
    cs_idle: bool,
    /// D7: nodes with the fewest processes (least) or the first with room (first)
    #[arg(long, value_name = "RULE", default_value = "least", value_parser = ["least", "first"], hide_possible_values = true)]
    placement: String,
    /// D8: neighbours on a ring or a line
    #[arg(long, value_name = "SHAPE", default_value = "ring", value_parser = ["ring", "line"], hide_possible_values = true)]
    topology: String,
    /// D12: 1: the end of an I/O costs an interrupt
    #[arg(long, value_name = "0|1", default_value = "0", value_parser = switch(), action = clap::ArgAction::Set)]
    io_intr: bool,
    /// D14: 1: any message wakes a blocked process
    #[arg(long, value_name = "0|1", default_value = "0", value_parser = switch(), action = clap::ArgAction::Set)]
    any_msg_wakes: bool,
    /// D14: 0: SY yields again after every further spin time
    #[arg(long, value_name = "0|1", default_value = "1", value_parser = switch(), action = clap::ArgAction::Set)]
    sy_once: bool,
    /// D15: 1: PB runs just after the scheduler
    #[arg(long, value_name = "0|1", default_value = "0", value_parser = switch(), action = clap::ArgAction::Set)]
    pb_lag: bool,
    /// D17: 1: empty rows take turns too
    #[arg(long, value_name = "0|1", default_value = "0", value_parser = switch(), action = clap::ArgAction::Set)]
    gs_empty_rows: bool,
    /// D17: 1: the switch is part of the quantum
    #[arg(long, value_name = "0|1", default_value = "0", value_parser = switch(), action = clap::ArgAction::Set)]
    gs_cs_in_q: bool,
}

impl Model {
    /// The parameters of a simulation with this strategy.
    pub(crate) fn params(&self, strategy: Strategy) -> Params {
        let paper = Params::paper(strategy, self.nodes.unwrap_or(NODES));
        let params = Params {
            mpl: self.mpl,
            seed: self.seed,
            skew: self.skew,
            switch_ns: self.cs_us.map_or(paper.switch_ns, |cost| cost.0),
            interrupt_ns: self.intr_us.map_or(paper.interrupt_ns, |cost| cost.0),
            quantum_ns: self.quantum_ms.0,
            end_ns: self.max_sim_s.map(|end| end.0),
            ..self.rules.params(paper)
        };
        params.coarser(self.grain)
    }
}

impl Rules {
    /// These parameters under the rules.
    pub(crate) fn params(&self, params: Params) -> Params {
        Params {
            queue_move_ns: self.qmove_us.map_or(params.queue_move_ns, |cost| cost.0),
            check_ns: self.check_us.0,
            spin_ns: self.spin_us.0,
            heuristic: self.heuristic,
            cd_scale: self.cd_scale,
            readings: self.readings.readings(),
            check_invariants: self.check,
            ..params
        }
    }
}

impl ReadingArgs {
    fn readings(&self) -> Readings {
        Readings {
            random_phase: self.random_phase,
            reverse_ties: self.reverse_ties,
            solaris_quanta: self.qtable == "solaris",
            preempted_to_head: !self.preempt_tail,
            no_boost_tie: !self.pb_tie,
            no_dcs_tie: !self.dcs_tie,
            wake_tie: self.wake_tie,
            free_switch_from_idle: !self.cs_idle,
            placement: if self.placement == "first" { Placement::First } else { Placement::LeastLoaded },
            topology: if self.topology == "line" { Topology::Line } else { Topology::Ring },
            io_interrupt: self.io_intr,
            any_message_wakes: self.any_msg_wakes,
            yield_again: !self.sy_once,
            boost_after_scheduler: self.pb_lag,
            empty_rows: self.gs_empty_rows,
            switch_in_quantum: self.gs_cs_in_q,
        }
    }
}

/// A time in whole nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cost(pub(crate) u64);

fn cost(text: &str, unit_ns: f64) -> Result<Cost, String> {
    let value: f64 = text.parse().map_err(|_| format!("'{text}' is not a number"))?;
    let ns = value * unit_ns;
    match ns {
        _ if value < 0.0 => Err("a time cannot be negative".to_owned()),
        _ if ns.is_finite() && ns < 1e18 => Ok(Cost(ns.round() as u64)),
        _ => Err(format!("{text} is beyond what can be simulated")),
    }
}

pub(crate) fn cost_us(text: &str) -> Result<Cost, String> {
    cost(text, 1e3)
}

pub(crate) fn cost_ms(text: &str) -> Result<Cost, String> {
    cost(text, 1e6)
}

fn cost_s(text: &str) -> Result<Cost, String> {
    cost(text, 1e9)
}

fn at_least_one(text: &str) -> Result<u32, String> {
    match text.parse::<u32>() {
        Ok(0) => Err("it must be at least 1".to_owned()),
        Ok(n @ 1..=60_000) => Ok(n),
        Ok(_) => Err("at most 60000 can be simulated".to_owned()),
        Err(_) => Err("a whole number, 1 or more".to_owned()),
    }
}

fn switch() -> impl TypedValueParser<Value = bool> {
    named([("0", false), ("1", true)])
}

fn heuristic() -> impl TypedValueParser<Value = Heuristic> {
    named([
        ("paper", Heuristic::Paper),
        ("others-first", Heuristic::OthersFirst),
        ("served-only", Heuristic::ServedOnly),
        ("computing-first", Heuristic::ComputingFirst),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_whole_nanoseconds() {
        assert_eq!(cost_us("185.48"), Ok(Cost(185_480)));
        assert_eq!(cost_us("0"), Ok(Cost(0)));
        for wrong in ["-1", "nan", "inf", "1e30", "x", ""] {
            assert!(cost_us(wrong).is_err(), "{wrong}");
        }
    }
}
