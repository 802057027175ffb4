//! `cosched run --detach`: a supervisor in a session of its own runs the job; the first process prints its id.
//!
//! The supervisor gets the same command line, and for an array also which of its jobs it is. Its standard output is a pipe to the first process until
//! the job is registered, then the job's output file.

use super::array::{Array, Task};
use super::options::Run;
use super::report::Report;
use super::{Detached, EXIT_FAILED, Launch, SUPERVISE, failed, run_job};
use crate::context::Context;
use crate::out::{Failure, print, print_json};
use crate::state::{or_beside, state_directory};
use cosched_api::Job;
use std::ffi::OsStr;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The first process.
pub(crate) fn detach(json: bool, options: &Run) -> Result<u8, Failure> {
    let Some(array) = &options.array else { return start(None).and_then(|job| tell(json, &job)).map(|()| 0) };
    if let Some(path) = options.files.is_shared() {
        let what = format!("the jobs of the array would all write to {}", path.display());
        return Err(Failure::explained(
            EXIT_FAILED,
            &what,
            "its name is the same for each",
            "put %a or %j into it, as in out-%a.txt",
        ));
    }
    start_all(json, array)
}

/// One after the other: each may depend on one before it.
fn start_all(json: bool, array: &Array) -> Result<u8, Failure> {
    let mut registered: Vec<u64> = Vec::new();
    let mut told = Ok(());
    for place in 0..array.indexes.len() {
        match start(Some(&array.task(place, &registered))) {
            Ok(job) => {
                // Where no output is taken any more (`| head -1`), the others are registered all the same.
                told = told.and_then(|()| tell(json, &job));
                registered.push(job.id);
            }
            Err(failure) if registered.is_empty() => return Err(failure),
            Err(Failure { code, message }) => {
                let done = format!("{} of {} jobs are registered and continue", registered.len(), array.indexes.len());
                return Err(Failure { code, message: format!("{message}\n  {done}") });
            }
        }
    }
    told.map(|()| 0)
}

fn tell(json: bool, job: &Job) -> Result<(), Failure> {
    if json { print_json(job) } else { print(&format!("{}\n", job.id)) }
}

/// Starts a job.
fn start(task: Option<&Task>) -> Result<Box<Job>, Failure> {
    let words = std::env::args_os().skip(1);
    let mut supervisor = Command::new("/proc/self/exe");
    let task = serde_json::to_string(&task).map_err(|e| failed("cannot describe the job", &e.into()))?;
    supervisor.arg(SUPERVISE).arg(task).args(words).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = supervisor.spawn().map_err(|e| failed("cannot start a process", &e))?;
    let mut line = String::new();
    if let Some(pipe) = child.stdout.take() {
        BufReader::new(pipe).read_line(&mut line).map_err(|e| failed("cannot read from the supervisor", &e))?;
    }
    match serde_json::from_str(&line) {
        Ok(Report::Registered(job)) => Ok(job),
        Ok(Report::Failed { code, message }) => Err(Failure { code, message }),
        Ok(Report::WithoutDaemon { .. }) | Err(_) => {
            let message = "the job's supervisor ended before it reported anything; nothing is running".to_owned();
            Err(Failure { code: EXIT_FAILED, message })
        }
    }
}

/// The supervisor, with the options of the first process.
pub(crate) fn supervise(context: &Context, options: &Run, task: &OsStr) -> Result<u8, Failure> {
    let task = task.to_str().and_then(|task| serde_json::from_str(task).ok()).flatten();
    let prepared = prepare(options.files.output.is_some()).and_then(|(log, path)| {
        let report =
            rustix::io::fcntl_dupfd_cloexec(io::stdout(), 3).map_err(|e| failed("cannot keep the pipe", &e.into()))?;
        // The daemon expands file names, so a literal percent sign is doubled.
        let log_path = path.as_ref().map(|path| path.to_string_lossy().replace('%', "%%"));
        Ok((Launch::new(context, options, Some(Detached { log_path, task }))?, log, path, File::from(report)))
    });
    let (launch, log, path, mut report) = match prepared {
        Ok(all) => all,
        Err(failure) => return tell_failure(&mut io::stdout(), failure),
    };
    if let Err(error) = attach(&log) {
        return tell_failure(&mut report, failed("cannot use the output file", &error));
    }
    let mut registered = false;
    let result = run_job(&launch, |said| {
        registered = matches!(said, Report::Registered(_));
        if !registered {
            return Ok(());
        }
        said.tell(&mut report).map_err(|e| failed("the first process has ended; the job is not run", &e))
    });
    match result {
        Err(failure) if !registered => {
            // Nothing was written, and the file is not needed.
            let _ = path.map(std::fs::remove_file);
            tell_failure(&mut report, failure)
        }
        other => other,
    }
}

/// Creates a new session, and a new file for the output, unless the user named one: that gets its name from the job's id, and only the command writes
/// to it.
fn prepare(has_output: bool) -> Result<(File, Option<PathBuf>), Failure> {
    rustix::process::setsid().map_err(|e| failed("cannot make a session", &e.into()))?;
    if has_output {
        let null = OpenOptions::new().write(true).open("/dev/null");
        return null.map(|null| (null, None)).map_err(|e| failed("cannot write to /dev/null", &e));
    }
    let directory = log_directory();
    let cannot = |e: &io::Error| failed(&format!("cannot write to {}", directory.display()), e);
    DirBuilder::new().recursive(true).mode(0o700).create(&directory).map_err(|e| cannot(&e))?;
    // The id is not known yet; time and process make the name unique.
    let name = format!("job-{}-{}.log", crate::format::now_unix_ms(), std::process::id());
    let path = directory.join(name);
    let options = OpenOptions::new().append(true).create_new(true).mode(0o600).open(&path);
    Ok((options.map_err(|e| cannot(&e))?, Some(path)))
}

fn log_directory() -> PathBuf {
    let named = std::env::var_os("XDG_STATE_HOME").is_some_and(|path| Path::new(&path).is_absolute());
    if !named && rustix::process::getuid().is_root() {
        return or_beside("/var/log/cosched".into());
    }
    state_directory().join("logs")
}

/// Redirects standard output and error, of the supervisor and of the command, to the file.
fn attach(log: &File) -> io::Result<()> {
    rustix::stdio::dup2_stdout(log)?;
    rustix::stdio::dup2_stderr(log)?;
    Ok(())
}

/// Returns the failure without its message: the first process prints it.
fn tell_failure(pipe: &mut impl Write, failure: Failure) -> Result<u8, Failure> {
    let _ = Report::of(&failure).tell(pipe);
    Err(Failure::silent(failure.code))
}
