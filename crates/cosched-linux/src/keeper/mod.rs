//! A job without cgroups: a process above its processes, the *keeper*, stops and continues them by signals.
//!
//! The problem: where no cgroup may be written (a container with read-only cgroups, a user without a delegated one) nothing freezes a job, and nothing
//! lists its processes. The rule: the job's command is started by a keeper, which is a child subreaper (prctl(2)): every descendant stays below it, also
//! one that becomes a daemon. The keeper reads its orders in a file (`files.rs`) as the kernel does in a cgroup's, so that the slot thread, the guard and
//! whoever thaws do the same in both cases.
//!
//! Nothing stays stopped, whatever dies: the keeper writes down what it stops before it stops it, and continues it
//! - when the daemon has ended, which it sees by a pidfd, or when the guard says so because the daemon hangs;
//! - and when the keeper itself is killed, the daemon, the guard at the daemon's end, or `cosched run` continues what is written down.
//!
//! Not covered: all four of them killed at one instant. Not reached: programs with another user's rights (set-user-ID), and processes of a container
//! engine, which are not descendants.

pub(crate) mod files;
mod gang;

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify;

use crate::descent::is_below;
use crate::process::{Held, send_signal};
use crate::realtime;
use gang::Gang;

/// How often the keeper looks for processes that run although the job is stopped. Longer when a look takes long, so that it costs 5 % of a CPU at most.
const LOOK: Duration = Duration::from_millis(20);
/// How often it reads its orders where the kernel does not announce them (fs.inotify.max_user_instances).
const POLL: Duration = Duration::from_millis(10);
/// What processes that the command has left get between TERM and KILL, where they are to be ended.
const GRACE: Duration = Duration::from_secs(2);
/// The signals that are passed on to the command, when a process has sent them.
const PASSED_ON: [i32; 6] = [libc::SIGTERM, libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2];
/// A keeper that is stopped by its terminal could not continue anybody.
const IGNORED: [i32; 4] = [libc::SIGCHLD, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];

/// Why no process here could be the keeper of a job; `None` if one can.
pub fn obstacle() -> Option<String> {
    let own = Held::open(std::process::id() as i32).and_then(|own| match own.signal(0) {
        true => Ok(()),
        false => Err(io::Error::last_os_error()),
    });
    let mut is_reaper: libc::c_int = 0;
    // SAFETY: the kernel writes one int, which lives during the call.
    let reaper = unsafe { libc::prctl(libc::PR_GET_CHILD_SUBREAPER, &raw mut is_reaper) };
    let reaper = if reaper == 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
    if let Err(e) = inotify::init(inotify::CreateFlags::CLOEXEC) {
        return Some(format!("the end of jobs cannot be seen: inotify: {e}"));
    }
    match (own, reaper) {
        (Err(e), _) => Some(format!("processes cannot be held by pidfds: {e}")),
        (_, Err(e)) => Some(format!("no process can be a child subreaper: {e}")),
        (Ok(()), Ok(())) => None,
    }
}

/// The keeper: `keep DIR LEFTOVERS LD_PRELOAD PROGRAM ARGV0 ARGS…`: LEFTOVERS is `kill` when what the command leaves is to be ended; the libraries to
/// preload are the command's, and may be none. Ends like the command, when the last process of the job has ended.
pub(crate) fn keeper_main(mut words: impl Iterator<Item = OsString>) -> Result<ExitCode, String> {
    let mut next =
        || words.next().ok_or("it is started by cosched run, as keep DIR LEFTOVERS LD_PRELOAD PROGRAM ARGV0 ARGS…");
    let (dir, leftovers) = (PathBuf::from(next()?), next()?);
    let (preload, program, argv0) = (next()?, next()?, next()?);
    let mut command = Command::new(program);
    command.arg0(&argv0).args(words);
    if !preload.is_empty() {
        command.env("LD_PRELOAD", preload);
    }
    let keeper = Keeper::start(&dir, &mut command);
    let mut keeper = match keeper {
        Ok(keeper) => keeper,
        Err(e) => {
            eprintln!("cosched: {}: cannot be executed: {e}", argv0.display());
            return Ok(ExitCode::from(if e.kind() == io::ErrorKind::NotFound { 127 } else { 126 }));
        }
    };
    keeper.ends = if leftovers == "kill" { vec![libc::SIGKILL, libc::SIGTERM] } else { Vec::new() };
    let status = keeper.run();
    keeper.close();
    Ok(end_like(status))
}

