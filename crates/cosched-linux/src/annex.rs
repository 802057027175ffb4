//! Annexes: adopted cgroups that are parts of a job beside its own cgroup, as the pods of a gang are.
//!
//! The problem: the processes of one gang may be in several cgroups that others have made and manage. The rule: the job's switch has the freezers of
//! all of them, so that they run and stop in the same slots, whatever the plan is. Each annex has a marker of its own in our subtree
//! (`annex-JOB-INODE`, see `marker.rs`), by which the guard, the kernel's agent and the next daemon find it. It is a part of the job until it is
//! taken out: its owner's processes come and go.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::adopt::Adoptee;
use crate::cgfile;
use crate::job::{Annex, JobCgroup, JobDirs};
use crate::problem::TreeError;
use crate::tree::{Tree, job_of_marker};

/// The limit on the annexes of a job: each one is written to at each switch.
pub const ANNEXES_MAX: usize = 256;

impl JobCgroup {
    /// Its annexes.
    pub fn annexes(&self) -> Vec<JobCgroup> {
        self.with_annexes(|annexes, _| annexes.iter().map(|annex| annex.cgroup.clone()).collect())
    }

    /// Its cgroups that are not in our subtree: its annexes, or itself.
    pub fn outside(&self) -> Vec<JobCgroup> {
        let own = self.is_adopted().then(|| self.clone());
        own.into_iter().chain(self.annexes()).collect()
    }

    fn join(&self, cgroup: JobCgroup) {
        // What it has used before is not the job's.
        let base_ns = cgroup.own_cpu_time_ns().unwrap_or(0);
        let seen_ns = AtomicU64::new(base_ns);
        self.with_annexes(|annexes, _| annexes.push(Annex { cgroup, base_ns, seen_ns }));
    }

    /// Takes annexes out of the job. They keep their markers, by [`JobCgroup::remove`] of each, until no slot table can freeze them again.
    pub fn part(&self, goes: impl Fn(&JobCgroup) -> bool) -> Vec<JobCgroup> {
        self.with_annexes(|annexes, parted_ns| {
            let gone: Vec<Annex> = annexes.extract_if(.., |annex| goes(&annex.cgroup)).collect();
            parted_ns.fetch_add(gone.iter().map(used_ns).sum(), Relaxed);
            gone.into_iter().map(|annex| annex.cgroup).collect()
        })
    }

    /// True while a process of the job lives. False for a job whose cgroups no longer exist.
    ///
    /// # Errors
    /// cgroup.events cannot be read.
    pub fn populated(&self) -> Result<bool, TreeError> {
        let mut populated = self.own_populated()?;
        for annex in self.annexes() {
            populated |= annex.own_populated()?;
        }
        Ok(populated)
    }

    /// The job's processes, also those in cgroups that it made itself. If an adopted cgroup has more than 1024 cgroups below it, only some are
    /// visited.
    ///
    /// # Errors
    /// A list cannot be read. A cgroup that vanishes meanwhile is skipped.
    pub fn procs(&self) -> Result<Vec<i32>, TreeError> {
        let mut pids = self.own_procs()?;
        for annex in self.annexes() {
            pids.extend(annex.own_procs()?);
        }
        Ok(pids)
    }

    /// Sends a signal to every process of the job, once to each, until no new one appears. Returns the number of processes that got it.
    ///
    /// # Errors
    /// As [`JobCgroup::procs`], and when not all of an adopted cgroup was visited. A process that ends meanwhile is no error.
    pub fn signal_all(&self, signal: i32) -> Result<usize, TreeError> {
        let all: Vec<_> = self.annexes().iter().map(|annex| annex.own_signal_all(signal)).collect();
        all.into_iter().try_fold(self.own_signal_all(signal)?, |sum, more| Ok(sum + more?))
    }

    /// Kills every process of the job, frozen or not, by cgroup.kill (Linux 5.14), else by SIGKILL to each.
    ///
    /// # Errors
    /// When neither works.
    pub fn kill(&self) -> Result<(), TreeError> {
        let all: Vec<_> = self.annexes().iter().map(JobCgroup::own_kill).collect();
        all.into_iter().fold(self.own_kill(), Result::and)
    }

