//! Starts the guard from the daemon.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use crate::beat::Beat;
use crate::process::{keep_descriptors, open_pidfd};
use crate::realtime::ordinarily;
use crate::thaw::ThawPaths;

/// The guard's SCHED_FIFO priority, above the slot thread's: it sleeps until it is needed.
pub(super) const PRIORITY: i32 = 20;

/// The guard's inputs.
#[derive(Debug)]
pub struct GuardOptions<'a> {
    /// The tree whose jobs are thawed.
    pub paths: ThawPaths,
    /// The daemon's heartbeat page; the guard inherits its file.
    pub beat: &'a Beat,
    /// The file of deadlines for jobs that other nodes will start again; see [`crate::fence`].
    pub fences: &'a Path,
}

/// A running guard, a child of the daemon.
#[derive(Debug)]
pub struct Guard {
    child: Child,
    pidfd: OwnedFd,
}

/// Starts `exe` (the binary whose `main` is [`super::guard_main`]) as the guard of this process. It has its own session and ignores SIGTERM, SIGHUP
/// and SIGINT, so a signal that ends the daemon's group does not end it; it ends by itself after the daemon.
///
/// # Errors
/// The program cannot be started.
pub fn spawn_guard(exe: &Path, options: &GuardOptions<'_>) -> io::Result<Guard> {
    let own_pidfd = open_pidfd(std::process::id() as i32)?;
    let (daemon, beat) = (own_pidfd.as_raw_fd(), options.beat.as_fd().as_raw_fd());
    let mut command = Command::new(exe);
    command.arg("watch").args(["--daemon-fd", &daemon.to_string(), "--beat-fd", &beat.to_string()]);
    command.arg("--v2-tree").arg(&options.paths.v2_tree).arg("--fences").arg(options.fences);
    for (name, tree) in [("--cpu-tree", &options.paths.cpu_tree), ("--cpuset-tree", &options.paths.cpuset_tree)] {
        if let Some(tree) = tree {
            command.arg(name).arg(tree);
        }
    }
    command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::null());
    keep_descriptors(&mut command, &[daemon, beat]);
    // SAFETY: the closure runs between fork and exec and makes async-signal-safe system calls only.
    unsafe { command.pre_exec(stand_apart) };
    let mut child = command.spawn()?;
    match open_pidfd(child.id() as i32) {
        Ok(pidfd) => Ok(Guard { child, pidfd }),
        Err(e) => {
            // Without a handle we would not notice its end: no guard is better than one that is not watched.
            let _ = child.kill();
            let _ = ordinarily(|| child.wait());
            Err(e)
        }
    }
}

/// Between fork and exec: makes a new session and ignores the signals that request an end.
fn stand_apart() -> io::Result<()> {
    // SAFETY: these take numbers only.
    unsafe {
        libc::setsid();
        for signal in [libc::SIGTERM, libc::SIGHUP, libc::SIGINT] {
            libc::signal(signal, libc::SIG_IGN);
        }
    }
    Ok(())
}

impl Guard {
    /// Its process number.
    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Its exit status, when it has ended. The daemon then starts another guard.
    ///
    /// # Errors
    /// The kernel's on waiting.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        ordinarily(|| self.child.try_wait())
    }

    /// Leaves it running when the daemon ends: it has jobs to end at their deadlines.
    pub fn leave(self) {}

    /// Ends it, when the daemon has thawed every job and is about to end.
    pub fn dismiss(mut self) {
        // It may already have ended by itself.
        let _ = self.child.kill();
        let _ = ordinarily(|| self.child.wait());
    }
}

/// The guard's pidfd: readable when it has ended.
impl AsFd for Guard {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}
