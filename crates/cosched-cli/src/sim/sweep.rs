//! `cosched sim sweep`: all varied parameters, from a file and from options.

use super::cells::{self, Cells};
use super::machine::Machine;
use super::model::Rules;
use super::replications::Replications;
use crate::context::Context;
use crate::input;
use crate::out::{Failure, print, print_json};
use clap::Args;
use cosched_sim::Params;
use cosched_sim::sweep::{Description, Plan, Seeds};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Options of `cosched sim sweep`. An option replaces what the file has.
#[derive(Args, Debug)]
#[command(after_help = super::help::SWEEP)]
pub(crate) struct Sweep {
    /// The description (TOML) [default: only the options]
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) settings: Settings,

    /// Results of finished cells, which are not computed again [default: FILE's name with .cells.jsonl, or
    /// sweep.cells.jsonl]
    #[arg(long, value_name = "FILE", help_heading = cells::RUNNING)]
    pub(crate) journal: Option<PathBuf>,

    /// List the cells, and which of them are in the journal
    #[arg(long, help_heading = cells::RUNNING)]
    pub(crate) dry_run: bool,

    #[command(flatten)]
    pub(crate) cells: Cells,
}

/// What is simulated.
#[derive(Args, Clone, Debug)]
pub(crate) struct Settings {
    #[command(flatten)]
    pub(crate) axes: Axes,

    #[command(flatten)]
    pub(crate) replications: Replications,

    #[command(flatten)]
    pub(crate) rules: Rules,

    #[command(flatten)]
    pub(crate) machine: Machine,
}

/// What varies; several values are separated by commas.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Parameters (several values separated by commas)")]
pub(crate) struct Axes {
    /// Strategies; ratios are to the first. `paper` and `all` are sets
    #[arg(long, short, value_name = "NAME,…", value_delimiter = ',')]
    strategies: Option<Vec<String>>,
    /// WL1 to WL8, job lists (CSV) and traces (SWF)
    #[arg(long, short, value_name = "FILE|WL1…WL8,…", value_delimiter = ',')]
    workloads: Option<Vec<String>>,
    /// Loads to which arrivals are scaled
    #[arg(long, value_name = "X,…", value_delimiter = ',', allow_negative_numbers = true)]
    load: Option<Vec<f64>>,
    /// Nodes
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    nodes: Option<Vec<u32>>,
    /// Multiprogramming levels
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    mpl: Option<Vec<u32>>,
    /// Skewness
    #[arg(long, value_name = "S,…", value_delimiter = ',', allow_negative_numbers = true)]
    skew: Option<Vec<f64>>,
    /// Factors by which iterations are coarser
    #[arg(long, value_name = "K,…", value_delimiter = ',')]
    grain: Option<Vec<u64>>,
    /// Context switches, except for gangs
    #[arg(long, value_name = "US,…", value_delimiter = ',', allow_negative_numbers = true)]
    cs_us: Option<Vec<f64>>,
    /// Interrupts, except for gangs that wait busy
    #[arg(long, value_name = "US,…", value_delimiter = ',', allow_negative_numbers = true)]
    intr_us: Option<Vec<f64>>,
    /// Context switches of gangs
    #[arg(long, value_name = "US,…", value_delimiter = ',', allow_negative_numbers = true)]
    gang_cs_us: Option<Vec<f64>>,
    /// Quanta of gangs
    #[arg(long, value_name = "MS,…", value_delimiter = ',', allow_negative_numbers = true)]
    quantum_ms: Option<Vec<f64>>,
    /// Jobs to generate, or to take from a trace
    #[arg(long, value_name = "N")]
    count: Option<usize>,
    /// Their mean execution time alone
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    mean_exec_s: Option<f64>,
    /// Threshold of bounded slowdown: shorter jobs count as this long
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    bound_s: Option<f64>,
    /// Cut runs at this simulated time
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    max_sim_s: Option<f64>,
    /// Jump where no job arrives or ends, once rates have settled: estimates, for long jobs of the paper's strategies
    #[arg(long)]
    sampled: bool,
}

impl Axes {
    /// Overwrites the description's values with the given ones.
    fn replace(&self, description: &mut Description) {
        fn put<T: Clone>(given: &Option<T>, place: &mut T) {
            if let Some(given) = given {
                place.clone_from(given);
            }
        }
        put(&self.strategies, &mut description.strategies);
        put(&self.workloads, &mut description.workloads);
        put(&self.load, &mut description.load);
        put(&self.nodes, &mut description.nodes);
        put(&self.mpl, &mut description.mpl);
        put(&self.skew, &mut description.skew);
        put(&self.grain, &mut description.grain);
        put(&self.cs_us, &mut description.cs_us);
        put(&self.intr_us, &mut description.intr_us);
        put(&self.gang_cs_us, &mut description.gang_cs_us);
        put(&self.quantum_ms, &mut description.quantum_ms);
        put(&self.count, &mut description.jobs);
        put(&self.mean_exec_s, &mut description.mean_exec_s);
        put(&self.bound_s, &mut description.bound_s);
        description.sampled |= self.sampled;
        description.max_sim_s = self.max_sim_s.or(description.max_sim_s);
    }
}

pub(crate) fn sweep(context: &Context, options: &Sweep) -> Result<u8, Failure> {
    let plan = plan(options.file.as_deref(), &options.settings)?;
    let journal = journal(options.journal.as_deref(), options.file.as_deref());
    if options.dry_run {
        return dry_run(&plan, &journal, context.json);
    }
    let table = cells::run(&plan, &options.cells, Some(&journal))?;
    cells::give(&title(options.file.as_deref()), &table, &options.cells, context.json)
}