    /// The CPU time that the job has used, in nanoseconds (the kernel counts microseconds).
    ///
    /// # Errors
    /// When cpu.stat cannot be read.
    pub fn cpu_time_ns(&self) -> Result<u64, TreeError> {
        let own_ns = self.own_cpu_time_ns()?;
        let more_ns = |annexes: &mut Vec<Annex>| annexes.iter().map(used_ns).sum::<u64>();
        Ok(own_ns + self.with_annexes(|annexes, parted_ns| more_ns(annexes) + parted_ns.load(Relaxed)))
    }

    /// The memory that the job uses now, in bytes: from its memory cgroup, otherwise the sum of the resident sets of its processes (which counts
    /// shared pages more than once). `None` when neither can be read.
    pub fn memory_current(&self) -> Option<u64> {
        self.sum(JobCgroup::own_memory_current)
    }

    /// The peak of the job's memory, in bytes; `None` without a memory controller.
    pub fn memory_peak(&self) -> Option<u64> {
        self.sum(JobCgroup::own_memory_peak)
    }

    fn sum(&self, of: impl Fn(&JobCgroup) -> Option<u64>) -> Option<u64> {
        let annexes = self.annexes();
        std::iter::once(self).chain(&annexes).filter_map(of).reduce(u64::saturating_add)
    }

    /// Removes the job's cgroups in all hierarchies, with those that the job made itself. Adopted cgroups are thawed, and stay.
    ///
    /// # Errors
    /// One of them still has processes.
    pub fn remove(&self) -> Result<(), TreeError> {
        let all: Vec<_> = self.part(|_| true).iter().map(JobCgroup::own_remove).collect();
        all.into_iter().fold(self.own_remove(), Result::and)
    }
}

/// The CPU time that it has used in the job.
fn used_ns(annex: &Annex) -> u64 {
    if let Ok(now_ns) = annex.cgroup.own_cpu_time_ns() {
        annex.seen_ns.store(now_ns, Relaxed);
    }
    annex.seen_ns.load(Relaxed).saturating_sub(annex.base_ns)
}

impl Tree {
    /// Makes an existing cgroup a part of a job.
    ///
    /// # Errors
    /// As [`Tree::adopt`]; then nothing is left behind.
    pub fn annex(&self, job: &JobCgroup, adoptee: &Adoptee) -> Result<JobCgroup, TreeError> {
        let marker = self.marker_named(&format!("annex-{}-{}", job.id(), adoptee.inode()));
        let annex = self.adopt_by(job.id(), marker, adoptee)?;
        job.join(annex.clone());
        Ok(annex)
    }

    /// Finds the annexes that an earlier daemon has made. Those whose cgroups no longer exist are forgotten.
    pub(crate) fn find_annexes(&self, job: &JobCgroup) {
        for marker in self.annex_markers(job.id()) {
            match self.open_adopted(job.id(), &marker) {
                Some(Ok(annex)) => job.join(annex),
                // It is thawed by its marker.
                _ => drop(marker.remove()),
            }
        }
    }

    /// Thaws what the annexes of a job were, and removes their markers.
    ///
    /// # Errors
    /// A directory cannot be removed.
    pub(crate) fn remove_annexes(&self, job: u64) -> Result<(), TreeError> {
        self.annex_markers(job).iter().try_for_each(JobDirs::remove)
    }

