//! The limit of a job's memory: `memory.max`, or in the hybrid layout `memory.limit_in_bytes`.
//!
//! Rule: in the hybrid layout a process keeps its memory cgroup (see [`JobCgroup::attach`]), but enters that of a job with a limit, unless it would
//! leave another limit behind.

use crate::cgfile;
use crate::job::{JobCgroup, V1_UNLIMITED_BYTES, number};
use crate::place::{below, own_v1};
use crate::problem::TreeError;
use crate::tree::Tree;
use std::io;
use std::path::Path;

const V1_FILE: &str = "memory.limit_in_bytes";

impl Tree {
    /// Why a job that begins with this process cannot have a memory limit of its own; `None` if it can.
    pub fn memory_limit_obstacle(&self, pid: Option<i32>) -> Option<String> {
        let enabled = cgfile::read(&self.v2_dir().join("cgroup.subtree_control")).unwrap_or_default();
        if enabled.split_whitespace().any(|name| name == "memory") {
            return None;
        }
        if !self.has_v1_memory() {
            return Some("the daemon's cgroup has no memory controller".to_owned());
        }
        let content = cgfile::read(Path::new(&format!("/proc/{}/cgroup", pid?))).unwrap_or_default();
        let limited = self.layout().memory_mount.as_ref().is_some_and(|mount| is_limited_v1(mount, &content));
        limited.then(|| {
            format!("process {} is in a memory cgroup with a limit, which the job would leave", pid.unwrap_or(0))
        })
    }
}

impl JobCgroup {
    /// Limits the memory of its processes; an earlier limit that is lower stays.
    ///
    /// # Errors
    /// There is no memory controller for it, or the kernel refuses.
    pub fn limit_memory(&self, bytes: u64) -> Result<(), TreeError> {
        let dirs = self.dirs();
        let v2 = dirs.outer.join("memory.max");
        let v1 = dirs.memory.as_ref().map(|dir| dir.join(V1_FILE));
        let path = Some(&v2).filter(|path| path.exists()).or(v1.as_ref().filter(|path| path.exists()));
        let none = || TreeError::io("write", &v2)(io::Error::from(io::ErrorKind::Unsupported));
        let path = path.ok_or_else(none)?;
        if number(path).is_some_and(|set| set <= bytes) {
            return Ok(());
        }
        cgfile::write(path, &bytes.to_string()).map_err(TreeError::io("write", path))
    }

    /// Whether a process with these cgroups is to enter the v1 memory cgroup because of the job's limit.
    pub(crate) fn limits_memory_of(&self, content: &str) -> bool {
        let Some(dir) = &self.dirs().memory else { return false };
        let is_set = number(&dir.join(V1_FILE)).is_some_and(|bytes| bytes < V1_UNLIMITED_BYTES);
        // The mount is two levels above the job's directory.
        let mount = dir.parent().and_then(Path::parent);
        is_set && mount.is_some_and(|mount| !is_limited_v1(mount, content))
    }
}

/// Whether the v1 memory cgroup of a process, or one above it, has a limit.
fn is_limited_v1(mount: &Path, content: &str) -> bool {
    let Some(path) = own_v1(content, "memory") else { return false };
    let limits = path.ancestors().filter_map(|dir| number(&below(mount, dir).join(V1_FILE)));
    limits.into_iter().any(|bytes| bytes < V1_UNLIMITED_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_above_a_process_is_seen() {
        let mount = tempfile::tempdir().unwrap();
        let put = |dir: &str, text: &str| {
            std::fs::create_dir_all(mount.path().join(dir)).unwrap();
            std::fs::write(mount.path().join(dir).join(V1_FILE), text).unwrap();
        };
        put("box/inner", "9223372036854771712\n");
        put("box", "9223372036854771712\n");
        let content = "4:memory:/box/inner\n0::/\n";
        assert!(!is_limited_v1(mount.path(), content));
        put("box", "1048576\n");
        assert!(is_limited_v1(mount.path(), content));
        assert!(!is_limited_v1(mount.path(), "4:memory:/\n"));
    }
}
