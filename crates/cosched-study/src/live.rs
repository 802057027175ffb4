//! The machine on which a daemon runs, as the simulator has it.

use crate::error::Error;
use crate::network::{ns, of_link};
use cosched_model::Machine;
use cosched_sim::general::{Config, Messages, NodeModel, Spin};
use cosched_sim::{Params, Readings, Strategy};

/// A gang switch of one node: what `tools/bench/bench switch` finds (50 to 100 µs). The simulator's own default is
/// the cluster of Zhang et al., whose nodes have to agree.
const GANG_SWITCH_NS: u64 = 100_000;

/// Linux, the slots of the daemon, and each CPU as a node, because CPUs have queues and ticks of their own. With one queue for all,
/// jobs that begin together stay in step.
#[derive(Clone, Copy, Debug)]
pub struct Live {
    cpus: u32,
    mpl: u32,
    slot_ns: u64,
    switch_ns: u64,
    messages: Messages,
}

impl Live {
    /// This machine's costs on so many CPUs, with at most `mpl` processes on each.
    ///
    /// # Errors
    /// When a cost is beyond what can be simulated.
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

    /// What is simulated under a strategy.
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
