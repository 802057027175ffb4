//! The command line, defined once: help, man pages and completions come from here.

use crate::run::waiting::{WaitOption, parse_strategy, parse_wait};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use cosched_api::{Class, NodeResources, Packing, Policy, Sharing, Waiting, parse};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Run parallel jobs side by side on the same CPUs, without the collapse.
///
/// cosched gives each parallel job its own time slots: all its processes run together, so they do not spin for
/// partners that are not running. Programs need no change.
#[derive(Debug, Parser)]
#[command(name = "cosched", version, after_help = crate::commands::help::COSCHED, max_term_width = 100)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Cli {
    /// The daemon's socket [default: the system's daemon if it runs, else your own]
    #[arg(long, global = true, value_name = "PATH", help_heading = "Global options")]
    pub(crate) socket: Option<PathBuf>,

    /// Print JSON, one object a line
    #[arg(long, global = true, help_heading = "Global options")]
    pub(crate) json: bool,

    #[command(subcommand)]
    pub(crate) command: Commands,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Commands {
    /// Run a command as a job
    Run(Run),
    /// Put a command, or a process that runs, into a job that is there
    Join(crate::join::Join),
    /// List jobs
    #[command(visible_alias = "ls")]
    Ps(Ps),
    /// Run a command and write what its tasks compute, send and wait for, as a profile
    Record(crate::record::Record),
    /// Look at profiles, and make programs for the simulator of them
    Profile(crate::profile::ProfileCommand),
    /// Show everything about jobs
    Show(Jobs),
    /// Show the CPUs, the matrix, the switches and whatever is wrong
    Status(Status),
    /// Watch CPUs, matrix and jobs on the terminal, and steer jobs by keys
    Top(crate::top::Top),
    /// Show what you may have of the daemon, and what you have
    #[command(after_help = crate::commands::help::LIMITS)]
    Limits,
    /// Print the daemon's counters and histograms as Prometheus reads them
    #[command(after_help = crate::commands::help::METRICS)]
    Metrics,
    /// Stop jobs until they are resumed; they keep their memory
    Suspend(Jobs),
    /// Let suspended jobs go on, and give dropped ones slots again
    Resume(Jobs),
    /// Send a signal to every process of jobs: by default TERM, and KILL after 5 s
    Kill(Kill),
    /// Change the class of jobs
    Class(ChangeClass),
    /// Change the CPUs and the memory that jobs want
    Resources(crate::commands::resources::ChangeResources),
    /// Show or change the policy of the machine or of one job
    Policy(ChangePolicy),
    /// List the nodes of the cluster with their load and the queues, or drain nodes
    Nodes(Nodes),
    /// List the queues of the cluster, or change them
    Queues(crate::commands::queues::Queues),
    /// Repair, back up or restore what the cluster has in its store (administrators)
    Cluster(crate::commands::cluster::Cluster),
    /// Wait until jobs have ended
    Wait(Jobs),
    /// Show the output of a detached job, or a job's events
    Log(Log),
    /// Compare plain Linux, local and gang scheduling on this machine, live
    Demo(Demo),
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
    Man(Man),
    /// Write the completions of a shell
    Completions(Completions),
    /// Print the versions of this command and of the daemon
    Version,
}

#[derive(Args, Debug)]
#[command(after_help = crate::commands::help::RUN)]
pub(crate) struct Run {
    /// How urgent: express (administrators), interactive, batch or standby [default: interactive; batch with --detach]
    #[arg(long, short, value_name = "CLASS", value_parser = class_parser(), hide_possible_values = true)]
    pub(crate) class: Option<Class>,

    /// CPUs that the job uses at a time; in a cluster more than this node has come from several [default: all of the node's]
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) cpus: Option<u32>,

    /// In a cluster: what the job wants of which nodes, as a:2,b:2, or with memory a:2:4G [default: all CPUs of this node]
    #[arg(long, value_name = "NODE[:CPUS[:MEM]],…", value_delimiter = ',', value_parser = parse_node,
          conflicts_with_all = ["cpus", "mem"])]
    pub(crate) nodes: Vec<NodeResources>,

    /// The queue, where there are some [default: the first one]
    #[arg(long, value_name = "NAME")]
    pub(crate) queue: Option<String>,

    /// In a cluster: what to do when a node of the job is lost: kill it, keep the rest, or requeue (start it anew)
    #[arg(long, value_name = "WHAT", value_enum)]
    pub(crate) on_node_loss: Option<NodeLoss>,

    /// Memory that the job needs, as 512M or 4G
    #[arg(long, value_name = "SIZE", value_parser = parse::size_bytes)]
    pub(crate) mem: Option<u64>,

    /// A name for the job [default: the command's]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// auto, gang, local, pb or dcs, whatever the machine's policy is or becomes
    #[arg(long, value_name = "POLICY", value_parser = policy_parser(), hide_possible_values = true)]
    pub(crate) policy: Option<Policy>,

    /// How its processes wait: auto, busy, spin-block or spin-yield (both also with a time, spin-block:50), or off
    #[arg(long, value_name = "HOW", value_parser = parse_wait)]
    pub(crate) wait: Option<WaitOption>,

    /// Policy and wait by the short name of the literature: GS, Local, SB, SY, DCS, DCS-SB, PB, PB-SB, …
    #[arg(long, value_name = "NAME", value_parser = parse_strategy, conflicts_with_all = ["policy", "wait"])]
    pub(crate) strategy: Option<(Policy, Waiting)>,

    /// Return at once and print the job's id; the output goes to a file (`cosched log`)
    #[arg(long, short)]
    pub(crate) detach: bool,

    /// What to do with processes that are left when the command has ended
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = Leftovers::Wait)]
    pub(crate) leftovers: Leftovers,

    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

