//! Thaws every job of a tree, however it was stopped. The guard and the kernel's agent do this.

use std::path::{Path, PathBuf};

use crate::cgfile;
use crate::keeper::files;
use crate::marker;
use crate::quota;
use crate::reserve;
use crate::subgangs::end_all;
use crate::switch::WEIGHT_DEFAULT;
use crate::switch::WeightFile;

/// The directories of a tree of jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThawPaths {
    /// The tree in the v2 hierarchy.
    pub v2_tree: PathBuf,
    /// The tree in the v1 cpu hierarchy (hybrid layout).
    pub cpu_tree: Option<PathBuf>,
    /// The tree in the v1 cpuset hierarchy (hybrid layout).
    pub cpuset_tree: Option<PathBuf>,
}

/// Thaws every cgroup of the tree, including nested ones and those named by its markers, and gives every job the default weight without the idle
/// mark; with `signals` it also sends SIGCONT to every process, and without cgroups to those that keepers have stopped. It puts back the quotas that were lifted, and ends subgangs. Continues after errors: a cgroup that vanishes meanwhile needs no thawing. Returns
/// the number of successful writes.
pub fn thaw_all(paths: &ThawPaths, signals: bool) -> usize {
    let v2: Vec<PathBuf> = cgfile::reachable(&paths.v2_tree);
    let put = |path: &Path, value: &str| usize::from(cgfile::write(path, value).is_ok());
    // All freezers first: they are what stops the jobs.
    let mut written: usize = v2.iter().map(|dir| put(&dir.join("cgroup.freeze"), "0")).sum();
    let jobs = cgfile::children(&paths.v2_tree).unwrap_or_default();
    written += jobs.iter().filter(|dir| marker::thaw(dir)).count();
    jobs.iter().for_each(|dir| quota::put_back(dir));
    written += jobs.iter().map(|dir| files::continue_job(dir)).sum::<usize>();
    if signals {
        for pid in v2.iter().flat_map(|dir| cgfile::procs(dir).unwrap_or_default()) {
            crate::process::send_signal(pid, libc::SIGCONT);
        }
    }
    let (cpu_tree, weight_name, kind) = match &paths.cpu_tree {
        Some(dir) => (dir, "cpu.shares", WeightFile::Shares),
        None => (&paths.v2_tree, "cpu.weight", WeightFile::Weight),
    };
    free_tree(cpu_tree, weight_name, kind);
    let weight = kind.value(WEIGHT_DEFAULT).to_string();
    for dir in cgfile::children(cpu_tree).unwrap_or_default() {
        // The idle probe's cgroup keeps its mark: it must never compete with a job.
        if dir.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"job-")) {
            written += put(&dir.join("cpu.idle"), "0");
            // After cpu.idle: while that is 1 the kernel refuses a weight.
            written += put(&dir.join(weight_name), &weight);
        }
    }
    // Last: a job may have many threads, and these run meanwhile.
    end_all(&jobs);
    written
}

