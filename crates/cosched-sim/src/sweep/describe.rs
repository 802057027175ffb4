//! What is varied: the contents of a TOML file, and the same from the command line.

use serde::Deserialize;

/// The axes of a sweep. An empty axis has one value: that of the base.
///
/// Costs vary where they matter: `cs_us` for strategies without a matrix, `gang_cs_us` and `quantum_ms` for gangs, `intr_us` where
/// anything raises interrupts. So no two cells are the same.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Description {
    /// Strategies by name; `paper` means the ten of Zhang et al. 2000, `all` all available ones.
    pub strategies: Vec<String>,
    /// WL1 to WL8, which are generated, or paths of job lists and traces.
    pub workloads: Vec<String>,
    /// Loads (D19): the arrival times are scaled to give exactly this. Without one, job lists stay as they are, and
    /// generated workloads have [`super::LOAD`].
    pub load: Vec<f64>,
    /// Numbers of nodes.
    pub nodes: Vec<u32>,
    /// Multiprogramming levels.
    pub mpl: Vec<u32>,
    /// Skewness.
    pub skew: Vec<f64>,
    /// Factors by which iterations are coarser.
    pub grain: Vec<u64>,
    /// Context switches in µs, except for gangs.
    pub cs_us: Vec<f64>,
    /// Interrupts in µs, except for gangs that wait busy.
    pub intr_us: Vec<f64>,
    /// Context switches of gangs in µs.
    pub gang_cs_us: Vec<f64>,
    /// Quanta of gangs in ms.
    pub quantum_ms: Vec<f64>,
    /// Replications: their number (seeds 1, 2, …), or the seeds themselves.
    pub seeds: Seeds,
    /// The number of jobs of a generated workload.
    pub jobs: usize,
    /// Their mean execution time alone, in s.
    pub mean_exec_s: f64,
    /// Threshold of the bounded slowdown in s.
    pub bound_s: f64,
    /// Simulated time after which a run is cut, in s.
    pub max_sim_s: Option<f64>,
    /// Skip intervals in which no job arrives or ends, once all rates have settled, if the fast engine can: estimates, for
    /// long jobs.
    pub sampled: bool,
    /// Replicate until each mean response time's 95 % interval is at most this fraction of it to either side.
    pub precision: Option<f64>,
    /// The maximum number of seeds for that.
    pub seeds_max: u64,
}

/// Replications, where nothing else is said; with fewer, intervals cover less than they say (decision 0059).
pub const SEEDS: u64 = 20;

/// The default maximum of seeds if a precision is wanted.
pub const SEEDS_MAX: u64 = 200;

/// A wanted precision of means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Precision {
    /// Half of an interval over its mean, at most.
    pub part: f64,
    /// Seeds at most.
    pub seeds_max: u64,
}

/// Replications.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Seeds {
    /// Seeds 1 to this.
    Count(u64),
    /// These seeds.
    List(Vec<u64>),
}

impl Seeds {
    /// The seeds.
    pub fn list(&self) -> Vec<u64> {
        match self {
            Seeds::Count(count) => (1..=*count).collect(),
            Seeds::List(list) => list.clone(),
        }
    }
}

impl Default for Description {
    fn default() -> Description {
        Description {
            strategies: vec!["paper".to_owned()],
            workloads: Vec::new(),
            load: Vec::new(),
            nodes: Vec::new(),
            mpl: Vec::new(),
            skew: Vec::new(),
            grain: Vec::new(),
            cs_us: Vec::new(),
            intr_us: Vec::new(),
            gang_cs_us: Vec::new(),
            quantum_ms: Vec::new(),
            seeds: Seeds::Count(SEEDS),
            jobs: 100,
            mean_exec_s: 10.0,
            bound_s: crate::metrics::BOUND_S,
            max_sim_s: None,
            sampled: false,
            precision: None,
            seeds_max: SEEDS_MAX,
        }
    }
}
