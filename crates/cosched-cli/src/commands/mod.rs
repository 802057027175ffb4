//! The subcommands, one function each.

pub(crate) mod cluster;
pub(crate) mod help;
mod limits;
mod list;
mod log;
pub(crate) mod matrix;
mod nodes;
mod pages;
pub(crate) mod queues;
pub(crate) mod resources;
mod show;
mod status;
mod steer;

use crate::args::{Cli, Commands};
use crate::out::Failure;

/// Runs the subcommand; returns the exit code.
pub(crate) fn dispatch(cli: &Cli) -> Result<u8, Failure> {
    match &cli.command {
        Commands::Run(options) => crate::run::run(cli, options),
        Commands::Join(options) => crate::join::join(cli, options),
        Commands::Ps(options) => list::ps(cli, options.all),
        Commands::Record(options) => crate::record::record(cli, options),
        Commands::Profile(options) => crate::profile::profile(cli, options),
        Commands::Show(options) => show::show(cli, &options.jobs),
        Commands::Status(options) => status::status(cli, options.watch),
        Commands::Top(options) => crate::top::top(cli, options),
        Commands::Limits => limits::limits(cli),
        Commands::Metrics => pages::metrics(cli),
        Commands::Suspend(options) => steer::suspend(cli, &options.jobs),
        Commands::Resume(options) => steer::resume(cli, &options.jobs),
        Commands::Kill(options) => steer::kill(cli, options),
        Commands::Class(options) => steer::class(cli, options),
        Commands::Resources(options) => resources::resources(cli, options),
        Commands::Cluster(options) => cluster::cluster(cli, options),
        Commands::Queues(options) => queues::queues(cli, options),
        Commands::Policy(options) => steer::policy(cli, options),
        Commands::Nodes(options) => nodes::nodes(cli, options),
        Commands::Wait(options) => steer::wait(cli, &options.jobs),
        Commands::Log(options) => log::log(cli, options),
        Commands::Demo(options) => crate::demo::demo(cli, options),
        Commands::Bench(options) => crate::bench::bench(cli, options),
        Commands::Advise(options) => crate::advise::advise(cli, options),
        Commands::Workload(options) => crate::workload::workload(cli, options),
        Commands::Sim(options) => crate::sim::sim(cli, options),
        Commands::Model(options) => crate::model::model(cli, options),
        Commands::Pipeline(options) => crate::pipeline::pipeline(cli, options),
        Commands::Slurm(options) => crate::slurm::slurm(cli, options),
        Commands::Man(options) => pages::man(options.dir.as_deref()),
        Commands::Completions(options) => pages::completions(options.shell),
        Commands::Version => pages::version(cli),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    pub(crate) use super::status::tests::example as example_status;
}
