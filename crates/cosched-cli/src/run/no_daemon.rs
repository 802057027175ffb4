//! Where no daemon can run (a container with read-only cgroups, a user without a delegated cgroup) there is no job, but processes can wait
//! well: the command gets the wait library and replaces this program.

use super::{EXIT_FAILED, Launch, exit_not_executed, gate, options::Leftovers, signals::Signals, waiting};
use crate::out::{Failure, say};
use cosched_api::{ClientError, Job, Policy, STATE_BESIDE, Status, WaitMode};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Set for the command and its descendants: a `cosched run` in them does not search for a place again, and does not repeat the message. Its
/// value identifies the host and the cgroups: a process elsewhere searches again.
const MARK: &str = "COSCHED_NO_DAEMON";

/// A hash of the host's name and the cgroups of this process.
fn here() -> String {
    let mut hasher = DefaultHasher::new();
    rustix::system::uname().nodename().hash(&mut hasher);
    std::fs::read("/proc/self/cgroup").unwrap_or_default().hash(&mut hasher);
    format!("{:x}", hasher.finish())
}

fn is_inside() -> bool {
    std::env::var(MARK).is_ok_and(|place| place == here())
}

/// An error if this process descends from a command that this module has started in the same place.
pub(super) fn is_possible() -> Result<(), ClientError> {
    if !is_inside() {
        return Ok(());
    }
    let why = format!("none could run for the command that this one belongs to ({MARK} is set)");
    Err(ClientError::NoPlace { why, hint: format!("unset {MARK} to try again") })
}

/// Executes the command.
pub(super) fn exec(launch: &Launch<'_>, signals: Signals, (why, hint): (&str, &str)) -> Result<u8, Failure> {
    if let Some(option) = needs_daemon(launch) {
        let what = format!("{option} needs a daemon, and none can run here");
        let hint = format!("{hint}; without such options the command runs with the wait library alone");
        return Err(Failure::explained(EXIT_FAILED, &what, why, &hint));
    }
    let mut command = Command::new(&launch.program);
    command
        .arg0(&launch.argv[0])
        .args(&launch.argv[1..])
        .env(MARK, here())
        .envs(launch.files.env.iter().cloned())
        .envs(waiting::alone(launch.waiting.as_ref(), &launch.files.env));
    gate::redirect(&mut command, &launch.files.prepare(launch.words(), 0)?)?;
    if !is_inside() {
        let how = match &launch.waiting {
            Some(plan) => format!("its processes wait by {}", plan.word()),
            None => "nothing of cosched is in it".to_owned(),
        };
        say(&format!(
            "the command runs, but not as a job: {how}. No daemon can run here ({why}); `cosched setup` says what to do"
        ));
    }
    signals.give_back();
    Err(exit_not_executed(&launch.argv[0], &command.exec()))
}

/// Says where a new daemon keeps what it writes, when that may not last.
pub(super) fn tell_place(status: &Status) {
    for warning in status.warnings.iter().filter(|of| of.what.starts_with(STATE_BESIDE)) {
        say(&format!("{}: {}", warning.what, warning.why));
    }
}

/// Says what a job without cgroups has and has not.
pub(super) fn tell_signals(job: &Job) {
    say(&format!(
        "job {} is switched by signals: there are no cgroups here, so nothing fills idle CPUs and nothing limits memory; \
         `cosched setup` says what to do",
        job.id
    ));
}

/// A requested option that the wait library alone cannot provide.
fn needs_daemon(launch: &Launch<'_>) -> Option<&'static str> {
    let request = &launch.request;
    let asked = [
        (request.detached, "--detach"),
        (matches!(request.policy, Some(Policy::Gang | Policy::Pb | Policy::Dcs)), "this policy or strategy"),
        (request.waiting.is_some_and(|waiting| waiting.mode == WaitMode::Micro), "--wait micro"),
        (request.share_max.is_some(), "--share"),
        (request.class.is_some(), "--class"),
        (request.cpus.is_some(), "--cpus"),
        (request.exclusive_cores, "--exclusive-cores"),
        (request.mem_bytes.is_some(), "--mem"),
        (request.mem_bytes_max.is_some(), "--mem-limit"),
        (request.time_ms_max.is_some(), "--time"),
        (request.begin_unix_ms.is_some(), "--begin"),
        (!request.after.is_empty(), "--after"),
        (launch.files.names_job(), "%j in a file's name"),
        (!request.nodes.is_empty(), "--nodes"),
        (request.queue.is_some(), "--queue"),
        (request.on_node_loss.is_some(), "--on-node-loss"),
        (launch.leftovers == Leftovers::Kill, "--leftovers kill"),
    ];
    asked.into_iter().find_map(|(is_asked, option)| is_asked.then_some(option))
}
