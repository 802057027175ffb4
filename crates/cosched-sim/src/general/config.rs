//! The input of the general engine: the paper's parameters, what goes beyond them, and jobs of both kinds.

use super::memory::Memory;
use super::messages::Messages;
use crate::job::{Footprint, JobSpec, Shape};
use crate::params::{Params, ParamsError};
use crate::program::{Code, Program, ProgramError, Setting};
use crate::strategy::Strategy;
use cosched_core::wait::spin::{SpinConfig, SpinRule};
use cosched_core::{AgentConfig, Class, Policy, SLOT_LENGTH_NS, Sharing, SlotShare, Wait, cluster};
use std::sync::Arc;

const MS: u64 = 1_000_000;

/// How a node schedules its processes by itself. With gang scheduling this plays no part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum NodeModel {
    /// The 60 levels of the paper (D3 to D6, D23, D24).
    #[default]
    Paper,
    /// A fair scheduler with virtual deadlines, as in Linux since 6.6 (EEVDF).
    Linux,
}

/// How long a process spins before it blocks or yields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Spin {
    /// For `spin_ns` of the parameters (D13).
    #[default]
    Fixed,
    /// The cheapest time according to its own waits, starting with `spin_ns`: the rule of the live nodes (core's
    /// `wait/spin.rs`).
    Adaptive,
}

/// An adaptive spin time is at most this many times the cost of a block.
const SPIN_BLOCKS_MAX: u64 = 40;

/// The parameters of the fair scheduler.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Linux {
    /// The time slice of a process.
    pub slice_ns: u64,
    /// The period of its ticks; it is rounded to a multiple of the paper's activations (1 ms), at least one.
    pub tick_ns: u64,
    /// A process keeps the CPU despite wake-ups until it has had its fair share (RUN_TO_PARITY).
    pub run_to_parity: bool,
    /// Without it the CPUs of equal processes that started together stay in step for ever, as on no real machine.
    pub noise: Option<Noise>,
}

impl Default for Linux {
    /// HZ = 250, parity, 8 CPUs or more, no noise.
    fn default() -> Linux {
        Linux { slice_ns: slice_ns(8), tick_ns: 4 * MS, run_to_parity: true, noise: None }
    }
}

/// The slice of a machine with this number of CPUs: 0.7 ms, 1.4 from 2 CPUs on, 2.1 from 4, 2.8 from 8. Source: Linux 6.15 to 6.18, `kernel/sched/fair.c`
/// (`sysctl_sched_base_slice`, `get_update_sysctl_factor`).
#[must_use]
pub fn slice_ns(cpus: u32) -> u64 {
    700_000 * u64::from(1 + cpus.clamp(1, 8).ilog2())
}

/// Short work of others on each CPU: daemons, kernel threads, launchers. At an activation (1 ms) it begins with probability 1 ms / `every_ns`, stops the process
/// there for 0 to 2 `work_ns`, and takes the CPU from one that has used up its slice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise {
    /// The mean time between two of them on a CPU; at least an activation.
    pub every_ns: u64,
    /// Their mean length; at most half an activation.
    pub work_ns: u64,
}

impl Noise {
    fn check(self, tick_ns: u64) -> Result<(), ParamsError> {
        if self.every_ns >= tick_ns && 2 * u128::from(self.work_ns) <= u128::from(tick_ns) {
            return Ok(());
        }
        let what = format!("noise of {} ns every {} ns", self.work_ns, self.every_ns);
        Err(ParamsError::new(what, "it comes at activations, once at most", "give a rarer or shorter one"))
    }
}

