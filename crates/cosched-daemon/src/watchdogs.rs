//! The watchdogs of adopted services (systemd's `WatchdogSec`): while a job is suspended its service can give no sign of life, so the daemon gives it.
//!
//! A service that has turns gives its own signs, and one that hangs is ended by systemd as ever. Which services have a watchdog only systemd knows; it is asked
//! by a thread, since it may take its time.

use crate::containers::SYSTEM_PATH;
use cosched_linux::answer::answer;
use cosched_linux::kernel_agent::begin_outside;
use cosched_linux::notify;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// How long systemd may take to answer, and how much it may say.
pub(crate) const ANSWER_TIME_MAX: Duration = Duration::from_secs(20);
const ANSWER_TIME_MIN: Duration = Duration::from_millis(100);
const ANSWER_BYTES_MAX: usize = 4096;
/// How long after no answer systemd is asked again: at first, and at most.
const ASK_PAUSE: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];
/// The number of signs of life in the time after which systemd would miss one.
const SIGNS: u32 = 4;

/// A service with a watchdog.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Watched {
    /// The time after which systemd ends it without a sign of life.
    pub(crate) limit: Duration,
    /// Its main process, which systemd takes signs from.
    pid: i32,
}

/// The watchdog of the service of the system that has this cgroup; `None` without one, and without systemd.
///
/// # Errors
/// Systemd does not answer.
pub(crate) fn of(run_dir: &Path, cgroup: &Path, time_max: Duration) -> io::Result<Option<Watched>> {
    let unit = cgroup.file_name().and_then(|name| name.to_str()).filter(|name| name.ends_with(".service"));
    let Some(unit) = unit else { return Ok(None) };
    let mut command = Command::new("systemctl");
    let words = ["show", "--property=WatchdogUSec,MainPID,ControlGroup", "--", unit];
    command.args(words).current_dir("/").env("PATH", SYSTEM_PATH);
    begin_outside(run_dir, &mut command)?;
    match answer(&mut command, time_max, ANSWER_BYTES_MAX) {
        Ok(text) => Ok(read(cgroup, &String::from_utf8_lossy(&text))),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

fn read(cgroup: &Path, text: &str) -> Option<Watched> {
    let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key));
    // A unit of a user may have the name of another one of the system's.
    value("ControlGroup=").filter(|path| Path::new(path) == cgroup)?;
    // As systemd writes it: "1min 30s".
    let parts = value("WatchdogUSec=")?.split_whitespace().map(|part| cosched_api::parse::duration(part).ok());
    let limit: Duration = parts.sum::<Option<Duration>>()?;
    let pid = value("MainPID=")?.parse().ok()?;
    (!limit.is_zero() && pid > 0).then_some(Watched { limit, pid })
}

/// Of which services the daemon gives the signs of life.
pub(crate) struct Watchdogs {
    stopped: BTreeSet<PathBuf>,
    thread: Sender<BTreeSet<PathBuf>>,
}

impl Watchdogs {
    /// Starts the thread; it ends with the daemon.
    pub(crate) fn start(run_dir: PathBuf) -> std::io::Result<Watchdogs> {
        let (thread, told) = channel();
        std::thread::Builder::new().name("watchdogs".into()).spawn(move || give_signs(&run_dir, &told))?;
        Ok(Watchdogs { stopped: BTreeSet::new(), thread })
    }

    /// These cgroups are stopped until further notice.
    pub(crate) fn set(&mut self, stopped: BTreeSet<PathBuf>) {
        if stopped != self.stopped {
            self.stopped.clone_from(&stopped);
            // Without the thread a watchdog ends what is stopped, which `cosched adopt` has said.
            let _ = self.thread.send(stopped);
        }
    }
}

/// A cgroup of which systemd has not said whether it has a watchdog.
struct Unknown {
    pause: Duration,
    again: Instant,
}

