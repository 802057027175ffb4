//! The options of `cosched run`.

use super::array::{Array, parse_array};
use super::files::Files;
use super::terms::Terms;
use super::waiting::{WaitOption, parse_strategy, parse_wait};
use crate::parsers::{class_parser, explained, parse_node, part_of_time, policy_parser};
use clap::builder::TypedValueParser;
use clap::{Args, ValueEnum};
use cosched_api::{Class, NodeResources, OnNodeLoss, Policy, Waiting, parse};
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(Args, Debug)]
#[command(after_help = crate::commands::help::RUN)]
pub(crate) struct Run {
    /// How urgent: express (administrators), interactive, batch or standby [default: interactive; batch with --detach]
    #[arg(long, short, value_name = "CLASS", value_parser = class_parser(), hide_possible_values = true)]
    pub(crate) class: Option<Class>,

    /// Concurrent CPUs of the job; in a cluster, CPUs beyond this node's are taken from other nodes [default: all of the node's]
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) cpus: Option<u32>,

    /// In a cluster: the job's nodes with CPUs, as a:2,b:2, or also with memory, a:2:4G [default: all CPUs of this node]
    #[arg(long, value_name = "NODE[:CPUS[:MEM]],…", value_delimiter = ',', value_parser = parse_node,
          conflicts_with_all = ["cpus", "mem"])]
    pub(crate) nodes: Vec<NodeResources>,

    /// The queue, if queues are configured [default: the first one]
    #[arg(long, value_name = "NAME")]
    pub(crate) queue: Option<String>,

    /// In a cluster: what to do on a node failure: kill the job, keep the rest running, or requeue (restart) the job
    #[arg(long, value_name = "WHAT", value_parser = node_loss())]
    pub(crate) on_node_loss: Option<OnNodeLoss>,

    /// At most this part of the time, in whole time slots, as 50%; the job is a gang then, whatever the policy
    #[arg(long, value_name = "PART", value_parser = part_of_time, conflicts_with_all = ["strategy"])]
    pub(crate) share: Option<f64>,

    /// Memory that the job is expected to use, as 4G: it waits until that is free. No limit: see --mem-limit
    #[arg(long, value_name = "SIZE", value_parser = parse::size_bytes)]
    pub(crate) mem: Option<u64>,

    /// A name for the job [default: the command's]
    #[arg(long, value_name = "NAME", value_parser = job_name)]
    pub(crate) name: Option<String>,

    #[command(flatten)]
    pub(crate) terms: Terms,

    #[command(flatten)]
    pub(crate) files: Files,

    /// auto, gang, local, pb or dcs, independently of the machine's policy
    #[arg(long, value_name = "POLICY", value_parser = policy_parser(), hide_possible_values = true)]
    pub(crate) policy: Option<Policy>,

    /// How its processes wait for messages: auto, busy, spin-block or spin-yield (also with a spin time, spin-block:50us), micro, or off
    #[arg(long, value_name = "HOW", value_parser = parse_wait)]
    pub(crate) wait: Option<WaitOption>,

    /// Policy and wait by their short name in the literature: GS, Local, SB, SY, DCS, DCS-SB, PB, PB-SB, …
    #[arg(long, value_name = "NAME", value_parser = parse_strategy, conflicts_with_all = ["policy", "wait"])]
    pub(crate) strategy: Option<(Policy, Waiting)>,

    /// Run in the background: print the job's id and return; the output goes to a file (`cosched log`)
    #[arg(long, short)]
    pub(crate) detach: bool,

    /// With --detach: a job for each index, as 1-20; %4: at most 4 at a time. Each finds its index in COSCHED_ARRAY_INDEX
    #[arg(long, value_name = "INDEXES[%N]", value_parser = parse_array, requires = "detach")]
    pub(crate) array: Option<Array>,

    /// What to do with processes that remain when the command has ended
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = Leftovers::Wait)]
    pub(crate) leftovers: Leftovers,

    /// Write what becomes of the command to this file before it runs, as a line of JSON: registered (with the job), without-daemon, or failed
    #[arg(long, value_name = "FILE", conflicts_with = "detach")]
    pub(crate) report: Option<PathBuf>,

    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

impl Run {
    /// The requested policy and way to wait.
    pub(crate) fn how(&self) -> (Option<Policy>, Option<WaitOption>) {
        match self.strategy {
            Some((policy, waiting)) => (Some(policy), Some(WaitOption::On(waiting))),
            None => (self.policy, self.wait),
        }
    }
}

/// Numbers are ids: a job with a number as its name would be ambiguous.
fn job_name(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err("the name is empty; leave --name out to have the command's".to_owned());
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("a number is a job's id, not a name; write for example run-{text}"));
    }
    Ok(text.to_owned())
}

fn node_loss() -> impl TypedValueParser<Value = OnNodeLoss> {
    explained([
        ("kill", "End its processes on the other nodes", OnNodeLoss::Kill),
        ("keep", "Keep its processes on the other nodes running", OnNodeLoss::Keep),
        ("requeue", "End its processes on the other nodes, and restart it", OnNodeLoss::Requeue),
    ])
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Leftovers {
    /// Wait for them: they are part of the job
    Wait,
    /// End them
    Kill,
}
