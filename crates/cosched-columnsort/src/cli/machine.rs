//! The resources of this machine that the program may use.

use std::fs;
use std::path::{Path, PathBuf};

/// The number of CPUs that this process may use.
pub(crate) fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The available memory in bytes: the kernel's MemAvailable or what the memory limits of this process's cgroups leave, whichever is
/// less. 1 GiB if neither is known.
pub(crate) fn memory_available_bytes() -> u64 {
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let available = meminfo.lines().find_map(|line| {
        let value = line.strip_prefix("MemAvailable:")?.trim().strip_suffix("kB")?;
        value.trim().parse::<u64>().ok().map(|kib| kib << 10)
    });
    let cgroups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let left =
        cgroups.lines().filter_map(memory_cgroup).filter_map(|(root, path, files)| least_left(&root, &path, files));
    left.chain(available).min().unwrap_or(1 << 30)
}

/// The files of a memory limit and of what is used, and the fields of memory.stat that the kernel takes back first: the page cache
/// without memory that is shared. With what is below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Files {
    limit: &'static str,
    used: &'static str,
    cache: [&'static str; 2],
}

const V2: Files = Files { limit: "memory.max", used: "memory.current", cache: ["inactive_file ", "active_file "] };
const V1: Files = Files {
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    cache: ["total_inactive_file ", "total_active_file "],
};

/// For a line of /proc/self/cgroup with the memory controller: its mount point, this process's path in it, and its files.
fn memory_cgroup(line: &str) -> Option<(PathBuf, PathBuf, Files)> {
    let mut fields = line.splitn(3, ':');
    let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
    let path = PathBuf::from(path.trim_start_matches('/'));
    if controllers.is_empty() {
        return Some(("/sys/fs/cgroup".into(), path, V2));
    }
    let memory = controllers.split(',').any(|controller| controller == "memory");
    memory.then(|| ("/sys/fs/cgroup/memory".into(), path, V1))
}

/// The least that a limit leaves, from this process's cgroup up to the root.
fn least_left(root: &Path, path: &Path, files: Files) -> Option<u64> {
    path.ancestors().filter_map(|ancestor| left(&root.join(ancestor), files)).min()
}

fn left(dir: &Path, files: Files) -> Option<u64> {
    let number = |name: &str| fs::read_to_string(dir.join(name)).ok()?.trim().parse::<u64>().ok();
    let limit = number(files.limit)?;
    let stat = fs::read_to_string(dir.join("memory.stat")).unwrap_or_default();
    let fields = stat.lines().filter_map(|line| files.cache.iter().find_map(|name| line.strip_prefix(name)));
    let cache: u64 = fields.filter_map(|value| value.parse::<u64>().ok()).sum();
    Some(limit.saturating_sub(number(files.used).unwrap_or(0).saturating_sub(cache)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_that_a_limit_leaves_counts() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("a/b")).unwrap();
        let set = |name: &str, text: &str| fs::write(root.path().join(name), text).unwrap();
        let of = |path: &str| least_left(root.path(), Path::new(path), V2);
        set("memory.max", "max\n");
        set("a/memory.max", "1000\n");
        set("a/b/memory.max", "2000\n");
        assert_eq!((of("a/b"), of("")), (Some(1000), None));
        set("a/b/memory.current", "1500\n");
        assert_eq!(of("a/b"), Some(500), "what it uses already");
        set("a/b/memory.stat", "anon 100\ninactive_file 300\nactive_file 900\ntotal_inactive_file 7\n");
        assert_eq!(of("a/b"), Some(1000), "but not what the kernel takes back");
        set("a/memory.current", "3000\n");
        assert_eq!(of("a/b"), Some(0));
    }

    #[test]
    fn lines_of_both_hierarchies() {
        assert_eq!(memory_cgroup("0::/user/x"), Some(("/sys/fs/cgroup".into(), "user/x".into(), V2)));
        let v1 = memory_cgroup("7:cpu,memory:/job");
        assert_eq!(v1, Some(("/sys/fs/cgroup/memory".into(), "job".into(), V1)));
        assert_eq!(memory_cgroup("3:cpu,cpuacct:/"), None);
        assert!(memory_available_bytes() > 0);
    }
}
