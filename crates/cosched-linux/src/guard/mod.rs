//! The guard: a small process that thaws every job when the daemon has ended or hangs.
//!
//! The problem: a frozen process cannot help itself, so a daemon that dies between two switches would leave a gang stopped for good. The rule: a
//! second process waits on a pidfd of the daemon and on its heartbeat. When the daemon ends, everything is thawed at once and the guard ends, too.
//! When the last heartbeat is older than the lease (the daemon hangs or was stopped), everything is thawed, and again after every lease, until
//! heartbeats resume. So the longest time that a job can stay stopped by a dead or hung daemon is one lease.
//!
//! The slot thread may continue its heartbeats while the daemon's driver hangs and no request is answered. The driver stamps the same page; when it
//! has not completed a round for its limit and one lease more, the guard ends the daemon, and the service manager or command that started it starts
//! another one.
//!
//! It also ends the jobs that other nodes are about to start again, at their deadline, whatever the daemon does ([`crate::fence`]); for that it stays
//! after the daemon's end until another daemon has begun. For the death of both at the same moment see [`crate::kernel_agent`].

mod spawn;

pub use spawn::{Guard, GuardOptions, spawn_guard};

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, pidfd_send_signal};

use crate::beat::Beat;
use crate::confine::widen_all;
use crate::fence::Fences;
use crate::keeper;
use crate::kernel_agent;
use crate::probe;
use crate::process::inherited;
use crate::realtime;
use crate::thaw::{ThawPaths, thaw_all};
use crate::user;

/// How often a guard without a daemon checks for a new daemon.
const FENCES_LOOK: Duration = Duration::from_secs(1);

/// The inputs of a running guard.
#[derive(Debug)]
pub struct GuardConfig {
    /// The tree whose jobs are thawed.
    pub paths: ThawPaths,
    /// The daemon: readable when it has ended.
    pub daemon: OwnedFd,
    /// The daemon's heartbeat, with its lease.
    pub beat: Beat,
    /// The file of deadlines for jobs that other nodes will start again.
    pub fences: PathBuf,
}

/// The whole of the guard's binary: `main` calls it with all arguments, the program's name first. It is the guard (`watch …`), the idle probe (`probe
/// …`), a gate (`start …`), a job's keeper (`keep …`) or who continues a job in its place (`continue DIR`), the kernel's last resort (by the name of the link that the kernel runs) or nothing (`nothing`, for the last resort's
/// self-test).
pub fn guard_main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    if let Some(link) = args.first().map(PathBuf::from).filter(|path| kernel_agent::is_agent_link(path)) {
        return kernel_agent::agent_main(&link, args.get(1).map_or(OsStr::new(""), |a| a));
    }
    match args.get(1).and_then(|a| a.to_str()) {
        Some("nothing") => ExitCode::SUCCESS,
        Some("watch") => match parse(&args[2..]) {
            Ok(config) => {
                prepare_process();
                run_guard(&config);
                ExitCode::SUCCESS
            }
            Err(why) => complain(&why),
        },
        Some("probe") => match probe::probe_main(&args[2..]) {
            Ok(()) => ExitCode::SUCCESS,
            Err(why) => complain(&why),
        },
        Some("keep") => keeper::keeper_main(args.into_iter().skip(2)).unwrap_or_else(|why| complain(&why)),
        Some("continue") => args.get(2).map_or(ExitCode::from(2), |dir| keeper::continue_main(Path::new(dir))),
        Some("start") => match user::gate_main(&args[2..]) {
            Ok(()) => ExitCode::SUCCESS,
            Err(why) => complain(&why),
        },
        _ => complain("this program is started by coschedd and is of no use by itself"),
    }
}

pub use guard_main as main;

fn complain(why: &str) -> ExitCode {
    eprintln!("cosched-guard: {why}");
    ExitCode::from(2)
}

/// Waits, and thaws when the daemon ends or hangs. Returns after the daemon's end.
pub fn run_guard(config: &GuardConfig) {
    let daemon = rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get());
    let mut warned_of = None;
    let mut due = None;
    loop {
        let fence_at = due.map(|due| Instant::now() + due);
        if wait_for_end(config, due) {
            thaw_all(&config.paths, config.beat.signals());
            widen_all(&config.paths);
            stay_for_fences(&config.fences);
            return realtime::become_ordinary();
        }
        due = Fences::read(&config.fences).enforce();
        if fence_at.is_some_and(|at| at <= Instant::now()) {
            // Only a deadline was due; the heartbeat is checked in its own time.
            continue;
        }
        if config.beat.age_ns() > config.beat.lease_ns() {
            thaw_all(&config.paths, config.beat.signals());
            // The slot thread may be running again: this tells it to write all states again.
            config.beat.note_thaw();
            config.beat.nudge_slot_thread(daemon);
        }
        let hangs_since = config.beat.driver_hangs_since_ns();
        // The same stamp twice: after only one check the whole machine may have been suspended, and the driver would continue now.
        if hangs_since.is_some() && hangs_since == warned_of {
            complain(
                "the daemon's driver has hung for longer than `watchdog`, so the daemon is ended; the jobs keep \
                 running",
            );
            // Fails only if it has ended meanwhile.
            let _ = pidfd_send_signal(&config.daemon, Signal::KILL);
        } else if hangs_since.is_some() {
            config.beat.nudge_driver(daemon);
        }
        warned_of = hangs_since;
    }
}

