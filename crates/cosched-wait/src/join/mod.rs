//! Lets a process enter the job that its environment names, if it is not in it: a rank on another node, for example.
//!
//! `COSCHED_JOB` is the job's id, `COSCHED_JOB_SUBMITTED` the time of its registration: nodes that do not share their jobs number them from 1 each,
//! and a job of the same id may be a different one. Processes that a job starts are in its cgroup by birth: they read one file and send no request.
//! Whatever fails, the program runs as it is; `COSCHED_WAIT_DEBUG=1` prints the reason on standard error. The constructor does this, so that the
//! program never sees one of its descriptors.

mod answer;
mod cgroup;
mod daemon;

use crate::sys;
use crate::text::Text;
use answer::{Answer, PATH_MAX};
use core::ffi::CStr;
use core::fmt::Write;
use daemon::Daemon;

const PAGE: &CStr = c"COSCHED_WAIT_PAGE";

/// Why a process is not in its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outside {
    /// The variable is not a number.
    NoId,
    /// No daemon listens on this node, or it did not answer.
    NoDaemon,
    /// The daemon of this node has no job of this id, or a different one.
    NoJob,
    /// The daemon refused: not this user's job, or it has ended.
    Refused,
}

/// Enters the job, and puts the job's page on this node into the environment, for this process and its children.
pub(crate) fn enter() {
    let Some(text) = sys::variable(c"COSCHED_JOB").filter(|text| !text.is_empty()) else { return };
    let saved = sys::errno();
    let outcome = match sys::number(text.to_bytes()) {
        Some(id) if has_the_jobs_page() || cgroup::is_in(id) => Ok(None),
        Some(id) => ask(id).map(Some),
        None => Err(Outside::NoId),
    };
    match outcome {
        Ok(None) => {}
        Ok(Some(answer)) => set_page(answer.page(&mut [0; PATH_MAX])),
        Err(why) => {
            // The page in the environment is the job's page on another node.
            set_page(None);
            explain(text, why);
        }
    }
    sys::set_errno(saved);
}

fn ask(id: u64) -> Result<Answer, Outside> {
    let daemon = Daemon::find().ok_or(Outside::NoDaemon)?;
    if let Some(submitted) = sys::variable(c"COSCHED_JOB_SUBMITTED").and_then(|text| sys::number(text.to_bytes())) {
        let mut request = Text::<256>::new();
        let _ = write!(request, "GET /v1/jobs/{id} HTTP/1.1\r\nHost: cosched\r\nConnection: close\r\n\r\n");
        let job = daemon.ask(request.bytes()).ok_or(Outside::NoDaemon)?;
        if !job.is_good() || job.submitted_unix_ms() != Some(submitted) {
            return Err(Outside::NoJob);
        }
    }
    let mut body = Text::<128>::new();
    // SAFETY: no arguments, no effect.
    let _ = write!(body, "{{\"pid\":{}", unsafe { libc::getpid() });
    // In a container the daemon sees a different process under this number; the start time does not match that one's.
    if let Some(ticks) = cgroup::own_start_ticks() {
        let _ = write!(body, ",\"start_ticks\":{ticks}");
    }
    let _ = body.write_str("}");
    let mut request = Text::<512>::new();
    let _ = write!(
        request,
        "POST /v1/jobs/{id}/processes HTTP/1.1\r\nHost: cosched\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
        body.bytes().len(),
        core::str::from_utf8(body.bytes()).unwrap_or_default()
    );
    let entered = daemon.ask(request.bytes()).ok_or(Outside::NoDaemon)?;
    match entered.status() {
        Some(200..=299) => Ok(entered),
        Some(404) => Err(Outside::NoJob),
        _ => Err(Outside::Refused),
    }
}

/// Whether the page is the very file that `cosched run` saw when it put the job's command into the job: this process descends from that command, on
/// the same node. It is in the job also where there are no cgroups to show it. As `is_the_jobs` in preload/rule.h.
fn has_the_jobs_page() -> bool {
    let (Some(page), Some(seen)) = (sys::variable(PAGE), sys::variable(c"COSCHED_WAIT_PAGE_SEEN")) else {
        return false;
    };
    let wanted = libc::STATX_INO | libc::STATX_BTIME;
    // SAFETY: all zeroes is a valid value of this plain structure, and the kernel overwrites it.
    let mut facts: libc::statx = unsafe { core::mem::zeroed() };
    let (at, flags) = (libc::AT_FDCWD, libc::AT_STATX_DONT_SYNC);
    // SAFETY: the path ends with a zero, and `facts` is a place for one structure.
    let error = unsafe { libc::syscall(libc::SYS_statx, at, page.as_ptr(), flags, wanted, &raw mut facts) };
    let (born, mut file) = (facts.stx_btime, Text::<64>::new());
    let _ = write!(file, "{}-{}-{}", facts.stx_ino, born.tv_sec, born.tv_nsec);
    error == 0 && facts.stx_mask & wanted == wanted && file.bytes() == seen.to_bytes()
}

/// To be called in the constructor, before the program has threads that read the environment.
fn set_page(path: Option<&CStr>) {
    match path {
        // SAFETY: both texts end with a zero, and setenv copies them.
        Some(path) => unsafe { libc::setenv(PAGE.as_ptr(), path.as_ptr(), 1) },
        // SAFETY: the name ends with a zero.
        None => unsafe { libc::unsetenv(PAGE.as_ptr()) },
    };
}

fn explain(job: &CStr, why: Outside) {
    if sys::variable(c"COSCHED_WAIT_DEBUG").is_none_or(|value| value.is_empty() || value == c"0") {
        return;
    }
    let why = match why {
        Outside::NoId => "COSCHED_JOB is not a job's id",
        Outside::NoDaemon => "no daemon answers on this node",
        Outside::NoJob => "this node's daemon has no such job",
        Outside::Refused => {
            "the daemon refuses: the job has ended, is another user's, or this process is in another job"
        }
    };
    let mut line = Text::<256>::new();
    let job = core::str::from_utf8(job.to_bytes()).unwrap_or("?");
    // SAFETY: no arguments, no effect.
    let _ = writeln!(line, "cosched_wait: process {} is not in job {job:.20}: {why}", unsafe { libc::getpid() });
    sys::write_all(2, line.bytes());
}