/// Points that even D1 to D26 leave open, found when they were implemented. `Default` is the reading of both engines;
/// each field selects the other reading, to see how much it matters (docs/simulator.md, "What D1 to D26 leave open").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Finer {
    /// D2: the first activation is at time 0, not one tick later.
    pub tick_at_zero: bool,
    /// D6: a tick during a switch may preempt the incoming process; the next switch follows that one.
    pub tick_in_switch: bool,
    /// D15: no boost at a tick during a switch.
    pub no_boost_in_switch: bool,
    /// D15: the time of a boost follows the switch that it causes.
    pub boost_time_last: bool,
    /// D22: a tick during kernel work does nothing.
    pub no_tick_in_kernel: bool,
    /// D22: an interrupt moves processes at its beginning, not at its end.
    pub interrupt_acts_first: bool,
    /// D25: a CPU whose process has ended gets another process before jobs from the arrival queue are admitted.
    pub dispatch_before_admission: bool,
    /// D15, D16: while no process has the CPU, the last one that had it counts as the current one: the search begins
    /// there, and the network interface notes it.
    pub last_owner_is_current: bool,
    /// D16: whether a receiver has ended is checked before a running one consumes its message.
    pub demand_before_consuming: bool,
}

/// An operator's settings; the length of a slot is the quantum, the maximum number of rows is the MPL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Live {
    /// The policy of all jobs.
    pub policy: Policy,
    /// What gangs that are not current may do.
    pub sharing: Sharing,
    /// The maximum CPU time of a node for all gangs that span nodes, in thousandths.
    pub ceiling_permille: u32,
    /// A gang that used no CPU for this long falls asleep, in nanoseconds.
    pub idle_after_ns: u64,
}

impl Default for Live {
    /// The settings of a daemon without a configuration.
    fn default() -> Live {
        let (cluster, agent) = (cluster::Config::default(), AgentConfig::default());
        Live {
            policy: cluster.policy,
            sharing: cluster.sharing,
            ceiling_permille: cluster.ceiling_permille,
            idle_after_ns: agent.idle_after_ns,
        }
    }
}

impl Live {
    fn check(&self, quantum_ns: u64) -> Result<(), ParamsError> {
        let why = "a daemon would refuse it";
        if !SLOT_LENGTH_NS.contains(&quantum_ns) {
            return Err(ParamsError::new("the quantum is no slot of a live node", why, "give 10 to 30000 ms"));
        }
        if !(1..=1000).contains(&self.ceiling_permille) {
            return Err(ParamsError::new("the ceiling is out of range", why, "give 0.001 to 1"));
        }
        if !matches!(self.policy, Policy::Gang | Policy::Local) {
            return Err(ParamsError::new(
                "the policy is neither gang nor local",
                "others have strategies of their own",
                "choose one of these",
            ));
        }
        Ok(())
    }
}

/// Everything except the jobs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// The paper's parameters.
    pub params: Params,
    /// CPUs per node, at least one. They share the node's queue of ready processes and its network interface.
    pub cpus_per_node: u32,
    /// The bandwidth for bytes beyond the paper's 4096: it changes a message's time on the wire, which is never below 0.
    pub bytes_per_s: u64,
    /// The costs of messages by their route; `None`: the paper's interfaces (D9), for all of them.
    pub messages: Option<Messages>,
    /// How nodes schedule.
    pub model: NodeModel,
    /// For [`NodeModel::Linux`].
    pub linux: Linux,
    /// An ordinary context switch inside a quantum (paired and soft gangs).
    pub local_switch_ns: u64,
    /// How processes of gangs wait: busy, or spin block.
    pub gang_wait: Wait,
    /// How long processes spin before they block or yield.
    pub spin: Spin,
    /// For [`Strategy::Live`].
    pub live: Live,
    /// The readings of points that D1 to D26 leave open.
    pub finer: Finer,
    /// Caches, and the bandwidth of sockets.
    pub memory: Memory,
}

impl Config {
    /// The paper's machine: one CPU per node. 4096 bytes are 25.48 µs on the wire: 5 µs and 200 MB/s.
    pub fn paper(params: Params) -> Config {
        Config {
            params,
            cpus_per_node: 1,
            bytes_per_s: 200_000_000,
            messages: None,
            model: NodeModel::Paper,
            linux: Linux::default(),
            local_switch_ns: MS / 5,
            gang_wait: Wait::Busy,
            spin: Spin::Fixed,
            live: Live::default(),
            finer: Finer::default(),
            memory: Memory::default(),
        }
    }

