//! A run's child process: this program again, with limits of its own.

use super::shelf::Place;
use super::wanted::Task;
use crate::out::Failure;
use rustix::fs::Mode;
use rustix::process::{
    Resource, Rlimit, Signal, getppid, getrlimit, nice, set_parent_process_death_signal, setrlimit, umask,
};
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The first word of the child's command line; its parent's number follows.
pub(crate) const WORK: &str = "__work";
const MEMORY_MAX: u64 = 2 << 30;
const CPU_S_MAX: u64 = 1200;
const FILE_BYTES_MAX: u64 = 16 << 20;
const LIMITS: [(Resource, u64); 4] =
    [(Resource::Data, MEMORY_MAX), (Resource::Cpu, CPU_S_MAX), (Resource::Fsize, FILE_BYTES_MAX), (Resource::Core, 0)];
/// Jobs and people come first.
const NICE: i32 = 15;
const LOOK: Duration = Duration::from_millis(50);

/// How a run ended.
pub(super) enum Ended {
    Well,
    Cancelled,
    Badly(String),
}

/// The child's side: limits itself, then returns the words of its command.
pub(crate) fn work(mut words: impl Iterator<Item = OsString>) -> Result<impl Iterator<Item = OsString>, Failure> {
    let parent = words.next().and_then(|word| word.to_str()?.parse::<i32>().ok());
    let limit = || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        nice(NICE)?;
        LIMITS.iter().try_for_each(|(resource, most)| {
            // A little below the maximum, so that the signal says which limit it was; never above the present maximum.
            let maximum = getrlimit(*resource).maximum.unwrap_or(u64::MAX).min(most + 1);
            setrlimit(*resource, Rlimit { current: Some(maximum.min(*most)), maximum: Some(maximum) })
        })
    };
    umask(Mode::RWXG | Mode::RWXO);
    limit().map_err(|e| Failure::other(format!("cannot limit this run: {e}")))?;
    // The parent may have ended before it was watched.
    if getppid().map(|pid| pid.as_raw_nonzero().get()) != parent {
        return Err(Failure::silent(1));
    }
    Ok(words)
}

/// Runs a task to its end. The child dies with the calling thread.
pub(super) fn run(task: &Task, place: &Place, socket: Option<&Path>, is_cancelled: &dyn Fn() -> bool) -> Ended {
    let start = || {
        let (out, err) = place.outputs()?;
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(WORK).arg(std::process::id().to_string());
        if let Some(socket) = socket {
            command.arg("--socket").arg(socket);
        }
        command.args(&task.words).current_dir(place.input()).stdin(Stdio::null()).stdout(out).stderr(err).spawn()
    };
    let mut child: Child = match start() {
        Ok(child) => child,
        Err(e) => return Ended::Badly(format!("it cannot be started: {e}")),
    };
    let deadline = Instant::now() + task.limit;
    let ended = loop {
        match child.try_wait() {
            Ok(Some(status)) => return how(status),
            Ok(None) if is_cancelled() => break Ended::Cancelled,
            Ok(None) if Instant::now() >= deadline => {
                break Ended::Badly(format!("it was ended: it took longer than {} s", task.limit.as_secs()));
            }
            Ok(None) => std::thread::sleep(LOOK),
            Err(e) => break Ended::Badly(e.to_string()),
        }
    };
    let _ = child.kill();
    let _ = child.wait();
    ended
}

fn how(status: ExitStatus) -> Ended {
    if status.success() {
        return Ended::Well;
    }
    let signal = status.signal().and_then(Signal::from_named_raw);
    Ended::Badly(match signal {
        Some(Signal::ABORT) => format!("it was ended: it needed more than {} GiB of memory", MEMORY_MAX >> 30),
        Some(Signal::XCPU) => format!("it was ended: it used more than {CPU_S_MAX} s of CPU time"),
        Some(Signal::XFSZ) => format!("it was ended: it wrote more than {} MiB", FILE_BYTES_MAX >> 20),
        _ => status.code().map_or_else(|| status.to_string(), |code| format!("exit code {code}")),
    })
}
