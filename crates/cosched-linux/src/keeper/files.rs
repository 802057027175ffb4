//! The directory of a job without cgroups. Its files have the names and contents of a cgroup's where they mean the same.
//!
//! | file | written by | content |
//! |---|---|---|
//! | `cgroup.freeze` | the slot thread; 0 also by whoever thaws | 1: the job is to be stopped |
//! | `cgroup.events` | the keeper at its end | `populated 0` |
//! | `keeper` | the daemon | the keeper's pid and start time |
//! | `stopped` | the keeper, before it stops a process | pid and start time of each process that it stops |
//! | `cpu.stat` | the keeper at its end | the job's CPU time |
//!
//! Beside the jobs, `daemon` has the pid and start time of the daemon whose orders count.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

use crate::cgfile;
use crate::descent::descendants;
use crate::process::{Held, is_stopped, stat};

pub(crate) const FREEZE: &str = "cgroup.freeze";
pub(crate) const EVENTS: &str = "cgroup.events";
pub(super) const USAGE: &str = "cpu.stat";
const KEEPER: &str = "keeper";
const STOPPED: &str = "stopped";
const DAEMON: &str = "daemon";

/// How often the daemon checks that a keeper itself is not stopped.
const LOOK: Duration = Duration::from_secs(1);

/// Makes the files that are missing.
pub(crate) fn make(dir: &Path) -> io::Result<()> {
    cgfile::mkdir(dir)?;
    for (name, content) in [(FREEZE, "0"), (EVENTS, "populated 1\n"), (STOPPED, "")] {
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(dir.join(name)) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => (),
            file => file?.write_all(content.as_bytes())?,
        }
    }
    Ok(())
}

/// Makes `pid` the keeper of this job, and watches it: when it has ended, the job has, and nothing of it stays stopped.
pub(crate) fn keep(dir: &Path, pid: i32) -> io::Result<()> {
    let keeper = Held::open(pid)?;
    note(&dir.join(KEEPER), &keeper)?;
    watch(dir, keeper)
}

/// The same for a daemon that finds the job; one whose keeper has ended is over.
pub(crate) fn find(dir: &Path) -> io::Result<()> {
    match noted(&dir.join(KEEPER)) {
        Some(keeper) => watch(dir, keeper),
        None => cgfile::write(&dir.join(EVENTS), "populated 0\n"),
    }
}

fn watch(dir: &Path, keeper: Held) -> io::Result<()> {
    let dir = dir.to_owned();
    let run = move || {
        while keeper.lives_for(LOOK) {
            if is_stopped(keeper.pid()) {
                let _ = keeper.signal(libc::SIGCONT);
            }
        }
        continue_job(&dir);
        // Already so, unless the keeper was killed; and gone, if the job is over.
        let _ = cgfile::write(&dir.join(EVENTS), "populated 0\n");
    };
    std::thread::Builder::new().name("cosched-keeps".into()).spawn(run).map(drop)
}

/// The keeper of a job, while it lives.
pub(crate) fn keeper_of(dir: &Path) -> Option<i32> {
    noted(&dir.join(KEEPER)).map(|keeper| keeper.pid())
}

/// Makes this process the daemon of a directory of jobs.
pub(crate) fn begin(jobs: &Path) -> io::Result<()> {
    note(&jobs.join(DAEMON), &Held::open(std::process::id() as i32)?)
}

/// The living daemon of a directory of jobs.
pub(super) fn daemon(jobs: &Path) -> Option<Held> {
    noted(&jobs.join(DAEMON))
}

/// The job's processes: the keeper's descendants, or the keeper itself before it has any.
pub(crate) fn members(dir: &Path) -> Vec<i32> {
    let Some(keeper) = keeper_of(dir) else { return Vec::new() };
    let found = below(dir, keeper);
    if found.is_empty() { vec![keeper] } else { found }
}

/// The keeper's descendants, without a daemon that was started in the job: it must never be stopped.
pub(super) fn below(dir: &Path, keeper: i32) -> Vec<i32> {
    let daemon = dir.parent().and_then(daemon).map(|daemon| daemon.pid());
    descendants(keeper, daemon)
}