    /// Checks the values.
    pub fn check(&self) -> Result<(), ParamsError> {
        self.params.check()?;
        self.messages.map_or(Ok(()), |messages| messages.check())?;
        self.memory.check(self.cpus_per_node)?;
        for (name, value) in [
            ("the number of CPUs a node", u64::from(self.cpus_per_node)),
            ("the bandwidth", self.bytes_per_s),
            ("the slice", self.linux.slice_ns),
            ("the tick of the fair scheduler", self.linux.tick_ns),
        ] {
            if value == 0 {
                let what = format!("{name} is 0");
                return Err(ParamsError::new(what, "then nothing could ever run", "give more than 0"));
            }
        }
        self.linux.noise.map_or(Ok(()), |noise| noise.check(self.params.tick_ns))?;
        if self.local_switch_ns.max(self.linux.slice_ns) > 3_600_000 * MS {
            return Err(ParamsError::new(
                "a cost is above an hour",
                "that is surely a mistake",
                "costs are in µs or ms",
            ));
        }
        if self.params.strategy.is_gang() && self.gang_wait == Wait::SpinYield {
            let hint = "let gangs wait busy, or by spin block";
            return Err(ParamsError::new(
                "a gang waits by spin yield",
                "in its quantum there is nobody to yield to",
                hint,
            ));
        }
        if self.params.strategy == Strategy::Live {
            self.live.check(self.params.quantum_ns)?;
        }
        if self.params.nodes.checked_mul(self.cpus_per_node).is_none() {
            return Err(ParamsError::new("too many CPUs", "nodes × CPUs is above 2^32", "simulate a smaller machine"));
        }
        Ok(())
    }

    /// CPUs of all nodes.
    pub(super) fn cpus(&self) -> u32 {
        self.params.nodes * self.cpus_per_node
    }

    /// How processes wait; under auto each job in its own way.
    pub(super) fn wait(&self) -> Wait {
        if self.params.strategy.is_gang() || self.params.strategy == Strategy::Live {
            self.gang_wait
        } else {
            self.params.dynamic().0
        }
    }

    /// Whether anything raises interrupts, so that their cost matters: gangs that wait busy block for nothing, and the end of an I/O is free
    /// unless a reading says otherwise.
    pub fn has_interrupts(&self) -> bool {
        let strategy = self.params.strategy;
        let busy_gang = strategy.is_gang() && strategy != Strategy::Fcs && self.gang_wait == Wait::Busy;
        !busy_gang || self.params.readings.io_interrupt
    }

    /// The parameters of a process that finds its spin time: a block costs an interrupt, a queue move and a switch. The
    /// bound is that of the live nodes, 40 blocks.
    pub(super) fn spin_rule(&self) -> Option<SpinRule> {
        let block_cost_ns = self.params.interrupt_ns + self.params.queue_move_ns + self.params.switch_ns;
        let max_ns = block_cost_ns.saturating_mul(SPIN_BLOCKS_MAX);
        let config = SpinConfig { start_ns: self.params.spin_ns, block_cost_ns, max_ns };
        (self.spin == Spin::Adaptive).then(|| SpinRule::new(config))
    }

    /// Whether idle CPUs of a gang's quantum are lent.
    pub(super) fn lends(&self) -> bool {
        matches!(self.params.strategy, Strategy::PairedGang | Strategy::SoftGang | Strategy::Fcs)
    }

