//! Processes outside jobs that want a CPU: the input of core's rule about neighbours (`policy/neighbours.rs`).
//!
//! The problem: the kernel has no counter for "sessions with something runnable". The rule: a sample reads /proc/PID/stat of every process, and
//! groups those that run or wait for a CPU as the scheduler does: by sibling cgroup of our subtree, in the root of a v1 hierarchy by autogroup
//! (/proc/PID/autogroup, sched(7)), otherwise each task by itself. The threads of a process are read when it runs or has run since the last sample.
//! Real-time tasks and kernel threads are left out: weights do not affect them. A sample costs some 10 µs per process, so it is taken only when other
//! processes use CPU time at all, which two small files show.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Instant;

use cosched_core::Neighbour;

use crate::cgfile;
use crate::observe::cpus_online;
use crate::place::{below, own_v1, own_v2};
use crate::reserve::{self, Opponents};
use crate::tree::Tree;

/// PF_KTHREAD of include/linux/sched.h.
const KERNEL_THREAD: u64 = 0x0020_0000;
/// Policies outside the fair scheduler: FIFO, RR, DEADLINE (sched(7)).
const REAL_TIME: [u64; 3] = [1, 2, 6];
/// The limit on the threads that are read in a process: with more of them the rule's result stays the same on machines of that size.
const THREADS_MAX: usize = 1024;

/// Samples the processes outside jobs.
#[derive(Debug)]
pub struct Census {
    /// The directory in which our subtree and its siblings are, and its path in /proc/PID/cgroup.
    siblings: PathBuf,
    parent: PathBuf,
    /// Our subtree's name there.
    own: PathBuf,
    /// The controllers' names in /proc/PID/cgroup are empty in the unified layout.
    controller: &'static str,
    weight_name: &'static str,
    opponents: Option<Opponents>,
    /// cpu.stat of the whole machine, and of our subtree.
    usage: [PathBuf; 2],
    /// Jobs outside our subtree, at the last sample.
    adopted: Vec<PathBuf>,
    tree: Tree,
    used: Option<Used>,
    /// The CPU time in ticks of processes with several threads, at the last sample.
    ticks: HashMap<i32, u64>,
}

/// Room for a line of /proc/PID/stat: the needed fields are in the first 400 bytes.
type Line = [u8; 512];

/// A unit that the scheduler gives one weight.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Group {
    Cgroup(PathBuf),
    Autogroup(String),
    Task(i32),
}

/// The needed fields of /proc/PID/stat.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    runs: bool,
    ticks: u64,
    threads: u64,
    is_fair: bool,
}

/// CPU time in microseconds: of all, of jobs in our subtree, and of each adopted cgroup.
#[derive(Debug)]
struct Used {
    at: Instant,
    all: u64,
    jobs: u64,
    adopted: HashMap<PathBuf, u64>,
}

impl Used {
    /// The number of CPUs, on average since then, that worked for processes outside jobs.
    fn by_others(&self, then: Option<&Used>) -> Option<f64> {
        let then = then?;
        let grown = |now: u64, then: u64| now.saturating_sub(then) as f64;
        let adopted = self.adopted.iter().filter_map(|(dir, now)| Some(grown(*now, *then.adopted.get(dir)?)));
        let ours = grown(self.jobs, then.jobs) + adopted.sum::<f64>();
        Some((grown(self.all, then.all) - ours) / (self.at - then.at).as_micros().max(1) as f64)
    }
}

impl Census {
    /// A census of the processes beside `tree`.
    pub fn new(tree: &Tree) -> Census {
        let layout = tree.layout();
        let (dir, mount, controller, weight_name) = match (tree.cpu_dir(), &layout.cpu_mount) {
            (Some(dir), Some(mount)) => (dir, mount, "cpu", "cpu.shares"),
            _ => (tree.v2_dir(), &layout.v2_mount, "", "cpu.weight"),
        };
        let siblings = dir.parent().unwrap_or(mount).to_path_buf();
        Census {
            parent: Path::new("/").join(siblings.strip_prefix(mount).unwrap_or(Path::new(""))),
            siblings,
            own: dir.file_name().map(PathBuf::from).unwrap_or_default(),
            controller,
            weight_name,
            opponents: (controller == "cpu").then(|| reserve::opponents(dir)),
            usage: [layout.v2_mount.join("cpu.stat"), tree.v2_dir().join("cpu.stat")],
            adopted: Vec::new(),
            tree: tree.clone(),
            used: None,
            ticks: HashMap::new(),
        }
    }

