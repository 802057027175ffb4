//! The descendants of a process: what a job consists of where there are no cgroups.
//!
//! Source: proc_pid_task_tid_children(5). Its list may lack a process while others end; whoever needs all asks again until no new one appears.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use crate::cgfile;
use crate::process::facts;

/// The present descendants of `root`, parents before their children; without `apart` and its descendants.
pub fn descendants(root: i32, apart: Option<i32>) -> Vec<i32> {
    walk(root, apart, (usize::MAX, usize::MAX)).unwrap_or_default()
}

/// The same; `None` if there are more processes, or more threads, than this: each thread is a file to read.
pub(crate) fn walk(root: i32, apart: Option<i32>, (most, threads_most): (usize, usize)) -> Option<Vec<i32>> {
    let mut threads_left = threads_most;
    let mut children: Box<dyn FnMut(i32) -> Option<Vec<i32>>> = match Path::new("/proc/thread-self/children").exists() {
        true => Box::new(move |parent| {
            let threads = cgfile::children(Path::new(&format!("/proc/{parent}/task"))).unwrap_or_default();
            threads_left = threads_left.checked_sub(threads.len())?;
            Some(children_of(&threads))
        }),
        // A kernel without CONFIG_PROC_CHILDREN.
        false => {
            let all = all_children();
            Box::new(move |parent| Some(all.get(&parent).cloned().unwrap_or_default()))
        }
    };
    let mut seen: HashSet<i32> = apart.into_iter().chain([root]).collect();
    let mut found = Vec::new();
    let mut parent = Some(root);
    let mut at = 0;
    while let Some(of) = parent {
        found.extend(children(of)?.into_iter().filter(|child| seen.insert(*child)));
        if found.len() > most {
            return None;
        }
        parent = found.get(at).copied();
        at += 1;
    }
    Some(found)
}

/// Whether `root` is among the ancestors of `pid`.
pub(crate) fn is_below(pid: i32, root: i32) -> bool {
    ancestors(pid).any(|ancestor| ancestor == root)
}

/// The parent of `pid`, its parent, and so on; `pid` may be a thread's number.
pub(crate) fn ancestors(pid: i32) -> impl Iterator<Item = i32> {
    // While they are read, numbers may be reused so that they form a circle.
    std::iter::successors(Some(pid), |pid| facts(*pid).map(|of| of.ppid).filter(|ppid| *ppid > 0)).skip(1).take(1000)
}

fn children_of(threads: &[PathBuf]) -> Vec<i32> {
    let listed = threads.iter().filter_map(|thread| cgfile::read(&thread.join("children")).ok());
    listed.flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<i32>>()).collect()
}

fn all_children() -> HashMap<i32, Vec<i32>> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut all: HashMap<i32, Vec<i32>> = HashMap::new();
    for pid in entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok()) {
        if let Some(of) = facts(pid) {
            all.entry(of.ppid).or_default().push(pid);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn both_ways_to_find_children_agree_and_a_branch_can_be_left_out() {
        let mut child = Command::new("sh").args(["-c", "sh -c 'sleep 1000 & wait' & wait"]).spawn().unwrap();
        let root = child.id() as i32;
        while descendants(root, None).len() < 2 {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let found = descendants(root, None);
        assert_eq!(all_children()[&root], found[..1]);
        assert_eq!(all_children()[&found[0]], found[1..]);
        assert!(is_below(found[1], root) && !is_below(root, found[1]));
        assert_eq!(descendants(root, Some(found[0])), []);
        assert_eq!(walk(root, None, (2, 3)).as_ref(), Some(&found));
        assert_eq!((walk(root, None, (1, 3)), walk(root, None, (2, 2))), (None, None), "two processes, three threads");
        for pid in found.into_iter().chain([root]) {
            crate::process::send_signal(pid, libc::SIGKILL);
        }
        child.wait().unwrap();
    }
}
