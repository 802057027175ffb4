//! The subcommands, one function each.

mod attach;
pub(crate) mod cluster;
mod columns;
mod each;
pub(crate) mod events;
pub(crate) mod help;
pub(crate) mod history;
mod limits;
mod list;
mod log;
pub(crate) mod matrix;
mod nodes;
pub(crate) mod options;
mod pages;
pub(crate) mod queues;
pub(crate) mod resources;
mod select;
pub(crate) mod show;
mod status;
mod steer;

pub(crate) use columns::column_names;

use crate::args::{self, Commands};
use crate::context::Context;
use crate::out::Failure;

/// Runs the subcommand; returns the exit code.
pub(crate) fn dispatch(context: &Context, command: &Commands) -> Result<u8, Failure> {
    match command {
        Commands::Run(options) => crate::run::run(context, options),
        Commands::Join(options) => crate::join::join(context, options),
        Commands::Adopt(options) => crate::adopt::adopt(context, options),
        Commands::Release(options) => steer::release(context, &options.jobs),
        Commands::Ps(options) => list::ps(context, options),
        Commands::Record(options) => crate::record::record(context, options),
        Commands::Profile(options) => crate::profile::profile(context, options),
        Commands::Show(options) => show::show(context, &options.jobs),
        Commands::Status(options) => status::status(context, options.watch),
        Commands::Top(options) => crate::top::top(context, options),
        Commands::Web(options) => crate::web::web(context, options),
        Commands::Trace(options) => crate::trace::trace(context, options),
        Commands::Events(options) => events::events(context, options),
        Commands::Limits => limits::limits(context),
        Commands::Metrics => pages::metrics(context),
        Commands::Suspend(options) => steer::suspend(context, options),
        Commands::Resume(options) => steer::resume(context, options),
        Commands::Kill(options) => steer::kill(context, options),
        Commands::Class(options) => steer::class(context, options),
        Commands::Share(options) => steer::share(context, options),
        Commands::Resources(options) => resources::resources(context, options),
        Commands::Cluster(options) => cluster::cluster(context, options),
        Commands::Queues(options) => queues::queues(context, options),
        Commands::Policy(options) => steer::policy(context, options),
        Commands::Nodes(options) => nodes::nodes(context, options),
        Commands::Wait(options) => steer::wait(context, &options.jobs),
        Commands::History(options) => history::history(context, options),
        Commands::Log(options) => log::log(context, options),
        Commands::Attach(options) => attach::attach(context, options),
        Commands::Setup(options) => crate::setup::setup(context, options),
        Commands::Demo(options) => crate::demo::demo(context, options),
        Commands::Bench(options) => crate::bench::bench(context, options),
        Commands::Advise(options) => crate::advise::advise(context, options),
        Commands::Workload(options) => crate::workload::workload(context, options),
        Commands::Sim(options) => crate::sim::sim(context, options),
        Commands::Model(options) => crate::model::model(context, options),
        Commands::Pipeline(options) => crate::pipeline::pipeline(context, options),
        Commands::Slurm(options) => crate::slurm::slurm(context, options),
        Commands::Shim(options) => crate::shim::shim(context, options),
        Commands::Man(options) => pages::man(args::command(), options.dir.as_deref()),
        Commands::Completions(options) => pages::completions(options.shell),
        Commands::Version => pages::version(context),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    pub(crate) use super::status::tests::example as example_status;
}
