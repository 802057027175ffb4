//! From a description to cells in a fixed order.

use super::describe::{Description, Precision, SEEDS, Seeds};
use super::error::SweepError;
use crate::general::Config;
use crate::params::Params;
use crate::strategy::Strategy;
use crate::workload::TypeMix;

/// The cells of a sweep, in the order of its tables: workload, load, nodes, MPL, skewness, grain, costs, strategy, seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The cells. Those that differ only in the seed are adjacent.
    pub cells: Vec<Cell>,
    /// Threshold of the bounded slowdown in s.
    pub bound_s: f64,
    /// Whether runs are sampled: the caller's engine does it, the journal keeps the results apart.
    pub sampled: bool,
    /// The wanted precision of the means.
    pub precision: Option<Precision>,
}

/// The default load of generated workloads.
pub const LOAD: f64 = 0.7;

/// One simulation.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// The jobs.
    pub wanted: Wanted,
    /// The factor by which iterations are coarser; the parameters already include it.
    pub grain: u64,
    /// The machine, its costs, strategy and seed.
    pub config: Config,
}

/// A requested list of jobs. It does not depend on the strategy, so all strategies get the same list.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// WL1 to WL8, or a path.
    pub workload: String,
    /// The load to which the arrivals are to be scaled; `None`: unchanged.
    pub load: Option<f64>,
    /// CPUs of the machine: the largest job, and the base of the load. They are nodes where nodes have one.
    pub nodes: u32,
    /// The seed of the random draws.
    pub seed: u64,
    /// The number of jobs, if they are generated.
    pub jobs: usize,
    /// Their mean execution time alone in s, if they are generated.
    pub mean_exec_s: f64,
}

impl Cell {
    /// All inputs except the seed, for readers: what the rows of a table differ in.
    pub fn label(&self) -> String {
        let p = &self.config.params;
        let load = self.wanted.load.map_or(String::new(), |load| format!(" load={load}"));
        let grain = if self.grain == 1 { String::new() } else { format!(" grain={}", self.grain) };
        let cost = |has: bool, text: String| if has { text } else { String::new() };
        let interrupt = cost(self.config.has_interrupts(), format!(" intr={}us", micros(p.interrupt_ns)));
        let turn = cost(p.strategy.has_turns(), format!(" q={}ms", micros(p.quantum_ns) / 1e3));
        let costs = format!("cs={}us{interrupt}{turn}", micros(p.switch_ns));
        let cpus = match self.config.cpus_per_node {
            1 => String::new(),
            cpus => format!("x{cpus}"),
        };
        let workload = &self.wanted.workload;
        format!("{} {workload}{load} p={}{cpus} mpl={} s={}{grain} {costs}", p.strategy, p.nodes, p.mpl, p.skew)
    }

    /// Whether the two differ only in the seed.
    pub fn is_replication_of(&self, other: &Cell) -> bool {
        let mut same = self.clone();
        (same.config.params.seed, same.wanted.seed) = (other.config.params.seed, other.wanted.seed);
        same == *other
    }

    /// Whether the two differ only in strategy, its costs and seed: then their strategies can be compared.
    pub fn is_rival_of(&self, other: &Cell) -> bool {
        let (a, b) = (&self.config.params, &other.config.params);
        (&self.wanted.workload, self.wanted.load.map(f64::to_bits), self.grain)
            == (&other.wanted.workload, other.wanted.load.map(f64::to_bits), other.grain)
            && (a.nodes, a.mpl, a.skew.to_bits()) == (b.nodes, b.mpl, b.skew.to_bits())
    }
}

/// Nanoseconds as µs.
pub(super) fn micros(ns: u64) -> f64 {
    ns as f64 / 1e3
}

impl Plan {
    /// All cells of a description. `base` gives the machine of a strategy with a number of nodes (`None`: the base's own)
    /// before the axes change it.
    ///
    /// # Errors
    /// Unknown strategies, empty or repeated values, values that are invalid for any simulation.
    pub fn new(description: &Description, base: &dyn Fn(Strategy, Option<u32>) -> Config) -> Result<Plan, SweepError> {
        check(description)?;
        let strategies = strategies(&description.strategies)?;
        let seeds = seeds(description);
        let mut cells = Vec::new();
        for wanted in workloads(description) {
            for mpl in axis(&description.mpl) {
                for skew in axis(&description.skew) {
                    for grain in axis(&description.grain) {
                        let common = Common { wanted: &wanted, mpl, skew, grain };
                        for strategy in &strategies {
                            for config in common.variants(description, *strategy, base)? {
                                cells.extend(seeds.iter().map(|seed| common.cell(&config, *seed)));
                            }
                        }
                    }
                }
            }
        }
        let precision = description.precision.map(|part| Precision { part, seeds_max: description.seeds_max });
        Ok(Plan { cells, bound_s: description.bound_s, sampled: description.sampled, precision })
    }
}

