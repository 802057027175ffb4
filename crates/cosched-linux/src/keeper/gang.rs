//! Stops and continues the processes of a job.
//!
//! Stopped are the parents before their children, so that no parent sees its child stop; continued are the children first. A process may fork before
//! its stop arrives: the descendants are searched until no new one appears. What a user has stopped (Ctrl-Z, `kill -STOP`) is left alone, also when
//! that happened while we had stopped it: signals that arrive at a stopped process stay pending, and show it.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use super::files::{self, StoppedList};
use crate::cgfile;
use crate::process::{Held, Stat, stat};

/// The limit on searches for new processes; what forks faster is found at the next look.
const ROUNDS_MAX: usize = 64;

/// The processes of one job.
#[derive(Debug)]
pub(super) struct Gang {
    dir: PathBuf,
    keeper: i32,
    list: StoppedList,
    /// In the order in which they were stopped.
    stopped: Vec<Stopped>,
    /// Programs with other users' rights, as pid and start time: they may not be stopped.
    out_of_reach: BTreeSet<(i32, u64)>,
}

#[derive(Debug)]
struct Stopped {
    process: Held,
    /// How often it was sent SIGSTOP.
    asked: u32,
}

impl Gang {
    pub(super) fn new(dir: &Path) -> io::Result<Gang> {
        let list = StoppedList::open(dir)?;
        let keeper = std::process::id() as i32;
        Ok(Gang { dir: dir.to_owned(), keeper, list, stopped: Vec::new(), out_of_reach: BTreeSet::new() })
    }

    pub(super) fn is_stopped(&self) -> bool {
        !self.stopped.is_empty()
    }

    /// The job's processes, parents first.
    pub(super) fn members(&self) -> Vec<i32> {
        files::below(&self.dir, self.keeper)
    }

    /// Stops every process that runs, also those that were continued since the last call by others.
    pub(super) fn stop(&mut self) {
        for of in &mut self.stopped {
            // The first SIGSTOP may not have been taken yet, by a process that waits for a disk.
            let runs = stat(of.process.pid()).is_some_and(|stat| !is_still(stat));
            if runs && pending(of.process.pid()) & bit(libc::SIGSTOP) == 0 && of.process.signal(libc::SIGSTOP) {
                of.asked += 1;
            }
        }
        for _ in 0..ROUNDS_MAX {
            if !self.stop_new() {
                break;
            }
        }
    }

    /// Whether there were any.
    fn stop_new(&mut self) -> bool {
        let members = self.members();
        let known: BTreeMap<i32, u64> =
            self.stopped.iter().map(|of| (of.process.pid(), of.process.start_ticks())).collect();
        let is_new = |pid: i32, stat: Stat| {
            known.get(&pid) != Some(&stat.start_ticks)
                && !self.out_of_reach.contains(&(pid, stat.start_ticks))
                && !is_still(stat)
                // A user's stop that is about to act would be one with ours.
                && pending(pid) & bit(libc::SIGSTOP) == 0
        };
        let mut new = Vec::new();
        for pid in members.iter().copied().filter(|pid| stat(*pid).is_some_and(|stat| is_new(*pid, stat))) {
            let Ok(process) = Held::open(pid) else { continue };
            // Asked with the pidfd open: its number may have been reused since it was listed.
            let parent = stat(pid).map(|stat| stat.ppid);
            if parent.is_some_and(|parent| parent == self.keeper || members.contains(&parent)) {
                new.push(process);
            }
        }
        // What is not on the list would stay stopped if this process were killed.
        if new.is_empty() || self.list.add(&new).is_err() {
            return false;
        }
        for process in new {
            if process.signal(libc::SIGSTOP) {
                self.stopped.push(Stopped { process, asked: 1 });
            } else {
                self.out_of_reach.insert((process.pid(), process.start_ticks()));
            }
        }
        true
    }

    /// Continues what was stopped here.
    pub(super) fn go(&mut self) {
        for of in self.stopped.drain(..).rev() {
            let pid = of.process.pid();
            // In this order: a SIGSTOP that is pending once it has stopped is a second one, before that it may be ours.
            let was_still = stat(pid).is_some_and(is_still);
            let pending = pending(pid);
            // It stopped by one signal and has another: a user has sent one of them.
            if of.asked == 1 && pending & bit(libc::SIGSTOP) != 0 && was_still {
                continue;
            }
            let _ = of.process.signal(libc::SIGCONT);
            // SIGCONT discards them.
            for terminal in [libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU] {
                if pending & bit(terminal) != 0 {
                    let _ = of.process.signal(terminal);
                }
            }
        }
        self.list.clear();
    }
}

/// Whether it does not run: it was stopped, a debugger holds it, or it has ended.
fn is_still(stat: Stat) -> bool {
    match stat.state {
        // Its first thread may have ended while others run.
        'Z' => stat.threads <= 1,
        state => matches!(state, 'T' | 't' | 'X'),
    }
}

fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

/// The signals that have arrived at a process and were not taken yet.
fn pending(pid: i32) -> u64 {
    let status = cgfile::read_proc(Path::new(&format!("/proc/{pid}/status"))).unwrap_or_default();
    let mask = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key));
        line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
    };
    mask("SigPnd:") | mask("ShdPnd:")
}