/// The plan from a file and options. The default is 32 nodes.
pub(crate) fn plan(file: Option<&Path>, settings: &Settings) -> Result<Plan, Failure> {
    let mut description = file.map(read).transpose()?.unwrap_or_default();
    let Settings { axes, replications, rules, machine } = settings;
    axes.replace(&mut description);
    replications.replace(&mut description);
    if let Some(seeds) = replications.seeds {
        description.seeds = Seeds::Count(seeds);
    }
    let base =
        |strategy, nodes: Option<u32>| machine.config(rules.params(Params::paper(strategy, nodes.unwrap_or(32))));
    Plan::new(&description, &base).map_err(cells::failure)
}

/// The path of the journal.
pub(crate) fn journal(given: Option<&Path>, file: Option<&Path>) -> PathBuf {
    let beside = || file.unwrap_or(Path::new("sweep")).with_extension("cells.jsonl");
    given.map_or_else(beside, Path::to_owned)
}

/// A report's title.
pub(crate) fn title(file: Option<&Path>) -> String {
    let name = file.and_then(Path::file_stem).map(|name| name.to_string_lossy().into_owned());
    name.map_or("Sweep".to_owned(), |name| format!("Sweep {name}"))
}

/// Reads a description. Paths in it are relative to its directory.
fn read(path: &Path) -> Result<Description, Failure> {
    let text = input::read(path, "give the path of a description in TOML")?;
    let mut description: Description = toml::from_str(&text).map_err(|e| {
        let hint = "see `cosched sim sweep --help` for what a description has";
        Failure::explained_in_lines(1, &format!("{} is not a description", path.display()), &e.to_string(), hint)
    })?;
    let directory = path.parent().unwrap_or(Path::new(""));
    for workload in &mut description.workloads {
        let is_generated = workload.parse::<cosched_sim::workload::TypeMix>().is_ok();
        if !is_generated && Path::new(workload).is_relative() {
            *workload = directory.join(&*workload).to_string_lossy().into_owned();
        }
    }
    Ok(description)
}

/// A cell as `--dry-run` lists it.
#[derive(Serialize)]
struct Listed {
    cell: String,
    seed: u64,
    is_done: bool,
}

fn dry_run(plan: &Plan, journal: &Path, json: bool) -> Result<u8, Failure> {
    let (plan, taken) = cells::recall(plan, journal)?;
    let listed: Vec<Listed> = plan
        .cells
        .iter()
        .zip(&taken)
        .map(|(cell, taken)| Listed {
            cell: cell.label(),
            seed: cell.config.params.seed,
            is_done: taken.result().is_some(),
        })
        .collect();
    if json {
        print_json(&listed)?;
        return Ok(0);
    }
    let line =
        |cell: &Listed| format!("{}  {} seed={}\n", if cell.is_done { "done" } else { "    " }, cell.cell, cell.seed);
    let done = listed.iter().filter(|cell| cell.is_done).count();
    let lines: String = listed.iter().map(line).collect();
    print(&format!("{lines}{} cells, {done} of them in {}\n", listed.len(), journal.display()))?;
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::FromArgMatches;

    fn settings(words: &[&str]) -> Settings {
        let command = Settings::augment_args(clap::Command::new("sweep").no_binary_name(true));
        Settings::from_arg_matches(&command.try_get_matches_from(words).unwrap()).unwrap()
    }

    fn written(text: &str) -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("d.toml");
        std::fs::write(&path, text).unwrap();
        (directory, path)
    }

    #[test]
    fn options_replace_what_the_file_has() {
        let (directory, path) =
            written("strategies = [\"GS\", \"PB\"]\nworkloads = [\"WL3\", \"my.csv\"]\nmpl = [2, 5]\nseeds = [7]\n");
        let plan = plan(Some(&path), &settings(&["--mpl", "3", "--nodes", "8", "--finer", "tick-at-zero"])).unwrap();
        let labels: Vec<String> = plan.cells.iter().map(cosched_sim::sweep::Cell::label).collect();
        assert_eq!(labels.len(), 4);
        assert_eq!(labels[0], "GS WL3 load=0.7 p=8 mpl=3 s=0.2 cs=2000us q=200ms");
        assert!(labels[2].contains(&*directory.path().join("my.csv").to_string_lossy()), "{labels:?}");
        assert!(plan.cells.iter().all(|cell| cell.config.params.seed == 7 && cell.config.finer.tick_at_zero));
    }

    #[test]
    fn mistakes_in_a_description_have_their_line() {
        let (_directory, path) = written("workloads = [\"WL3\"]\nstrategy = [\"GS\"]\n");
        let failure = plan(Some(&path), &settings(&[])).unwrap_err();
        assert!(failure.message.contains("is not a description") && failure.message.contains("line 2"), "{failure:?}");
        assert!(failure.message.contains("unknown field `strategy`"), "{failure:?}");
        let failure = plan(None, &settings(&[])).unwrap_err();
        assert!(failure.code == 2 && failure.message.contains("no workloads"), "{failure:?}");
    }

    #[test]
    fn journals_are_beside_their_descriptions() {
        assert_eq!(journal(None, Some(Path::new("a/b.toml"))), Path::new("a/b.cells.jsonl"));
        assert_eq!(journal(None, None), Path::new("sweep.cells.jsonl"));
        assert_eq!(journal(Some(Path::new("x")), Some(Path::new("b.toml"))), Path::new("x"));
    }
}
