//! `cosched sim program`: copies of a program under strategies, and their slowdown.

use super::costs::{Costs, Given};
use super::machine::Machine;
use super::model::Model;
use super::progress::watch;
use super::run::failure;
use crate::context::Context;
use crate::out::{Failure, print, print_json, terminal_width};
use crate::profile::{Network, Profile};
use crate::table::{Cell, numbers, render, words};
use clap::Args;
use cosched_sim::general::{self, Config, ProgramJob, Work};
use cosched_sim::program::Program;
use cosched_sim::{Outcome, Params, Silent, Strategy};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Options of `cosched sim program`.
#[derive(Args, Debug)]
#[command(after_help = super::help::PROGRAM)]
pub(crate) struct RunProgram {
    /// The program
    #[arg(value_name = "FILE", required_unless_present = "profile")]
    program: Option<PathBuf>,

    /// A profile that `cosched record` wrote, in place of a program
    #[arg(long, value_name = "FILE", conflicts_with = "program")]
    profile: Option<PathBuf>,

    /// Its tasks [default: of a profile, those that were recorded]
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u32).range(1..), required_unless_present = "profile")]
    tasks: Option<u32>,

    /// How many copies at once; the multiprogramming level is raised to it
    #[arg(long, value_name = "J,...", value_delimiter = ',', default_value = "1,2,4", value_parser = clap::value_parser!(u32).range(1..=1000))]
    copies: Vec<u32>,

    /// The strategies
    #[arg(long, short, value_name = "NAMES", value_delimiter = ',', default_value = "GS,Local,SB,PB",
          value_parser = |text: &str| text.parse::<Strategy>())]
    strategies: Vec<Strategy>,

    #[command(flatten)]
    model: Model,

    #[command(flatten)]
    machine: Machine,

    #[command(flatten)]
    costs: Costs,

    /// No progress
    #[arg(long, short)]
    quiet: bool,
}

/// What is simulated.
struct Subject {
    program: Arc<Program>,
    tasks: u32,
    /// What its messages cost when it was recorded.
    recorded: Option<Network>,
}

/// One strategy with one number of copies.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) strategy: &'static str,
    pub(crate) copies: u32,
    /// Copies that had not ended by --max-sim-s.
    pub(crate) unfinished: usize,
    mean_execution_s: Option<f64>,
    pub(crate) makespan_s: f64,
    slowdown: Option<f64>,
    util_compute: f64,
    /// Sending and receiving, where processes pay for it.
    messages: f64,
    spin: f64,
    context_switches: u64,
}

pub(crate) fn run(context: &Context, options: &RunProgram) -> Result<u8, Failure> {
    let rows = rows(options)?;
    if context.json {
        print_json(&rows)?;
    } else {
        print(&table(&rows))?;
    }
    Ok(0)
}

/// Simulates every strategy with every number of copies.
fn rows(options: &RunProgram) -> Result<Vec<Row>, Failure> {
    let given = options.costs.read()?;
    let subject = read(options)?;
    let given = given.or_recorded(subject.recorded.map(|network| (network.alpha_us, network.beta_us_per_word)))?;
    let mut rows = Vec::new();
    for strategy in &options.strategies {
        let alone = simulate(options, &config(options, &given, *strategy, 1, &subject), 1, &subject)?;
        let alone_s = mean_execution_s(&alone);
        if alone_s == Some(0.0) {
            return Err(no_time(options, subject.tasks));
        }
        for copies in &options.copies {
            let config = config(options, &given, *strategy, *copies, &subject);
            let outcome = if *copies == 1 { alone.clone() } else { simulate(options, &config, *copies, &subject)? };
            rows.push(row(*strategy, *copies, &outcome, alone_s, &config));
        }
    }
    Ok(rows)
}

/// What `cosched sim program` with these words would print: for who sets a simulation beside something else.
pub(crate) fn rows_of(words: &[String]) -> Result<Vec<Row>, Failure> {
    #[derive(clap::Parser)]
    struct Words {
        #[command(flatten)]
        options: RunProgram,
    }
    let words = std::iter::once("program").chain(words.iter().map(String::as_str));
    let words = <Words as clap::Parser>::try_parse_from(words).map_err(|e| Failure::other(e.to_string()))?;
    rows(&words.options)
}

fn no_time(options: &RunProgram, tasks: u32) -> Failure {
    let path = options.program.as_ref().or(options.profile.as_ref());
    Failure::explained(
        1,
        &format!("{} takes no time with {tasks} tasks", path.map_or("it".into(), |path| path.display().to_string())),
        "no slowdown is defined for it",
        "let it compute or communicate; `on` counts tasks from 0",
    )
}

