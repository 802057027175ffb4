//! Processes and cgroups as the kernel shows them, read without any of our own code.

use rustix::process::{Pid, Signal, kill_process};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Sends a signal to a process of this test.
pub fn signal(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        // It may have ended already.
        let _ = kill_process(pid, signal);
    }
}

/// The mount points of the cgroup hierarchies.
pub fn cgroup_mounts() -> Vec<PathBuf> {
    mounts(&["cgroup", "cgroup2"])
}

/// The mount point of the v2 hierarchy.
pub fn v2_mount() -> PathBuf {
    mounts(&["cgroup2"]).into_iter().next().expect("a cgroup2 mount")
}

fn mounts(kinds: &[&str]) -> Vec<PathBuf> {
    let text = std::fs::read_to_string("/proc/self/mounts").expect("/proc/self/mounts");
    let fields = text.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    fields.filter(|f| f.len() > 2 && kinds.contains(&f[2])).map(|f| PathBuf::from(f[1])).collect()
}

/// The directories in a directory; empty when it does not exist.
pub fn sub_directories(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|e| e.path()).filter(|p| p.is_dir()).collect()
}

/// The processes in a cgroup and below.
pub fn pids_in(dir: &Path) -> Vec<i32> {
    let text = std::fs::read_to_string(dir.join("cgroup.procs")).unwrap_or_default();
    let mut pids: Vec<i32> = text.lines().filter_map(|l| l.parse().ok()).collect();
    pids.extend(sub_directories(dir).iter().flat_map(|d| pids_in(d)));
    pids
}

/// Thaws and kills everything in a cgroup.
pub fn end_cgroup(dir: &Path) {
    for frozen in [dir.join("cgroup.freeze"), dir.join("gang/cgroup.freeze")] {
        let _ = std::fs::write(frozen, "0");
    }
    let _ = std::fs::write(dir.join("cgroup.kill"), "1");
}

/// Kills what waits for a daemon whose socket was in this directory: launchers wait a week for the next one.
pub fn end_launchers(dir: &Path) {
    let socket = format!("COSCHED_SOCKET={}/", dir.display());
    let waits = |pid: &i32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable.starts_with(socket.as_bytes()))
    };
    all().into_iter().filter(waits).for_each(|pid| signal(pid, Signal::KILL));
}

/// Removes a cgroup subtree in every hierarchy, waiting for processes that are still dying.
pub fn remove_tree_everywhere(name: &str) {
    for mount in cgroup_mounts() {
        let start = Instant::now();
        while remove_tree(&mount.join(name)).is_err() && start.elapsed() < Duration::from_secs(5) {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn remove_tree(dir: &Path) -> std::io::Result<()> {
    for child in sub_directories(dir) {
        remove_tree(&child)?;
    }
    match std::fs::remove_dir(dir) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

/// A process's state letter: R, S, D, T (stopped by a signal), Z …; `None` when it has ended.
pub fn state(pid: i32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(") ").next()?.chars().next()
}

/// When a process started, in clock ticks since boot; `None` when it has ended.
pub fn start_ticks(pid: i32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(") ").next()?.split(' ').nth(19)?.parse().ok()
}

/// Identifies a process's network namespace; `None` when the process has ended.
pub fn net_namespace(pid: i32) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{pid}/ns/net")).ok()
}

/// All processes.
pub fn all() -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").expect("/proc").flatten();
    entries.filter_map(|e| e.file_name().to_string_lossy().parse().ok()).collect()
}

/// The directories of this process's own cgroups, in every mounted hierarchy.
pub fn own_cgroups() -> Vec<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").expect("/proc/self/mounts");
    let text = std::fs::read_to_string("/proc/self/cgroup").expect("/proc/self/cgroup");
    let place = |line: &str| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let holds = |mount: &Vec<&str>| match mount[2] {
            "cgroup2" => controllers.is_empty(),
            "cgroup" => !controllers.is_empty() && controllers.split(',').all(|c| mount[3].split(',').any(|o| o == c)),
            _ => false,
        };
        let fields = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>()).filter(|f| f.len() > 3);
        let mount = fields.into_iter().find(holds)?;
        Some(PathBuf::from(mount[1]).join(path.trim_start_matches('/')))
    };
    text.lines().filter_map(place).filter(|dir| dir.is_dir()).collect()
}

/// The CPU time of a process in clock ticks.
pub fn cpu_ticks(pid: i32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit(") ").next()?.split(' ').collect();
    Some(fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?)
}

/// The CPU time that a cgroup has used, in microseconds.
pub fn cpu_usec(dir: &Path) -> u64 {
    let text = std::fs::read_to_string(dir.join("cpu.stat")).unwrap_or_default();
    let line = text.lines().find_map(|l| l.strip_prefix("usage_usec "));
    line.and_then(|v| v.parse().ok()).unwrap_or(0)
}

/// The children of a process with this command name.
pub fn children_named(parent: i32, name: &str) -> Vec<i32> {
    let all = std::fs::read_dir("/proc").expect("/proc").flatten();
    all.filter_map(|e| e.file_name().to_string_lossy().parse::<i32>().ok())
        .filter(|pid| ppid(*pid) == Some(parent) && comm(*pid).as_deref() == Some(name))
        .collect()
}

