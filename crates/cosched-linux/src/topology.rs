//! The topology of this machine's CPUs, as the kernel reports it in /sys/devices/system.
//!
//! Source: Documentation/admin-guide/cputopology.rst; Documentation/ABI/testing/sysfs-devices-system-cpu (cache/index*);
//! Documentation/ABI/stable/sysfs-devices-node.

use std::io;
use std::path::{Path, PathBuf};

use crate::cgfile;
use crate::cpulist;

/// The units that contain a CPU; each is named by its first CPU, NUMA nodes by their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuParts {
    /// Its socket.
    pub socket: u32,
    /// Its NUMA node.
    pub numa_node: u32,
    /// Its last-level cache; the socket where the kernel reports no caches, as in many virtual machines.
    pub cache: u32,
    /// Its core.
    pub core: u32,
}

/// The units of these CPUs, in their order.
///
/// # Errors
/// A file that cannot be read or parsed.
pub fn read(cpus: &[u32]) -> io::Result<Vec<CpuParts>> {
    read_at(Path::new("/sys/devices/system"), cpus)
}

fn read_at(system: &Path, cpus: &[u32]) -> io::Result<Vec<CpuParts>> {
    let nodes = numa_nodes(&system.join("node"))?;
    let parts = |cpu: &u32| {
        let dir = system.join(format!("cpu/cpu{cpu}"));
        let core = first_of(&dir.join("topology/thread_siblings_list"))?;
        let socket = first_of(&dir.join("topology/core_siblings_list"))?;
        let numa_node = nodes.iter().find(|(_, list)| list.contains(cpu)).map_or(0, |(node, _)| *node);
        let cache =
            last_cache(&dir.join("cache"))?.map_or(Ok(socket), |index| first_of(&index.join("shared_cpu_list")))?;
        Ok(CpuParts { socket, numa_node, cache, core })
    };
    cpus.iter().map(parts).collect()
}

/// The NUMA nodes and their CPUs; empty on a kernel without NUMA.
fn numa_nodes(dir: &Path) -> io::Result<Vec<(u32, Vec<u32>)>> {
    let number = |path: &PathBuf| path.file_name()?.to_str()?.strip_prefix("node")?.parse().ok();
    let nodes = cgfile::children(dir)?.into_iter().filter_map(|path| Some((number(&path)?, path)));
    nodes.map(|(node, path)| Ok((node, list(&path.join("cpulist"))?))).collect()
}

/// The directory of the highest level of cache.
fn last_cache(dir: &Path) -> io::Result<Option<PathBuf>> {
    let level = |path: &PathBuf| cgfile::read(&path.join("level")).ok()?.trim().parse::<u32>().ok();
    let levels = cgfile::children(dir)?.into_iter().filter_map(|path| Some((level(&path)?, path)));
    Ok(levels.max_by_key(|(level, _)| *level).map(|(_, path)| path))
}

fn first_of(path: &Path) -> io::Result<u32> {
    list(path)?.first().copied().ok_or_else(|| io::Error::other(format!("{} names no CPU", path.display())))
}

/// The CPUs that are online, in their order.
///
/// # Errors
/// The kernel's list cannot be read or parsed.
pub(crate) fn online() -> io::Result<Vec<u32>> {
    list(Path::new("/sys/devices/system/cpu/online"))
}

fn list(path: &Path) -> io::Result<Vec<u32>> {
    let text = cgfile::read(path).map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", path.display())))?;
    cpulist::parse(&text).ok_or_else(|| io::Error::other(format!("{} is not a list of CPUs", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn put(base: &Path, file: &str, text: &str) {
        let path = base.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn sockets_nodes_caches_and_siblings_are_read() {
        let base = tempfile::tempdir().unwrap();
        for (cpu, core, socket) in [(0, "0,2", "0,2"), (1, "1,3", "1,3"), (2, "0,2", "0,2"), (3, "1,3", "1,3")] {
            put(base.path(), &format!("cpu/cpu{cpu}/topology/thread_siblings_list"), core);
            put(base.path(), &format!("cpu/cpu{cpu}/topology/core_siblings_list"), socket);
            put(base.path(), &format!("cpu/cpu{cpu}/cache/index0/level"), "1\n");
        }
        put(base.path(), "cpu/cpu3/cache/index1/level", "3\n");
        put(base.path(), "cpu/cpu3/cache/index0/shared_cpu_list", "3\n");
        put(base.path(), "cpu/cpu3/cache/index1/shared_cpu_list", "1,3\n");
        put(base.path(), "node/node0/cpulist", "0,2\n");
        put(base.path(), "node/node1/cpulist", "1,3\n");
        put(base.path(), "node/possible", "0-1\n");
        let cpu3 = CpuParts { socket: 1, numa_node: 1, cache: 1, core: 1 };
        assert_eq!(read_at(base.path(), &[3]).unwrap(), [cpu3]);
        let e = read_at(base.path(), &[0]).unwrap_err().to_string();
        assert!(e.contains("cpu0/cache/index0/shared_cpu_list"), "{e}");
        fs::remove_dir_all(base.path().join("cpu/cpu0/cache")).unwrap();
        assert_eq!(read_at(base.path(), &[0]).unwrap()[0].cache, 0, "no caches are told of: the socket");
        put(base.path(), "cpu/cpu0/topology/thread_siblings_list", "zero");
        assert!(read_at(base.path(), &[0]).unwrap_err().to_string().contains("is not a list of CPUs"));
        assert!(read_at(base.path(), &[9]).is_err());
    }

    #[test]
    fn this_machine_tells() {
        let cpus = crate::observe::cpus_allowed();
        assert_eq!(read(&cpus).unwrap().len(), cpus.len());
    }
}