    fn annex_markers(&self, job: u64) -> Vec<JobDirs> {
        let children = cgfile::children(self.v2_dir()).unwrap_or_default();
        let names = children.iter().filter_map(|dir| dir.file_name()?.to_str());
        names.filter(|name| job_of_marker(name) == Some(job)).map(|name| self.marker_named(name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{Layout, LayoutKind};
    use crate::place::Place;
    use std::fs;
    use std::path::{Path, PathBuf};

    /// Plain directories are used instead of cgroups.
    fn tree(mount: &Path) -> Tree {
        let layout = Layout::without_v1(LayoutKind::Hybrid, mount.into());
        Tree::open(&layout, Place::Root { name: "cosched".into() }).unwrap()
    }

    fn cgroup(dir: PathBuf, usage_us: u64) -> PathBuf {
        fs::create_dir_all(&dir).unwrap();
        let usage = format!("usage_usec {usage_us}\n");
        for (name, content) in
            [("cgroup.freeze", "0"), ("cgroup.events", "populated 1\n"), ("cgroup.procs", "7\n"), ("cpu.stat", &usage)]
        {
            fs::write(dir.join(name), content).unwrap();
        }
        dir
    }

    fn frozen(dir: &Path) -> String {
        fs::read_to_string(dir.join("cgroup.freeze")).unwrap()
    }

    /// A job without processes of its own.
    fn job(tree: &Tree, id: u64) -> JobCgroup {
        let dirs = tree.v2_dir().join(format!("job-{id}"));
        cgroup(dirs.join("gang"), 0);
        cgroup(dirs.clone(), 0);
        fs::write(dirs.join("cgroup.events"), "populated 0\n").unwrap();
        fs::write(dirs.join("cpu.weight"), "100").unwrap();
        tree.open_job(id).unwrap()
    }

    #[test]
    fn all_of_a_job_stops_and_runs_by_one_switch() {
        let base = tempfile::tempdir().unwrap();
        let tree = tree(base.path());
        let pods = ["pod-a", "pod-b"].map(|name| cgroup(base.path().join(name), 50));
        let job = job(&tree, 3);
        let alone = job.switch_handle();
        assert!(!alone.is_adopted() && !job.populated().unwrap());
        for pod in &pods {
            let adoptee = tree.adoptee(&tree.path_of(pod)).unwrap();
            match tree.annex(&job, &adoptee) {
                Err(e) if e.to_string().contains("not supported") => {
                    return println!("SKIPPED: no user.* attributes in {base:?}");
                }
                annexed => drop(annexed.unwrap()),
            }
        }
        assert_eq!(job.outside().len(), 2);
        let both = job.switch_handle();
        assert!(both.is_adopted() && *both != *alone && job.populated().unwrap());
        both.set_frozen(true).unwrap();
        assert_eq!(pods.each_ref().map(|pod| frozen(pod)), ["1", "1"]);
        assert_eq!(job.cpu_time_ns().unwrap(), 0, "what they used before is not the job's");
        cgroup(pods[0].clone(), 80);
        assert_eq!(job.cpu_time_ns().unwrap(), 30_000);

        fs::remove_file(pods[0].join("cpu.stat")).unwrap();
        let gone = job.part(|annex| annex.v2_path_relative() == Path::new("/pod-a"));
        assert_eq!((gone.len(), job.annexes().len()), (1, 1));
        cgroup(pods[0].clone(), 900);
        assert_eq!(job.cpu_time_ns().unwrap(), 30_000, "it has left with what it used");
        let one = job.switch_handle();
        one.set_frozen(false).unwrap();
        one.set_frozen(true).unwrap();
        assert_eq!(pods.each_ref().map(|pod| frozen(pod)), ["0", "1"], "it is switched no more");

        // The next daemon finds what is left, whatever became of this one.
        let found = tree.open_job(3).unwrap();
        assert_eq!(found.annexes().len(), 2, "its marker stays until it cannot be frozen any more");
        gone[0].remove().unwrap();
        assert_eq!(tree.open_job(3).unwrap().annexes().len(), 1);
    }

    #[test]
    fn a_marker_without_its_job_is_found_and_lets_its_cgroup_run() {
        let base = tempfile::tempdir().unwrap();
        let tree = tree(base.path());
        let pod = cgroup(base.path().join("pod"), 0);
        let job = job(&tree, 3);
        if tree.annex(&job, &tree.adoptee(Path::new("/pod")).unwrap()).is_err() {
            return println!("SKIPPED: no user.* attributes in {base:?}");
        }
        fs::remove_dir_all(tree.v2_dir().join("job-3")).unwrap();
        fs::write(pod.join("cgroup.freeze"), "1").unwrap();
        assert_eq!(tree.jobs().unwrap(), [3]);
        tree.remove_torn(3).unwrap();
        assert_eq!((frozen(&pod).as_str(), tree.jobs().unwrap()), ("0", vec![]));
    }

    #[test]
    fn names_of_markers_are_told_from_others() {
        assert_eq!(job_of_marker("annex-7-4711"), Some(7));
        for other in ["job-7", "annex-7", "annex-x-1", "annex-7-x", "annex-7-1-2"] {
            assert_eq!(job_of_marker(other), None, "{other}");
        }
    }
}