impl Run {
    /// The policy and the way to wait that were asked for.
    pub(crate) fn how(&self) -> (Option<Policy>, Option<WaitOption>) {
        match self.strategy {
            Some((policy, waiting)) => (Some(policy), Some(WaitOption::On(waiting))),
            None => (self.policy, self.wait),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum NodeLoss {
    /// End the rest of it
    Kill,
    /// Let the rest go on
    Keep,
    /// End the rest and start it anew
    Requeue,
}

impl From<NodeLoss> for cosched_api::OnNodeLoss {
    fn from(what: NodeLoss) -> Self {
        match what {
            NodeLoss::Kill => Self::Kill,
            NodeLoss::Keep => Self::Keep,
            NodeLoss::Requeue => Self::Requeue,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Leftovers {
    /// Wait for them: they are part of the job
    Wait,
    /// End them
    Kill,
}

#[derive(Args, Debug)]
#[command(after_help = crate::commands::help::PS)]
pub(crate) struct Ps {
    /// Also jobs that have ended
    #[arg(long, short)]
    pub(crate) all: bool,
}

#[derive(Args, Debug)]
#[command(after_help = crate::commands::help::JOBS)]
pub(crate) struct Jobs {
    /// Ids or names
    #[arg(required = true, value_name = "JOB")]
    pub(crate) jobs: Vec<String>,
}

#[derive(Args, Debug)]
#[command(after_help = crate::commands::help::STATUS)]
pub(crate) struct Status {
    /// Show it again twice a second until interrupted
    #[arg(long, short)]
    pub(crate) watch: bool,
}

#[derive(Args, Debug)]
#[command(after_help = crate::commands::help::KILL)]
pub(crate) struct Kill {
    /// The signal, by name or number [default: TERM, then KILL after the grace time]
    #[arg(long, short, value_name = "SIGNAL", value_parser = parse_signal)]
    pub(crate) signal: Option<i32>,

    /// KILL what is left after this time, as 500ms or 10s [default: 5s, or never when --signal is given]
    #[arg(long, value_name = "TIME", value_parser = parse::duration)]
    pub(crate) grace: Option<Duration>,

    /// KILL at once
    #[arg(short = '9', conflicts_with_all = ["signal", "grace"])]
    pub(crate) nine: bool,

    /// Ids or names
    #[arg(required = true, value_name = "JOB")]
    pub(crate) jobs: Vec<String>,
}

#[derive(Args, Debug)]
#[command(after_help = crate::commands::help::CLASS)]
pub(crate) struct ChangeClass {
    /// Ids or names
    #[arg(required = true, num_args = 1.., value_name = "JOB")]
    pub(crate) jobs: Vec<String>,

    /// express, interactive, batch or standby
    #[arg(required = true, value_name = "CLASS", value_parser = class_parser(), hide_possible_values = true)]
    pub(crate) class: Class,
}

#[derive(Args, Debug)]
#[command(after_help = crate::commands::help::POLICY)]
pub(crate) struct ChangePolicy {
    /// auto, gang, local, pb or dcs; with --job also default: follow the machine's. Without one, it is shown
    #[arg(value_name = "POLICY", value_parser = policy_or_default(), hide_possible_values = true)]
    pub(crate) policy: Option<String>,

    /// This job's policy, not the machine's (several times for several jobs)
    #[arg(long, value_name = "JOB", requires = "policy", conflicts_with_all = ["sharing", "slot", "ceiling", "node_dead_after", "packing", "rows", "shares", "off_hours"])]
    pub(crate) job: Vec<String>,

    /// What the gangs that are not current may do: nothing (strict), or run on what is idle: all (soft), or
    /// the next gang alone (paired)
    #[arg(long, value_name = "SHARING", value_parser = sharing_parser(), hide_possible_values = true)]
    pub(crate) sharing: Option<Sharing>,

    /// The length of a slot, 10ms to 30s
    #[arg(long, value_name = "TIME", value_parser = parse::duration)]
    pub(crate) slot: Option<Duration>,

    /// The most CPU time that gangs may have together, 0.01 to 1; in a cluster: of a node, those that span nodes
    #[arg(long, value_name = "PART")]
    pub(crate) ceiling: Option<f64>,

    /// In a cluster: after so long a silence a node is dead, and its jobs are ended, kept or requeued; or never: only when an
    /// operator says so
    #[arg(long, value_name = "TIME", value_parser = dead_after)]
    pub(crate) node_dead_after: Option<Duration>,

    /// In a cluster: where new gangs that span nodes go: buddy, first-fit or best-fit
    #[arg(long, value_name = "HOW", value_parser = named(Packing::ALL.map(|p| (p.name(), p))), hide_possible_values = true)]
    pub(crate) packing: Option<Packing>,

    /// In a cluster: the most rows of the matrix; those that there are stay until their gangs have ended
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rows: Option<u32>,

    /// In a cluster: what classes are worth in working hours, as interactive=8,batch=2; the others stay
    #[arg(long, value_name = "CLASS=N,…", value_delimiter = ',', value_parser = parse_share)]
    pub(crate) shares: Vec<(Class, u32)>,

    /// In a cluster: what classes are worth in off-hours
    #[arg(long, value_name = "CLASS=N,…", value_delimiter = ',', value_parser = parse_share)]
    pub(crate) off_hours: Vec<(Class, u32)>,
}

/// A time, or zero for never.
fn dead_after(text: &str) -> Result<Duration, String> {
    match text {
        "never" => Ok(Duration::ZERO),
        text => parse::duration(text).map_err(|e| e.to_string()),
    }
}

#[derive(Args, Debug)]
#[command(after_help = crate::commands::help::NODES)]
pub(crate) struct Nodes {
    /// These get no new jobs from now on; those that they have go on
    #[arg(long, value_name = "NODE", conflicts_with = "undrain")]
    pub(crate) drain: Vec<String>,

    /// These get new jobs again
    #[arg(long, value_name = "NODE")]
    pub(crate) undrain: Vec<String>,

    /// These are not heard of, and you vouch that nothing runs there any more (the machine is off): what becomes of their
    /// jobs is not waited for
    #[arg(long, value_name = "NODE")]
    pub(crate) dead: Vec<String>,
}

#[derive(Args, Debug)]
#[command(after_help = crate::commands::help::LOG)]
pub(crate) struct Log {
    /// Go on until the job has ended
    #[arg(long, short)]
    pub(crate) follow: bool,

    /// What happened to the job, not its output
    #[arg(long, short)]
    pub(crate) events: bool,

    /// Id or name
    #[arg(value_name = "JOB")]
    pub(crate) job: String,
}

#[derive(Args, Debug)]
#[command(after_help = crate::commands::help::DEMO)]
pub(crate) struct Demo {
    /// How long one job alone takes
    #[arg(long, value_name = "S", default_value = "1.0", value_parser = parse_seconds)]
    pub(crate) seconds: f64,

    /// Numbers of jobs side by side
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "2,4",
          value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) jobs: Vec<u32>,

    /// Arms to compare: linux, local, gang
    #[arg(
        long,
        value_name = "ARM,…",
        value_delimiter = ',',
        default_value = "linux,local,gang",
        value_enum,
        hide_possible_values = true
    )]
    pub(crate) policies: Vec<Arm>,

    /// How often to repeat everything; medians are shown
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) repeat: u32,

    /// The parallel program: barrier-mpi or barrier-omp, or one with the same options
    #[arg(long, value_name = "PATH")]
    pub(crate) program: Option<PathBuf>,

    /// Plain lines, also on a terminal
    #[arg(long)]
    pub(crate) plain: bool,
}

/// What the demo compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Arm {
    /// Jobs without cosched
    Linux,
    /// Jobs in cgroups with shares, no slots
    Local,
    /// Jobs in slots
    Gang,
}

#[derive(Args, Debug)]
#[command(after_help = crate::commands::help::MAN)]
pub(crate) struct Man {
    /// Write a page for each subcommand here [default: the main page to standard output]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

#[derive(Args, Debug)]
#[command(after_help = crate::commands::help::COMPLETIONS)]
pub(crate) struct Completions {
    /// bash, zsh, fish, elvish or powershell
    #[arg(value_enum, hide_possible_values = true)]
    pub(crate) shell: clap_complete::Shell,
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

fn class_parser() -> impl TypedValueParser<Value = Class> {
    named(CLASSES)
}

const CLASSES: [(&str, Class); 4] = [
    ("express", Class::Express),
    ("interactive", Class::Interactive),
    ("batch", Class::Batch),
    ("standby", Class::Standby),
];

fn policy_parser() -> impl TypedValueParser<Value = Policy> {
    named(Policy::ALL.map(|policy| (policy.name(), policy)))
}

fn policy_or_default() -> PossibleValuesParser {
    PossibleValuesParser::new(Policy::ALL.map(Policy::name).into_iter().chain(["default"]))
}

fn sharing_parser() -> impl TypedValueParser<Value = Sharing> {
    named(Sharing::ALL.map(|sharing| (sharing.name(), sharing)))
}

/// A parser of these words.
fn named<const N: usize, T: Copy + Send + Sync + 'static>(
    all: [(&'static str, T); N],
) -> impl TypedValueParser<Value = T> {
    // The parser lets only words of the list pass.
    let value = move |word: String| all.iter().find(|(name, _)| *name == word).unwrap_or(&all[0]).1;
    PossibleValuesParser::new(all.map(|(name, _)| name)).map(value)
}

/// `CLASS=N`.
fn parse_share(text: &str) -> Result<(Class, u32), String> {
    let wrong = || format!("`{text}` is not what a class is worth; write CLASS=N, as in batch=4, N from 1 to 1000");
    let (name, share) = text.split_once('=').ok_or_else(wrong)?;
    let class = CLASSES.into_iter().find(|(known, _)| *known == name).map(|(_, class)| class);
    let share = share.parse().ok().filter(|share| (1..=1000).contains(share));
    class.zip(share).ok_or_else(wrong)
}

fn parse_seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.05..=600.0).contains(&seconds) => Ok(seconds),
        _ => Err("give seconds from 0.05 to 600, as 1.5".into()),
    }
}

/// `NODE`, `NODE:CPUS` or `NODE:CPUS:MEM`.
pub(crate) fn parse_node(text: &str) -> Result<NodeResources, String> {
    let mut parts = text.split(':');
    let name = parts.next().unwrap_or_default();
    if name.is_empty() {
        return Err("a node has a name, as in a:2".to_owned());
    }
    let cpus = parts.next().map(|cpus| match cpus.parse() {
        Ok(cpus) if cpus > 0 => Ok(cpus),
        _ => Err(format!("`{cpus}` is no number of CPUs; write NODE:CPUS, as in {name}:2")),
    });
    let memory = parts.next().map(|size| parse::size_bytes(size).map_err(|e| e.to_string()));
    if parts.next().is_some() {
        return Err("write NODE, NODE:CPUS or NODE:CPUS:MEM".to_owned());
    }
    let (cpus, memory_bytes) = (cpus.transpose()?, memory.transpose()?);
    Ok(NodeResources { name: name.to_owned(), cpus, memory_bytes, ..NodeResources::default() })
}

/// `TERM`, `SIGTERM`, `term` or `15`.
fn parse_signal(text: &str) -> Result<i32, String> {
    use nix::sys::signal::Signal;
    if let Ok(number) = text.parse::<i32>() {
        return if (1..=64).contains(&number) { Ok(number) } else { Err("signals have numbers from 1 to 64".into()) };
    }
    let upper = text.to_ascii_uppercase();
    let name = upper.strip_prefix("SIG").unwrap_or(&upper);
    let names = || Signal::iterator().map(|signal| signal.as_str().trim_start_matches("SIG"));
    if let Some(signal) = Signal::iterator().find(|signal| signal.as_str().trim_start_matches("SIG") == name) {
        return Ok(signal as i32);
    }
    match parse::nearest(name, names()) {
        Some(near) => Err(format!("there is no such signal; did you mean {near}?")),
        None => Err("there is no such signal; `kill -l` lists them".into()),
    }
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
        assert_eq!((run.cpus, cli.json), (Some(2), false));
        assert_eq!(run.command, ["mpirun", "-n", "4", "--json", "./a.out"]);
        let cli = Cli::try_parse_from(["cosched", "--json", "run", "-d", "--", "-x"]).unwrap();
        let Commands::Run(run) = &cli.command else { panic!("{cli:?}") };
        assert!(cli.json && run.detach && run.command == ["-x"]);
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
    fn signals_by_name_and_number() {
        assert_eq!(
            [parse_signal("TERM"), parse_signal("SIGTERM"), parse_signal("term"), parse_signal("15")],
            [Ok(15), Ok(15), Ok(15), Ok(15)]
        );
        assert!(parse_signal("0").is_err() && parse_signal("65").is_err());
    }

    #[test]
    fn knows_the_command_lines_of_run() {
        let is = |line: &str| is_run(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert!(is("cosched run --bad") && is("cosched --socket x --json run") && is("cosched --socket=x run"));
        assert!(is("cosched record --bad"));
        assert!(!is("cosched ps run") && !is("cosched --socket run ps") && !is("cosched"));
    }
}
