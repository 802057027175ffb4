//! Waiting for jobs to end, by inotify on each job's cgroup.events.

use std::collections::BTreeMap;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::inotify;
use rustix::io::Errno;

use crate::cgfile;

/// Watches the cgroup.events files of many jobs through one descriptor.
#[derive(Debug)]
pub struct EndWatch {
    inotify: OwnedFd,
    jobs: BTreeMap<i32, (u64, PathBuf)>,
}

impl EndWatch {
    /// Makes a watch without any job.
    ///
    /// # Errors
    /// The kernel gives no inotify descriptor (fs.inotify.max_user_instances).
    pub fn new() -> io::Result<EndWatch> {
        let inotify = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)?;
        Ok(EndWatch { inotify, jobs: BTreeMap::new() })
    }

    /// Watches the `events` file of `job`. A job that is already empty is not reported before the file changes: call `populated` once after adding.
    ///
    /// # Errors
    /// The file does not exist or there are too many watches (fs.inotify.max_user_watches).
    pub fn add(&mut self, job: u64, events: &Path) -> io::Result<()> {
        let wd = inotify::add_watch(&self.inotify, events, inotify::WatchFlags::MODIFY)?;
        self.jobs.insert(wd, (job, events.to_path_buf()));
        Ok(())
    }

    /// Stops watching `job`.
    pub fn remove(&mut self, job: u64) {
        let found: Vec<i32> = self.jobs.iter().filter(|(_, (id, _))| *id == job).map(|(&wd, _)| wd).collect();
        for wd in found {
            self.jobs.remove(&wd);
            // A removed file has taken its watch with it.
            let _ = inotify::remove_watch(&self.inotify, wd);
        }
    }

    /// The jobs whose file changed since the last call and that have no process now. Never blocks.
    pub fn drain(&mut self) -> Vec<u64> {
        let mut ended = Vec::new();
        for wd in self.changed() {
            let Some((job, path)) = self.jobs.get(&wd) else { continue };
            let populated = cgfile::read(path).ok().and_then(|content| cgfile::keyed(&content, "populated"));
            if populated != Some(1) {
                ended.push(*job);
            }
        }
        ended.sort_unstable();
        ended.dedup();
        ended
    }

    fn changed(&self) -> Vec<i32> {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&self.inotify, &mut buffer);
        let mut changed = Vec::new();
        loop {
            match reader.next() {
                // -1: the queue overflowed, so any of them may have changed.
                Ok(event) if event.wd() == -1 => changed.extend(self.jobs.keys()),
                Ok(event) => changed.push(event.wd()),
                Err(Errno::INTR) => {}
                Err(_) => break,
            }
        }
        changed.sort_unstable();
        changed.dedup();
        changed
    }
}

impl AsFd for EndWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }
}

impl std::os::fd::AsRawFd for EndWatch {
    fn as_raw_fd(&self) -> std::os::fd::RawFd {
        self.inotify.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_jobs_without_processes_are_reported() {
        let dir = tempfile::tempdir().unwrap();
        let (one, two) = (dir.path().join("one"), dir.path().join("two"));
        std::fs::write(&one, "populated 1\nfrozen 0\n").unwrap();
        std::fs::write(&two, "populated 1\nfrozen 0\n").unwrap();
        let mut watch = EndWatch::new().unwrap();
        watch.add(1, &one).unwrap();
        watch.add(2, &two).unwrap();
        assert_eq!(watch.drain(), Vec::<u64>::new());
        std::fs::write(&one, "populated 1\nfrozen 1\n").unwrap();
        assert_eq!(watch.drain(), Vec::<u64>::new());
        std::fs::write(&one, "populated 0\nfrozen 0\n").unwrap();
        std::fs::write(&two, "populated 0\nfrozen 0\n").unwrap();
        watch.remove(2);
        assert_eq!(watch.drain(), [1]);
        assert_eq!(watch.drain(), Vec::<u64>::new());
    }
}
