//! Machine files: the shipped ones by name, others by path.

use super::{EXIT_INVALID, help};
use crate::context::Context;
use crate::out::{Failure, print, print_json, terminal_width};
use crate::table::Listing;
use clap::Args;
use cosched_api::parse::nearest;
use cosched_model::Machine;
use cosched_model::machine::{SHIPPED, shipped};
use std::path::Path;

#[derive(Args, Debug)]
#[command(after_help = help::MACHINES)]
pub(crate) struct Machines {
    /// Print the machine file of this machine
    #[arg(long, value_name = "NAME")]
    show: Option<String>,
}

/// The machine of this name or in this file.
pub(crate) fn find(name: &str) -> Result<Machine, Failure> {
    let path = Path::new(name);
    if !path.exists() && !name.contains('/') && !name.ends_with(".toml") {
        return shipped(name).ok_or_else(|| unknown(name));
    }
    let text = std::fs::read_to_string(path).map_err(|error| {
        let hint = format!("give the path of a machine file, or one of {}", names().join(", "));
        Failure::explained(1, &format!("cannot read the machine file {name}"), &error.to_string(), &hint)
    })?;
    Machine::parse(&text, name).map_err(|error| {
        let what = format!("{} is not a valid machine file", error.place());
        Failure::explained(EXIT_INVALID, &what, &error.why, &error.hint)
    })
}

fn names() -> Vec<&'static str> {
    SHIPPED.iter().map(|(name, _)| *name).collect()
}

fn unknown(name: &str) -> Failure {
    let near = nearest(name, names()).map_or(String::new(), |near| format!("did you mean {near}? "));
    Failure::explained(
        2,
        &format!("unknown machine `{name}`"),
        &format!("it is not a file, and the shipped machines are {}", names().join(", ")),
        &format!("{near}`cosched model calibrate -o here.toml` measures this machine"),
    )
}

pub(crate) fn machines(context: &Context, options: &Machines) -> Result<u8, Failure> {
    if let Some(name) = &options.show {
        let text = SHIPPED.iter().find(|(known, _)| known == name).map(|(_, text)| *text);
        print(text.ok_or_else(|| unknown(name))?)?;
        return Ok(0);
    }
    let all: Vec<Machine> = SHIPPED.iter().filter_map(|(name, _)| shipped(name)).collect();
    if context.json {
        all.iter().try_for_each(print_json)?;
        return Ok(0);
    }
    let table = Listing::of(&all)
        .words("NAME", 0, |machine| machine.name.as_str())
        .numbers("CPUS", 0, |machine| machine.cpus_per_node.to_string())
        .numbers("MFLOPS", 0, |machine| format!("{:.0}", 1e3 / machine.compute.flop_ns_level3))
        .numbers("ALPHA us", 0, |machine| machine.network.alpha_us.to_string())
        .numbers("BETA us", 0, |machine| machine.network.beta_us_per_word.to_string())
        .numbers("SWITCH us", 0, |machine| machine.context_switch_us.to_string())
        .words("DESCRIPTION", 0, |machine| machine.description.as_str());
    print(&table.render(terminal_width()))?;
    Ok(0)
}
