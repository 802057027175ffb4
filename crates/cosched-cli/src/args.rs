//! The command line, defined once: help, man pages and completions are generated from it.

use crate::commands::options;
use crate::context::Context;
use clap::{Command, CommandFactory, Parser, Subcommand};
use std::ffi::OsString;
use std::fmt::Write as _;

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
    #[command(alias = "exec")]
    Run(crate::run::Run),
    /// Run a command in an existing job, or move a process into it
    Join(crate::join::Join),
    /// Make a running unit, container, cgroup or process a job
    Adopt(crate::adopt::Adopt),
    /// Let adopted jobs go: they run on without cosched
    #[command(after_help = crate::commands::help::RELEASE)]
    Release(options::Jobs),
    /// List jobs
    #[command(visible_alias = "ls", alias = "jobs")]
    Ps(options::Ps),
    /// Run a command and record a profile of its tasks
    Record(crate::record::Record),
    /// Show profiles, or convert them to programs for the simulator
    Profile(crate::profile::ProfileCommand),
    /// Show all details of jobs
    #[command(after_help = crate::commands::help::SHOW_JOBS)]
    Show(options::Jobs),
    /// Show CPUs, matrix, switches between gangs, and problems
    Status(options::Status),
    /// Monitor CPUs, matrix and jobs on the terminal; keys control jobs
    Top(crate::top::Top),
    /// Show and control jobs, matrix and machine in a local browser
    Web(crate::web::Web),
    /// Show events of jobs, the plan and the machine as they happen
    Events(crate::commands::events::Events),
    /// Record slots, jobs and switches for some seconds, for Perfetto
    Trace(crate::trace::Trace),
    /// Show your limits at the daemon, and your usage
    #[command(after_help = crate::commands::help::LIMITS)]
    Limits,
    /// Print the daemon's metrics in Prometheus format
    #[command(after_help = crate::commands::help::METRICS)]
    Metrics,
    /// Suspend jobs: they keep their memory
    Suspend(options::Steer),
    /// Resume suspended jobs; return dropped jobs to gang scheduling
    Resume(options::Steer),
    /// Send a signal to jobs: by default TERM, then KILL after 5 s
    #[command(alias = "cancel")]
    Kill(options::Kill),
    /// Change the class of jobs
    Class(options::ChangeClass),
    /// Change the part of the time that jobs have at most
    Share(options::ChangeShare),
    /// Change the CPUs and the memory that jobs request
    Resources(crate::commands::resources::ChangeResources),
    /// Show or change the policy of the machine or of one job
    Policy(options::ChangePolicy),
    /// List nodes with their load, and queues; drain nodes
    Nodes(options::Nodes),
    /// List the queues, or change them
    Queues(crate::commands::queues::Queues),
    /// Repair, back up or restore the cluster's state (administrators)
    Cluster(crate::commands::cluster::Cluster),
    /// Wait for jobs to end
    #[command(after_help = crate::commands::help::WAIT)]
    Wait(options::Jobs),
    /// List jobs that have ended, and what they used
    History(crate::commands::history::History),
    /// Show the output of a detached job, or a job's events
    Log(options::Log),
    /// Follow a detached job: its output, signals and exit code
    Attach(options::Attach),
    /// Check how well this machine suits cosched
    Setup(crate::setup::Setup),
    /// Compare plain Linux, local and gang scheduling on this machine
    Demo(crate::demo::Demo),
    /// Measure the cost of sharing CPUs for any command
    Bench(crate::bench::Bench),
    /// Recommend a policy for a program after short test runs
    Advise(crate::advise::Advise),
    /// Show, fit, generate and convert workloads: traces and job lists
    Workload(crate::workload::Workload),
    /// Simulate scheduling strategies on clusters
    Sim(crate::sim::Sim),
    /// Predict the cost of sharing CPUs from a machine's constants
    Model(crate::model::Model),
    /// Show running pipelines of stages, and reports of their runs
    Pipeline(crate::pipeline::Pipeline),
    /// Hooks for Slurm, which make its jobs cosched jobs
    Slurm(crate::slurm::Slurm),
    /// Make each call of mpiexec in a test suite or script a job
    Shim(crate::shim::Shim),
    /// Write the man pages
    Man(options::Man),
    /// Write completions for a shell
    Completions(options::Completions),
    /// Print the versions of this command and of the daemon
    Version,
}

impl Commands {
    /// Whether it shows or changes jobs and the machine; the other commands start programs or run studies, and report failures as text.
    pub(crate) fn looks_at_jobs(&self) -> bool {
        use Commands::*;
        matches!(
            self,
            Ps(_)
                | History(_)
                | Show(_)
                | Status(_)
                | Limits
                | Suspend(_)
                | Resume(_)
                | Kill(_)
                | Class(_)
                | Share(_)
                | Resources(_)
                | Policy(_)
                | Nodes(_)
                | Queues(_)
                | Cluster(_)
                | Wait(_)
                | Log(_)
                | Attach(_)
                | Adopt(_)
                | Release(_)
                | Setup(_)
                | Events(_)
                | Top(_)
                | Metrics
                | Trace(_)
        )
    }
}

/// The commands by subject, for the help of `cosched` itself: clap can group options only.
const GROUPS: [(&str, &[&str]); 5] = [
    (
        "Jobs",
        &[
            "run",
            "join",
            "adopt",
            "release",
            "ps",
            "history",
            "show",
            "log",
            "attach",
            "wait",
            "suspend",
            "resume",
            "kill",
            "class",
            "share",
            "resources",
        ],
    ),
    (
        "Machine and cluster",
        &["status", "top", "web", "events", "trace", "policy", "limits", "metrics", "nodes", "queues", "cluster"],
    ),
    ("Study", &["demo", "advise", "bench", "record", "profile", "workload", "sim", "model"]),
    ("Pipelines", &["pipeline"]),
    ("Integration", &["setup", "slurm", "shim", "man", "completions", "version"]),
];

