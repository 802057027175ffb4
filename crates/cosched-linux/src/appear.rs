//! Watched cgroups that get processes, by inotify on the directories on the way to them and on their cgroup.events.
//!
//! Only directories of one user are looked into and reported: whoever makes cgroups elsewhere causes no work here. What is watched is bounded.

use std::collections::BTreeMap;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, ReadFlags, WatchFlags};
use rustix::io::Errno;

use crate::cgfile;

/// The maximum number of watched directories.
pub const DIRS_MAX: usize = 1024;
/// The maximum number of watched cgroups.
pub const CGROUPS_MAX: usize = 256;

/// Which cgroups are waited for; paths are relative to the mount, with a leading slash.
pub trait Wanted {
    /// Whether it is one of them.
    fn is(&self, path: &Path) -> bool;
    /// Whether one of them may be below it.
    fn may_be_below(&self, path: &Path) -> bool;
}

#[derive(Debug)]
enum Watched {
    Dir(PathBuf),
    /// A cgroup that is waited for, and whether it had processes when it was last looked at.
    Cgroup(PathBuf, bool),
}

impl Watched {
    fn path(&self) -> &Path {
        match self {
            Watched::Dir(path) | Watched::Cgroup(path, _) => path,
        }
    }
}

/// The watches.
#[derive(Debug)]
pub struct Appear<W> {
    inotify: OwnedFd,
    mount: PathBuf,
    owner: u32,
    wanted: W,
    watched: BTreeMap<i32, Watched>,
    /// More were found than are watched.
    is_full: bool,
}

impl<W: Wanted> Appear<W> {
    /// Waits for cgroups of a user, below this mount.
    ///
    /// # Errors
    /// When the kernel gives no inotify descriptor, or the mount cannot be watched.
    pub fn new(mount: &Path, owner: u32, wanted: W) -> io::Result<Appear<W>> {
        let inotify = inotify::init(inotify::CreateFlags::CLOEXEC)?;
        let mut appear =
            Appear { inotify, mount: mount.to_owned(), owner, wanted, watched: BTreeMap::new(), is_full: false };
        appear.look_into(Path::new("/"))?;
        Ok(appear)
    }

    /// What is waited for.
    pub fn wanted(&self) -> &W {
        &self.wanted
    }

    /// Whether more were found than are watched, since this was last asked.
    pub fn was_full(&mut self) -> bool {
        std::mem::take(&mut self.is_full)
    }

    /// The cgroups that have processes now and had none when they were last looked at, or were not known.
    pub fn populated(&mut self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for watched in self.watched.values_mut() {
            let Watched::Cgroup(path, had) = watched else { continue };
            // A cgroup that is made for another user gets its owner after it has appeared.
            let has = is_populated(&self.mount, path) && is_of(&at(&self.mount, path), self.owner);
            if has && !*had {
                found.push(path.clone());
            }
            *had = has;
        }
        found
    }

    /// A cgroup is reported again, if it has processes.
    pub fn see_again(&mut self, of: &Path) {
        for watched in self.watched.values_mut() {
            if let Watched::Cgroup(path, had) = watched
                && path == of
            {
                *had = false;
            }
        }
    }

    /// Waits until something has changed, at most for this time.
    ///
    /// # Errors
    /// The kernel's.
    pub fn wait(&mut self, at_most: Option<Duration>) -> io::Result<()> {
        let timeout = at_most.map(|time| Timespec { tv_sec: time.as_secs() as _, tv_nsec: time.subsec_nanos() as _ });
        match poll(&mut [PollFd::new(&self.inotify, PollFlags::IN)], timeout.as_ref()) {
            Ok(0) | Err(Errno::INTR) => return Ok(()),
            Ok(_) => (),
            Err(e) => return Err(e.into()),
        }
        let mut news: Vec<(i32, ReadFlags, Option<PathBuf>)> = Vec::new();
        let mut space = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&self.inotify, &mut space);
        loop {
            match reader.next() {
                Ok(event) => {
                    let name =
                        event.file_name().map(|name| PathBuf::from(std::ffi::OsStr::from_bytes(name.to_bytes())));
                    news.push((event.wd(), event.events(), name));
                }
                Err(Errno::INTR) => continue,
                Err(e) => return Err(e.into()),
            }
            if reader.is_buffer_empty() {
                break;
            }
        }
        for (wd, what, name) in news {
            self.take(wd, what, name);
        }
        Ok(())
    }

    fn take(&mut self, wd: i32, what: ReadFlags, name: Option<PathBuf>) {
        if what.contains(ReadFlags::QUEUE_OVERFLOW) {
            // Some were not told, also of the end of cgroups: all is looked at again.
            let mount = &self.mount;
            self.watched.retain(|_, watched| at(mount, watched.path()).is_dir());
            let _ = self.look_into(Path::new("/"));
        } else if what.contains(ReadFlags::IGNORED) {
            self.watched.remove(&wd);
        } else if let (Some(Watched::Dir(dir)), Some(name)) = (self.watched.get(&wd), name) {
            let (dir, path) = (dir.clone(), dir.join(name));
            // One that is made for another user gets its owner after it has appeared.
            if dir != Path::new("/") && !is_of(&at(&self.mount, &dir), self.owner) {
                return self.forget(&dir);
            }
            match what.intersects(ReadFlags::DELETE | ReadFlags::MOVED_FROM) {
                true => self.forget(&path),
                false => self.meet(&path),
            }
        }
    }

    /// A cgroup that was removed, with those below it: its files keep their watches otherwise.
    fn forget(&mut self, path: &Path) {
        let gone = |(wd, watched): (&i32, &Watched)| watched.path().starts_with(path).then_some(*wd);
        let gone: Vec<i32> = self.watched.iter().filter_map(gone).collect();
        for wd in gone {
            self.watched.remove(&wd);
            let _ = inotify::remove_watch(&self.inotify, wd);
        }
    }

    /// An existing cgroup.
    fn meet(&mut self, path: &Path) {
        let dir = at(&self.mount, path);
        if !is_of(&dir, self.owner) || !dir.is_dir() {
            return;
        }
        if self.wanted.is(path) {
            let mut known = self.watched.values().filter(|watched| matches!(watched, Watched::Cgroup(..)));
            if known.clone().count() >= CGROUPS_MAX && !known.any(|watched| watched.path() == path) {
                self.is_full = true;
            } else if let Ok(wd) = inotify::add_watch(&self.inotify, dir.join("cgroup.events"), WatchFlags::MODIFY) {
                // A watch that exists has the same number.
                self.watched.entry(wd).or_insert_with(|| Watched::Cgroup(path.to_owned(), false));
            }
        }
        if self.wanted.may_be_below(path) {
            // One that has gone meanwhile is not missed.
            let _ = self.look_into(path);
        }
    }

    /// Watched before it is read: what is made in between is seen twice rather than never.
    fn look_into(&mut self, path: &Path) -> io::Result<()> {
        let mut dirs = self.watched.values().filter(|watched| matches!(watched, Watched::Dir(_)));
        if dirs.clone().count() >= DIRS_MAX && !dirs.any(|watched| watched.path() == path) {
            self.is_full = true;
            return Ok(());
        }
        let flags = WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVED_TO
            | WatchFlags::MOVED_FROM
            | WatchFlags::ONLYDIR
            | WatchFlags::DONT_FOLLOW;
        let dir = at(&self.mount, path);
        let wd = inotify::add_watch(&self.inotify, &dir, flags)?;
        self.watched.insert(wd, Watched::Dir(path.to_owned()));
        for child in cgfile::children(&dir)? {
            if let Some(name) = child.file_name() {
                self.meet(&path.join(name));
            }
        }
        Ok(())
    }
}