/// What all strategies of a comparison share.
struct Common<'a> {
    wanted: &'a Wanted,
    mpl: Option<u32>,
    skew: Option<f64>,
    grain: Option<u64>,
}

impl Common<'_> {
    /// A strategy's machine for all costs.
    fn variants(
        &self,
        description: &Description,
        strategy: Strategy,
        base: &dyn Fn(Strategy, Option<u32>) -> Config,
    ) -> Result<Vec<Config>, SweepError> {
        let machine = base(strategy, Some(self.wanted.nodes).filter(|nodes| *nodes > 0));
        let mut params = machine.params;
        params.mpl = self.mpl.unwrap_or(params.mpl);
        params.skew = self.skew.unwrap_or(params.skew);
        params.end_ns = description.max_sim_s.map(|s| (s * 1e9).round() as u64).or(params.end_ns);
        params = params.coarser(self.grain.unwrap_or(1));
        let switches = if strategy.is_gang() { &description.gang_cs_us } else { &description.cs_us };
        let none = Vec::new();
        let interrupts = if machine.has_interrupts() { &description.intr_us } else { &none };
        let quanta = if strategy.has_turns() { &description.quantum_ms } else { &none };
        let mut found = Vec::new();
        for switch in axis(switches) {
            for interrupt in axis(interrupts) {
                for quantum in axis(quanta) {
                    let ns = |value: Option<f64>, unit: f64, or: u64| value.map_or(or, |v| (v * unit).round() as u64);
                    let params = Params {
                        switch_ns: ns(switch, 1e3, params.switch_ns),
                        interrupt_ns: ns(interrupt, 1e3, params.interrupt_ns),
                        quantum_ns: ns(quantum, 1e6, params.quantum_ns),
                        ..params
                    };
                    let config = Config { params, ..machine };
                    config.check().map_err(|e| SweepError::description(e.what, e.why, e.hint))?;
                    found.push(config);
                }
            }
        }
        Ok(found)
    }

    fn cell(&self, config: &Config, seed: u64) -> Cell {
        let params = Params { seed, ..config.params };
        Cell {
            wanted: Wanted { seed, nodes: params.nodes * config.cpus_per_node, ..self.wanted.clone() },
            grain: self.grain.unwrap_or(1),
            config: Config { params, ..*config },
        }
    }
}

/// The values of an axis; `None` stands for the base's value if the axis is empty.
fn axis<T: Copy>(values: &[T]) -> Vec<Option<T>> {
    if values.is_empty() { vec![None] } else { values.iter().copied().map(Some).collect() }
}

/// Workload, load, nodes (0: the base's); the seed is set later.
fn workloads(description: &Description) -> Vec<Wanted> {
    let Description { workloads, jobs, mean_exec_s, .. } = description;
    let mut found = Vec::new();
    for workload in workloads {
        // The gaps of a generated workload have no meaning until they are scaled.
        let generated = workload.parse::<TypeMix>().is_ok();
        for load in axis(&description.load) {
            let load = load.or(generated.then_some(LOAD));
            for nodes in axis(&description.nodes) {
                let (workload, nodes) = (workload.clone(), nodes.unwrap_or(0));
                found.push(Wanted { workload, load, nodes, seed: 0, jobs: *jobs, mean_exec_s: *mean_exec_s });
            }
        }
    }
    found
}

/// The initial seeds: if a precision is wanted at least the usual number, because the spread of a few is unreliable.
fn seeds(description: &Description) -> Vec<u64> {
    let mut seeds = description.seeds.list();
    let first = description.precision.map_or(0, |_| SEEDS.min(description.seeds_max)) as usize;
    let next = seeds.iter().max().map_or(0, |largest| largest.saturating_add(1));
    seeds.extend((next..).take(first.saturating_sub(seeds.len())));
    seeds
}

fn strategies(names: &[String]) -> Result<Vec<Strategy>, SweepError> {
    let mut found: Vec<Strategy> = Vec::new();
    for name in names {
        let these: Vec<Strategy> = match name.to_ascii_lowercase().as_str() {
            "all" => Strategy::all().collect(),
            "paper" => Strategy::paper().collect(),
            _ => {
                let hint = "`paper` are the ten of Zhang et al. 2000, `all` all there are";
                let parsed = name
                    .parse()
                    .map_err(|why: String| SweepError::description(format!("'{name}' is not a strategy"), why, hint))?;
                vec![parsed]
            }
        };
        for strategy in these {
            if !found.contains(&strategy) {
                found.push(strategy);
            }
        }
    }
    Ok(found)
}

/// The maximum number of seeds, and of jobs of a generated workload: the bounds of the options `--seeds` and `--count`.
const REPLICATIONS_MAX: u64 = 10_000;
/// More combinations for a strategy would take days, and their cells alone a part of the memory.
const CELLS_MAX: u64 = 100_000;
const JOBS_MAX: u64 = 10_000_000;

