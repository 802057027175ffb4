//! `cosched sim program`: copies of a program under strategies, and their slowdown.

use super::costs::Costs;
use super::machine::Machine;
use super::memory::FootprintArgs;
use super::model::Model;
use super::platform::OnPlatform;
use super::progress::watch;
use crate::context::Context;
use crate::input;
use crate::out::{Failure, terminal_width};
use crate::table::Listing;
use clap::Args;
use cosched_sim::program::Program;
use cosched_sim::{Footprint, Strategy};
use cosched_study::profile::{Network, Profile};
use cosched_study::program::{Row, Subject, slowdowns};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Options of `cosched sim program`.
#[derive(Args, Debug)]
#[command(after_help = super::help::PROGRAM)]
pub(crate) struct RunProgram {
    /// The program
    #[arg(value_name = "FILE", required_unless_present = "profile")]
    program: Option<PathBuf>,

    /// A profile from `cosched record`, instead of a program
    #[arg(long, value_name = "FILE", conflicts_with = "program")]
    profile: Option<PathBuf>,

    /// Number of tasks [default for a profile: the recorded ones]
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u32).range(1..), required_unless_present = "profile")]
    tasks: Option<u32>,

    /// Numbers of concurrent copies; the multiprogramming level is raised to them
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

    #[command(flatten)]
    footprint: FootprintArgs,

    #[command(flatten)]
    platform: OnPlatform,

    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
}

pub(crate) fn run(context: &Context, options: &RunProgram) -> Result<u8, Failure> {
    let rows = rows(options)?;
    context.give(&rows, || table(&rows))
}

/// Simulates every strategy with every number of copies.
fn rows(options: &RunProgram) -> Result<Vec<Row>, Failure> {
    let given = options.costs.read()?;
    let (mut model, mut machine) = (options.model.clone(), options.machine.clone());
    let platform = options.platform.read(&mut model, &mut machine)?;
    let (mut subject, recorded) = read(options)?;
    let given = given.or_recorded(recorded.map(|network| (network.alpha_us, network.beta_us_per_word)))?;
    let any = given.config(&machine, given.params(&model, Strategy::Gang));
    subject.footprint = options.footprint.on(&any.memory)?;
    if options.profile.is_some() && model.nodes.is_none() {
        // As large as the job: copies on separate nodes would not share CPUs.
        model.nodes = Some(subject.tasks.div_ceil(any.cpus_per_node));
    }
    let config = |strategy| given.config(&machine, given.params(&model, strategy));
    Ok(slowdowns(&subject, platform.as_ref(), &options.strategies, &options.copies, config, || watch(options.quiet))?)
}

/// The simulated program, and the costs of its messages when it was recorded.
fn read(options: &RunProgram) -> Result<(Subject, Option<Network>), Failure> {
    let subject = |path: &Path, program, tasks| Subject {
        name: path.display().to_string(),
        program: Arc::new(program),
        tasks,
        footprint: Footprint::default(),
    };
    match (&options.program, &options.profile, options.tasks) {
        (_, Some(path), tasks) => {
            let profile = read_profile(path, tasks)?;
            Ok((subject(path, profile.program()?, profile.tasks), profile.network))
        }
        (Some(path), None, Some(tasks)) => Ok((subject(path, read_program(path)?, tasks), None)),
        // The option parser requires both.
        _ => Err(Failure::other("give a program and --tasks, or --profile")),
    }
}

fn read_profile(path: &Path, tasks: Option<u32>) -> Result<Profile, Failure> {
    let profile = crate::profile::read(path)?;
    if let Some(asked) = tasks.filter(|asked| *asked != profile.tasks) {
        return Err(Failure::explained(
            1,
            &format!("{} has {} tasks, not {asked}", path.display(), profile.tasks),
            "one recording does not show how the program divides its work and messages among other numbers of tasks",
            "leave --tasks out, or record it with that number of tasks: cosched record -- mpirun -n N PROGRAM",
        ));
    }
    Ok(profile)
}

fn read_program(path: &Path) -> Result<Program, Failure> {
    let text = input::read(path, "give the path of a program; docs/simulator.md has the format")?;
    text.parse().map_err(|e| Failure::other(format!("{}: {e}", path.display())))
}

fn table(rows: &[Row]) -> String {
    let number =
        |value: Option<f64>, unit: &str| value.map_or("not ended".to_owned(), |value| format!("{value:.3}{unit}"));
    Listing::of(rows)
        .words("STRATEGY", 0, |row| row.strategy)
        .numbers("COPIES", 0, |row| row.copies.to_string())
        .numbers("EXECUTION", 0, |row| number(row.mean_execution_s, " s"))
        .numbers("SLOWDOWN", 0, |row| number(row.slowdown, ""))
        .numbers("COMPUTE", 1, |row| format!("{:.1} %", row.util_compute * 100.0))
        .numbers("SPIN", 1, |row| format!("{:.1} %", row.spin * 100.0))
        .numbers("SWITCHES", 2, |row| row.context_switches.to_string())
        .render(terminal_width())
}
