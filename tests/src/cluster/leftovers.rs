//! What a net leaves when its test is killed, and how it is removed: by process numbers that are recorded before anything else.
//!
//! `owner` and `anchors` hold processes with their start times, so that no other process is ever meant; `cgroups` holds the names
//! of the daemons' cgroups. The anchors survive when their test is killed: through them the processes of the nodes are found.

use crate::procs;
use rustix::process::{Pid, Signal, WaitOptions, waitpid};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

/// The common prefix of the directories of all nets.
pub(super) const PREFIX: &str = "cst-net-";

/// Records that this process owns the directory.
pub(super) fn own(dir: &Path) {
    append(dir, "owner", &named(std::process::id() as i32));
}

/// Records a process that holds namespaces.
pub(super) fn anchored(dir: &Path, pid: i32) {
    append(dir, "anchors", &named(pid));
}

/// Records the name of a daemon's cgroup.
pub(super) fn cgroup(dir: &Path, name: &str) {
    append(dir, "cgroups", name);
}

/// Removes what tests that no longer run have left.
pub(super) fn sweep() {
    for dir in procs::sub_directories(&std::env::temp_dir()) {
        let ours = dir.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX));
        let owners = living(&dir, "owner");
        // A directory that is being created has no owner for a moment.
        if ours && dir.join("owner").exists() && owners.is_empty() {
            remove(&dir);
        }
    }
}

/// Removes everything of a net: processes, cgroups, namespaces with their links and mounts, files.
pub(super) fn remove(dir: &Path) {
    let anchors = living(dir, "anchors");
    for name in lines(dir, "cgroups") {
        for job in procs::sub_directories(&procs::v2_mount().join(&name)) {
            procs::end_cgroup(&job);
        }
    }
    let nets: Vec<_> = anchors.iter().filter_map(|pid| procs::net_namespace(*pid)).collect();
    let inside =
        |pid: &i32| !anchors.contains(pid) && procs::net_namespace(*pid).is_some_and(|net| nets.contains(&net));
    // Processes that are being started become visible late.
    crate::wait_until(|| {
        let left: Vec<i32> = procs::all().into_iter().filter(inside).collect();
        left.iter().for_each(|pid| procs::signal(*pid, Signal::KILL));
        left.is_empty()
    });
    for name in lines(dir, "cgroups") {
        procs::remove_tree_everywhere(&name);
    }
    for pid in anchors {
        empty_agents(pid, dir);
        procs::signal(pid, Signal::KILL);
        // A process of an earlier run is init's child, and is not waited for here.
        let _ = Pid::from_raw(pid).map(|pid| waitpid(Some(pid), WaitOptions::empty()));
    }
    for name in lines(dir, "cgroups") {
        procs::forget_hierarchy(&name);
    }
    if let Err(e) = fs::remove_dir_all(dir) {
        eprintln!("{} stays: {e}", dir.display());
    }
}

/// The hierarchies that killed daemons left for the kernel's last resort have to be empty when their mounts are removed.
fn empty_agents(anchor: i32, dir: &Path) {
    let nodes = procs::sub_directories(dir);
    // A second daemon of a node has its socket beside the first one's directory.
    for agent in nodes.iter().flat_map(|node| ["run/agent", "agent"].map(|name| node.join(name))) {
        let agent = format!("/proc/{anchor}/root{}", agent.display());
        for cgroup in procs::sub_directories(Path::new(&agent)) {
            let _ = fs::remove_dir(cgroup);
        }
    }
}

/// A process's number and start time.
fn named(pid: i32) -> String {
    format!("{pid} {}", procs::start_ticks(pid).unwrap_or(0))
}

/// The live processes of a list.
fn living(dir: &Path, list: &str) -> Vec<i32> {
    let of = |line: &String| {
        let pid: i32 = line.split(' ').next()?.parse().ok()?;
        (named(pid) == *line && procs::state(pid) != Some('Z')).then_some(pid)
    };
    lines(dir, list).iter().filter_map(of).collect()
}

fn lines(dir: &Path, list: &str) -> Vec<String> {
    let text = fs::read_to_string(dir.join(list)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn append(dir: &Path, list: &str, line: &str) {
    let file = File::options().create(true).append(true).open(dir.join(list));
    file.and_then(|mut file| writeln!(file, "{line}")).expect("a file of the net");
}
