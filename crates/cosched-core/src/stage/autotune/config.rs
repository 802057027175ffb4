//! The parameters of the rule, and what it may change.

use crate::stage::{Resource, Setting};
use alloc::vec::Vec;

/// Permissions of the process beyond those of an ordinary user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rights {
    /// Lower nice values (`CAP_SYS_NICE` or `RLIMIT_NICE`). Without it a nice value is never changed, because a raised one
    /// could not be lowered again.
    pub lower_nice: bool,
    /// Real-time classes (`CAP_SYS_NICE` or `RLIMIT_RTPRIO`), if the user wants them to be used.
    pub real_time: bool,
}

/// The parameters of the rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The permissions that it may use.
    pub rights: Rights,
    /// The CPUs of the pipeline, for affinity. Empty: threads are not bound.
    pub cpus: Vec<usize>,
    /// The shortest window, ns.
    pub window_ns_min: u64,
    /// The longest window, ns.
    pub window_ns_max: u64,
    /// The number of rounds that a window should have, if that does not make it too long.
    pub window_rounds: u32,
    /// The total cost that all trials may have, in millionths of the time that has passed.
    pub loss_ppm_max: u32,
    /// An additional cost that they may have, available from the beginning, ns.
    pub credit_ns: u64,
    /// The smallest gain for which a change is kept, in millionths.
    pub gain_ppm_min: u32,
    /// The number of pairs of windows, with the old and the new setting, before a change can be kept.
    pub pairs_min: u32,
    /// The number of pairs after which a change that has not proved itself is undone.
    pub pairs_max: u32,
    /// How long a failed kind rests the first time, ns; twice as long each further time.
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

/// A stage as the host starts it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageInfo {
    /// Its main resource.
    pub resource: Resource,
    /// Whether it has threads of its own. The settings of a stage on shared workers cannot be changed.
    pub own_threads: bool,
    /// The number of incarnations that it may have; 0 or 1: only one.
    pub replicable_to: u32,
    /// Its setting at the start.
    pub start: Setting,
}