/// The job's CPU time in nanoseconds.
pub(crate) fn cpu_time_ns(dir: &Path) -> Option<u64> {
    let Some(keeper) = keeper_of(dir) else {
        return Some(cgfile::keyed(&cgfile::read(&dir.join(USAGE)).ok()?, "usage_usec")? * 1000);
    };
    let pids = below(dir, keeper).into_iter().chain([keeper]);
    let ticks: u64 = pids.filter_map(stat).map(|stat| stat.cpu_ticks).sum();
    Some(ticks * (1_000_000_000 / rustix::param::clock_ticks_per_second()))
}

/// Continues whatever a keeper has stopped, and the keeper. Returns the number of processes.
pub(crate) fn continue_job(dir: &Path) -> usize {
    if let Some(keeper) = noted(&dir.join(KEEPER)).filter(|keeper| is_stopped(keeper.pid())) {
        let _ = keeper.signal(libc::SIGCONT);
    }
    let listed = cgfile::read(&dir.join(STOPPED)).unwrap_or_default();
    // Children first: a parent that runs must not see a stopped child.
    listed.lines().rev().filter_map(parse).filter(|process| process.signal(libc::SIGCONT)).count()
}

/// The list of what a keeper stops.
#[derive(Debug)]
pub(super) struct StoppedList(File);

impl StoppedList {
    pub(super) fn open(dir: &Path) -> io::Result<StoppedList> {
        OpenOptions::new().append(true).open(dir.join(STOPPED)).map(StoppedList)
    }

    pub(super) fn add(&mut self, processes: &[Held]) -> io::Result<()> {
        // It was removed: what is written now cannot be read by others.
        if self.0.metadata()?.nlink() == 0 {
            return Err(io::ErrorKind::NotFound.into());
        }
        let lines: String = processes.iter().map(line).collect();
        self.0.write_all(lines.as_bytes())
    }

    pub(super) fn clear(&self) {
        // Whoever reads old lines continues what is not stopped, which does nothing.
        let _ = self.0.set_len(0);
    }
}

/// The line before it may have been torn by a full disk.
fn line(process: &Held) -> String {
    format!("\n{} {}\n", process.pid(), process.start_ticks())
}

fn parse(line: &str) -> Option<Held> {
    let (pid, ticks) = line.split_once(' ')?;
    let ticks: u64 = ticks.trim().parse().ok()?;
    Held::open(pid.parse().ok()?).ok().filter(|held| held.start_ticks() == ticks)
}

/// Replaces the file in one step.
fn note(path: &Path, process: &Held) -> io::Result<()> {
    let new = path.with_extension("new");
    fs::write(&new, line(process))?;
    fs::rename(&new, path)
}

fn noted(path: &Path) -> Option<Held> {
    parse(cgfile::read(path).ok()?.trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn what_is_listed_is_continued_and_a_reused_number_is_not() {
        let dir = tempfile::tempdir().unwrap();
        make(dir.path()).unwrap();
        let mut children = [0, 1].map(|_| Command::new("sleep").arg("1000").spawn().unwrap());
        let held = children.each_ref().map(|child| Held::open(child.id() as i32).unwrap());
        let mut list = StoppedList::open(dir.path()).unwrap();
        write!(list.0, "123 45").unwrap();
        list.add(&held[..1]).unwrap();
        writeln!(list.0, "{} 1", held[1].pid()).unwrap();
        held.iter().for_each(|process| assert!(process.signal(libc::SIGSTOP)));
        while !held.iter().all(|process| is_stopped(process.pid())) {
            std::thread::yield_now();
        }
        assert_eq!(continue_job(dir.path()), 1);
        while is_stopped(held[0].pid()) {
            std::thread::yield_now();
        }
        assert!(is_stopped(held[1].pid()));
        list.clear();
        assert_eq!(continue_job(dir.path()), 0);
        for child in &mut children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}