/// `continue DIR`: continues what the keeper of this job has stopped.
pub(crate) fn continue_main(dir: &Path) -> ExitCode {
    files::continue_job(dir);
    ExitCode::SUCCESS
}

struct Keeper {
    dir: PathBuf,
    freeze: File,
    /// Readable when an order was written; `None` where the kernel has none to give.
    orders: Option<OwnedFd>,
    signals: OwnedFd,
    daemon: Option<Held>,
    command: i32,
    status: Option<ExitStatus>,
    /// When the command ended, until it was said that others of the job live on.
    untold_since: Option<Instant>,
    gang: Gang,
    /// How long the last look took.
    look_took: Duration,
    /// What is sent to all that the command has left, the last one first.
    ends: Vec<i32>,
    end_at: Instant,
}

impl Keeper {
    fn start(dir: &Path, command: &mut Command) -> io::Result<Keeper> {
        let gang = Gang::new(dir)?;
        let freeze = File::open(dir.join(files::FREEZE))?;
        let orders = orders(dir).ok();
        // SAFETY: takes numbers only.
        if unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let signals = take_signals()?;
        // The library unblocks all signals in the child.
        let command = command.spawn()?.id() as i32;
        // Each stopped process is held by a descriptor. The command keeps its own limit.
        realtime::raise_open_files();
        Ok(Keeper {
            dir: dir.to_owned(),
            freeze,
            orders,
            signals,
            daemon: None,
            command,
            status: None,
            untold_since: None,
            gang,
            look_took: Duration::ZERO,
            ends: Vec::new(),
            end_at: Instant::now(),
        })
    }

    /// Returns when the job's last process has ended.
    fn run(&mut self) -> ExitStatus {
        loop {
            self.reap();
            if let Some(status) = self.status.filter(|_| self.gang.members().is_empty()) {
                return status;
            }
            if self.status.is_some()
                && self.end_at <= Instant::now()
                && let Some(signal) = self.ends.pop()
            {
                self.signal_all(signal);
                self.end_at = Instant::now() + GRACE;
            }
            if self.untold_since.is_some_and(|since| since.elapsed() >= GRACE) {
                self.untold_since = None;
                let left = self.gang.members().len();
                eprintln!(
                    "cosched: the command has ended; waiting for {left} remaining processes (Ctrl-C signals them)"
                );
            }
            if self.is_to_stop() {
                let started = Instant::now();
                self.gang.stop();
                self.look_took = started.elapsed();
            } else if self.gang.is_stopped() {
                self.gang.go();
            }
            self.wait();
            self.pass_on_signals();
        }
    }

    /// Only a living daemon's order counts: a dead one cannot take its order back.
    fn is_to_stop(&mut self) -> bool {
        let mut order = [0];
        if rustix::io::pread(&self.freeze, &mut order, 0) != Ok(1) || order != *b"1" {
            return false;
        }
        if self.daemon.as_ref().is_none_or(|daemon| !daemon.alive()) {
            self.daemon = self.dir.parent().and_then(files::daemon);
        }
        self.daemon.is_some()
    }

