//! A simulator configuration for the machine on which a daemon runs.

use crate::error::Error;
use crate::network::{ns, of_link};
use cosched_model::Machine;
use cosched_sim::general::{self, Config, Linux, Messages, NodeModel, Spin};
use cosched_sim::{Params, Readings, Strategy};

/// The cost of a gang switch on one node, as measured by `tools/bench/bench switch` (50 to 100 µs). The simulator's own default is
/// that of the cluster of Zhang et al., whose nodes have to agree.
const GANG_SWITCH_NS: u64 = 100_000;

/// Slices differ by up to half. On a real machine ticks, wake-ups and helpers do that; in step, spinning would cost hardly anything.
const JITTER: f64 = 1.0;

/// Linux, the slots of the daemon, and each CPU as a node, because CPUs have run queues and ticks of their own. With one queue for
/// all CPUs, jobs that start together would stay in step.
#[derive(Clone, Copy, Debug)]
pub struct Live {
    cpus: u32,
    mpl: u32,
    slot_ns: u64,
    switch_ns: u64,
    messages: Messages,
}

impl Live {
    /// A machine whose context switch takes `switch_ns`.
    pub fn of_costs(cpus: u32, mpl: u32, slot_ns: u64, switch_ns: u64, messages: Messages) -> Live {
        Live { cpus, mpl, slot_ns, switch_ns, messages }
    }

    /// This machine's costs on `cpus` CPUs, with at most `mpl` processes on each.
    ///
    /// # Errors
    /// If a cost is out of the simulator's range.
    pub fn new(machine: &Machine, cpus: u32, mpl: u32, slot_ns: u64) -> Result<Live, Error> {
        let (switch_ns, messages) = costs(machine)?;
        Ok(Live::of_costs(cpus, mpl, slot_ns, switch_ns, messages))
    }

    /// The configuration in which the shipped planner schedules, on one node that has all CPUs.
    pub fn shipped(&self, live: general::Live) -> Config {
        let mut config = self.config(Strategy::Live);
        (config.params.nodes, config.cpus_per_node) = (1, self.cpus);
        Config { live, ..config }
    }

    /// The configuration for a strategy.
    pub fn config(&self, strategy: Strategy) -> Config {
        let params = Params {
            mpl: self.mpl,
            skew: 0.0,
            switch_ns: if strategy.is_gang() { GANG_SWITCH_NS } else { self.switch_ns },
            interrupt_ns: 0,
            quantum_ns: self.slot_ns,
            queue_move_ns: 0,
            readings: Readings { random_phase: true, ..Readings::default() },
            ..Params::paper(strategy, self.cpus)
        };
        Config {
            messages: Some(self.messages),
            model: NodeModel::Linux,
            local_switch_ns: self.switch_ns,
            spin: Spin::Adaptive,
            linux: Linux { jitter: JITTER, ..Linux::default() },
            ..Config::paper(params)
        }
    }
}

/// A machine's context switch in ns, and its messages, which are those within a node.
///
/// # Errors
/// If a cost is out of the simulator's range.
pub fn costs(machine: &Machine) -> Result<(u64, Messages), Error> {
    let route = of_link(machine.within_node())?;
    Ok((ns(machine.context_switch_us)?, Messages { network: route, memory: route }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{Subject, slowdowns};
    use cosched_sim::Progress;
    use std::sync::Arc;

    #[test]
    fn spinners_are_not_in_step_under_linux() {
        let program = Arc::new("repeat 1000 { compute 200us; barrier }".parse().unwrap());
        let subject =
            Subject { name: "barriers".into(), program, tasks: 2, footprint: cosched_sim::Footprint::default() };
        let machine = cosched_model::machine::shipped("bunyip").unwrap();
        let live = Live::new(&machine, 2, 4, 100_000_000).unwrap();
        let copies = |config: &dyn Fn(Strategy) -> Config| {
            let rows =
                slowdowns(&subject, None, &["Local".parse().unwrap()], &[4], config, || |_: Progress| true).unwrap();
            rows[0].slowdown.unwrap()
        };
        let in_step = Linux::default();
        // Four times four, less what fits into a slice with a partner; measured: 12.4 and 16.5 (docs/bench.md).
        assert!(copies(&|strategy| live.config(strategy)) > 8.0);
        assert!(copies(&|strategy| Config { linux: in_step, ..live.config(strategy) }) < 6.0);
    }
}
