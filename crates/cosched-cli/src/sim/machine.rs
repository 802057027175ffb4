//! Options for what goes beyond the paper's machine, which the general engine simulates.

use super::memory::MemoryArgs;
use super::model::{Cost, cost_ms, cost_us};
use crate::parsers::{explained, named, positive_time};
use clap::Args;
use clap::builder::TypedValueParser;
use cosched_sim::general::{Config, Finer, Live, NodeModel, Spin};
use cosched_sim::{Params, Policy, Sharing, Wait};

/// Options that make a [`Config`] of [`Params`].
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Beyond the paper's machine")]
pub(crate) struct Machine {
    /// The local scheduler of a node: paper (60 levels) or linux (EEVDF: virtual deadlines)
    #[arg(long = "model", value_name = "MODEL", default_value = "paper", value_parser = model(), hide_possible_values = true)]
    node: NodeModel,

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
    #[arg(long, value_name = "HOW", default_value = "busy", value_parser = gang_wait(), hide_possible_values = true)]
    gang_wait: Wait,

    /// The spin time (SB, SY, gangs that block): fixed, or adaptive: each process learns its own, as on a real machine
    #[arg(long, value_name = "HOW", default_value = "fixed", value_parser = spin(), hide_possible_values = true)]
    spin: Spin,

    #[command(flatten)]
    memory: MemoryArgs,

    /// Alternative readings of points that D1 to D26 leave open (docs/simulator.md), separated by commas
    #[arg(long, value_name = "POINT", value_delimiter = ',', value_parser = reading(), hide_possible_values = true)]
    finer: Vec<Reading>,

    #[command(flatten)]
    live: LiveArgs,
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

fn model() -> impl TypedValueParser<Value = NodeModel> {
    explained([
        ("paper", "The 60 levels of the paper", NodeModel::Paper),
        ("linux", "A fair scheduler with virtual deadlines", NodeModel::Linux),
    ])
}

fn gang_wait() -> impl TypedValueParser<Value = Wait> {
    explained([("busy", "Spin", Wait::Busy), ("block", "Spin for the spin time, then block", Wait::SpinBlock)])
}

fn spin() -> impl TypedValueParser<Value = Spin> {
    explained([("fixed", "As given", Spin::Fixed), ("adaptive", "Found from the waits", Spin::Adaptive)])
}

/// Sets a field of [`Finer`].
type Reading = fn(&mut Finer);

fn reading() -> impl TypedValueParser<Value = Reading> {
    const ALL: [(&str, &str, Reading); 9] = [
        ("tick-at-zero", "D2", |finer| finer.tick_at_zero = true),
        ("tick-in-switch", "D6", |finer| finer.tick_in_switch = true),
        ("no-boost-in-switch", "D15", |finer| finer.no_boost_in_switch = true),
        ("boost-time-last", "D15", |finer| finer.boost_time_last = true),
        ("no-tick-in-kernel", "D22", |finer| finer.no_tick_in_kernel = true),
        ("interrupt-acts-first", "D22", |finer| finer.interrupt_acts_first = true),
        ("dispatch-before-admission", "D25", |finer| finer.dispatch_before_admission = true),
        ("last-owner-is-current", "D15, D16", |finer| finer.last_owner_is_current = true),
        ("demand-before-consuming", "D16", |finer| finer.demand_before_consuming = true),
    ];
    explained(ALL)
}

impl Machine {
    /// The machine with these parameters.
    pub(crate) fn config(&self, params: Params) -> Config {
        let mut config = Config::paper(params);
        config.cpus_per_node = self.cpus_per_node.unwrap_or(config.cpus_per_node);
        config.bytes_per_s = self.bandwidth * 1_000_000;
        config.model = self.node;
        config.linux.slice_ns = self.slice_ms.0;
        config.local_switch_ns = self.local_cs_us.map_or(config.local_switch_ns, |cost| cost.0);
        config.gang_wait = self.gang_wait;
        config.spin = self.spin;
        config.live = self.live.live();
        config.memory = self.memory.memory();
        self.finer.iter().for_each(|set| set(&mut config.finer));
        config
    }
}