    /// A message's time on the wire (D9 for 4096 bytes; linear).
    pub(super) fn wire_ns(&self, bytes: u64) -> u64 {
        let of = |bytes: u64| {
            let half = u128::from(self.bytes_per_s) / 2;
            ((u128::from(bytes) * 1_000_000_000 + half) / u128::from(self.bytes_per_s)).min(WIRE_NS_MAX) as u64
        };
        (self.params.wire_ns + of(bytes)).saturating_sub(of(4096))
    }
}

/// The maximum time of a message on the wire: 36 years, far from overflow.
const WIRE_NS_MAX: u128 = 1 << 60;

/// A job that runs a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramJob {
    /// When it arrives.
    pub arrival_ns: u64,
    /// The number of its tasks.
    pub tasks: u32,
    /// What the tasks do.
    pub program: Arc<Program>,
    /// Its estimated run time, for backfilling; `None`: its computation, I/O and messages in sequence.
    pub estimate_ns: Option<u64>,
    /// How urgent it is (live).
    pub class: Class,
    /// What it has of its own.
    pub own: Own,
}

/// What a job has of its own; by default it is scheduled and waits as the machine's jobs do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Own {
    /// Its policy, gang or local (live).
    pub policy: Option<Policy>,
    /// The largest part of the slots that it may have (live).
    pub slot_share: Option<SlotShare>,
    /// How its processes wait; under auto that chooses.
    pub wait: Option<Wait>,
    /// What it wants of the memory.
    pub footprint: Footprint,
}

/// A job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// A job of the paper's kind.
    Paper(JobSpec),
    /// A job with a program.
    Program(ProgramJob),
}

impl Work {
    pub(super) fn arrival_ns(&self) -> u64 {
        match self {
            Work::Paper(spec) => spec.arrival_ns,
            Work::Program(job) => job.arrival_ns,
        }
    }

    pub(super) fn tasks(&self) -> u32 {
        match self {
            Work::Paper(spec) => spec.tasks,
            Work::Program(job) => job.tasks,
        }
    }

    pub(super) fn class(&self) -> Class {
        match self {
            Work::Paper(spec) => spec.class,
            Work::Program(job) => job.class,
        }
    }

    pub(super) fn own(&self) -> Own {
        match self {
            Work::Paper(spec) => Own { footprint: spec.footprint, ..Own::default() },
            Work::Program(job) => job.own,
        }
    }

    /// The operations of each task.
    pub(super) fn codes(&self, params: &Params) -> Result<Vec<Code>, ProgramError> {
        match self {
            Work::Paper(spec) => {
                let shape = Shape::new(spec, params);
                Ok((0..spec.tasks).map(|task| Code::of_paper(spec, &shape, params, task)).collect())
            }
            Work::Program(job) => job.codes(params),
        }
    }
}

impl ProgramJob {
    /// The operations of each task.
    pub(crate) fn codes(&self, params: &Params) -> Result<Vec<Code>, ProgramError> {
        self.program.expand(Setting { tasks: self.tasks, seed: params.seed, topology: params.readings.topology })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wire_is_linear_through_the_papers_message() {
        let config = Config::paper(Params::paper(Strategy::Gang, 2));
        assert_eq!([0, 4096, 8192].map(|bytes| config.wire_ns(bytes)), [5_000, 25_480, 45_960]);
        let coarse = Config { bytes_per_s: 1_000_000, ..config };
        assert_eq!(coarse.wire_ns(0), 0, "never below 0");
    }

    #[test]
    fn impossible_machines_are_named() {
        let good = Config::paper(Params::paper(Strategy::SoftGang, 2));
        assert_eq!(good.check(), Ok(()));
        let wrong = [
            Config { cpus_per_node: 0, ..good },
            Config { bytes_per_s: 0, ..good },
            Config { gang_wait: Wait::SpinYield, ..good },
            Config { cpus_per_node: u32::MAX, ..good },
            Config { local_switch_ns: u64::MAX, ..good },
            Config { params: Params { mpl: 0, ..good.params }, ..good },
        ];
        assert!(wrong.iter().all(|config| config.check().is_err()));
    }
}
