//! `cosched resources`: changes the resources that jobs request.

use crate::context::Context;
use crate::jobs::{Answers, for_each};
use crate::out::Failure;
use crate::parsers::parse_node;
use clap::Args;
use cosched_api::{NodeResources, ResourcesRequest, parse};

#[derive(Args, Debug)]
#[command(after_help = super::help::RESOURCES)]
#[group(id = "wanted", required = true, multiple = true, args = ["cpus", "mem", "nodes"])]
pub(crate) struct ChangeResources {
    /// Concurrent CPUs, the total over all nodes of the job [default: unchanged]
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) cpus: Option<u32>,

    /// Memory, the total over all nodes of the job, as 512M or 4G [default: unchanged]
    #[arg(long, value_name = "SIZE", value_parser = parse::size_bytes)]
    pub(crate) mem: Option<u64>,

    /// Resources of each node, as a:2,b:2 or a:2:4G; replaces the job's whole request
    #[arg(long, value_name = "NODE[:CPUS[:MEM]],…", value_delimiter = ',', value_parser = parse_node,
          conflicts_with_all = ["cpus", "mem"])]
    pub(crate) nodes: Vec<NodeResources>,

    /// Ids or names
    #[arg(required = true, value_name = "JOB")]
    pub(crate) jobs: Vec<String>,
}

/// `cosched resources JOB…`.
pub(crate) fn resources(context: &Context, options: &ChangeResources) -> Result<u8, Failure> {
    let request = ResourcesRequest { nodes: options.nodes.clone(), cpus: options.cpus, mem_bytes: options.mem };
    // One after the other: what one job gives up is then available to the next.
    let mut shown = Answers::new(context);
    let first = for_each(context, &options.jobs, |client, id| {
        shown.show(&client.set_resources(id, &request)?);
        Ok(0)
    })?;
    shown.end(first)
}
