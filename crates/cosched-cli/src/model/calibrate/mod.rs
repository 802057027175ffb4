//! `cosched model calibrate`: this machine's constants, measured.

mod cache;
mod file;
mod measure;
mod run;

use super::help;
use crate::context::Context;
use crate::out::{Failure, print, print_json, say};
use crate::run::signals::Signals;
use crate::target::Target;
use clap::{Args, ValueEnum};
use cosched_model::Machine;
use measure::{Samples, Tools};
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(Args, Debug)]
#[command(after_help = help::CALIBRATE)]
pub(crate) struct Calibrate {
    /// The mpirun of the MPI that the programs were built with [default: mpirun.openmpi, else mpirun]
    #[arg(long, value_name = "CMD")]
    mpirun: Option<OsString>,

    /// How ranks wait during the measurement of messages' CPU time: auto, busy or spin-block
    #[arg(long, value_enum, value_name = "HOW", default_value_t = Wait::Auto, hide_possible_values = true)]
    wait: Wait,

    /// Number of repetitions; medians are written
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    repeat: u32,

    /// Order of the matrices of matmul
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(100..=20_000))]
    matmul_n: u32,

    /// The machine's name in the file [default: the host's]
    #[arg(long, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    name: Option<String>,

    /// Write the machine file here [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Wait {
    /// spin-block where the wait library is found
    Auto,
    /// As in the MPI library, which spins
    Busy,
    /// The wait library makes them yield the CPU at once
    SpinBlock,
}

pub(crate) fn calibrate(context: &Context, options: &Calibrate) -> Result<u8, Failure> {
    let tools = Tools::find(options.mpirun.as_deref(), options.wait)?;
    // Before minutes of measurement, not after them.
    let target = options.output.as_deref().map(Target::prepare).transpose()?;
    let signals = Signals::take().map_err(|e| Failure::other(format!("cannot wait for signals: {e}")))?;
    say(&format!("calibrate: {}", tools.description()));
    let mut samples = Samples::default();
    for repetition in 1..=options.repeat {
        let told = tools.measure(&signals, options.matmul_n, &mut samples)?;
        say(&format!("calibrate: {repetition}/{}: {told}", options.repeat));
    }
    let text = file::text(options, &tools, &samples);
    let machine = Machine::parse(&text, "the machine file").map_err(|error| {
        let hint = "retry on an otherwise idle machine, with a higher --repeat";
        Failure::explained(1, "the measured constants are not a valid machine", &error.to_string(), hint)
    })?;
    match target {
        Some(target) => {
            target.write(&text)?;
            say(&format!(
                "calibrate: wrote {}",
                options.output.as_deref().unwrap_or(std::path::Path::new("")).display()
            ));
            if context.json {
                print_json(&machine)?;
            }
        }
        None if context.json => print_json(&machine)?,
        None => print(&text)?,
    }
    Ok(0)
}
