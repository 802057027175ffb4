//! A simulator configuration for the machine on which a daemon runs.

use crate::error::Error;
use crate::network::{ns, of_link};
use cosched_model::{Machine, machine};
use cosched_sim::general::{self, Cache, Config, Linux, Memory, Messages, NodeModel, Noise, Spin};
use cosched_sim::{Params, Readings, Strategy};

/// The cost of a gang switch on one node, as measured by `tools/bench/bench switch` (50 to 100 µs). The simulator's own default is
/// that of the cluster of Zhang et al., whose nodes have to agree.
const GANG_SWITCH_NS: u64 = 100_000;

/// Without noise, CPUs would stay in step, and spinning would cost hardly anything. The costs hardly depend on its size (decision 0100).
const NOISE: Noise = Noise { every_ns: 20_000_000, work_ns: 20_000 };

/// Linux, the slots of the daemon, and each CPU as a node, because CPUs have run queues and ticks of their own. With one queue for
/// all CPUs, jobs that start together would stay in step.
#[derive(Clone, Copy, Debug)]
pub struct Live {
    cpus: u32,
    mpl: u32,
    slot_ns: u64,
    switch_ns: u64,
    messages: Messages,
    cache: Option<Cache>,
}

impl Live {
    /// A machine whose context switch takes `switch_ns`.
    pub fn of_costs(cpus: u32, mpl: u32, slot_ns: u64, switch_ns: u64, messages: Messages) -> Live {
        Live { cpus, mpl, slot_ns, switch_ns, messages, cache: None }
    }

    /// This machine's costs on `cpus` CPUs, with at most `mpl` processes on each.
    ///
    /// # Errors
    /// If a cost is out of the simulator's range.
    pub fn new(machine: &Machine, cpus: u32, mpl: u32, slot_ns: u64) -> Result<Live, Error> {
        let (switch_ns, messages) = costs(machine)?;
        let cache = machine.cache.as_ref().and_then(cache);
        Ok(Live { cache, ..Live::of_costs(cpus, mpl, slot_ns, switch_ns, messages) })
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
            memory: Memory { cache: self.cache, socket: None },
            model: NodeModel::Linux,
            local_switch_ns: self.switch_ns,
            spin: Spin::Adaptive,
            linux: Linux { slice_ns: general::slice_ns(self.cpus), noise: Some(NOISE), ..Linux::default() },
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

/// The cache of a machine file for the simulator; `None` if filling it costs nothing.
pub fn cache(cache: &machine::Cache) -> Option<Cache> {
    // The cast saturates, and the simulator refuses what is out of range.
    let bytes_per_s = (1024.0 * 1e6 / cache.refill_us_per_kib).round() as u64;
    (cache.refill_us_per_kib > 0.0).then_some(Cache { bytes: cache.size_bytes, bytes_per_s })
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
        let machine = machine::shipped("bunyip").unwrap();
        let live = Live::new(&machine, 2, 4, 100_000_000).unwrap();
        let local: Strategy = "Local".parse().unwrap();
        let copies = |linux: Linux, copies: u32| {
            let config = |strategy| Config { linux, ..live.config(strategy) };
            slowdowns(&subject, None, &[local], &[copies], config, || |_: Progress| true).unwrap()[0].slowdown.unwrap()
        };
        // The CPUs choose independently, so a process meets its partner in every j-th of its slices, which are every j-th.
        let noisy = live.config(local).linux;
        let found = [2, 4].map(|j| copies(noisy, j) / f64::from(j * j));
        assert!(found.iter().all(|of_square| (0.8..1.25).contains(of_square)), "{found:?}");
        assert!(copies(Linux { noise: None, ..noisy }, 4) < 6.0, "in step");
    }
}
