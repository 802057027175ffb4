//! Deadlines for jobs that other nodes will start again: a small file that the daemon writes and the guard reads.
//!
//! The problem: a node that is cut off has to end such jobs before another node starts them again (the cluster's `member/fence.rs` says when), also
//! when its daemon is dead, stopped or blocked by then. The rule: with every renewal of its lease the daemon writes until when each may live, by the
//! clock that does not stop in a suspend. A guard that reads an expired deadline kills the job's cgroup; a healthy daemon writes a later deadline
//! first. The file is in the runtime directory, in memory: there is no wait for a disk. Its first line names the daemon, so that the guard of an
//! earlier one sees that it is no longer needed.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::{cgfile, process};

/// A job with a deadline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fence {
    /// Its cgroup in the v2 hierarchy.
    pub cgroup: PathBuf,
    /// The deadline, by [`boottime_ns`].
    pub until_ns: u64,
}

/// The content of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fences {
    /// The daemon that wrote it.
    pub daemon: i32,
    /// The deadlines.
    pub jobs: Vec<Fence>,
}

/// Nanoseconds since the boot, including suspended time.
pub fn boottime_ns() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

impl Fences {
    /// Reads a file; a missing file counts as empty.
    pub fn read(path: &Path) -> Fences {
        let content = cgfile::read(path).unwrap_or_default();
        let mut lines = content.lines();
        let daemon = lines.next().and_then(|line| line.parse().ok()).unwrap_or_default();
        let fence = |line: &str| {
            let (until, cgroup) = line.split_once(' ')?;
            Some(Fence { cgroup: cgroup.into(), until_ns: until.parse().ok()? })
        };
        Fences { daemon, jobs: lines.filter_map(fence).collect() }
    }

    /// Replaces the file as a whole, so that a reader never sees a part of it.
    ///
    /// # Errors
    /// The file system's.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut content = format!("{}\n", self.daemon);
        for Fence { cgroup, until_ns } in &self.jobs {
            content.push_str(&format!("{until_ns} {}\n", cgroup.display()));
        }
        let new = path.with_extension("new");
        std::fs::write(&new, content)?;
        std::fs::rename(new, path)
    }

    /// Kills the jobs whose deadline has passed; returns the time until the next deadline.
    pub(crate) fn enforce(&self) -> Option<Duration> {
        let now_ns = boottime_ns();
        for fence in self.jobs.iter().filter(|fence| fence.until_ns <= now_ns) {
            end(&fence.cgroup);
        }
        let next = self.jobs.iter().map(|fence| fence.until_ns).filter(|until| *until > now_ns).min();
        next.map(|until| Duration::from_nanos(until - now_ns))
    }
}

/// Kills a cgroup. Kernels before 5.14 have no cgroup.kill.
fn end(cgroup: &Path) {
    if cgfile::write(&cgroup.join("cgroup.kill"), "1").is_err() {
        // A cgroup that cannot be read is empty, or is tried again the next time.
        let _ = cgfile::visit(cgroup, usize::MAX, &mut |dir| {
            for pid in cgfile::procs_at(dir).unwrap_or_default() {
                process::send_signal(pid, libc::SIGKILL);
            }
            Ok(())
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_what_is_due_is_told() {
        let dir = std::env::temp_dir().join(format!("cosched-fence-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join("fences");
        assert_eq!(Fences::read(&path), Fences::default());
        let fence = |cgroup: &str, until_ns| Fence { cgroup: dir.join(cgroup), until_ns };
        let later = boottime_ns() + 3_600_000_000_000;
        let fences = Fences { daemon: 7, jobs: vec![fence("a b", 5), fence("c", later)] };
        fences.write(&path).unwrap();
        assert_eq!(Fences::read(&path), fences);
        // A plain directory is used instead of a cgroup: the kill file is written there.
        std::fs::create_dir_all(dir.join("a b")).unwrap();
        std::fs::create_dir_all(dir.join("c")).unwrap();
        let kill = |cgroup: &str| dir.join(cgroup).join("cgroup.kill");
        ["a b", "c"].iter().for_each(|cgroup| std::fs::write(kill(cgroup), "0").unwrap());
        let next = fences.enforce().unwrap();
        assert!(next > Duration::from_secs(3000) && next <= Duration::from_secs(3600));
        assert_eq!(["a b", "c"].map(|cgroup| std::fs::read_to_string(kill(cgroup)).unwrap()), ["1", "0"]);
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