fn read(options: &RunProgram) -> Result<Subject, Failure> {
    match (&options.program, &options.profile, options.tasks) {
        (_, Some(path), tasks) => read_profile(path, tasks),
        (Some(path), None, Some(tasks)) => {
            Ok(Subject { program: Arc::new(read_program(path)?), tasks, recorded: None })
        }
        // The parser of options wants both.
        _ => Err(Failure::other("give a program and --tasks, or --profile")),
    }
}

fn read_profile(path: &Path, tasks: Option<u32>) -> Result<Subject, Failure> {
    let profile = Profile::read(path)?;
    if let Some(asked) = tasks.filter(|asked| *asked != profile.tasks) {
        return Err(Failure::explained(
            1,
            &format!("{} has {} tasks, not {asked}", path.display(), profile.tasks),
            "how a program divides its work and its messages among more tasks cannot be told from one recording",
            "leave --tasks away, or record it with so many: cosched record -- mpirun -n N PROGRAM",
        ));
    }
    Ok(Subject { program: Arc::new(profile.program()?), tasks: profile.tasks, recorded: profile.network })
}

fn read_program(path: &Path) -> Result<Program, Failure> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|e| {
        let hint = "give the path of a program; docs/simulator.md has the format";
        Failure::explained(1, &format!("cannot read {shown}"), &e.to_string(), hint)
    })?;
    text.parse().map_err(|e| Failure::other(format!("{shown}: {e}")))
}

fn config(options: &RunProgram, given: &Given, strategy: Strategy, copies: u32, subject: &Subject) -> Config {
    let mut model = options.model.clone();
    if options.profile.is_some() && model.nodes.is_none() {
        // As large as the job: copies on nodes of their own would tell nothing.
        let cpus_per_node = given.config(&options.machine, given.params(&model, strategy)).cpus_per_node;
        model.nodes = Some(subject.tasks.div_ceil(cpus_per_node));
    }
    let params = given.params(&model, strategy);
    // All copies are to share the machine, whatever the multiprogramming level is otherwise.
    given.config(&options.machine, Params { mpl: params.mpl.max(copies), ..params })
}

fn simulate(options: &RunProgram, config: &Config, copies: u32, subject: &Subject) -> Result<Outcome, Failure> {
    let program = || Arc::clone(&subject.program);
    let job = || ProgramJob { arrival_ns: 0, tasks: subject.tasks, program: program(), estimate_ns: None };
    let works: Vec<Work> = (0..copies).map(|_| Work::Program(job())).collect();
    general::simulate(config, &works, &mut Silent, &mut watch(options.quiet)).map_err(failure)
}

fn mean_execution_s(outcome: &Outcome) -> Option<f64> {
    let each: Option<Vec<u64>> = outcome.jobs.iter().map(|job| Some(job.finish_ns? - job.start_ns?)).collect();
    let each = each.filter(|each| !each.is_empty())?;
    Some(each.iter().sum::<u64>() as f64 / each.len() as f64 / 1e9)
}

fn row(strategy: Strategy, copies: u32, outcome: &Outcome, alone_s: Option<f64>, config: &Config) -> Row {
    let mean_execution_s = mean_execution_s(outcome);
    let all = (outcome.sim_end_ns * u64::from(config.params.nodes) * u64::from(config.cpus_per_node)).max(1) as f64;
    Row {
        strategy: strategy.name(),
        copies,
        unfinished: outcome.jobs.iter().filter(|job| job.finish_ns.is_none()).count(),
        mean_execution_s,
        makespan_s: outcome.sim_end_ns as f64 / 1e9,
        slowdown: mean_execution_s.zip(alone_s).map(|(mean, alone)| mean / alone),
        util_compute: outcome.cpu.compute_ns as f64 / all,
        messages: outcome.cpu.message_ns as f64 / all,
        spin: outcome.cpu.spin_ns as f64 / all,
        context_switches: outcome.context_switches,
    }
}

fn table(rows: &[Row]) -> String {
    let columns = [
        words("STRATEGY", 0),
        numbers("COPIES", 0),
        numbers("EXECUTION", 0),
        numbers("SLOWDOWN", 0),
        numbers("COMPUTE", 1),
        numbers("SPIN", 1),
        numbers("SWITCHES", 2),
    ];
    let number =
        |value: Option<f64>, unit: &str| value.map_or("not ended".to_owned(), |value| format!("{value:.3}{unit}"));
    let cells = |row: &Row| -> Vec<Cell> {
        vec![
            row.strategy.into(),
            row.copies.to_string().into(),
            number(row.mean_execution_s, " s").into(),
            number(row.slowdown, "").into(),
            format!("{:.1} %", row.util_compute * 100.0).into(),
            format!("{:.1} %", row.spin * 100.0).into(),
            row.context_switches.to_string().into(),
        ]
    };
    render(&columns, &rows.iter().map(cells).collect::<Vec<_>>(), terminal_width())
}
