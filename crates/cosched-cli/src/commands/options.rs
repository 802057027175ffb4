//! The options of the small commands.

use crate::parsers::{
    PartOrNone, class_parser, dead_after, named, parse_share, parse_signal, part_or_none, policy_or_default,
    sharing_parser, state_parser,
};
use clap::Args;
use cosched_api::{Class, JobState, Packing, Sharing, parse};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Args, Debug)]
#[command(after_help = crate::commands::help::PS)]
pub(crate) struct Ps {
    /// Also jobs that have ended
    #[arg(long, short)]
    pub(crate) all: bool,

    /// Only jobs of these users, by name or number
    #[arg(long, short, value_name = "USER", value_delimiter = ',')]
    pub(crate) user: Vec<String>,

    /// Only jobs in these states: waiting, running, asleep, dropped, suspended, unknown, ended, lost
    #[arg(long, value_name = "STATE", value_delimiter = ',', value_parser = state_parser(), hide_possible_values = true)]
    pub(crate) state: Vec<JobState>,

    /// The columns to show, as id,name,state,elapsed,cpu,reason,start; `help` lists them
    #[arg(long, short = 'o', value_name = "COLUMN,…", value_delimiter = ',')]
    pub(crate) format: Vec<String>,

    /// Sort by a column, with a minus in front the largest first, as -cpu
    #[arg(long, value_name = "[-]COLUMN", value_delimiter = ',', allow_hyphen_values = true)]
    pub(crate) sort: Vec<String>,
}

/// Jobs chosen by what they are.
#[derive(Args, Debug, Default)]
#[group(id = "selection", multiple = true)]
pub(crate) struct Selection {
    /// All of your jobs
    #[arg(long, help_heading = "Selection")]
    pub(crate) all: bool,

    /// Jobs of this user (may be repeated; other users' jobs: administrators only)
    #[arg(long, short, value_name = "USER", value_delimiter = ',', help_heading = "Selection")]
    pub(crate) user: Vec<String>,

    /// Jobs with this name; `*` stands for any text (may be repeated)
    #[arg(long, value_name = "NAME", help_heading = "Selection")]
    pub(crate) name: Vec<String>,

    /// Jobs in this state, as waiting, running, asleep or suspended (may be repeated)
    #[arg(long, value_name = "STATE", value_delimiter = ',', value_parser = state_parser(), hide_possible_values = true, help_heading = "Selection")]
    pub(crate) state: Vec<JobState>,

    /// Only say which jobs are selected
    #[arg(long, help_heading = "Selection", requires = "selection", conflicts_with = "jobs")]
    pub(crate) dry_run: bool,
}

/// Jobs by name or number, or a selection of them.
#[derive(Args, Debug)]
#[command(after_help = crate::commands::help::STEER)]
pub(crate) struct Steer {
    #[command(flatten)]
    pub(crate) selection: Selection,

    /// Ids or names
    #[arg(required_unless_present_any = SELECTED_BY, conflicts_with_all = SELECTED_BY, value_name = "JOB")]
    pub(crate) jobs: Vec<String>,
}

/// The options that select jobs.
const SELECTED_BY: [&str; 4] = ["all", "user", "name", "state"];

#[derive(Args, Debug)]
pub(crate) struct Jobs {
    /// Ids or names
    #[arg(required = true, value_name = "JOB")]
    pub(crate) jobs: Vec<String>,
}

#[derive(Args, Debug)]
#[command(after_help = crate::commands::help::STATUS)]
pub(crate) struct Status {
    /// Refresh twice a second until interrupted
    #[arg(long, short)]
    pub(crate) watch: bool,
}

#[derive(Args, Debug)]
#[command(after_help = crate::commands::help::KILL)]
pub(crate) struct Kill {
    /// The signal, by name or number [default: TERM, then KILL after the grace time]
    #[arg(long, short, value_name = "SIGNAL", value_parser = parse_signal)]
    pub(crate) signal: Option<i32>,

    /// Send KILL to remaining processes after this time, as 500ms or 10s [default: 5s; never with --signal]
    #[arg(long, value_name = "TIME", value_parser = parse::duration)]
    pub(crate) grace: Option<Duration>,

    /// Send KILL at once
    #[arg(short = '9', conflicts_with_all = ["signal", "grace"])]
    pub(crate) nine: bool,

    #[command(flatten)]
    pub(crate) which: Steer,
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
#[command(after_help = crate::commands::help::SHARE)]
pub(crate) struct ChangeShare {
    /// Ids or names
    #[arg(required = true, num_args = 1.., value_name = "JOB")]
    pub(crate) jobs: Vec<String>,