/// Refuses descriptions that would give no cell, the same cell twice, or a silent 0.
fn check(description: &Description) -> Result<(), SweepError> {
    let d = description;
    let replications = if let Seeds::Count(count) = d.seeds { count } else { 0 };
    for (name, value, most) in [
        ("seeds", replications, REPLICATIONS_MAX),
        ("seeds_max", d.seeds_max, REPLICATIONS_MAX),
        ("jobs", d.jobs as u64, JOBS_MAX),
    ] {
        if value > most {
            let what = format!("{name} is {value}");
            return Err(SweepError::description(what, "that is surely a mistake", format!("give at most {most}")));
        }
    }
    let empty = [
        (d.strategies.is_empty(), "strategies", "name strategies, or `paper`"),
        (d.workloads.is_empty(), "workloads", "name WL1 to WL8, or files of job lists"),
        (d.seeds.list().is_empty(), "seeds", "give 1 or more"),
    ];
    for (is_empty, what, hint) in empty {
        if is_empty {
            return Err(SweepError::description(
                format!("the sweep has no {what}"),
                "then there is nothing to simulate",
                hint,
            ));
        }
    }
    let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<u64>>();
    let whole = |values: &[u32]| values.iter().map(|value| u64::from(*value)).collect::<Vec<u64>>();
    let axes = [
        ("load", bits(&d.load)),
        ("nodes", whole(&d.nodes)),
        ("mpl", whole(&d.mpl)),
        ("skew", bits(&d.skew)),
        ("grain", d.grain.clone()),
        ("cs_us", bits(&d.cs_us)),
        ("intr_us", bits(&d.intr_us)),
        ("gang_cs_us", bits(&d.gang_cs_us)),
        ("quantum_ms", bits(&d.quantum_ms)),
        ("seeds", seeds(d)),
    ];
    let mut repeated = axes.iter().filter(|(_, values)| repeats(values)).map(|(name, _)| *name);
    if let Some(name) = repeated.next().or(repeats(&d.workloads).then_some("workloads")) {
        return Err(SweepError::description(
            format!("a value of {name} is there twice"),
            "the table would have the same row twice",
            "leave one out",
        ));
    }
    let cells = axes
        .iter()
        .fold(d.workloads.len() as u64, |cells, (_, values)| cells.saturating_mul(values.len().max(1) as u64));
    if cells > CELLS_MAX {
        let what = format!("the sweep has {cells} combinations of values and seeds for each strategy");
        return Err(SweepError::description(what, "that is surely a mistake", format!("give at most {CELLS_MAX}")));
    }
    check_numbers(d)
}

fn repeats<T: Ord>(values: &[T]) -> bool {
    let mut sorted: Vec<&T> = values.iter().collect();
    sorted.sort();
    sorted.windows(2).any(|pair| pair[0] == pair[1])
}

fn check_numbers(d: &Description) -> Result<(), SweepError> {
    let positive = [("load", &d.load[..]), ("mean_exec_s", &[d.mean_exec_s]), ("bound_s", &[d.bound_s])];
    let costs =
        [("cs_us", &d.cs_us), ("intr_us", &d.intr_us), ("gang_cs_us", &d.gang_cs_us), ("quantum_ms", &d.quantum_ms)];
    let wrong = |name: &str, value: f64, hint: &str| {
        Err(SweepError::description(format!("{name} is {value}"), "no simulation can have that", hint))
    };
    for (name, values) in positive {
        if let Some(value) = values.iter().find(|value| !(**value > 0.0 && value.is_finite())) {
            return wrong(name, *value, "give a number above 0");
        }
    }
    for (name, values) in costs {
        if let Some(value) = values.iter().find(|value| !(0.0..=1e12).contains(*value)) {
            return wrong(name, *value, "give 0 or more");
        }
    }
    if let Some(end) = d.max_sim_s.filter(|end| !(0.0..=1e9).contains(end)) {
        return wrong("max_sim_s", end, "give seconds, 0 or more");
    }
    if let Some(grain) = d.grain.iter().find(|grain| !(1..=1000).contains(*grain)) {
        return wrong("grain", *grain as f64, "give 1 to 1000");
    }
    if d.sampled && d.max_sim_s.is_some() {
        let hint = "leave one of the two out";
        return Err(SweepError::description("max_sim_s for sampled runs", "a jump could pass over the cut", hint));
    }
    if let Some(part) = d.precision.filter(|part| !(0.001..1.0).contains(part)) {
        return wrong("precision", part, "give 0.001 to less than 1: 0.05 is 5 %");
    }
    if d.jobs == 0 {
        return wrong("jobs", 0.0, "give 1 or more");
    }
    Ok(())
}
