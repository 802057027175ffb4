//! A simulator configuration for the machine on which a daemon runs.

use crate::error::Error;
use crate::network::{ns, of_link};
use cosched_model::Machine;
use cosched_sim::general::{Config, Messages, NodeModel, Spin};
use cosched_sim::{Params, Readings, Strategy};

/// The cost of a gang switch on one node, as measured by `tools/bench/bench switch` (50 to 100 µs). The simulator's own default is
/// that of the cluster of Zhang et al., whose nodes have to agree.
const GANG_SWITCH_NS: u64 = 100_000;

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
    /// This machine's costs on `cpus` CPUs, with at most `mpl` processes on each.
    ///
    /// # Errors
    /// If a cost is out of the simulator's range.
    pub fn new(machine: &Machine, cpus: u32, mpl: u32, slot_ns: u64) -> Result<Live, Error> {
        let route = of_link(machine.within_node())?;
        Ok(Live {
            cpus,
            mpl,
            slot_ns,
            switch_ns: ns(machine.context_switch_us)?,
            messages: Messages { network: route, memory: route },
        })
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
            ..Config::paper(params)
        }
    }
}