/// A process's command name.
pub fn comm(pid: i32) -> Option<String> {
    Some(std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?.trim().to_owned())
}

/// A process's parent.
pub fn ppid(pid: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(") ").next()?.split(' ').nth(1)?.parse().ok()
}

/// The machine's CPU time since boot, in microseconds. Time stolen by the hypervisor is in neither field.
#[derive(Clone, Copy, Debug)]
pub struct CpuTime {
    /// Time spent on a process or in the kernel.
    pub busy_us: u64,
    /// Idle time.
    pub idle_us: u64,
}

/// Reads /proc/stat, which counts in hundredths of a second.
pub fn cpu_time() -> CpuTime {
    let text = std::fs::read_to_string("/proc/stat").expect("/proc/stat");
    let cpu = text.lines().next().unwrap_or_default();
    let ticks: Vec<u64> = cpu.split_whitespace().skip(1).filter_map(|v| v.parse().ok()).collect();
    // user, nice, system, idle, iowait, irq, softirq, steal, …
    let sum = |fields: &[usize]| fields.iter().map(|f| ticks[*f]).sum::<u64>() * 10_000;
    CpuTime { busy_us: sum(&[0, 1, 2, 5, 6]), idle_us: sum(&[3, 4]) }
}

impl CpuTime {
    /// The difference to `then`.
    pub fn since(self, then: CpuTime) -> CpuTime {
        CpuTime { busy_us: self.busy_us - then.busy_us, idle_us: self.idle_us - then.idle_us }
    }
}

/// Mounts a file system of this size on a directory.
///
/// # Panics
/// When it cannot be mounted.
pub fn mount_tmpfs(dir: &Path, size: &str) {
    std::fs::create_dir_all(dir).expect("directory");
    let options = format!("size={size},mode=755");
    let mut mount = std::process::Command::new("mount");
    let mounted = mount.args(["-t", "tmpfs", "-o", &options, "cst"]).arg(dir).status();
    assert!(mounted.is_ok_and(|status| status.success()), "no file system at {}", dir.display());
}

/// Fills a file system until nothing more fits; returns the file that did it.
pub fn fill_disk(dir: &Path) -> PathBuf {
    let path = dir.join("filler");
    let mut file = std::fs::File::create(&path).expect("filler");
    while std::io::Write::write_all(&mut file, &[0; 512]).is_ok() {}
    path
}

/// Detaches everything mounted below `dir`: the wait pages of jobs whose daemon was killed.
pub fn detach_below(dir: &Path) {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let ours = mounts.lines().filter(|line| line.starts_with("cosched-wait "));
    for path in ours.filter_map(|line| line.split(' ').nth(1)).filter(|path| Path::new(path).starts_with(dir)) {
        let _ = std::process::Command::new("umount").args(["-l", path]).status();
    }
}

/// Unmounts a test's own file system, or the hierarchy that a killed daemon left for the kernel's last resort.
pub fn unmount(dir: &Path) {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    if !mounts.lines().any(|line| line.split(' ').nth(1) == dir.to_str()) {
        return;
    }
    for cgroup in sub_directories(dir) {
        // Its processes should have ended; if not, the unmount fails.
        let _ = std::fs::remove_dir(cgroup);
    }
    if !std::process::Command::new("umount").arg(dir).status().is_ok_and(|s| s.success()) {
        eprintln!("{} stays mounted", dir.display());
    }
}

/// Removes the v1 hierarchy of a daemon's last resort, which has the name of the daemon's cgroup. The kernel drops it if no cgroup is
/// left in it when it is unmounted, and a removed cgroup takes a moment to disappear, on a busy machine seconds.
pub fn forget_hierarchy(name: &str) {
    let is_there = || {
        let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        own.lines().any(|line| line.split(':').nth(1).and_then(|of| of.strip_prefix("name=")) == Some(name))
    };
    if !is_there() {
        return;
    }
    let place = tempfile::Builder::new().prefix("cst-forget-").tempdir().expect("temporary directory");
    let run = |program: &str, args: &[&str]| {
        let _ = std::process::Command::new(program).args(args).arg(place.path()).status();
    };
    let gone = crate::wait_until(|| {
        run("mount", &["-t", "cgroup", "-o", &format!("none,name={name}"), "cgroup"]);
        sub_directories(place.path()).into_iter().for_each(|left| drop(std::fs::remove_dir(left)));
        std::thread::sleep(std::time::Duration::from_millis(20));
        run("umount", &[]);
        std::thread::sleep(std::time::Duration::from_millis(20));
        !is_there()
    });
    if !gone {
        eprintln!("the hierarchy {name} stays");
    }
}

/// Whether the processes of a job, given by its v2 cgroup, are frozen.
pub fn is_frozen(job: &Path) -> bool {
    std::fs::read_to_string(job.join("gang/cgroup.freeze")).is_ok_and(|text| text.trim() == "1")
}