/// Restores the weight of the subtree, which is very large or small during a part of a slot (see `treeweight.rs`), to the default of a cgroup. Any
/// other weight is the operator's reserve, and stays.
fn free_tree(dir: &Path, weight_name: &str, kind: WeightFile) {
    let has = |name: &str, values: &[u32]| {
        let content = cgfile::read(&dir.join(name)).unwrap_or_default();
        content.trim().parse().is_ok_and(|number: u32| values.contains(&number))
    };
    let (own, default) = match kind {
        WeightFile::Shares => (reserve::OWN_SHARES, 1024),
        WeightFile::Weight => (reserve::OWN_WEIGHT, WEIGHT_DEFAULT),
    };
    if has("cpu.idle", &[1]) {
        // With the mark the kernel resets the weight. If it refuses, the next daemon sets both.
        let _ = cgfile::write(&dir.join("cpu.idle"), "0");
    }
    if has(weight_name, &[own, kind.least()]) {
        let _ = cgfile::write(&dir.join(weight_name), &default.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_cgroup_that_nobody_can_reach_keeps_no_other_from_being_thawed() {
        let base = tempfile::tempdir().unwrap();
        let gangs = ["job-1/gang", "job-2/gang"].map(|gang| base.path().join(gang));
        gangs.iter().for_each(|gang| fs::create_dir_all(gang).unwrap());
        gangs.iter().for_each(|gang| fs::write(gang.join("cgroup.freeze"), "1").unwrap());
        let name = "d".repeat(250);
        let mut deep = fs::File::open(&gangs[0]).unwrap();
        for _ in 0..20 {
            rustix::fs::mkdirat(&deep, &name, rustix::fs::Mode::RWXU).unwrap();
            let flags = rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::RDONLY;
            deep = rustix::fs::openat(&deep, &name, flags, rustix::fs::Mode::empty()).unwrap().into();
        }
        assert_eq!(thaw_all(&ThawPaths { v2_tree: base.path().into(), cpu_tree: None, cpuset_tree: None }, true), 2);
        gangs.iter().for_each(|gang| assert_eq!(fs::read_to_string(gang.join("cgroup.freeze")).unwrap(), "0"));
    }

    #[test]
    fn the_weight_of_a_part_of_a_slot_ends_with_the_daemon_and_a_reserve_stays() {
        let base = tempfile::tempdir().unwrap();
        let cpu_tree = Some(base.path().join("cpu"));
        let paths = ThawPaths { v2_tree: base.path().join("v2"), cpu_tree, cpuset_tree: None };
        fs::create_dir_all(base.path().join("cpu")).unwrap();
        let [shares, idle] = ["cpu/cpu.shares", "cpu/cpu.idle"].map(|file| base.path().join(file));
        for (weight, mark, expected) in
            [("262143\n", "0\n", "1024"), ("9216\n", "0\n", "9216\n"), ("3\n", "1\n", "3\n")]
        {
            fs::write(&shares, weight).unwrap();
            fs::write(&idle, mark).unwrap();
            thaw_all(&paths, false);
            // A plain file keeps the bytes after the new number.
            assert!(fs::read_to_string(&shares).unwrap().starts_with(expected));
            assert_eq!(fs::read_to_string(&idle).unwrap().trim(), "0");
        }
    }

    #[test]
    fn nested_cgroups_are_thawed_and_jobs_weigh_the_same() {
        let base = tempfile::tempdir().unwrap();
        let (v2, cpu) = (base.path().join("v2"), base.path().join("cpu"));
        for dir in ["job-1/gang/own/deep", "job-2/gang"] {
            fs::create_dir_all(v2.join(dir)).unwrap();
            fs::write(v2.join(dir).join("cgroup.freeze"), "1").unwrap();
        }
        fs::create_dir_all(cpu.join("job-1")).unwrap();
        fs::write(cpu.join("job-1/cpu.idle"), "1").unwrap();
        fs::write(cpu.join("job-1/cpu.shares"), "2").unwrap();
        fs::create_dir_all(cpu.join("probe")).unwrap();
        fs::write(cpu.join("probe/cpu.idle"), "1").unwrap();
        assert_eq!(
            thaw_all(&ThawPaths { v2_tree: v2.clone(), cpu_tree: Some(cpu.clone()), cpuset_tree: None }, false),
            4
        );
        for file in [
            v2.join("job-1/gang/own/deep/cgroup.freeze"),
            v2.join("job-2/gang/cgroup.freeze"),
            cpu.join("job-1/cpu.idle"),
        ] {
            assert_eq!(fs::read_to_string(&file).unwrap(), "0", "{file:?}");
        }
        assert_eq!(fs::read_to_string(cpu.join("job-1/cpu.shares")).unwrap(), "2600");
        assert_eq!(fs::read_to_string(cpu.join("probe/cpu.idle")).unwrap(), "1", "the probe stays below every job");
        assert_eq!(
            thaw_all(&ThawPaths { v2_tree: base.path().join("gone"), cpu_tree: None, cpuset_tree: None }, true),
            0
        );
    }
}