    /// The part of the time that each of them has at most, as 50%; `none`: no limit
    #[arg(required = true, value_name = "PART", value_parser = part_or_none)]
    pub(crate) share: PartOrNone,
}

#[derive(Args, Debug)]
#[command(after_help = crate::commands::help::POLICY)]
pub(crate) struct ChangePolicy {
    /// auto, gang, local, pb or dcs; with --job also default (the machine's) [default: show the current policy]
    #[arg(value_name = "POLICY", value_parser = policy_or_default(), hide_possible_values = true)]
    pub(crate) policy: Option<String>,

    /// Change the policy of this job, not the machine's (may be repeated)
    #[arg(long, value_name = "JOB", requires = "policy", conflicts_with_all = ["sharing", "slot", "ceiling", "node_dead_after", "packing", "rows", "shares", "off_hours"])]
    pub(crate) job: Vec<String>,

    /// Which gangs may run on idle CPUs in the slots of other gangs: none (strict), all (soft), or only the gang of the
    /// next turn (paired)
    #[arg(long, value_name = "SHARING", value_parser = sharing_parser(), hide_possible_values = true)]
    pub(crate) sharing: Option<Sharing>,

    /// Length of a time slot, 10ms to 30s
    #[arg(long, value_name = "TIME", value_parser = parse::duration)]
    pub(crate) slot: Option<Duration>,

    /// Maximum fraction of slots for all gangs together, 0.01 to 1; in a cluster: on each node, for gangs that span nodes
    #[arg(long, value_name = "PART")]
    pub(crate) ceiling: Option<f64>,

    /// In a cluster: a node that is unreachable for this time is dead, and its jobs are ended, kept or requeued; `never`:
    /// only an operator can declare a node dead
    #[arg(long, value_name = "TIME", value_parser = dead_after)]
    pub(crate) node_dead_after: Option<Duration>,

    /// In a cluster: how new gangs that span nodes are placed: buddy, first-fit or best-fit
    #[arg(long, value_name = "HOW", value_parser = named(Packing::ALL.map(|p| (p.name(), p))), hide_possible_values = true)]
    pub(crate) packing: Option<Packing>,

    /// In a cluster: maximum number of matrix rows; existing rows remain until their gangs end
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rows: Option<u32>,

    /// Shares of classes during working hours, as interactive=8,batch=2; unnamed classes keep theirs
    #[arg(long, value_name = "CLASS=N,…", value_delimiter = ',', value_parser = parse_share)]
    pub(crate) shares: Vec<(Class, u32)>,

    /// Shares of classes during off-hours
    #[arg(long, value_name = "CLASS=N,…", value_delimiter = ',', value_parser = parse_share)]
    pub(crate) off_hours: Vec<(Class, u32)>,
}

#[derive(Args, Debug)]
#[command(after_help = crate::commands::help::NODES)]
pub(crate) struct Nodes {
    /// Place no new jobs on these nodes; running jobs continue
    #[arg(long, value_name = "NODE", conflicts_with = "undrain")]
    pub(crate) drain: Vec<String>,

    /// Place new jobs on these nodes again
    #[arg(long, value_name = "NODE")]
    pub(crate) undrain: Vec<String>,

    /// Declare these unreachable nodes dead: you guarantee that nothing is running there any more (the machine is off), so
    /// cosched does not wait for their jobs
    #[arg(long, value_name = "NODE")]
    pub(crate) dead: Vec<String>,
}

#[derive(Args, Debug)]
#[command(after_help = crate::commands::help::LOG)]
pub(crate) struct Log {
    /// Follow the log until the job has ended
    #[arg(long, short)]
    pub(crate) follow: bool,

    /// Show the job's events, not its output
    #[arg(long, short)]
    pub(crate) events: bool,

    /// Id or name
    #[arg(value_name = "JOB")]
    pub(crate) job: String,
}

#[derive(Args, Debug)]
#[command(after_help = crate::commands::help::ATTACH)]
pub(crate) struct Attach {
    /// Begin with the last lines that were written
    #[arg(long, short = 'n', value_name = "N", default_value_t = 10)]
    pub(crate) lines: usize,

    /// Pass no signals on: Ctrl-C detaches, too
    #[arg(long)]
    pub(crate) no_signals: bool,

    /// Id or name
    #[arg(value_name = "JOB")]
    pub(crate) job: String,
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
