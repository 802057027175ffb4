//! `cosched join`: a process joins an existing job, through the daemon of its own node.

use crate::context::Context;
use crate::out::{EXIT_NO_JOB, Failure, print_json, say};
use crate::run::carry::{JOB, SUBMITTED, environment};
use crate::run::waiting::Plan;
use crate::run::{exit_not_executed, find_program};
use clap::Args;
use cosched_api::{Client, Job, ProcessRequest};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

#[derive(Args, Debug)]
#[command(after_help = crate::commands::help::JOIN)]
pub(crate) struct Join {
    /// The job, by id or name [default: the one in COSCHED_JOB]
    #[arg(long, value_name = "JOB")]
    job: Option<String>,

    /// Move this running process, instead of running a command
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(i32).range(1..), conflicts_with_all = ["optional", "command"])]
    pid: Option<i32>,

    /// If it cannot join, run the command anyway, with a warning
    #[arg(long)]
    optional: bool,

    /// The command and its arguments
    #[arg(required_unless_present = "pid", trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// The job to join.
#[derive(Debug, PartialEq, Eq)]
struct Wanted {
    job: String,
    /// When the job was registered, if the environment says so: another daemon may have a different job with the same id.
    submitted_unix_ms: Option<u64>,
}

/// `cosched join`. Returns only when no command was executed.
pub(crate) fn join(context: &Context, options: &Join) -> Result<u8, Failure> {
    if let Some(pid) = options.pid {
        let job = enter(context, options, pid)?;
        if context.json {
            print_json(&job)?;
        }
        return Ok(0);
    }
    let argv0 = &options.command[0];
    let program = find_program(argv0, std::env::var_os("PATH"))?;
    let mut command = Command::new(&program);
    command.arg0(argv0).args(&options.command[1..]);
    // A process number fits: pid_t is a C int.
    match enter(context, options, std::process::id() as i32) {
        Ok(job) => {
            command.envs(environment(&job, plan(&job, &program)?.as_ref(), &[]));
        }
        Err(failure) if options.optional => say(&format!("{}\n  --optional: it runs outside the job", failure.message)),
        Err(failure) => return Err(failure),
    }
    Err(exit_not_executed(argv0, &command.exec()))
}

/// The new process waits in the way that its job waits.
pub(crate) fn plan(job: &Job, program: &Path) -> Result<Option<Plan>, Failure> {
    let Some(waiting) = &job.waiting else { return Ok(None) };
    // `None` where the library is not installed on this node: the user did not request it by name.
    let plan = Plan::new(None, program)?;
    Ok(plan.map(|mut plan| {
        plan.waiting = waiting.asked;
        plan
    }))
}

fn enter(context: &Context, options: &Join, pid: i32) -> Result<Job, Failure> {
    let wanted = wanted(options.job.as_deref(), |name| std::env::var(name).ok())?;
    let mut client = crate::jobs::connect(context)?;
    let id = crate::jobs::find(&mut client, &wanted.job)?;
    check_same(&mut client, id, wanted.submitted_unix_ms)?;
    let request = ProcessRequest { pid, start_ticks: start_ticks(pid) };
    Ok(client.add_process(id, &request)?)
}

fn wanted(named: Option<&str>, variable: impl Fn(&str) -> Option<String>) -> Result<Wanted, Failure> {
    if let Some(job) = named {
        return Ok(Wanted { job: job.to_owned(), submitted_unix_ms: None });
    }
    match variable(JOB).filter(|value| !value.is_empty()) {
        Some(job) => {
            Ok(Wanted { job, submitted_unix_ms: variable(SUBMITTED).and_then(|value| value.trim().parse().ok()) })
        }
        None => Err(Failure::explained(
            2,
            "which job?",
            &format!("neither --job nor {JOB} (which `cosched run` sets) is given"),
            "name the job with --job; `cosched ps` lists them",
        )),
    }
}

fn check_same(client: &mut Client, id: u64, submitted_unix_ms: Option<u64>) -> Result<(), Failure> {
    let Some(submitted) = submitted_unix_ms else { return Ok(()) };
    if client.job(id)?.submitted_unix_ms == submitted {
        return Ok(());
    }
    Err(Failure::explained(
        EXIT_NO_JOB,
        &format!("job {id} at this node's daemon is not the one of {JOB}"),
        &format!("its registration time differs from {SUBMITTED}: the nodes do not share their jobs"),
        &format!("configure the nodes as one cluster, or use --job {id} to join this node's job"),
    ))
}

/// When a process started, in clock ticks since boot (field 22 of its stat); `None` when it does not exist.
fn start_ticks(pid: i32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, field 2, may hold blanks and parentheses; what follows starts with field 3.
    stat.rsplit_once(')')?.1.split_whitespace().nth(22 - 3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_job_is_the_named_one_else_that_of_the_environment() {
        let all = |name: &str| match name {
            JOB => Some("7".to_owned()),
            SUBMITTED => Some("1700000000000".to_owned()),
            _ => None,
        };
        let of_environment = Wanted { job: "7".into(), submitted_unix_ms: Some(1_700_000_000_000) };
        assert_eq!(wanted(None, all).unwrap(), of_environment);
        assert_eq!(wanted(Some("night"), all).unwrap(), Wanted { job: "night".into(), submitted_unix_ms: None });
        let none = wanted(None, |_| None).unwrap_err();
        assert_eq!(none.code, 2);
        assert!(none.message.contains("neither --job nor COSCHED_JOB"), "{}", none.message);
    }

    #[test]
    fn start_times_tell_processes_apart() {
        let own = start_ticks(std::process::id() as i32).unwrap();
        assert!(own > 0);
        assert!(start_ticks(1).unwrap() <= own);
        assert_eq!(start_ticks(0), None);
    }
}
