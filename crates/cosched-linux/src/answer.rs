//! What another program of this machine answers, within a limited time and space.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Signal, set_parent_process_death_signal};

/// Runs a program without input, and returns what it writes to stdout. It is killed when it takes longer or writes more, and when the calling thread
/// ends, whatever ends it.
///
/// # Errors
/// It cannot be started, fails (with the last line that it wrote to stderr), takes longer than `time_max`, or writes more than `bytes_max`.
pub fn answer(command: &mut Command, time_max: Duration, bytes_max: usize) -> io::Result<Vec<u8>> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // SAFETY: the closure runs between fork and exec and makes one system call.
    unsafe { command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?)) };
    let mut child = command.spawn()?;
    let answered = read_both(&mut child, Instant::now() + time_max, bytes_max);
    if answered.is_err() {
        // It may have ended by itself.
        let _ = child.kill();
    }
    let status = child.wait()?;
    let [out, err] = answered?;
    if status.success() {
        return Ok(out);
    }
    let err = String::from_utf8_lossy(&err);
    let said = err.lines().rfind(|line| !line.trim().is_empty());
    Err(io::Error::other(said.map_or_else(|| status.to_string(), |line| line.trim().escape_debug().to_string())))
}

/// Both streams, to their ends. Descendants that keep them open count as the program itself.
fn read_both(child: &mut Child, deadline: Instant, bytes_max: usize) -> io::Result<[Vec<u8>; 2]> {
    let pipes = [child.stdout.take().map(OwnedFd::from), child.stderr.take().map(OwnedFd::from)];
    let mut open: Vec<(usize, OwnedFd)> = pipes.into_iter().enumerate().filter_map(|(n, fd)| Some((n, fd?))).collect();
    let mut texts = [Vec::new(), Vec::new()];
    while !open.is_empty() {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec { tv_sec: left.as_secs() as _, tv_nsec: left.subsec_nanos() as _ };
        let mut fds: Vec<PollFd<'_>> = open.iter().map(|(_, fd)| PollFd::new(fd, PollFlags::IN)).collect();
        match poll(&mut fds, Some(&timeout)) {
            Ok(0) => return Err(io::Error::new(io::ErrorKind::TimedOut, "it does not answer in time")),
            Ok(_) => (),
            Err(Errno::INTR) => continue,
            Err(e) => return Err(e.into()),
        }
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
        let silent = "exec >&-; exec sleep 1000";
        assert!(sh(silent, Duration::from_millis(100)).unwrap_err().contains("not answer in time"));
        assert!(answer(&mut Command::new("/no/such"), long, 1).is_err());
    }
}