    /// The number of CPUs, on average since the last call, that worked for processes outside jobs; `None` if it is unknown, and at the first call.
    pub fn used_by_others(&mut self) -> Option<f64> {
        let read = |path: &PathBuf| cgfile::keyed(&cgfile::read(path).unwrap_or_default(), "usage_usec");
        self.adopted = self.tree.adopted();
        // Each of those that were adopted before: what one had used until then is not growth, nor is what one that has left had used.
        let adopted = self.adopted.iter().filter_map(|dir| Some((dir.clone(), read(&dir.join("cpu.stat"))?))).collect();
        let now = Used { at: Instant::now(), all: read(&self.usage[0])?, jobs: read(&self.usage[1])?, adopted };
        let used = now.by_others(self.used.as_ref());
        self.used = Some(now);
        used
    }

    /// The neighbours that run or wait for a CPU at this moment.
    pub fn look(&mut self) -> Vec<Neighbour> {
        let mut found: HashMap<Group, Neighbour> = HashMap::new();
        let mut seen = HashSet::new();
        let own = std::process::id() as i32;
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        for pid in entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(|pid| *pid != own) {
            // A process that has ended meanwhile is skipped.
            let Some(stat) = stat_of(&PathBuf::from(format!("/proc/{pid}/stat"))) else { continue };
            let threads = self.runnable(pid, &stat);
            if stat.threads > 1 {
                seen.insert(pid);
            }
            if threads == 0 || !stat.is_fair {
                continue;
            }
            let Some(group) = self.group(pid) else { continue };
            match found.get_mut(&group) {
                Some(neighbour) => neighbour.threads = neighbour.threads.saturating_add(threads),
                None => {
                    let weight = self.weight(&group, pid);
                    found.insert(group, Neighbour { weight, threads });
                }
            }
        }
        self.ticks.retain(|pid, _| seen.contains(pid));
        found.into_values().collect()
    }

    /// The number of its threads that run or wait.
    fn runnable(&mut self, pid: i32, stat: &Stat) -> u32 {
        if stat.threads <= 1 {
            return u32::from(stat.runs);
        }
        let before = self.ticks.insert(pid, stat.ticks);
        if !stat.runs && before.is_none_or(|before| before == stat.ticks) {
            return 0;
        }
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten().take(THREADS_MAX);
        tasks.filter(|task| stat_of(&task.path().join("stat")).is_some_and(|stat| stat.runs && stat.is_fair)).count()
            as u32
    }

    /// The group from which it has its weight; `None` for a job's process, and for processes below other cgroups than our siblings.
    fn group(&self, pid: i32) -> Option<Group> {
        let content = cgfile::read(&PathBuf::from(format!("/proc/{pid}/cgroup"))).ok()?;
        let path = own_v1(&content, self.controller)?;
        let own = below(&self.tree.layout().v2_mount, &own_v2(&content)?);
        if self.adopted.iter().any(|dir| own.starts_with(dir)) {
            return None;
        }
        match path.strip_prefix(&self.parent).ok()?.iter().next() {
            Some(name) if name == self.own.as_os_str() => None,
            Some(name) => Some(Group::Cgroup(name.into())),
            None if self.opponents == Some(Opponents::Sessions) => {
                // "/autogroup-6 nice 0"
                Some(Group::Autogroup(cgfile::read(&PathBuf::from(format!("/proc/{pid}/autogroup"))).ok()?))
            }
            None => Some(Group::Task(pid)),
        }
    }

    /// Its weight relative to that of a job, which is 1; see [`crate::Tree::fair_weights`].
    fn weight(&self, group: &Group, pid: i32) -> f64 {
        let number = |name: &Path| {
            let content = cgfile::read(&self.siblings.join(name).join(self.weight_name)).unwrap_or_default();
            content.trim().parse::<f64>().ok()
        };
        let tasks = match self.opponents {
            Some(Opponents::Tasks { cpus }) => cpus as f64,
            _ => 1.0,
        };
        match (group, self.opponents) {
            (Group::Cgroup(name), None) => number(name).unwrap_or(100.0) / 100.0,
            (Group::Cgroup(name), Some(_)) => number(name).unwrap_or(1024.0) / 1024.0 / tasks,
            (Group::Autogroup(text), _) => of_nice(text.trim().rsplit(' ').next().and_then(|nice| nice.parse().ok())),
            // Bare tasks beside a unified tree are only in its root, with the kernel's threads.
            (Group::Task(_), None) => 1.0 / cpus_online() as f64,
            (Group::Task(_), Some(_)) => {
                let nice =
                    stat_field(&cgfile::read(&PathBuf::from(format!("/proc/{pid}/stat"))).unwrap_or_default(), 19);
                of_nice(nice) / tasks
            }
        }
    }
}

