//! What another program of this machine answers, within a limited time and space.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, getpid, getppid, kill_process_group, set_parent_process_death_signal};

use crate::process::open_pidfd;

/// How long a killed program may take to end. One that hangs in the kernel does not end, and is left.
const END_TIME_MAX: Duration = Duration::from_secs(1);
/// The longest part of its message that is repeated, in characters.
const SAID_MAX: usize = 300;

/// Runs a program without input, and returns what it writes to stdout. It is killed, with what it has started in its process group, when it takes longer
/// or writes more; it alone when the calling thread ends, whatever ends it.
///
/// # Errors
/// It cannot be started, fails (with the last line that it wrote to stderr), takes longer than `time_max`, or writes more than `bytes_max`.
pub fn answer(command: &mut Command, time_max: Duration, bytes_max: usize) -> io::Result<Vec<u8>> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let parent = getpid();
    let end_with_parent = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent may have ended before that.
        if getppid() == Some(parent) { Ok(()) } else { Err(Errno::SRCH.into()) }
    };
    // SAFETY: between fork and exec the closure makes system calls only.
    unsafe { command.process_group(0).pre_exec(end_with_parent) };
    let deadline = Instant::now() + time_max;
    let mut child = command.spawn()?;
    let ended = open_pidfd(child.id() as i32)?;
    let answered =
        read_both(&mut child, deadline, bytes_max).and_then(|texts| wait_for(&ended, deadline).map(|()| texts));
    // It was not waited for, so its number is still its own, and its group's.
    let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
    if answered.is_err() {
        wait_for(&ended, Instant::now() + END_TIME_MAX)?;
    }
    let status = child.wait()?;
    let [out, err] = answered?;
    if status.success() {
        return Ok(out);
    }
    let err = String::from_utf8_lossy(&err);
    let said = err.lines().rfind(|line| !line.trim().is_empty());
    Err(io::Error::other(
        said.map_or_else(|| status.to_string(), |line| line.trim().escape_debug().take(SAID_MAX).collect()),
    ))
}

/// Until a descriptor is ready.
fn wait_for(fd: &impl AsFd, deadline: Instant) -> io::Result<()> {
    wait_for_some(&mut [PollFd::new(fd, PollFlags::IN)], deadline)
}

fn wait_for_some(fds: &mut [PollFd<'_>], deadline: Instant) -> io::Result<()> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec { tv_sec: left.as_secs() as _, tv_nsec: left.subsec_nanos() as _ };
        match poll(fds, Some(&timeout)) {
            Ok(0) => return Err(io::Error::new(io::ErrorKind::TimedOut, "it does not answer in time")),
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => (),
            Err(e) => return Err(e.into()),
        }
    }
}

/// Both streams, to their ends. Descendants that keep them open count as the program itself.
fn read_both(child: &mut Child, deadline: Instant, bytes_max: usize) -> io::Result<[Vec<u8>; 2]> {
    let pipes = [child.stdout.take().map(OwnedFd::from), child.stderr.take().map(OwnedFd::from)];
    let mut open: Vec<(usize, OwnedFd)> = pipes.into_iter().enumerate().filter_map(|(n, fd)| Some((n, fd?))).collect();
    let mut texts = [Vec::new(), Vec::new()];
    while !open.is_empty() {
        let mut fds: Vec<PollFd<'_>> = open.iter().map(|(_, fd)| PollFd::new(fd, PollFlags::IN)).collect();
        wait_for_some(&mut fds, deadline)?;
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        for at in (0..open.len()).rev().filter(|at| ready[*at]) {
            let (n, fd) = &open[at];
            let mut space = [0; 4096];
            let read = rustix::io::read(fd, &mut space)?;
            texts[*n].extend(&space[..read]);
            if texts[*n].len() > bytes_max {
                return Err(io::Error::other(format!("it answers with more than {bytes_max} bytes")));
            }
            if read == 0 {
                open.remove(at);
            }
        }
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str, time_max: Duration) -> Result<String, String> {
        let answer = answer(Command::new("sh").args(["-c", script]), time_max, 100_000);
        answer.map(|text| String::from_utf8_lossy(&text).into_owned()).map_err(|e| e.to_string())
    }

    #[test]
    fn what_a_program_answers_is_limited_in_time_and_space() {
        let long = Duration::from_secs(60);
        assert_eq!(sh("echo yes; echo no >&2", long).as_deref(), Ok("yes\n"));
        assert_eq!(sh("echo a >&2; echo 'b\tc' >&2; exit 3", long), Err("b\\tc".to_owned()));
        assert_eq!(sh("exit 3", long), Err("exit status: 3".to_owned()));
        assert_eq!(
            sh("head -c 90000 /dev/zero | tr '\\0' x", long).map(|text| text.len()),
            Ok(90_000),
            "more than a pipe"
        );
        assert!(sh("yes", long).unwrap_err().contains("more than 100000 bytes"));
        for silent in ["exec >&-; exec sleep 1000", "exec >&- 2>&-; exec sleep 1000", "sleep 1000 & exit 0"] {
            let error = sh(silent, Duration::from_millis(100)).unwrap_err();
            assert!(error.contains("not answer in time"), "{silent}: {error}");
        }
        assert!(answer(&mut Command::new("/no/such"), long, 1).is_err());
    }
}
