//! `cosched queues`: lists or replaces the queues of the cluster.

use crate::context::Context;
use crate::format;
use crate::input::read_or_stdin;
use crate::jobs::{connect, patiently, status_of_cluster};
use crate::out::{EXIT_REFUSED, Failure, print, print_json, say, terminal_width};
use crate::table::Listing;
use clap::{Args, Subcommand};
use cosched_api::{
    ClassShares, ClusterStatus, FairShare, FairShareTable, Queue, QueueStatus, QueueTable, QueuesRequest,
};
use serde::Deserialize;
use std::fmt::Write;
use std::path::{Path, PathBuf};

#[derive(Args, Debug)]
#[command(after_help = super::help::QUEUES, args_conflicts_with_subcommands = true)]
pub(crate) struct Queues {
    /// Print them in the format of `cosched queues set` and cosched.toml
    #[arg(long, conflicts_with = "json")]
    pub(crate) toml: bool,

    #[command(subcommand)]
    pub(crate) command: Option<QueuesCommand>,
}

/// What can be done with queues.
#[derive(Debug, Subcommand)]
pub(crate) enum QueuesCommand {
    /// Replace the cluster's queues by those of a file (administrators)
    #[command(after_help = super::help::QUEUES_SET)]
    Set {
        /// A file with tables `[[queue]]`, such as cosched.toml; `-` is standard input
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
}

/// Lists the queues, after replacing them if requested.
pub(crate) fn queues(context: &Context, options: &Queues) -> Result<u8, Failure> {
    let mut client = connect(context)?;
    let status = match &options.command {
        Some(QueuesCommand::Set { file }) => {
            let (queues, fair_share) = read(file)?;
            let names = queues.iter().map(|queue| queue.name.as_str()).collect::<Vec<_>>().join(", ");
            let socket = client.path().to_owned();
            let status = patiently(&socket, || client.set_queues(&QueuesRequest { queues, fair_share }))?;
            say(&format!("the queues of the cluster are now {names}"));
            status
        }
        None => client.status()?,
    };
    let (_, cluster) = status_of_cluster(&status)?;
    match options {
        _ if context.json => print_json(&cluster.queues)?,
        Queues { toml: true, .. } => print(&as_toml(cluster))?,
        Queues { command: None, .. } => print(&text(cluster, terminal_width()))?,
        Queues { command: Some(_), .. } => (),
    }
    Ok(0)
}

fn text(cluster: &ClusterStatus, width: Option<usize>) -> String {
    let mut text = table(&cluster.queues, width);
    let mut line = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            let _ = write!(text, "\n{name:<11}{value}");
        }
    };
    let packing = cluster.packing.map(|packing| packing.name());
    let rows = cluster.rows_max.map(|rows| format!("{}, at most {rows} rows", packing.unwrap_or("?")));
    line("packing", rows);
    line("fair share", cluster.fair_share.map(fair));
    line("shares", cluster.shares.map(shares));
    line("off-hours", cluster.off_hours.map(shares));
    text.push('\n');
    text
}

fn fair(fair: FairShare) -> String {
    let FairShare { half_life_ms, weight_ms } = fair;
    format!(
        "usage halves in {}, and counts for up to {}",
        format::duration_ms(half_life_ms),
        format::duration_ms(weight_ms)
    )
}

fn shares(shares: ClassShares) -> String {
    let ClassShares { express, interactive, batch, standby } = shares;
    format!("express {express}, interactive {interactive}, batch {batch}, standby {standby}")
}

/// The queues as a table; `cosched nodes` has it, too.
pub(super) fn table(queues: &[QueueStatus], width: Option<usize>) -> String {
    Listing::of(queues)
        .words("QUEUE", 0, |queue| queue.name.as_str())
        .words("KIND", 0, |queue| if queue.exclusive { "exclusive" } else { "shared" })
        .numbers("WAITING", 0, |queue| queue.waiting.to_string())
        .numbers("STARTED", 0, |queue| queue.running.to_string())
        .numbers("MEM MAX", 1, |queue| format::or_dash(queue.memory_bytes_max.map(format::size)))
        .numbers("DISK MAX", 2, |queue| format::or_dash(queue.disk_bytes_max.map(format::size)))
        .numbers("TIME MAX", 1, |queue| format::or_dash(queue.time_ms_max.map(format::duration_ms)))
        .numbers("USER JOBS", 2, |queue| format::or_dash(queue.jobs_max_per_user.map(|jobs| jobs.to_string())))
        .numbers("USER MEM", 2, |queue| format::or_dash(queue.memory_bytes_max_per_user.map(format::size)))
        .words("FOR", 0, whose)
        .render(width)
}

/// The users who may use a queue.
fn whose(queue: &QueueStatus) -> String {
    let groups = queue.groups.iter().map(|group| format!("@{group}"));
    let all: Vec<String> = queue.users.iter().cloned().chain(groups).collect();
    if all.is_empty() { "all users".to_owned() } else { all.join(",") }
}

