//! The command line, defined once: help, man pages and completions come from here.

use crate::commands::options;
use crate::context::Context;
use clap::{Parser, Subcommand};
use std::ffi::OsString;

/// Run parallel jobs side by side on the same CPUs, without the collapse.
///
/// cosched gives each parallel job its own time slots: all its processes run together, so they do not spin for
/// partners that are not running. Programs need no change.
#[derive(Debug, Parser)]
#[command(name = "cosched", version, after_help = crate::commands::help::COSCHED, max_term_width = 100)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) context: Context,

    #[command(subcommand)]
    pub(crate) command: Commands,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Commands {
    /// Run a command as a job
    Run(crate::run::Run),
    /// Put a command, or a process that runs, into a job that is there
    Join(crate::join::Join),
    /// List jobs
    #[command(visible_alias = "ls")]
    Ps(options::Ps),
    /// Run a command and write what its tasks compute, send and wait for, as a profile
    Record(crate::record::Record),
    /// Look at profiles, and make programs for the simulator of them
    Profile(crate::profile::ProfileCommand),
    /// Show everything about jobs
    Show(options::Jobs),
    /// Show the CPUs, the matrix, the switches and whatever is wrong
    Status(options::Status),
    /// Watch CPUs, matrix and jobs on the terminal, and steer jobs by keys
    Top(crate::top::Top),
    /// Show what you may have of the daemon, and what you have
    #[command(after_help = crate::commands::help::LIMITS)]
    Limits,
    /// Print the daemon's counters and histograms as Prometheus reads them
    #[command(after_help = crate::commands::help::METRICS)]
    Metrics,
    /// Stop jobs until they are resumed; they keep their memory
    Suspend(options::Jobs),
    /// Let suspended jobs go on, and give dropped ones slots again
    Resume(options::Jobs),
    /// Send a signal to every process of jobs: by default TERM, and KILL after 5 s
    Kill(options::Kill),
    /// Change the class of jobs
    Class(options::ChangeClass),
    /// Change the CPUs and the memory that jobs want
    Resources(crate::commands::resources::ChangeResources),
    /// Show or change the policy of the machine or of one job
    Policy(options::ChangePolicy),
    /// List the nodes of the cluster with their load and the queues, or drain nodes
    Nodes(options::Nodes),
    /// List the queues of the cluster, or change them
    Queues(crate::commands::queues::Queues),
    /// Repair, back up or restore what the cluster has in its store (administrators)
    Cluster(crate::commands::cluster::Cluster),
    /// Wait until jobs have ended
    Wait(options::Jobs),
    /// Show the output of a detached job, or a job's events
    Log(options::Log),
    /// Compare plain Linux, local and gang scheduling on this machine, live
    Demo(crate::demo::Demo),
    /// Measure what sharing costs, here, for any command
    Bench(crate::bench::Bench),
    /// Run a program briefly, alone and in company, and say which policy suits it
    Advise(crate::advise::Advise),
    /// Look at, fit, generate and convert workloads: traces and job lists
    Workload(crate::workload::Workload),
    /// Simulate strategies on clusters, in whole nanoseconds
    Sim(crate::sim::Sim),
    /// Predict what sharing CPUs costs a program, from a machine's constants
    Model(crate::model::Model),
    /// Look at running pipelines of stages, and at reports of their runs
    Pipeline(crate::pipeline::Pipeline),
    /// What Slurm's hooks call, so that its jobs are cosched jobs
    Slurm(crate::slurm::Slurm),
    /// Write the man pages
    Man(options::Man),
    /// Write the completions of a shell
    Completions(options::Completions),
    /// Print the versions of this command and of the daemon
    Version,
}

/// Whether the command line is one of `cosched run` or `cosched record`, whose usage errors have another exit code: those of the command
/// itself begin at 1.
pub(crate) fn is_run(words: &[OsString]) -> bool {
    let mut words = words.iter().skip(1).filter_map(|word| word.to_str());
    while let Some(word) = words.next() {
        match word {
            "--socket" => drop(words.next()),
            _ if word.starts_with('-') => {}
            _ => return matches!(word, "run" | "record"),
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn what_follows_the_command_is_the_commands() {
        let cli = Cli::try_parse_from(["cosched", "run", "-n", "2", "mpirun", "-n", "4", "--json", "./a.out"]).unwrap();
        let Commands::Run(run) = &cli.command else { panic!("{cli:?}") };
        assert_eq!((run.cpus, cli.context.json), (Some(2), false));
        assert_eq!(run.command, ["mpirun", "-n", "4", "--json", "./a.out"]);
        let cli = Cli::try_parse_from(["cosched", "--json", "run", "-d", "--", "-x"]).unwrap();
        let Commands::Run(run) = &cli.command else { panic!("{cli:?}") };
        assert!(cli.context.json && run.detach && run.command == ["-x"]);
    }

    #[test]
    fn mistakes_get_the_valid_words_and_the_nearest() {
        let message = |words: &[&str]| Cli::try_parse_from(words).unwrap_err().to_string();
        let class = message(&["cosched", "run", "--class", "bacth", "true"]);
        assert!(class.contains("[possible values: express, interactive, batch, standby]"), "{class}");
        assert!(class.contains("'batch'"), "{class}");
        let policy = message(&["cosched", "policy", "gnag"]);
        assert!(policy.contains("auto, gang, local, pb, dcs, default") && policy.contains("'gang'"), "{policy}");
        let size = message(&["cosched", "run", "--mem", "4X", "true"]);
        assert!(size.contains("`X` in `4X` is no unit of size"), "{size}");
        let signal = message(&["cosched", "kill", "-s", "TREM", "7"]);
        assert!(signal.contains("did you mean TERM?"), "{signal}");
        assert!(message(&["cosched", "suspnd", "7"]).contains("'suspend'"));
    }

    #[test]
    fn knows_the_command_lines_of_run() {
        let is = |line: &str| is_run(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert!(is("cosched run --bad") && is("cosched --socket x --json run") && is("cosched --socket=x run"));
        assert!(is("cosched record --bad"));
        assert!(!is("cosched ps run") && !is("cosched --socket run ps") && !is("cosched"));
    }
}
