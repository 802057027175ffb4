//! `cosched slurm`: the commands that Slurm's own hooks call, so that jobs of `sbatch`, `srun` and `salloc` are cosched jobs.
//!
//! The prolog runs as root before a job's first step on a node and registers the job for its user. The task prolog runs as the user in each task,
//! between slurmstepd's preparations and the program, and puts the task into the job. The epilog runs as root and ends remaining processes. The
//! cosched job of Slurm's job 17 is the one named `slurm-17` of that user, on all its nodes if they are in one cosched cluster: nothing else is
//! stored, so nothing can be out of date. slurmstepd stays outside: it must never be frozen.
//!
//! A failing hook does not fail the user's job, unless the site requests that of the prolog: `when_down = "fail"`.

mod check;
mod controller;
mod environment;
mod epilog;
mod finding;
pub(crate) mod fuzz;
mod help;
mod hostlist;
mod jobs;
mod log;
mod names;
mod prolog;
mod settings;
mod spread;
mod task;

use crate::context::Context;
use crate::out::Failure;
use clap::{Args, Subcommand};
use cosched_api::{Client, SYSTEM_SOCKET};
use environment::SlurmJob;
use settings::Settings;
use std::path::PathBuf;
use std::time::Duration;

/// Longer than a daemon takes to answer, and short compared to Slurm's own limits for its hooks.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Options of `cosched slurm`.
#[derive(Args, Debug)]
#[command(after_help = help::SLURM, subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Slurm {
    /// The site's settings; missing keys, or a missing file, mean the defaults
    #[arg(long, global = true, value_name = "FILE", default_value = "/etc/cosched-slurm.toml")]
    settings: PathBuf,

    #[command(subcommand)]
    hook: Hook,
}

#[derive(Clone, Copy, Debug, Subcommand)]
enum Hook {
    /// For Prolog: registers the job for its user
    Prolog,
    /// For TaskProlog: moves the task into the job before its program starts
    TaskProlog,
    /// For Epilog: ends the job's remaining processes
    Epilog,
    /// Check Slurm's configuration, the settings and the daemon for inconsistencies
    Check,
}

/// Runs a hook; returns its exit code.
pub(crate) fn slurm(context: &Context, options: &Slurm) -> Result<u8, Failure> {
    if matches!(options.hook, Hook::Check) {
        return check::check(context, &options.settings);
    }
    let (settings, problem) = match Settings::read(&options.settings) {
        Ok(settings) => (settings, None),
        Err(failure) => (Settings::default(), Some(failure)),
    };
    let job = SlurmJob::of(|name| std::env::var(name).ok())?;
    if let Some(failure) = problem {
        log::write(&settings, job.id, &format!("{}; using the defaults", failure.message));
    }
    let context = HookContext { global: context, settings, job };
    match options.hook {
        Hook::Prolog => Ok(prolog::prolog(&context)),
        Hook::TaskProlog => task::task_prolog(&context),
        Hook::Epilog | Hook::Check => Ok(epilog::epilog(&context)),
    }
}

/// What all hooks need.
struct HookContext<'a> {
    global: &'a Context,
    settings: Settings,
    job: SlurmJob,
}

impl HookContext<'_> {
    /// Connects to the machine's daemon, never to a user's own: Slurm's jobs share the machine.
    fn connect(&self) -> Result<Client, Failure> {
        connect(self.global, &self.settings)
    }

    fn log(&self, text: &str) {
        log::write(&self.settings, self.job.id, text);
    }
}

fn connect(context: &Context, settings: &Settings) -> Result<Client, Failure> {
    let socket = context.socket.clone().or_else(|| settings.socket.clone()).unwrap_or_else(|| SYSTEM_SOCKET.into());
    let mut client = Client::connect(socket)?;
    client.set_answer_timeout(ANSWER_TIMEOUT);
    Ok(client)
}
