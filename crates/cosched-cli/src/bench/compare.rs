//! `cosched bench compare`: measurement, model and simulation side by side (DESIGN.md, chapter 7).
//!
//! The measurement is a document of `cosched bench slowdown`. Model and simulator get the same profile of the program
//! and the same machine file. The differences are shown beside the numbers.

use super::measured::read;
use super::policy::Choice;
use crate::context::Context;
use crate::format::{command_line, or_dash};
use crate::model::machines;
use crate::model::source::note_incomplete;
use crate::out::{Failure, say, terminal_width};
use crate::sim::memory::working_set;
use crate::table::Listing;
use clap::Args;
use cosched_sim::Footprint;
use cosched_study::compare::{Report, Row, Subject};
use cosched_study::predict::of_profile;
use std::path::PathBuf;

/// Options of `cosched bench compare`.
#[derive(Args, Debug)]
#[command(after_help = super::help::COMPARE)]
pub(crate) struct Compare {
    /// The measurement: slowdown.json of `cosched bench slowdown`, or the directory of its --out
    #[arg(value_name = "MEASURED")]
    measured: PathBuf,

    /// The program's profile, from `cosched record`
    #[arg(long, value_name = "FILE")]
    profile: PathBuf,

    /// The machine: a file of `cosched model calibrate`, or the name of a shipped one
    #[arg(long, value_name = "MACHINE")]
    machine: String,

    /// Slot length of gangs in the simulator
    #[arg(long, value_name = "MS", default_value_t = 100.0)]
    slot_ms: f64,

    /// Data that each process goes over again and again, as 512KiB: what other jobs evict of it from the machine's cache is loaded again
    #[arg(long, value_name = "SIZE", value_parser = working_set, allow_negative_numbers = true)]
    working_set: Option<u64>,
}

pub(crate) fn compare(context: &Context, options: &Compare) -> Result<u8, Failure> {
    if !(options.slot_ms > 0.0 && options.slot_ms.is_finite()) {
        return Err(Failure::explained(
            2,
            "--slot-ms must be above 0",
            "it is the length of a slot",
            "give ms, such as 100",
        ));
    }
    let measured = read(&options.measured)?;
    let profile = crate::profile::read(&options.profile)?;
    let machine = machines::find(&options.machine)?;
    if !measured.command.is_empty() && measured.command != profile.command {
        let [measured, recorded] = [&measured.command, &profile.command].map(|command| command_line(command));
        say(&format!("note: measured was `{measured}`, recorded `{recorded}`: compare the same work only"));
    }
    if options.working_set.is_some() && machine.cache.is_none() {
        let (why, hint) = (format!("{} has no [cache]", options.machine), "`cosched model calibrate` measures it");
        return Err(Failure::explained(2, "--working-set has no effect", &why, hint));
    }
    let footprint = Footprint { working_set_bytes: options.working_set.unwrap_or(0), ..Footprint::default() };
    let cpus = measured.cpus.filter(|cpus| *cpus > 0).unwrap_or(profile.tasks);
    let [measured_name, profile_name] = [&options.measured, &options.profile].map(|path| path.display().to_string());
    let job = of_profile(machine.clone(), &profile, &profile_name, 0.0)?.job;
    note_incomplete(&profile, &options.profile);
    let slot_ns = (options.slot_ms * 1e6).round() as u64;
    let strategy_of = |policy: &str| Choice::parse(policy).ok()?.strategy();
    let strategy_of: &dyn Fn(&str) -> _ = &strategy_of;
    let subject = Subject { measured_name, profile_name, job, machine, profile, footprint, cpus, slot_ns, strategy_of };
    let report = subject.report(&measured)?;
    context.give(&report, || page(&report))
}

fn page(report: &Report) -> String {
    let two = |value: Option<f64>| or_dash(value.map(|value| format!("{value:.2}")));
    let percent = |value: Option<f64>| or_dash(value.map(|value| format!("{:+.0} %", value * 100.0)));
    let measured = |row: &Row| match row.measured_stderr {
        Some(stderr) => format!("{:.2} ±{stderr:.2}", row.measured),
        None => format!("{:.2}", row.measured),
    };
    let table = Listing::of(&report.results)
        .words("POLICY", 0, |row| row.policy.as_str())
        .numbers("JOBS", 0, |row| row.jobs.to_string())
        .numbers("MEASURED s_j", 0, measured)
        .numbers("MODEL", 0, |row| two(row.model))
        .numbers("DIFFERENCE", 0, |row| percent(row.model_difference))
        .numbers("SIMULATED", 0, |row| two(row.simulated))
        .numbers("DIFFERENCE", 0, |row| percent(row.simulated_difference))
        .words("AS", 1, |row| row.strategy.unwrap_or("-"));
    let simulated = or_dash(report.simulated_t1_s.map(|time| format!("{time:.3} s")));
    format!(
        "t_1 of the {}: measured {:.3} s, recorded {:.3} s, simulated {simulated}\n\n{}\n\
        MODEL: equation 6 of Strazdins & Uhlmann, in which waiting processes give their CPU away; for strict gangs j. \
        DIFFERENCE is relative to the measurement.\n",
        report.of,
        report.measured_t1_s,
        report.recorded_t1_s,
        table.render(terminal_width()),
    )
}