/// The directory of a cgroup, of which `path` is relative to the mount, with a leading slash.
pub fn at(mount: &Path, path: &Path) -> PathBuf {
    mount.join(path.strip_prefix("/").unwrap_or(path))
}

fn is_of(dir: &Path, owner: u32) -> bool {
    rustix::fs::stat(dir).is_ok_and(|facts| facts.st_uid == owner)
}

fn is_populated(mount: &Path, path: &Path) -> bool {
    let events = cgfile::read(&at(mount, path).join("cgroup.events")).unwrap_or_default();
    cgfile::keyed(&events, "populated") == Some(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Services in slices.
    struct Services;

    impl Wanted for Services {
        fn is(&self, path: &Path) -> bool {
            path.extension().is_some_and(|word| word == "service")
        }

        fn may_be_below(&self, path: &Path) -> bool {
            path.extension().is_some_and(|word| word == "slice")
        }
    }

    /// Plain directories stand for cgroups.
    fn make(mount: &Path, path: &str, populated: bool) {
        fs::create_dir_all(mount.join(path)).unwrap();
        fs::write(mount.join(path).join("cgroup.events"), format!("populated {}\n", u32::from(populated))).unwrap();
    }

    fn found(appear: &mut Appear<Services>) -> Vec<String> {
        appear.wait(None).unwrap();
        appear.populated().iter().map(|path| path.display().to_string()).collect()
    }

    #[test]
    fn those_that_are_there_and_those_that_come_are_told_once_each_time_they_get_processes() {
        let base = tempfile::tempdir().unwrap();
        let mount = base.path();
        let uid = rustix::process::getuid().as_raw();
        make(mount, "a.slice/one.service", true);
        make(mount, "box/two.service", true);
        let mut appear = Appear::new(mount, uid, Services).unwrap();
        assert_eq!(appear.populated(), [PathBuf::from("/a.slice/one.service")], "box is not looked into");
        assert!(appear.populated().is_empty(), "once");
        appear.see_again(Path::new("/a.slice/one.service"));
        appear.wait(Some(Duration::ZERO)).unwrap();
        assert_eq!(appear.populated(), [PathBuf::from("/a.slice/one.service")], "asked for");
        fs::write(mount.join("a.slice/one.service/cgroup.events"), "populated 0\n").unwrap();
        assert!(found(&mut appear).is_empty());
        fs::write(mount.join("a.slice/one.service/cgroup.events"), "populated 1\n").unwrap();
        assert_eq!(found(&mut appear), ["/a.slice/one.service"], "it was started again");
        make(mount, "new.slice/deep.slice/three.service", true);
        let mut all = Vec::new();
        while all.is_empty() {
            all = found(&mut appear);
        }
        assert_eq!(all, ["/new.slice/deep.slice/three.service"]);
        fs::remove_dir_all(mount.join("a.slice")).unwrap();
        while appear.watched.values().any(|watched| watched.path().starts_with("/a.slice")) {
            appear.wait(None).unwrap();
        }
        let mut other = Appear::new(mount, uid + 1, Services).unwrap();
        assert!(other.populated().is_empty(), "they are another user's");
    }

    #[test]
    fn a_flood_is_bounded_and_said() {
        let base = tempfile::tempdir().unwrap();
        (0..CGROUPS_MAX + 5).for_each(|n| make(base.path(), &format!("a.slice/{n}.service"), true));
        let mut appear = Appear::new(base.path(), rustix::process::getuid().as_raw(), Services).unwrap();
        assert_eq!(appear.populated().len(), CGROUPS_MAX);
        assert!(appear.was_full() && !appear.was_full());
    }
}
