//! The command line.

mod args;
mod check;
mod common;
mod files;
mod generate;
mod help;
mod machine;
mod matrix;
mod out;
mod pages;
mod progress;
mod rate;
mod report;
mod size;
mod sort;
mod stop;

use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command};
use out::Problem;

/// The whole program.
pub(crate) fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // clap prints in its own style: help on standard output, errors on standard error.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { out::EXIT_USAGE } else { 0 });
        }
    };
    match dispatch(cli) {
        Ok(code) => ExitCode::from(code),
        Err(problem) => {
            problem.say();
            ExitCode::from(problem.code)
        }
    }
}

fn dispatch(cli: Cli) -> Result<u8, Problem> {
    match cli.command {
        Command::Sort(args) => sort::run(&args),
        Command::Plan(args) => matrix::plan(&args),
        Command::Shape(args) => matrix::shape(&args),
        Command::Generate(args) => generate::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Rate(args) => rate::run(&args),
        Command::Man { dir } => pages::man(dir.as_deref()),
        Command::Completions { shell } => pages::completions(shell),
    }
}