    fn wait(&mut self) {
        let timeout = match (self.gang.is_stopped(), &self.orders) {
            (true, _) => Some(LOOK.max(self.look_took * 20)),
            (false, None) => Some(POLL),
            (false, Some(_)) => None,
        };
        let end = (self.untold_since.is_some() || self.status.is_some() && !self.ends.is_empty()).then_some(GRACE);
        let timeout = timeout.into_iter().chain(end).min();
        let timeout =
            timeout.map(|time| Timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() });
        let mut fds = vec![PollFd::new(&self.signals, PollFlags::IN)];
        fds.extend(self.orders.as_ref().map(|fd| PollFd::new(fd, PollFlags::IN)));
        // An ended one would be ready for ever.
        fds.extend(self.daemon.as_ref().filter(|daemon| daemon.alive()).map(|fd| PollFd::new(fd, PollFlags::IN)));
        // Whatever it says, everything is looked at again.
        let _ = poll(&mut fds, timeout.as_ref());
        if let Some(orders) = &self.orders {
            let mut buffer = [MaybeUninit::uninit(); 1024];
            let mut reader = inotify::Reader::new(orders, &mut buffer);
            while reader.next().is_ok() {}
        }
    }

    fn reap(&mut self) {
        loop {
            let mut status = 0;
            // SAFETY: the kernel writes one int, which lives during the call.
            let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
            if pid <= 0 {
                return;
            }
            if pid == self.command {
                self.status = Some(ExitStatus::from_raw(status));
                self.untold_since = Some(Instant::now());
            }
        }
    }

    /// Passes on what processes have sent; the terminal sends its signals to the whole process group. After the command's end, all that it left gets
    /// them.
    fn pass_on_signals(&self) {
        // SAFETY: all zeroes is a valid value of this plain structure.
        let mut info: libc::signalfd_siginfo = unsafe { std::mem::zeroed() };
        let size = size_of_val(&info);
        // SAFETY: the buffer is as long as it is said to be, and lives during the call; any bytes are a valid value.
        while unsafe { libc::read(self.signals.as_raw_fd(), (&raw mut info).cast(), size) } == size as isize {
            let signal = info.ssi_signo as i32;
            let has_it = info.ssi_code > 0 || info.ssi_pid == self.command as u32;
            // What the command has left may be in another process group than the terminal's.
            if !PASSED_ON.contains(&signal) || has_it && self.status.is_none() {
                continue;
            }
            match self.status {
                None => _ = send_signal(self.command, signal),
                Some(_) => self.signal_all(signal),
            }
        }
    }

    fn signal_all(&self, signal: i32) {
        for pid in self.gang.members() {
            // Asked with the pidfd open: its number may have been reused since it was listed.
            if let Ok(process) = Held::open(pid)
                && is_below(pid, std::process::id() as i32)
            {
                let _ = process.signal(signal);
            }
        }
    }

    /// Writes down what the job has used, and that it is over.
    fn close(&self) {
        // SAFETY: all zeroes is a valid value of this plain structure, which the kernel fills.
        let mut used: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: the structure lives during the call.
        unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut used) };
        let us = |time: libc::timeval| time.tv_sec as u64 * 1_000_000 + time.tv_usec as u64;
        let text = format!("usage_usec {}\n", us(used.ru_utime) + us(used.ru_stime));
        // If they cannot be written, the daemon sees the keeper's end.
        let _ = std::fs::write(self.dir.join(files::USAGE), text);
        let _ = crate::cgfile::write(&self.dir.join(files::EVENTS), "populated 0\n");
    }
}

fn orders(dir: &Path) -> io::Result<OwnedFd> {
    let fd = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)?;
    inotify::add_watch(&fd, dir.join(files::FREEZE), inotify::WatchFlags::MODIFY)?;
    Ok(fd)
}

/// Blocks the keeper's signals; they are read from this descriptor.
fn take_signals() -> io::Result<OwnedFd> {
    // SAFETY: the sets and the action are initialised before use and live during the calls.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in PASSED_ON.iter().chain(&IGNORED) {
            libc::sigaddset(&raw mut set, *signal);
        }
        libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
        // Children that stop are no news.
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_flags = libc::SA_NOCLDSTOP;
        libc::sigaction(libc::SIGCHLD, &raw const action, std::ptr::null_mut());
        match libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) {
            fd if fd >= 0 => Ok(OwnedFd::from_raw_fd(fd)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Ends this process as the command ended, without a core file of its own.
fn end_like(status: ExitStatus) -> ExitCode {
    let Some(signal) = status.signal() else { return ExitCode::from(status.code().unwrap_or(1) as u8) };
    // SAFETY: numbers, and sets and limits that live during the calls.
    unsafe {
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
        libc::signal(signal, libc::SIG_DFL);
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut());
        libc::raise(signal);
    }
    ExitCode::from((128 + signal) as u8)
}
