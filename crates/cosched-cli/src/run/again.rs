//! `__again SOCKET JOB COMMAND…`: what a daemon runs, as the job's owner and in its cgroup, to restart a job.
//!
//! The program gets what `cosched run` gave it the first time: the job in its environment, the means that carry it to
//! ranks on other nodes, and host files of the job's present nodes. The files are removed when it ends; this process,
//! its shadow, then ends with the same status.

use super::gate::Gate;
use super::place::Place;
use super::signals::{Signals, send, unblock_all};
use super::{EXIT_FAILED, carry, failed, find_program, shell_code, watch};
use crate::join;
use crate::out::Failure;
use cosched_api::Client;
use std::ffi::OsString;
use std::path::Path;

/// The first argument of such a process; the daemon passes it.
pub(crate) const AGAIN: &str = "__again";

/// Runs the command until it ends.
pub(crate) fn again(mut words: impl Iterator<Item = OsString>) -> Result<u8, Failure> {
    let silent = || Failure::silent(EXIT_FAILED);
    let socket = words.next().ok_or_else(silent)?;
    let id: u64 = words.next().and_then(|id| id.to_str()?.parse().ok()).ok_or_else(silent)?;
    let argv: Vec<OsString> = words.collect();
    let program = find_program(argv.first().ok_or_else(silent)?, std::env::var_os("PATH"))?;
    let job = Client::connect(Path::new(&socket))?.job(id)?;
    let plan = join::plan(&job, &program)?;
    let gate = Gate::spawn(&program, &argv).map_err(|e| failed("cannot start a process", &e))?;
    // The job's signals go to all its processes: this one must outlive them to remove the files.
    let _blocked = Signals::take().map_err(|e| failed("cannot block signals", &e))?;
    let status = {
        let place = Place::of(&job, &[]);
        let mut environment = carry::environment(&job, plan.as_ref(), &[]);
        environment.extend(place.environment.iter().cloned());
        let (mut child, _pipe) = gate.open(&environment);
        child.wait().map_err(|e| failed("cannot wait for the command", &e))?
    };
    let exit = watch::wire_status(status);
    if let Some(signal) = exit.signal {
        unblock_all();
        send(rustix::process::getpid(), signal);
    }
    Ok(shell_code(exit))
}
