//! Completions for a command line that is being typed: jobs, nodes, queues, programs. A shell calls `cosched` for each TAB, with a variable in
//! its environment (`cosched completions`), so this is quick, prints no errors, starts no daemon, and does not wait for one that hangs.

use crate::format::is_bare;
use crate::out::plain;
use clap::{Arg, Command, ValueHint};
use clap_complete::engine::{
    ArgValueCandidates, ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter,
};
use cosched_api::{Client, Job, SocketChoice, Status};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::time::Duration;

/// The longest time that a user waits for completions.
const PATIENCE: Duration = Duration::from_millis(400);
/// The maximum number of programs offered at a time.
const PROGRAMS_MAX: usize = 500;

/// The variable with which a shell requests completions: it names the shell.
pub(crate) const VARIABLE: &str = "_COSCHED_COMPLETE";

/// Answers a shell's request for completions; returns whether there was one.
pub(crate) fn answered() -> bool {
    let asked = clap_complete::CompleteEnv::with_factory(command).var(VARIABLE).completer("cosched");
    // A shell has no use for an error.
    std::env::var_os(VARIABLE).is_some() && asked.try_complete(std::env::args_os(), here().as_deref()).unwrap_or(true)
}

fn here() -> Option<PathBuf> {
    std::env::current_dir().ok()
}

/// The definition of the command line, with the possible values of its arguments.
fn command() -> Command {
    extended(crate::args::command())
}

fn extended(command: Command) -> Command {
    let names: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    let command = command.mut_args(offered);
    names.into_iter().fold(command, |command, name| command.mut_subcommand(name, extended))
}

/// Chooses an argument's completions by its value name in the help.
fn offered(arg: Arg) -> Arg {
    let name = arg.get_value_names().and_then(|names| names.first()).map(|name| name.to_string()).unwrap_or_default();
    let long = arg.get_long().unwrap_or_default().to_owned();
    let candidates = |arg: Arg, values: fn() -> Vec<CompletionCandidate>| arg.add(ArgValueCandidates::new(values));
    match (name.trim_start_matches("[-]").split([',', '[', '|']).next().unwrap_or_default(), long.as_str()) {
        ("COMMAND", _) if long.is_empty() => {
            arg.value_hint(ValueHint::CommandWithArguments).add(ArgValueCompleter::new(Programs))
        }
        ("JOB", _) => candidates(arg, jobs),
        ("NODE", _) => candidates(arg, nodes),
        ("USER", _) => candidates(arg, users),
        (_, "queue") => candidates(arg, queues),
        (_, "strategy" | "strategies") => {
            candidates(arg, || crate::run::strategies().map(CompletionCandidate::new).collect())
        }
        (_, "machine") => arg.add(ArgValueCompleter::new(Machines)),
        ("COLUMN", _) => candidates(arg, || crate::commands::column_names().map(CompletionCandidate::new).collect()),
        ("FILE" | "PATH", _) => arg.value_hint(ValueHint::AnyPath),
        ("DIR", _) => arg.value_hint(ValueHint::DirPath),
        _ => arg,
    }
}

/// The daemon's answer, if it comes soon enough.
fn ask<T: Send + 'static>(question: impl FnOnce(&mut Client) -> Option<T> + Send + 'static) -> Option<T> {
    let mut words = std::env::args_os();
    let named = words.find(|word| word == "--socket").and_then(|_| words.next()).map(PathBuf::from);
    let (answer, answered) = channel();
    std::thread::spawn(move || {
        let found = SocketChoice::find(named).connect().ok().and_then(|mut client| question(&mut client));
        let _ = answer.send(found);
    });
    answered.recv_timeout(PATIENCE).ok().flatten()
}

fn known_jobs() -> Vec<Job> {
    ask(|client| client.jobs(false).ok()).map(|list| list.jobs).unwrap_or_default()
}

fn status() -> Option<Status> {
    ask(|client| client.status().ok())
}

/// Whether a shell takes a name as it stands: it is put into the command line unquoted, and others choose their jobs' names.
fn is_safe(name: &str) -> bool {
    !name.starts_with('-') && is_bare(name)
}

fn safe_names(names: impl IntoIterator<Item = String>) -> Vec<CompletionCandidate> {
    names.into_iter().filter(|name| is_safe(name)).map(CompletionCandidate::new).collect()
}

