//! Options for what goes beyond the paper's machine, which the general engine simulates.

use super::model::{Cost, cost_ms, cost_us};
use crate::parsers::{named, positive_time};
use clap::builder::TypedValueParser;
use clap::{Args, ValueEnum};
use cosched_sim::general::{Config, Finer, Live, NodeModel, Spin};
use cosched_sim::{Params, Policy, Sharing, Wait};

/// Options that make a [`Config`] of [`Params`].
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Beyond the paper's machine")]
pub(crate) struct Machine {
    /// The local scheduler of a node: paper (60 levels) or linux (EEVDF: virtual deadlines)
    #[arg(long = "model", value_enum, value_name = "MODEL", default_value_t = Node::Paper, hide_possible_values = true)]
    node: Node,

    /// CPUs of a node [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) cpus_per_node: Option<u32>,

    /// Bandwidth of the network for bytes beyond the first 4096, in MB/s
    #[arg(long, value_name = "MB/S", default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    bandwidth: u64,

    /// Time slice of a process (linux)
    #[arg(long, value_name = "MS", default_value = "2.8", value_parser = cost_ms, allow_negative_numbers = true)]
    slice_ms: Cost,

    /// Ordinary context switch within a quantum (paired-gang, soft-gang) [default: 200]
    #[arg(long, value_name = "US", value_parser = cost_us, allow_negative_numbers = true)]
    pub(crate) local_cs_us: Option<Cost>,

    /// How processes of gangs wait: busy, or block after the spin time
    #[arg(long, value_enum, value_name = "HOW", default_value_t = GangWait::Busy, hide_possible_values = true)]
    gang_wait: GangWait,

    /// The spin time (SB, SY, gangs that block): fixed, or adaptive: each process learns its own, as on a real machine
    #[arg(long, value_enum, value_name = "HOW", default_value_t = SpinTime::Fixed, hide_possible_values = true)]
    spin: SpinTime,

    #[command(flatten)]
    live: LiveArgs,

    /// Alternative readings of points that D1 to D26 leave open (docs/simulator.md), separated by commas
    #[arg(long, value_enum, value_name = "POINT", value_delimiter = ',', hide_possible_values = true)]
    finer: Vec<Point>,
}

/// What the shipped planner is set to; the length of a slot is --quantum-ms, the maximum number of rows --mpl.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "The shipped scheduler (strategy live)")]
struct LiveArgs {
    /// Policy of all jobs: gang or local
    #[arg(long, value_name = "POLICY", default_value = "gang", value_parser = policy(), hide_possible_values = true)]
    policy: Policy,

    /// Which gangs may run on idle CPUs in the slots of other gangs: strict (none), paired (the next one), soft (all)
    #[arg(long, value_name = "HOW", default_value = "soft", value_parser = sharing(), hide_possible_values = true)]
    sharing: Sharing,

    /// Maximum fraction of slots for gangs that span nodes, 0.01 to 1
    #[arg(long, value_name = "F", default_value = "1", value_parser = permille, allow_negative_numbers = true)]
    ceiling: u32,

    /// A gang that uses no CPU for this time loses its slots until it wakes, as 30s or 10m
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = positive_time)]
    idle_after: f64,
}

fn policy() -> impl TypedValueParser<Value = Policy> {
    named([("gang", Policy::Gang), ("local", Policy::Local)])
}

fn sharing() -> impl TypedValueParser<Value = Sharing> {
    named([("strict", Sharing::Strict), ("paired", Sharing::Paired), ("soft", Sharing::Soft)])
}

fn permille(text: &str) -> Result<u32, String> {
    let part = text.parse::<f64>().ok().filter(|part| (0.01..=1.0).contains(part));
    part.map(|part| (part * 1000.0).round() as u32).ok_or_else(|| "a number from 0.01 to 1".to_owned())
}

impl LiveArgs {
    fn live(&self) -> Live {
        let &LiveArgs { policy, sharing, ceiling: ceiling_permille, idle_after } = self;
        // The cast saturates.
        Live { policy, sharing, ceiling_permille, idle_after_ns: (idle_after * 1e9) as u64 }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Node {
    /// The 60 levels of the paper
    Paper,
    /// A fair scheduler with virtual deadlines
    Linux,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum GangWait {
    /// Spin
    Busy,
    /// Spin for the spin time, then block
    Block,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SpinTime {
    /// As given
    Fixed,
    /// Found from the waits
    Adaptive,
}

/// The fields of [`Finer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Point {
    /// D2
    TickAtZero,
    /// D6
    TickInSwitch,
    /// D15
    NoBoostInSwitch,
    /// D15
    BoostTimeLast,
    /// D22
    NoTickInKernel,
    /// D22
    InterruptActsFirst,
    /// D25
    DispatchBeforeAdmission,
    /// D15, D16
    LastOwnerIsCurrent,
    /// D16
    DemandBeforeConsuming,
}

impl Machine {
    /// The machine with these parameters.
    pub(crate) fn config(&self, params: Params) -> Config {
        let mut config = Config::paper(params);
        config.cpus_per_node = self.cpus_per_node.unwrap_or(config.cpus_per_node);
        config.bytes_per_s = self.bandwidth * 1_000_000;
        config.model = if self.node == Node::Linux { NodeModel::Linux } else { NodeModel::Paper };
        config.linux.slice_ns = self.slice_ms.0;
        config.local_switch_ns = self.local_cs_us.map_or(config.local_switch_ns, |cost| cost.0);
        config.gang_wait = if self.gang_wait == GangWait::Block { Wait::SpinBlock } else { Wait::Busy };
        config.spin = if self.spin == SpinTime::Adaptive { Spin::Adaptive } else { Spin::Fixed };
        config.live = self.live.live();
        config.finer = finer(&self.finer);
        config
    }
}

fn finer(points: &[Point]) -> Finer {
    let has = |point| points.contains(&point);
    Finer {
        tick_at_zero: has(Point::TickAtZero),
        tick_in_switch: has(Point::TickInSwitch),
        no_boost_in_switch: has(Point::NoBoostInSwitch),
        boost_time_last: has(Point::BoostTimeLast),
        no_tick_in_kernel: has(Point::NoTickInKernel),
        interrupt_acts_first: has(Point::InterruptActsFirst),
        dispatch_before_admission: has(Point::DispatchBeforeAdmission),
        last_owner_is_current: has(Point::LastOwnerIsCurrent),
        demand_before_consuming: has(Point::DemandBeforeConsuming),
    }
}
