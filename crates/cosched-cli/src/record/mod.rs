//! `cosched record`: runs a command and writes what its tasks computed, sent and waited for, as a profile.

pub(crate) mod help;
mod look;
mod scratch;
mod shadow;

use crate::context::Context;
use crate::format::command_line;
use crate::out::{Failure, json_line, print_aside, print_json, say};
use crate::profile::{rank_files, summary};
use crate::run::waiting::{find_library, preload};
use crate::run::{EXIT_FAILED, find_program, shell_code};
use crate::target::Target;
use clap::Args;
use cosched_api::parse;
use cosched_study::profile::{By, Profile, Run, Totals, from_observation, from_rank_files};
pub(crate) use look::Looks;
use scratch::Scratch;
use serde::Serialize;
use shadow::Ended;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The library's file, and the variable that names another path to it.
const LIBRARY: &str = "libcosched_record.so";
const LIBRARY_VARIABLE: &str = "COSCHED_RECORD_LIBRARY";

/// Options of `cosched record`.
#[derive(Args, Debug)]
#[command(after_help = help::RECORD)]
pub(crate) struct Record {
    /// Where to write the profile
    #[arg(long, short, value_name = "FILE", default_value = "cosched-profile.json")]
    output: PathBuf,

    /// Size limit of the operations of each rank; beyond it, only totals are kept
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = size_above_0)]
    limit: u64,

    /// An existing directory, shared by all nodes, for the files of the ranks [default: that for temporary files]
    #[arg(long, value_name = "DIR")]
    scratch: Option<PathBuf>,

    /// Print no table at the end
    #[arg(long, short)]
    quiet: bool,

    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

fn size_above_0(text: &str) -> Result<u64, String> {
    match parse::size_bytes(text) {
        Ok(0) => Err("nothing would be recorded; give a size such as 64M".into()),
        size => size.map_err(|error| error.to_string()),
    }
}

/// What --json prints.
#[derive(Serialize)]
struct Written<'a> {
    profile: &'a Path,
    by: By,
    complete: bool,
    exit: u8,
    totals: Totals,
    warnings: &'a [String],
}

pub(crate) fn record(context: &Context, options: &Record) -> Result<u8, Failure> {
    let program = find_program(&options.command[0], std::env::var_os("PATH"))?;
    let library = find_library(LIBRARY, LIBRARY_VARIABLE).ok_or_else(not_installed)?;
    // Before the command runs for an hour.
    let target = Target::prepare(&options.output).map_err(of_record)?;
    let scratch = Scratch::make(options.scratch.as_deref())?;
    let environment = [
        ("LD_PRELOAD", preload(&library)),
        ("COSCHED_RECORD_DIR", scratch.path().into()),
        ("COSCHED_RECORD_LIMIT", options.limit.to_string().into()),
    ];
    let recorded = jiff::Timestamp::now().to_string();
    let ended = shadow::run(&program, &options.command, &environment, scratch.path())?;
    let exit = shell_code(ended.status);
    let command = options.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let profile = build(scratch.path(), &Run { command, recorded, host: host(), exit }, ended);
    let written = json_line(&profile).and_then(|text| target.write(&text));
    drop(scratch);
    written.map_err(of_record)?;
    report(context, options, &profile)?;
    Ok(exit)
}

fn build(directory: &Path, run: &Run, ended: Ended) -> Profile {
    let of_ranks = from_rank_files(rank_files(directory), run);
    of_ranks.unwrap_or_else(|| {
        let mut profile = from_observation(run, ended.threads, ended.elapsed_s, ended.cpu_s, ended.looks);
        let note = "no MPI call was recorded, so there are no messages; a Fortran program with Open MPI, a statically linked one \
                    and ranks on other nodes cannot be recorded (docs/record.md)";
        profile.warnings.push(note.into());
        profile
    })
}

fn report(context: &Context, options: &Record, profile: &Profile) -> Result<(), Failure> {
    if !options.quiet {
        print_aside(&summary(profile, None));
        let shown = command_line(&[options.output.display().to_string()]);
        say(&format!("the profile is in {shown}; try: cosched sim program --profile {shown}"));
    }
    if context.json {
        let Profile { by, complete, exit, .. } = *profile;
        let totals = profile.totals();
        print_json(&Written { profile: &options.output, by, complete, exit, totals, warnings: &profile.warnings })?;
    }
    Ok(())
}

/// The command's exit code is the program's, unless there is no profile.
fn of_record(failure: Failure) -> Failure {
    Failure { code: EXIT_FAILED, ..failure }
}

fn not_installed() -> Failure {
    Failure::explained(
        EXIT_FAILED,
        "`cosched record` needs the recording library",
        &format!("{LIBRARY} is neither beside `cosched` nor in ../lib/cosched"),
        &format!("`make build` and `make install` put it there; or set {LIBRARY_VARIABLE} to its path"),
    )
}

fn host() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").map(|name| name.trim().to_owned()).unwrap_or_default()
}
