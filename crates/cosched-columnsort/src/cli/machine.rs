//! The resources of this machine that the program may use.

use std::fs;
use std::path::{Path, PathBuf};

/// The number of CPUs that this process may use.
pub(crate) fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The available memory in bytes: the kernel's MemAvailable or the smallest memory limit of this process's cgroups, whichever is
/// less. 1 GiB if neither is known. What the cgroups use already is not subtracted.
pub(crate) fn memory_available_bytes() -> u64 {
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let available = meminfo.lines().find_map(|line| {
        let value = line.strip_prefix("MemAvailable:")?.trim().strip_suffix("kB")?;
        value.trim().parse::<u64>().ok().map(|kib| kib << 10)
    });
    let cgroups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limits =
        cgroups.lines().filter_map(memory_cgroup).filter_map(|(root, path, file)| least_limit(&root, &path, file));
    limits.chain(available).min().unwrap_or(1 << 30)
}

/// For a line of /proc/self/cgroup with the memory controller: its mount point, this process's path in it, and the name of
/// the limit's file.
fn memory_cgroup(line: &str) -> Option<(PathBuf, PathBuf, &'static str)> {
    let mut fields = line.splitn(3, ':');
    let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
    let path = PathBuf::from(path.trim_start_matches('/'));
    if controllers.is_empty() {
        return Some(("/sys/fs/cgroup".into(), path, "memory.max"));
    }
    let memory = controllers.split(',').any(|controller| controller == "memory");
    memory.then(|| ("/sys/fs/cgroup/memory".into(), path, "memory.limit_in_bytes"))
}

/// The smallest limit from this process's cgroup up to the root.
fn least_limit(root: &Path, path: &Path, file: &str) -> Option<u64> {
    path.ancestors()
        .filter_map(|ancestor| fs::read_to_string(root.join(ancestor).join(file)).ok()?.trim().parse().ok())
        .min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_limit_on_the_way_to_the_root_counts() {
        let root = tempfile::tempdir().unwrap();
        let deep = root.path().join("a/b");
        fs::create_dir_all(&deep).unwrap();
        fs::write(root.path().join("memory.max"), "max\n").unwrap();
        fs::write(root.path().join("a/memory.max"), "1000\n").unwrap();
        fs::write(deep.join("memory.max"), "2000\n").unwrap();
        assert_eq!(least_limit(root.path(), Path::new("a/b"), "memory.max"), Some(1000));
        assert_eq!(least_limit(root.path(), Path::new(""), "memory.max"), None);
    }

    #[test]
    fn lines_of_both_hierarchies() {
        assert_eq!(memory_cgroup("0::/user/x"), Some(("/sys/fs/cgroup".into(), "user/x".into(), "memory.max")));
        let v1 = memory_cgroup("7:cpu,memory:/job");
        assert_eq!(v1, Some(("/sys/fs/cgroup/memory".into(), "job".into(), "memory.limit_in_bytes")));
        assert_eq!(memory_cgroup("3:cpu,cpuacct:/"), None);
        assert!(memory_available_bytes() > 0);
    }
}