/// The same queues in the format of cosched.toml, exactly.
fn as_toml(cluster: &ClusterStatus) -> String {
    let mut text = String::new();
    if let Some(FairShare { half_life_ms, weight_ms }) = cluster.fair_share {
        let _ = writeln!(text, "[fair_share]\nhalf_life = \"{half_life_ms}ms\"\nweight = \"{weight_ms}ms\"");
    }
    for queue in &cluster.queues {
        let mut line = |key: &str, value: Option<String>| {
            if let Some(value) = value {
                let _ = writeln!(text, "{key} = {value}");
            }
        };
        line("[[queue]]\nname", Some(format!("\"{}\"", queue.name)));
        line("exclusive", queue.exclusive.then(|| "true".to_owned()));
        line("memory_max", queue.memory_bytes_max.map(|bytes| format!("\"{bytes}B\"")));
        line("disk_max", queue.disk_bytes_max.map(|bytes| format!("\"{bytes}B\"")));
        line("time_max", queue.time_ms_max.map(|ms| format!("\"{ms}ms\"")));
        let list = |names: &[String]| (!names.is_empty()).then(|| format!("{names:?}"));
        line("users", list(&queue.users));
        line("groups", list(&queue.groups));
        line("memory_max_per_user", queue.memory_bytes_max_per_user.map(|bytes| format!("\"{bytes}B\"")));
        line("jobs_max_per_user", queue.jobs_max_per_user.map(|jobs| jobs.to_string()));
    }
    text
}

/// The part of the file that is used.
#[derive(Deserialize)]
struct File {
    #[serde(default)]
    queue: Vec<QueueTable>,
    fair_share: Option<FairShareTable>,
}

type Tables = (Vec<Queue>, Option<FairShare>);

fn read(path: &Path) -> Result<Tables, Failure> {
    let (name, text) = read_or_stdin(path)?;
    queues_of(&text).map_err(|why| {
        let hint = "`cosched queues --toml` prints an example of the format";
        Failure::explained(EXIT_REFUSED, &format!("{name} has no valid queues"), &why, hint)
    })
}

fn queues_of(text: &str) -> Result<Tables, String> {
    let file: File = toml::from_str(text).map_err(|e| e.to_string().trim_end().replace('\n', "; "))?;
    if file.queue.is_empty() {
        return Err("there is no table [[queue]] in it".to_owned());
    }
    let fair = file.fair_share.map(|table| table.read().map_err(|e| format!("[fair_share]: {e}"))).transpose()?;
    let queues = file.queue.iter().map(|table| table.read().map_err(|e| e.to_string())).collect::<Result<_, _>>()?;
    Ok((queues, fair))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster() -> ClusterStatus {
        let queue = |name: &str, exclusive, memory_bytes_max, time_ms_max| QueueStatus {
            name: name.to_owned(),
            exclusive,
            memory_bytes_max,
            disk_bytes_max: None,
            time_ms_max,
            users: if exclusive { vec!["ann".to_owned()] } else { Vec::new() },
            groups: if exclusive { vec!["hpc".to_owned()] } else { Vec::new() },
            memory_bytes_max_per_user: exclusive.then_some(1 << 30),
            jobs_max_per_user: exclusive.then_some(4),
            waiting: 2,
            running: 1,
        };
        let worth = |interactive, batch| Some(ClassShares { express: 16, interactive, batch, standby: 1 });
        ClusterStatus {
            alone: false,
            name: "c".to_owned(),
            store_answers: true,
            plan_generation: 9,
            plan_in_use: Some(8),
            ceiling: 1.0,
            node_dead_after_ms: Some(300_000),
            queues: vec![queue("short", false, None, Some(600_000)), queue("night", true, Some(3 << 30), None)],
            packing: Some(cosched_api::Packing::Buddy),
            rows_max: Some(64),
            fair_share: Some(FairShare { half_life_ms: 7 * 86_400_000, weight_ms: 86_400_000 }),
            shares: worth(4, 2),
            off_hours: worth(2, 4),
        }
    }

    #[test]
    fn queues_in_a_table() {
        assert_eq!(
            text(&cluster(), None),
            "QUEUE  KIND       WAITING  STARTED  MEM MAX  DISK MAX  TIME MAX  USER JOBS  USER MEM  FOR\n\
             short  shared           2        1        -         -    10m00s          -         -  all users\n\
             night  exclusive        2        1     3.0G         -         -          4      1.0G  ann,@hpc\n\
             \n\
             packing    buddy, at most 64 rows\n\
             fair share usage halves in 7d00h, and counts for up to 1d00h\n\
             shares     express 16, interactive 4, batch 2, standby 1\n\
             off-hours  express 16, interactive 2, batch 4, standby 1\n"
        );
    }

    #[test]
    fn what_is_printed_as_toml_is_read_again() {
        let text = as_toml(&cluster());
        let (read, fair) = queues_of(&format!("store = \"etcd\"\n{text}")).unwrap();
        let names: Vec<&str> = read.iter().map(|queue| queue.name.as_str()).collect();
        assert_eq!((names, fair), (vec!["short", "night"], cluster().fair_share));
        assert_eq!((read[0].time_ms_max, read[1].memory_bytes_max), (Some(600_000), Some(3 << 30)));
        assert!(!read[0].exclusive && read[1].exclusive);
        let of_users = (read[1].memory_bytes_max_per_user, read[1].jobs_max_per_user);
        assert_eq!((&read[1].users[..], &read[1].groups[..]), (&["ann".to_owned()][..], &["hpc".to_owned()][..]));
        assert_eq!((of_users, read[0].users.len()), ((Some(1 << 30), Some(4)), 0));
    }

    #[test]
    fn a_file_that_has_no_queues_or_wrong_ones_is_refused() {
        for (text, word) in [
            ("", "no table [[queue]]"),
            ("[[queue]]\nname = \"a\"\nmax = 3", "max"),
            ("[[queue]]\nname = \"a\"\ntime_max = \"long\"", "queue a: time_max"),
            ("[[queue]]\nexclusive = true", "name"),
            ("queue = 3", "queue"),
        ] {
            let e = queues_of(text).unwrap_err();
            assert!(e.contains(word), "{text}: {e}");
        }
    }
}
