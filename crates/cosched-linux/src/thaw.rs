//! Letting every job of a tree run again, whoever stopped it. This is what the guard and the kernel's agent do.

use std::path::{Path, PathBuf};

use crate::cgfile;

/// The directories of a tree that has jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThawPaths {
    /// The tree in the v2 hierarchy.
    pub v2_tree: PathBuf,
    /// The tree in the v1 cpu hierarchy (hybrid layout).
    pub cpu_tree: Option<PathBuf>,
}

/// Thaws every cgroup of the tree, the nested ones too, and takes the idle mark from every job; with `signals` also sends SIGCONT to
/// every process. Goes on over errors: a cgroup that vanishes meanwhile needs no thawing. Returns how many writes succeeded.
pub fn thaw_all(paths: &ThawPaths, signals: bool) -> usize {
    let v2: Vec<PathBuf> = cgfile::deepest_first(&paths.v2_tree).unwrap_or_default();
    let mut written = 0;
    let mut zero = |path: &Path| written += usize::from(cgfile::write(path, "0").is_ok());
    // All freezers first: that is what stops people's work.
    for dir in &v2 {
        zero(&dir.join("cgroup.freeze"));
    }
    if signals {
        for pid in v2.iter().flat_map(|dir| cgfile::procs(dir).unwrap_or_default()) {
            crate::process::send_signal(pid, libc::SIGCONT);
        }
    }
    let idle_tree = paths.cpu_tree.as_ref().unwrap_or(&paths.v2_tree);
    for dir in cgfile::children(idle_tree).unwrap_or_default() {
        // The idle probe's cgroup keeps its mark: it must never compete with a job.
        if dir.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"job-")) {
            zero(&dir.join("cpu.idle"));
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn nested_cgroups_are_thawed_and_idle_marks_taken() {
        let base = tempfile::tempdir().unwrap();
        let (v2, cpu) = (base.path().join("v2"), base.path().join("cpu"));
        for dir in ["job-1/gang/own/deep", "job-2/gang"] {
            fs::create_dir_all(v2.join(dir)).unwrap();
            fs::write(v2.join(dir).join("cgroup.freeze"), "1").unwrap();
        }
        fs::create_dir_all(cpu.join("job-1")).unwrap();
        fs::write(cpu.join("job-1/cpu.idle"), "1").unwrap();
        assert_eq!(thaw_all(&ThawPaths { v2_tree: v2.clone(), cpu_tree: Some(cpu.clone()) }, false), 3);
        for file in [
            v2.join("job-1/gang/own/deep/cgroup.freeze"),
            v2.join("job-2/gang/cgroup.freeze"),
            cpu.join("job-1/cpu.idle"),
        ] {
            assert_eq!(fs::read_to_string(&file).unwrap(), "0", "{file:?}");
        }
        assert_eq!(thaw_all(&ThawPaths { v2_tree: base.path().join("gone"), cpu_tree: None }, true), 0);
    }
}