/// The command line's definition, with the list of commands grouped.
pub(crate) fn command() -> Command {
    let command = Cli::command();
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{}{}\n{{options}}{{after-help}}",
        groups(&command),
        heading(&command, "Options")
    );
    command.help_template(template)
}

fn groups(command: &Command) -> String {
    let literal = command.get_styles().get_literal();
    let mut text = String::new();
    for (title, names) in GROUPS {
        let _ = writeln!(text, "{}", heading(command, title));
        for command in names.iter().filter_map(|name| command.find_subcommand(name)) {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(text, "  {literal}{:<11}{literal:#}  {about}{}", command.get_name(), aliases(command));
        }
        text.push('\n');
    }
    text
}

fn aliases(command: &Command) -> String {
    command.get_visible_aliases().map(|alias| format!(" [alias: {alias}]")).collect()
}

fn heading(command: &Command, title: &str) -> String {
    let header = command.get_styles().get_header();
    format!("{header}{title}:{header:#}")
}

/// Whether the command line is one of `cosched run` or `cosched record`, whose usage errors have another exit code, because those of the
/// command itself begin at 1.
pub(crate) fn is_run(words: &[OsString]) -> bool {
    subcommand_at(words).is_some_and(|at| words[at] == "run" || words[at] == "exec" || words[at] == "record")
}

/// The position of the subcommand.
pub(crate) fn subcommand_at(words: &[OsString]) -> Option<usize> {
    let mut places = (1..words.len()).filter(|at| words[*at].to_str().is_some());
    while let Some(at) = places.next() {
        match words[at].to_str() {
            Some("--socket") => drop(places.next()),
            Some(word) if word.starts_with('-') => {}
            _ => return Some(at),
        }
    }
    None
}

/// Commands of other systems, and the command here that does the same.
const EQUIVALENTS: [(&str, &str); 12] = [
    ("submit", "run -d"),
    ("batch", "run -d"),
    ("sbatch", "run -d"),
    ("srun", "run"),
    ("squeue", "ps"),
    ("info", "nodes"),
    ("sinfo", "nodes"),
    ("scancel", "kill"),
    ("sattach", "attach"),
    ("acct", "history"),
    ("stop", "kill, or suspend and resume"),
    ("start", "run, or resume"),
];

/// Options of their commands, and those of `cosched run`.
const OPTIONS: [(&str, &str); 6] = [
    ("--dependency", "--after JOB, or --after JOB:ok"),
    ("--ntasks", "--cpus N"),
    ("--cpus-per-task", "--cpus N"),
    ("--partition", "--queue NAME"),
    ("--qos", "--class CLASS"),
    ("--job-name", "--name NAME"),
];

/// The command, or option of `cosched run`, here for a word that another system uses.
pub(crate) fn equivalent(error: &clap::Error, is_run: bool) -> Option<String> {
    use clap::error::{ContextKind, ContextValue};
    let (kind, known, what) = match is_run {
        true => (ContextKind::InvalidArg, &OPTIONS[..], "there is no option"),
        false => (ContextKind::InvalidSubcommand, &EQUIVALENTS[..], "cosched has no command"),
    };
    let Some(ContextValue::String(word)) = error.get(kind) else { return None };
    let here = known.iter().find(|(there, _)| there == word)?.1;
    let command = if is_run { "cosched run" } else { "cosched" };
    Some(format!("{what} `{word}`\n  why: it has another name here\n  hint: {command} {here}"))
}

#[cfg(test)]
mod examples;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn every_command_is_in_one_group_and_its_line_fits() {
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let command = command();
        let mut defined: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
        grouped.sort_unstable();
        defined.sort_unstable();
        assert_eq!(grouped, defined);
        let help = command.clone().render_help().to_string();
        for sub in command.get_subcommands() {
            let line = help.lines().find(|line| line.starts_with(&format!("  {} ", sub.get_name()))).unwrap();
            assert!(line.ends_with(&aliases(sub)) && line.contains(&sub.get_about().unwrap().to_string()), "{line}");
            assert!(line.chars().count() <= 80, "{line}");
        }
        assert!(help.contains("--socket") && help.contains("Exit codes:"), "{help}");
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
        let tip = |words: &[&str], is_run| equivalent(&Cli::try_parse_from(words).unwrap_err(), is_run);
        assert!(tip(&["cosched", "scancel"], false).unwrap().ends_with("hint: cosched kill"));
        assert_eq!(tip(&["cosched", "nonsense"], false), None);
        for option in ["--dependency", "--dependency=afterok:7"] {
            let said = tip(&["cosched", "run", option, "true"], true).unwrap();
            assert!(said.contains("no option `--dependency`") && said.contains("--after JOB"), "{said}");
        }
        assert_eq!(tip(&["cosched", "run", "--nonsense", "true"], true), None);
    }

    #[test]
    fn knows_the_command_lines_of_run() {
        let is = |line: &str| is_run(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert!(is("cosched run --bad") && is("cosched --socket x --json run") && is("cosched --socket=x run"));
        assert!(is("cosched record --bad"));
        assert!(!is("cosched ps run") && !is("cosched --socket run ps") && !is("cosched"));
    }
}
