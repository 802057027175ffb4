//! `cosched profile`: shows or converts what `cosched record` wrote.

use super::read;
use super::show::summary;
use crate::context::Context;
use crate::out::{Failure, print, print_json, terminal_width};
use clap::{Args, Subcommand};
use cosched_study::profile::{Profile, Totals};
use serde::Serialize;
use std::path::PathBuf;

/// Options of `cosched profile`.
#[derive(Args, Debug)]
#[command(after_help = crate::record::help::PROFILE, subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct ProfileCommand {
    #[command(subcommand)]
    command: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Show computation, I/O and messages of each task
    #[command(after_help = crate::record::help::PROFILE_SHOW)]
    Show {
        /// The profile
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Convert it to a program for the simulator
    #[command(after_help = crate::record::help::PROFILE_PROGRAM)]
    Program {
        /// The profile
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
}

/// What `show --json` prints: the profile without its operations, and its totals.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    profile: &'a Profile,
    totals: Totals,
}

pub(crate) fn profile(context: &Context, options: &ProfileCommand) -> Result<u8, Failure> {
    match &options.command {
        What::Show { file } => {
            let mut profile = read(file)?;
            if !context.json {
                print(&summary(&profile, terminal_width()))?;
                return Ok(0);
            }
            let totals = profile.totals();
            profile.each.iter_mut().for_each(|task| task.operations.clear());
            print_json(&Shown { profile: &profile, totals })?;
        }
        What::Program { file } => {
            let profile = read(file)?;
            let about = format!("# {} tasks of: {}\n", profile.tasks, crate::format::command_line(&profile.command));
            print(&(about + &profile.program()?.to_string()))?;
        }
    }
    Ok(0)
}
