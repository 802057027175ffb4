//! How bold the rule is, and what it may turn.

use crate::stage::{Resource, Setting};
use alloc::vec::Vec;

/// What the process may do that not everybody may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rights {
    /// Lower nice values (`CAP_SYS_NICE` or `RLIMIT_NICE`). Without it a nice value is never touched: what was raised
    /// could not be taken back.
    pub lower_nice: bool,
    /// Real-time classes (`CAP_SYS_NICE` or `RLIMIT_RTPRIO`), if the user wants them to be used.
    pub real_time: bool,
}

/// How bold the rule is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// What it may do.
    pub rights: Rights,
    /// The CPUs of the pipeline, for affinity. None: threads are not bound.
    pub cpus: Vec<usize>,
    /// The shortest window, ns.
    pub window_ns_min: u64,
    /// The longest window, ns.
    pub window_ns_max: u64,
    /// A window should have so many rounds, if that does not make it too long.
    pub window_rounds: u32,
    /// What all trials together may have cost, in millionths of the time that has passed.
    pub loss_ppm_max: u32,
    /// What they may have cost besides, at the beginning, ns.
    pub credit_ns: u64,
    /// A change has to gain so much to be kept, in millionths.
    pub gain_ppm_min: u32,
    /// Pairs of windows, with the old and the new setting, before anything is kept.
    pub pairs_min: u32,
    /// Pairs after which a change that has not proved itself is taken back.
    pub pairs_max: u32,
    /// What failed rests so long at first, ns; twice as long each time.
    pub rest_ns_min: u64,
    /// The longest rest, ns.
    pub rest_ns_max: u64,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            rights: Rights::default(),
            cpus: Vec::new(),
            window_ns_min: 50_000_000,
            window_ns_max: 1_000_000_000,
            window_rounds: 16,
            loss_ppm_max: 5_000,
            credit_ns: 10_000_000,
            gain_ppm_min: 5_000,
            pairs_min: 3,
            pairs_max: 24,
            rest_ns_min: 30_000_000_000,
            rest_ns_max: 960_000_000_000,
        }
    }
}

/// A stage, as the host starts it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageInfo {
    /// What it mostly uses.
    pub resource: Resource,
    /// Whether it has threads of its own. The settings of a stage on shared workers cannot be changed.
    pub own_threads: bool,
    /// How many incarnations it may have; 0 or 1: no more than one.
    pub replicable_to: u32,
    /// How it starts.
    pub start: Setting,
}