/// Names, where they are unique and a shell takes them as they stand, and ids; including visible jobs of other users.
fn jobs() -> Vec<CompletionCandidate> {
    let jobs = known_jobs();
    let one = |job: &Job| {
        let told = format!("{} {} {}", job.name, job.user, job.state.name());
        CompletionCandidate::new(job.id.to_string()).help(Some(plain(&told).into()))
    };
    let is_unique = |name: &str| jobs.iter().filter(|job| job.name == name).count() == 1;
    let named = jobs.iter().filter(|job| is_safe(&job.name) && is_unique(&job.name));
    let name = |job: &Job| CompletionCandidate::new(&job.name).help(Some(format!("job {}", job.id).into()));
    jobs.iter().map(one).chain(named.map(name)).collect()
}

fn users() -> Vec<CompletionCandidate> {
    let users: BTreeSet<String> = known_jobs().into_iter().map(|job| job.user).collect();
    safe_names(users)
}

fn nodes() -> Vec<CompletionCandidate> {
    let nodes = status().and_then(|status| status.nodes).unwrap_or_default();
    safe_names(nodes.into_iter().map(|node| node.name))
}

fn queues() -> Vec<CompletionCandidate> {
    let queues = status().and_then(|status| status.cluster).map(|cluster| cluster.queues).unwrap_or_default();
    safe_names(queues.into_iter().map(|queue| queue.name))
}

/// Shipped machines, and files.
struct Machines;

impl ValueCompleter for Machines {
    fn complete(&self, current: &OsStr) -> Vec<CompletionCandidate> {
        let begins = |name: &&str| current.to_str().is_some_and(|current| name.starts_with(current));
        let shipped = cosched_model::machine::SHIPPED.iter().map(|(name, _)| *name).filter(begins);
        shipped.map(CompletionCandidate::new).chain(PathCompleter::file().complete(current)).collect()
    }
}

/// A program and its arguments: those on PATH, then files.
struct Programs;

impl ValueCompleter for Programs {
    fn complete(&self, current: &OsStr) -> Vec<CompletionCandidate> {
        match current.to_str() {
            Some(begin) if !begin.contains('/') => {
                let path = std::env::var_os("PATH").unwrap_or_default();
                let mut found = BTreeSet::new();
                for directory in std::env::split_paths(&path) {
                    found.extend(programs(&directory, begin).take(PROGRAMS_MAX));
                }
                let folders = PathCompleter::dir().complete(current);
                found.into_iter().take(PROGRAMS_MAX).map(CompletionCandidate::new).chain(folders).collect()
            }
            _ => PathCompleter::any().complete(current),
        }
    }

    fn complete_at(&self, index: usize, current: &OsStr) -> Vec<CompletionCandidate> {
        if index == 0 { self.complete(current) } else { PathCompleter::any().complete(current) }
    }
}

fn programs(directory: &std::path::Path, begin: &str) -> impl Iterator<Item = String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(move |entry| {
        let name = entry.file_name().into_string().ok().filter(|name| name.starts_with(begin))?;
        let facts = std::fs::metadata(entry.path()).ok()?;
        (facts.is_file() && facts.permissions().mode() & 0o111 != 0).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offers(words: &[&str]) -> Vec<String> {
        let words: Vec<std::ffi::OsString> =
            std::iter::once("cosched").chain(words.iter().copied()).map(Into::into).collect();
        let last = words.len() - 1;
        let found = clap_complete::engine::complete(&mut command(), words, last, None).unwrap();
        found.iter().map(|one| one.get_value().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn names_that_a_shell_would_read_are_not_offered() {
        assert!(["lu-2", "ns/solver", "a.b@c:1"].into_iter().all(is_safe));
        assert!(!["x;touch pwned", "$(id)", "a b", "*", "-x", "a\nb", "é`"].into_iter().any(is_safe));
    }

    #[test]
    fn programs_files_and_names_are_offered() {
        assert!(offers(&["run", "--", "tru"]).contains(&"true".to_owned()));
        assert!(offers(&["run", "-n", "2", "tru"]).contains(&"true".to_owned()), "also without the two dashes");
        assert!(offers(&["run", "--", "ls", "/et"]).contains(&"/etc/".to_owned()));
        assert_eq!(offers(&["run", "--strategy", "PB-"]), ["PB-SB", "PB-SY"]);
        assert_eq!(offers(&["model", "predict", "--machine", "buny"]), ["bunyip", "bunyip-faster"]);
        assert!(offers(&["ps", "--format", "id,el"]).contains(&"id,elapsed".to_owned()));
        assert_eq!(offers(&["ps", "--state", "susp"]), ["suspended"]);
        assert!(offers(&["hist"]).contains(&"history".to_owned()));
    }
}
