//! Sets of jobs that run at the same time and are measured: what `cosched demo`, `cosched bench` and `cosched advise` share.
//!
//! Each job has a supervisor ([`mod@stage`]), a copy of cosched that waits for all the job's processes and adds up what they
//! used. The harness ([`mod@set`]) starts the jobs at the same moment through their supervisors, samples the jobs' memory
//! while they run, and ends what is left. Every supervisor holds a pipe of the harness: when the harness dies, even by kill
//! -9, the pipe is closed, and the supervisors end their jobs.

use crate::context::Context;
use crate::out::Failure;
use std::ffi::OsString;

mod directory;
mod job;
mod machine;
mod processes;
mod restore;
mod set;
mod stage;

pub(crate) use job::{End, Planned, output_end, unnamed_file};
pub(crate) use machine::{Others, memory_available_bytes};
pub(crate) use restore::RestorePolicy;
pub(crate) use set::{Look, Measured, Outcome, Set, run};
pub(crate) use stage::{STAGE, Usage, stage};

/// The number of CPUs available to this process.
pub(crate) fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// The words that run the command after them as a job of cosched: this executable's `run` with these options.
pub(crate) fn launcher(context: &Context, options: &[&str]) -> Result<Vec<OsString>, Failure> {
    let own = std::env::current_exe().map_err(|e| Failure::other(format!("cannot find this program: {e}")))?;
    let mut words = vec![own.into_os_string()];
    if let Some(socket) = &context.socket {
        words.extend(["--socket".into(), socket.clone().into_os_string()]);
    }
    words.push("run".into());
    words.extend(options.iter().map(OsString::from));
    words.push("--".into());
    Ok(words)
}
