//! The processes of a job: all descendants of its supervisor, and their memory.

use rustix::process::Pid;
use std::fs::{read_dir, read_to_string};

/// All live descendants of a process. Some may have ended when this returns, and others started.
pub(super) fn descendants(root: Pid) -> Vec<Pid> {
    // A fallback for the few kernels without the lists of children (CONFIG_PROC_CHILDREN).
    let own = std::process::id();
    let has_lists = std::path::Path::new(&format!("/proc/{own}/task/{own}/children")).exists();
    let all = if has_lists { Vec::new() } else { parents() };
    let children = |pid: i32| if has_lists { listed(pid) } else { of_parent(&all, pid) };
    let mut found = children(root.as_raw_nonzero().get());
    let mut next = 0;
    while let Some(pid) = found.get(next) {
        found.extend(children(*pid));
        next += 1;
    }
    found.into_iter().filter_map(Pid::from_raw).collect()
}

/// Each thread has its own children.
fn listed(pid: i32) -> Vec<i32> {
    let threads = read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect::<Vec<_>>())
        .collect()
}

fn of_parent(all: &[(i32, i32)], parent: i32) -> Vec<i32> {
    all.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid).collect()
}

/// Every process and its parent.
fn parents() -> Vec<(i32, i32)> {
    let entries = read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(|pid| Some((pid, parent(&read_to_string(format!("/proc/{pid}/stat")).ok()?)?))).collect()
}

/// The fourth field of `proc_pid_stat(5)`; the second may contain anything.
fn parent(stat: &str) -> Option<i32> {
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

/// The memory of a job in bytes: the sum of its processes' proportional set sizes, in which a shared page counts once
/// in total; where those may not be read, of their resident set sizes.
pub(super) fn memory_bytes(supervisor: Pid) -> u64 {
    descendants(supervisor).into_iter().map(|pid| one(pid.as_raw_nonzero().get())).sum()
}

fn one(pid: i32) -> u64 {
    let kib = |text: &str, name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_ascii_whitespace().next()?.parse::<u64>().ok()
    };
    let rollup = read_to_string(format!("/proc/{pid}/smaps_rollup")).ok();
    let found = rollup.and_then(|text| kib(&text, "Pss:")).or_else(|| {
        let status = read_to_string(format!("/proc/{pid}/status")).ok()?;
        kib(&status, "VmRSS:")
    });
    found.unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_grandchildren_by_both_ways_and_their_memory() {
        let mut child = std::process::Command::new("sh").args(["-c", "sleep 60 & sleep 60; wait"]).spawn().unwrap();
        let root = Pid::from_raw(std::process::id() as i32).unwrap();
        let sleeps = || {
            let all = descendants(root);
            all.iter()
                .filter(|pid| of_parent(&parents(), child.id() as i32).contains(&pid.as_raw_nonzero().get()))
                .count()
        };
        let start = std::time::Instant::now();
        while sleeps() < 2 && start.elapsed() < std::time::Duration::from_secs(20) {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        assert_eq!(sleeps(), 2);
        assert_eq!(listed(child.id() as i32).len(), 2);
        // A shell and two sleeps: more than a few pages each.
        assert!(memory_bytes(root) > 3 * 16 * 1024);
        for pid in descendants(Pid::from_child(&child)) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_name_with_brackets_does_not_hide_the_parent() {
        assert_eq!(parent("12 (a) b) R) S 7 12 12 0"), Some(7));
        assert_eq!(parent("nonsense"), None);
    }
}