/// The daemon has ended: kills jobs at their deadlines, until another daemon does that.
fn stay_for_fences(path: &Path) {
    let daemon = Fences::read(path).daemon;
    loop {
        let fences = Fences::read(path);
        if fences.daemon != daemon {
            return;
        }
        match fences.enforce() {
            Some(due) => std::thread::sleep(due.min(FENCES_LOOK)),
            None => return,
        }
    }
}

/// Waits until the daemon has ended (true), or the heartbeat may be too old or a deadline is due (false).
fn wait_for_end(config: &GuardConfig, due: Option<Duration>) -> bool {
    let (age_ns, lease_ns) = (config.beat.age_ns(), config.beat.lease_ns());
    // While the heartbeat is too old, check once per lease.
    let wait_ns = if age_ns > lease_ns { lease_ns } else { lease_ns - age_ns + 1 }.max(1_000_000);
    let wait_ns = due.map_or(wait_ns, |due| wait_ns.min(due.as_nanos() as u64 + 1));
    let timeout = Timespec { tv_sec: (wait_ns / 1_000_000_000) as i64, tv_nsec: (wait_ns % 1_000_000_000) as i64 };
    let mut fds = [PollFd::new(&config.daemon, PollFlags::IN)];
    match poll(&mut fds, Some(&timeout)) {
        Ok(_) => !fds[0].revents().is_empty(),
        Err(rustix::io::Errno::INTR) => false,
        Err(_) => {
            // This does not happen; but a guard that cannot wait must not spin at real-time priority.
            std::thread::sleep(Duration::from_millis(100));
            false
        }
    }
}

/// Priority above the daemon's slot thread, locked memory, and the last process to be killed when memory runs out; each as far as permitted.
fn prepare_process() {
    let _ = realtime::become_realtime(spawn::PRIORITY);
    let _ = realtime::lock_memory();
    let _ = std::fs::write("/proc/self/oom_score_adj", "-900");
}

fn parse(args: &[OsString]) -> Result<GuardConfig, String> {
    let (mut daemon, mut beat, mut v2_tree, mut fences) = (None, None, None, None);
    let (mut cpu_tree, mut cpuset_tree) = (None, None);
    for pair in args.chunks(2) {
        let [key, value] = pair else { return Err(format!("{} has no value", pair[0].display())) };
        match key.to_str() {
            Some("--daemon-fd") => daemon = Some(inherited(value)?),
            Some("--beat-fd") => beat = Some(inherited(value)?),
            Some("--v2-tree") => v2_tree = Some(PathBuf::from(value)),
            Some("--fences") => fences = Some(PathBuf::from(value)),
            Some("--cpu-tree") => cpu_tree = Some(PathBuf::from(value)),
            Some("--cpuset-tree") => cpuset_tree = Some(PathBuf::from(value)),
            _ => return Err(format!("unknown argument {}", key.display())),
        }
    }
    let missing = || "an argument is missing".to_string();
    let beat = Beat::from_fd(beat.ok_or_else(missing)?).map_err(|e| format!("the beat cannot be read: {e}"))?;
    let paths = ThawPaths { v2_tree: v2_tree.ok_or_else(missing)?, cpu_tree, cpuset_tree };
    Ok(GuardConfig { paths, daemon: daemon.ok_or_else(missing)?, beat, fences: fences.ok_or_else(missing)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn wrong_arguments_are_refused() {
        assert!(parse(&words("--v2-tree /x")).unwrap_err().contains("missing"));
        assert!(parse(&words("--beat-fd")).unwrap_err().contains("no value"));
        assert!(parse(&words("--beat-fd 1")).unwrap_err().contains("descriptor 1"));
        assert!(parse(&words("--beat-fd 987654")).unwrap_err().contains("descriptor 987654"));
        assert!(parse(&words("--colour red")).unwrap_err().contains("unknown"));
    }

    #[test]
    fn the_binary_does_nothing_without_a_role() {
        assert_eq!(guard_main(words("cosched-guard nothing")), ExitCode::SUCCESS);
        assert_eq!(guard_main(words("cosched-guard")), ExitCode::from(2));
    }
}