/// A step of nice is a factor of 1.25 (sched_prio_to_weight in kernel/sched/core.c).
fn of_nice(nice: Option<i64>) -> f64 {
    1.25f64.powi(-nice.unwrap_or(0).clamp(-20, 19) as i32)
}

/// A field of /proc/PID/stat after the name, by its number in proc(5).
fn stat_field(content: &str, number: usize) -> Option<i64> {
    content[content.rfind(')')? + 1..].split_ascii_whitespace().nth(number - 3)?.parse().ok()
}

fn stat_of(path: &Path) -> Option<Stat> {
    let mut line: Line = [0; 512];
    let count = File::open(path).ok()?.read(&mut line).ok()?;
    parse_stat(&line[..count])
}

/// Parsed in one pass over the bytes, because a sample reads thousands of them.
fn parse_stat(line: &[u8]) -> Option<Stat> {
    // The name may contain blanks and brackets.
    let rest = line.get(line.iter().rposition(|byte| *byte == b')')? + 2..)?;
    let runs = *rest.first()? == b'R';
    // Indexed by the numbers of proc(5), beginning with the state, which is number 3.
    let (mut numbers, mut at) = ([0u64; 42], 3);
    for byte in rest {
        match byte {
            b' ' if at == 41 => break,
            b' ' => at += 1,
            b'0'..=b'9' => numbers[at] = numbers[at].wrapping_mul(10).wrapping_add(u64::from(byte - b'0')),
            _ => {}
        }
    }
    let [flags, user, system, threads, policy] = [9, 14, 15, 20, 41].map(|at| numbers[at]);
    let is_fair = flags & KERNEL_THREAD == 0 && !REAL_TIME.contains(&policy);
    (at == 41).then_some(Stat { runs, ticks: user + system, threads, is_fair })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_before_an_adoption_is_not_growth() {
        let now = |seconds: u64, all, jobs, adopted: &[(&str, u64)]| Used {
            at: Instant::now() + std::time::Duration::from_secs(seconds),
            all,
            jobs,
            adopted: adopted.iter().map(|(dir, used)| (PathBuf::from(dir), *used)).collect(),
        };
        let first = now(0, 10_000_000, 0, &[]);
        assert_eq!(first.by_others(None), None);
        // A service that has used an hour is adopted, and another one released.
        let adopted = now(1, 12_000_000, 500_000, &[("/a", 3_600_000_000)]);
        let used = |now: &Used, then: &Used| (now.by_others(Some(then)).unwrap() * 10.0).round();
        assert_eq!(used(&adopted, &first), 15.0);
        assert_eq!(used(&now(2, 14_000_000, 500_000, &[("/a", 3_601_000_000)]), &adopted), 10.0);
        assert_eq!(used(&now(2, 14_000_000, 500_000, &[]), &adopted), 20.0);
    }

    #[test]
    fn a_line_of_stat_is_read() {
        let line = "7 (a) R b) R 1 7 7 0 -1 4194304 90 0 0 0 31 12 5 6 20 0 3 0 54 2592768 0 18446744073709551615 1 1 0 0 0 0 0 \
                    4096 0 0 0 0 17 1 0 0 0 0 0 1 1 1 1 1 1 1 0\n";
        assert_eq!(parse_stat(line.as_bytes()), Some(Stat { runs: true, ticks: 43, threads: 3, is_fair: true }));
        assert_eq!(stat_field(line, 19), Some(0));
        let fifo = line.replace(" 17 1 0 0 ", " 17 1 50 1 ");
        assert!(!parse_stat(fifo.as_bytes()).unwrap().is_fair);
        let kernel = line.replace(" 4194304 ", " 2129984 ").replace(") R ", ") S ");
        assert_eq!(parse_stat(kernel.as_bytes()), Some(Stat { runs: false, ticks: 43, threads: 3, is_fair: false }));
        assert_eq!(parse_stat(b"7 (a) R 1"), None);
    }

    #[test]
    fn paths_of_controllers_are_found() {
        let hybrid = "2:cpuacct,cpu:/user/x\n1:memory:/m\n0::/v2\n";
        assert_eq!(own_v1(hybrid, "cpu").as_deref(), Some(Path::new("/user/x")));
        assert_eq!(own_v1(hybrid, "").as_deref(), Some(Path::new("/v2")));
        assert_eq!(own_v1("0::/v2\n", "cpu"), None);
    }

    #[test]
    fn nice_weighs_as_in_the_kernel() {
        assert!((of_nice(Some(0)) - 1.0).abs() < 1e-9);
        // 15 and 88761 of sched_prio_to_weight.
        assert!((of_nice(Some(19)) * 1024.0 - 15.0).abs() < 1.0);
        assert!((of_nice(Some(-20)) * 1024.0 / 88_761.0 - 1.0).abs() < 0.01);
    }
}
