//! `--platform`: the simulated machine from a file.

use super::machine::Machine;
use super::model::Model;
use crate::out::{EXIT_REFUSED, Failure};
use clap::Args;
use cosched_sim::platform::{Platform, read_toml, read_xml};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The largest file: it is held in memory.
const BYTES_MAX: u64 = 64 << 20;

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Beyond the paper's machine")]
pub(crate) struct OnPlatform {
    /// A platform: hosts with speeds, and the links between them, as TOML or SimGrid's XML (docs/platforms.md). Its hosts are the nodes
    #[arg(long = "platform", value_name = "FILE")]
    file: Option<PathBuf>,
}

impl OnPlatform {
    /// Reads the platform, which then gives the numbers of nodes and of their CPUs that the options leave open.
    pub(crate) fn read(&self, model: &mut Model, machine: &mut Machine) -> Result<Option<Platform>, Failure> {
        let Some(path) = &self.file else { return Ok(None) };
        let platform = read(path)?;
        let hosts = platform.hosts();
        let nodes = model.nodes.unwrap_or(hosts.len() as u32);
        model.nodes = Some(nodes);
        let (first, used) = (&hosts[0], &hosts[..hosts.len().min(nodes as usize)]);
        if let Some(other) = used.iter().find(|host| host.cores != first.cores && machine.cpus_per_node.is_none()) {
            let what = format!("{} has {} CPUs, and {} has {}", first.name, first.cores, other.name, other.cores);
            let hint = "make them equal, or give --cpus-per-node N to use as many of each";
            return Err(Failure::explained(
                EXIT_REFUSED,
                &what,
                "all nodes of the simulator have the same number",
                hint,
            ));
        }
        machine.cpus_per_node.get_or_insert(first.cores);
        Ok(Some(platform))
    }
}

fn read(path: &Path) -> Result<Platform, Failure> {
    let failed = |why: &str, hint: &str| Failure::explained(1, &format!("cannot read {}", path.display()), why, hint);
    let mut text = Vec::new();
    let file = File::open(path).and_then(|file| file.take(BYTES_MAX + 1).read_to_end(&mut text));
    file.map_err(|error| failed(&error.to_string(), "check the path and its permissions"))?;
    if text.len() as u64 > BYTES_MAX {
        return Err(failed("it has more than 64 MiB", "describe equal hosts as a cluster"));
    }
    let text = String::from_utf8(text).map_err(|error| failed(&error.to_string(), "platforms are UTF-8"))?;
    let platform = if text.trim_start().starts_with('<') { read_xml(&text) } else { read_toml(&text) };
    platform.map_err(|error| Failure { code: EXIT_REFUSED, message: format!("{}: {error}", path.display()) })
}