fn give_signs(run_dir: &Path, told: &Receiver<BTreeSet<PathBuf>>) {
    // Without a watchdog: `None`.
    let mut known: BTreeMap<PathBuf, Option<(Watched, Instant)>> = BTreeMap::new();
    let mut unknown: BTreeMap<PathBuf, Unknown> = BTreeMap::new();
    loop {
        let now = Instant::now();
        for (of, due) in known.values_mut().flatten().filter(|(_, due)| *due <= now) {
            *due = now + of.limit / SIGNS;
            if let Err(e) = notify::on_behalf(notify::SOCKET, of.pid, "WATCHDOG=1") {
                tracing::warn!(
                    pid = of.pid,
                    "a suspended service may be ended by its watchdog: systemd cannot be told that it is well: {e}"
                );
            }
        }
        // One question at a time, and no longer than until the next sign has to be given.
        let next_sign = known.values().flatten().map(|(_, due)| *due).min();
        let due = unknown.iter_mut().find(|(_, unknown)| unknown.again <= now);
        if let Some((cgroup, asked)) = due {
            let time_max = next_sign.map_or(ANSWER_TIME_MAX, |due| due.saturating_duration_since(now));
            match of(run_dir, cgroup, time_max.clamp(ANSWER_TIME_MIN, ANSWER_TIME_MAX)) {
                Ok(found) => {
                    let cgroup = cgroup.clone();
                    unknown.remove(&cgroup);
                    known.insert(cgroup, found.map(|watched| (watched, now)));
                }
                Err(e) => {
                    if asked.pause == ASK_PAUSE[0] {
                        tracing::warn!(
                            cgroup = %cgroup.display(),
                            "systemd does not say whether a suspended service has a watchdog ({e}); it is asked again"
                        );
                    }
                    asked.again = Instant::now() + asked.pause;
                    asked.pause = (asked.pause * 2).min(ASK_PAUSE[1]);
                }
            }
            continue_with(told.try_recv().ok(), &mut known, &mut unknown);
            continue;
        }
        let next = next_sign.into_iter().chain(unknown.values().map(|unknown| unknown.again)).min();
        let news = match next {
            None => told.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(due) => told.recv_timeout(due.saturating_duration_since(Instant::now())),
        };
        match news {
            Err(RecvTimeoutError::Timeout) => (),
            Err(RecvTimeoutError::Disconnected) => return,
            Ok(stopped) => continue_with(Some(stopped), &mut known, &mut unknown),
        }
    }
}

/// These are stopped now, if that has changed.
fn continue_with(
    stopped: Option<BTreeSet<PathBuf>>,
    known: &mut BTreeMap<PathBuf, Option<(Watched, Instant)>>,
    unknown: &mut BTreeMap<PathBuf, Unknown>,
) {
    let Some(stopped) = stopped else { return };
    known.retain(|cgroup, _| stopped.contains(cgroup));
    unknown.retain(|cgroup, _| stopped.contains(cgroup));
    for cgroup in stopped.into_iter().filter(|cgroup| !known.contains_key(cgroup)) {
        unknown.entry(cgroup).or_insert(Unknown { pause: ASK_PAUSE[0], again: Instant::now() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_systemd_says_of_a_watchdog_is_read() {
        let said = |limit: &str, pid: i32| format!("MainPID={pid}\nWatchdogUSec={limit}\nControlGroup=/a/b.service\n");
        let of = |limit: &str, pid: i32| read(Path::new("/a/b.service"), &said(limit, pid));
        assert_eq!(of("1min 30s", 7), Some(Watched { limit: Duration::from_secs(90), pid: 7 }));
        assert_eq!(of("500ms", 7), Some(Watched { limit: Duration::from_millis(500), pid: 7 }));
        assert_eq!((of("0", 7), of("infinity", 7), of("5s", 0)), (None, None, None));
        assert_eq!(read(Path::new("/user.slice/b.service"), &said("5s", 7)), None, "another unit of that name");
    }

    #[test]
    fn what_is_no_service_has_no_watchdog() {
        let of = |cgroup: &str| of(Path::new("/"), Path::new(cgroup), ANSWER_TIME_MAX).unwrap();
        assert_eq!((of("/a.scope"), of("/")), (None, None));
    }
}
