//! The wait page of a job, from the daemon's side: a file that its processes map and write, and the daemon reads, and beside it the orders, which
//! only the daemon writes.
//!
//! The page belongs to the job's user, who has full control of it. So it is never mapped here: truncating the file would kill the daemon. It is
//! opened without blocking: a page with a lease on it counts as lost. It is never written or unlinked: its user can hold the inode's lock for any
//! time. And it has a file system of its own that has room for nothing else (linux `pagefs.rs`). Unreadable content counts as nothing.

use crate::journal::unless_gone;
use cosched_core::wait::page::{self, Head, Page, Slot};
use cosched_linux::pagefs;
use cosched_linux::waits::PageLayout;
use rustix::fs::{FallocateFlags, OFlags, fallocate};
use rustix::io::Errno;
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::mem::offset_of;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The orders to a job's processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Orders {
    /// [`page::BUSY`], [`page::SPIN_BLOCK`] or [`page::SPIN_YIELD`].
    pub(crate) mode: u32,
    /// The spin time in µs, or [`page::ADAPTIVE`].
    pub(crate) spin_us: u32,
    /// The number of jobs that compete for its CPUs.
    pub(crate) rivals: u32,
    /// The number of the node's CPUs.
    pub(crate) cpus: u32,
}

/// The counters of the processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// The number of live processes.
    pub(crate) processes: u32,
    pub(crate) polls: u64,
    pub(crate) waits: u64,
    pub(crate) spins: u64,
    pub(crate) blocks: u64,
    pub(crate) yields: u64,
    pub(crate) spin_ns: u64,
    pub(crate) block_ns: u64,
    pub(crate) timeouts: u64,
    /// The shortest and the longest spin time in force.
    pub(crate) spin_us: Option<(u32, u32)>,
}

impl Counts {
    fn add(&mut self, other: &Counts) {
        self.polls += other.polls;
        self.waits += other.waits;
        self.spins += other.spins;
        self.blocks += other.blocks;
        self.yields += other.yields;
        self.spin_ns += other.spin_ns;
        self.block_ns += other.block_ns;
        self.timeouts += other.timeouts;
    }
}

/// The open page of a job.
#[derive(Debug)]
pub(crate) struct WaitPage {
    page: File,
    orders: File,
    /// The path of the page.
    pub(crate) path: PathBuf,
    /// The orders in force.
    pub(crate) ordered: Option<Orders>,
}

impl WaitPage {
    /// Makes the page of job `id` in `dir`, for `uid`.
    pub(crate) fn create(dir: &Path, id: u64, uid: u32, orders: Orders) -> io::Result<WaitPage> {
        let mode = if is_root() { 0o755 } else { 0o700 };
        let home = home(dir, id);
        // A page of this number can only be left over from a daemon whose state was lost.
        discard(&home);
        DirBuilder::new().recursive(true).mode(mode).create(&home)?;
        WaitPage::make(&home, uid, orders).inspect_err(|_| discard(&home))
    }

    fn make(home: &Path, uid: u32, orders: Orders) -> io::Result<WaitPage> {
        if is_root() {
            match pagefs::attach(home, &[page::SIZE, size_of::<Head>()]) {
                // In a container. A page of root's own needs no protection.
                Err(e) if uid == 0 && e.kind() == io::ErrorKind::PermissionDenied => (),
                attached => attached?,
            }
        }
        let path = home.join(PAGE);
        let new = |path: &Path, size: usize| {
            let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)?;
            // Reserves all of its room at once, where the file system supports that.
            match fallocate(&file, FallocateFlags::empty(), 0, size as u64) {
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => file.set_len(size as u64)?,
                taken => taken?,
            }
            file.write_all_at(&page::MAGIC.to_ne_bytes(), offset_of!(Head, magic) as u64)?;
            io::Result::Ok(file)
        };
        let file = new(&path, page::SIZE)?;
        let mut page =
            WaitPage { page: file, orders: new(&orders_path(&path), size_of::<Head>())?, path, ordered: None };
        page.orders.set_permissions(Permissions::from_mode(0o644))?;
        page.order(orders);
        if rustix::process::geteuid().as_raw() != uid {
            std::os::unix::fs::fchown(&page.page, Some(uid), None)?;
        }
        Ok(page)
    }

    /// Opens the page that an earlier daemon made for job `id` of `uid`.
    pub(crate) fn open(dir: &Path, id: u64, uid: u32) -> io::Result<WaitPage> {
        let path = home(dir, id).join(PAGE);
        let open = |path: &Path, write: bool, owner: u32, mode: u32| {
            let file = OpenOptions::new().read(true).write(write).custom_flags(OPEN_FLAGS).open(path)?;
            let facts = file.metadata()?;
            if !facts.is_file() || facts.uid() != owner || facts.permissions().mode() & 0o777 != mode {
                return Err(io::Error::other("it is not the file that was made for the job"));
            }
            Ok(file)
        };
        let page = open(&path, false, uid, 0o600)?;
        let orders = open(&orders_path(&path), true, rustix::process::geteuid().as_raw(), 0o644)?;
        Ok(WaitPage { page, orders, path, ordered: None })
    }

    /// Writes the orders, unless they are unchanged.
    pub(crate) fn order(&mut self, orders: Orders) {
        if self.ordered == Some(orders) {
            return;
        }
        let mut words = [
            (offset_of!(Head, spin_us), orders.spin_us),
            (offset_of!(Head, rivals), orders.rivals),
            (offset_of!(Head, cpus), orders.cpus),
            (offset_of!(Head, mode), orders.mode),
        ]
        .into_iter();
        let done = words.try_for_each(|(at, word)| self.orders.write_all_at(&word.to_ne_bytes(), at as u64));
        self.ordered = done.is_ok().then_some(orders);
    }

    /// Another descriptor of the page, for the slot thread, which boosts.
    pub(crate) fn reader(&self) -> io::Result<File> {
        self.page.try_clone()
    }

    /// The sums of its processes' counters so far.
    pub(crate) fn read(&self) -> Counts {
        let mut bytes = vec![0; page::SIZE];
        if self.page.read_exact_at(&mut bytes, 0).is_err() {
            return Counts::default();
        }
        sum(&bytes, is_alive)
    }

    /// Removes the files; processes that have mapped them keep the mapping.
    pub(crate) fn remove(&self) {
        self.path.parent().into_iter().for_each(discard);
    }
}

/// Removes the pages of jobs that are not kept, such as those that ended while no daemon ran. That takes a millisecond each, but nothing has to wait
/// for it: job numbers up to `last_id` are never used again.
pub(crate) fn sweep(dir: &Path, last_id: u64, is_kept: impl Fn(u64) -> bool) {
    let number = |path: &Path| path.file_name()?.to_str()?.strip_prefix("job-")?.parse().ok();
    let mut left: Vec<PathBuf> = Vec::new();
    for path in std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path()) {
        match number(&path) {
            Some(id) if is_kept(id) => (),
            Some(id) if id <= last_id => left.push(path),
            Some(_) => discard(&path),
            None => (),
        }
    }
    let remove = move || left.iter().for_each(|path| discard(path));
    if let Err(e) = std::thread::Builder::new().name("cosched-sweep".to_owned()).spawn(remove) {
        tracing::warn!("old wait pages could not be removed, and stay until the next start: {e}");
    }
}

/// Removes the directory of a page, if it is one.
fn discard(home: &Path) {
    let gone = match is_root().then(|| pagefs::detach(home)) {
        // Without the right to unmount there was none to mount.
        Some(Err(e)) if e.kind() == io::ErrorKind::PermissionDenied => remove_plain(home),
        Some(gone) => gone,
        None => remove_plain(home),
    };
    if let Err(e) = gone {
        tracing::warn!("{} is left: {e}", home.display());
    }
}

/// A user's own daemon has no file systems of its own, and needs no protection from other users.
fn remove_plain(home: &Path) -> io::Result<()> {
    unless_gone(std::fs::remove_dir_all(home))
}

/// Counts a fuzzer's bytes as a page, with processes of odd numbers alive.
pub(crate) fn count(bytes: &[u8]) -> Counts {
    let mut whole = bytes.to_vec();
    whole.resize(page::SIZE, 0xff);
    sum(&whole, |pid| pid % 2 == 1)
}

/// The sums of a whole page.
fn sum(bytes: &[u8], is_alive: impl Fn(u32) -> bool) -> Counts {
    let mut counts = Counts::default();
    for number in 0..page::SLOTS {
        let at = offset_of!(Page, slots) + number * size_of::<Slot>();
        let slot = &bytes[at..at + size_of::<Slot>()];
        let pid = word(slot, offset_of!(Slot, pid));
        if pid == 0 {
            continue;
        }
        counts.add(&counted(slot));
        if is_alive(pid) {
            counts.processes += 1;
            let spin_us = word(slot, offset_of!(Slot, spin_us));
            let (low, high) = counts.spin_us.unwrap_or((spin_us, spin_us));
            counts.spin_us = Some((low.min(spin_us), high.max(spin_us)));
        }
    }
    counts
}

/// The offsets in a page that the slot thread needs.
pub(crate) fn layout() -> PageLayout {
    PageLayout {
        slots_at: offset_of!(Page, slots),
        slot_size: size_of::<Slot>(),
        slots: page::SLOTS,
        pid_at: offset_of!(Slot, pid),
        state_at: offset_of!(Slot, state),
        spinning: page::SPINNING,
        sleeping: page::BLOCKED,
    }
}

/// Do not follow a link, and do not wait for the holder of a lease.
const OPEN_FLAGS: i32 = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).bits() as i32;

/// The page's name in its directory.
const PAGE: &str = "page";

/// The directory of a job's page.
fn home(dir: &Path, id: u64) -> PathBuf {
    dir.join(format!("job-{id}"))
}

fn orders_path(page: &Path) -> PathBuf {
    page.with_file_name(format!("{PAGE}{}", page::ORDERS_SUFFIX))
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn counted(slot: &[u8]) -> Counts {
    Counts {
        processes: 0,
        polls: long(slot, offset_of!(Slot, polls)),
        waits: long(slot, offset_of!(Slot, waits)),
        spins: long(slot, offset_of!(Slot, spins)),
        blocks: long(slot, offset_of!(Slot, blocks)),
        yields: long(slot, offset_of!(Slot, yields)),
        spin_ns: long(slot, offset_of!(Slot, spin_ns)),
        block_ns: long(slot, offset_of!(Slot, block_ns)),
        timeouts: long(slot, offset_of!(Slot, timeouts)),
        spin_us: None,
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4].try_into().map_or(0, u32::from_ne_bytes)
}

/// Clamped, so that sums of numbers that a user wrote do not overflow; real values are far below.
fn long(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + 8].try_into().map_or(0, u64::from_ne_bytes).min(1 << 55)
}

fn is_alive(pid: u32) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn orders() -> Orders {
        Orders { mode: page::SPIN_BLOCK, spin_us: 50, rivals: 3, cpus: 2 }
    }

    /// Removed together with its file system.
    struct Dir(tempfile::TempDir);

    impl Drop for Dir {
        fn drop(&mut self) {
            // Not by `sweep`, whose thread may not have ended when the directory goes.
            std::fs::read_dir(self.0.path()).unwrap().flatten().for_each(|entry| discard(&entry.path()));
        }
    }

    fn dir() -> Option<Dir> {
        let dir = Dir(tempfile::tempdir().unwrap());
        let probe = dir.0.path().join("job-0");
        std::fs::create_dir(&probe).unwrap();
        if is_root() && pagefs::attach(&probe, &[1]).is_err() {
            println!("SKIPPED: a file system cannot be mounted here");
            return None;
        }
        Some(dir)
    }

    fn page(dir: &Dir) -> WaitPage {
        WaitPage::create(dir.0.path(), 7, rustix::process::geteuid().as_raw(), orders()).unwrap()
    }

    fn put(page: &WaitPage, number: usize, at: usize, bytes: &[u8]) {
        let file = OpenOptions::new().write(true).open(&page.path).unwrap();
        let at = offset_of!(Page, slots) + number * size_of::<Slot>() + at;
        file.write_all_at(bytes, at as u64).unwrap();
    }

    #[test]
    fn a_new_page_has_its_magic_and_orders() {
        let Some(dir) = dir() else { return };
        let page = page(&dir);
        let bytes = std::fs::read(&page.path).unwrap();
        assert_eq!((bytes.len(), word(&bytes, offset_of!(Head, magic))), (page::SIZE, page::MAGIC));
        let bytes = std::fs::read(orders_path(&page.path)).unwrap();
        assert_eq!(bytes.len(), size_of::<Head>());
        let at = [offset_of!(Head, magic), offset_of!(Head, mode), offset_of!(Head, spin_us), offset_of!(Head, rivals)];
        assert_eq!(at.map(|at| word(&bytes, at)), [page::MAGIC, page::SPIN_BLOCK, 50, 3]);
    }

    #[test]
    fn the_living_are_counted_and_the_dead_remembered() {
        let Some(dir) = dir() else { return };
        let page = page(&dir);
        put(&page, 0, offset_of!(Slot, pid), &std::process::id().to_ne_bytes());
        put(&page, 0, offset_of!(Slot, spin_us), &40_u32.to_ne_bytes());
        put(&page, 0, offset_of!(Slot, waits), &5_u64.to_ne_bytes());
        for number in 1..page::SLOTS {
            // Above the largest process number that Linux gives.
            put(&page, number, offset_of!(Slot, pid), &(1_u32 << 30).to_ne_bytes());
            put(&page, number, offset_of!(Slot, waits), &2_u64.to_ne_bytes());
        }
        let counts = page.read();
        let expected = 5 + 2 * (page::SLOTS as u64 - 1);
        assert_eq!((counts.processes, counts.waits, counts.spin_us), (1, expected, Some((40, 40))));
    }

    #[test]
    fn a_page_that_its_user_cut_or_filled_with_rubbish_harms_nobody() {
        let Some(dir) = dir() else { return };
        let page = page(&dir);
        std::fs::write(&page.path, vec![0xff; page::SIZE]).unwrap();
        page.read();
        std::fs::write(&page.path, "short").unwrap();
        assert_eq!(page.read().processes, 0);
    }

    #[test]
    fn a_page_cannot_be_made_longer() {
        let Some(dir) = dir() else { return };
        if !is_root() {
            println!("SKIPPED: only root's pages have file systems of their own");
            return;
        }
        let page = page(&dir);
        let file = OpenOptions::new().write(true).open(&page.path).unwrap();
        let full = file.write_all_at(&[1], page::SIZE as u64).unwrap_err();
        assert_eq!(full.kind(), io::ErrorKind::StorageFull);
        let second = page.path.with_file_name("second");
        assert!(std::fs::write(second, [1]).is_err(), "nor can there be another file of any length");
    }

    #[test]
    fn only_the_file_that_was_made_is_opened_again_and_others_are_swept() {
        let Some(dir) = dir() else { return };
        let uid = rustix::process::geteuid().as_raw();
        let path = page(&dir).path;
        assert!(WaitPage::open(dir.0.path(), 7, uid).is_ok());
        assert!(WaitPage::open(dir.0.path(), 7, uid + 1).is_err());
        sweep(dir.0.path(), 0, |id| id == 7);
        assert!(WaitPage::open(dir.0.path(), 7, uid).is_ok(), "it is kept");
        std::fs::rename(&path, path.with_extension("away")).unwrap();
        std::os::unix::fs::symlink(path.with_extension("away"), &path).unwrap();
        assert!(WaitPage::open(dir.0.path(), 7, uid).is_err(), "not through a link");
        let is_left = |id: u32| dir.0.path().join(format!("job-{id}")).exists();
        sweep(dir.0.path(), 0, |_| false);
        assert!(!is_left(7));
        WaitPage::create(dir.0.path(), 8, uid, orders()).unwrap();
        sweep(dir.0.path(), 8, |_| false);
        for _ in 0..1000 {
            if !is_left(8) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        panic!("what has a number that was given is swept as well, a moment later");
    }
}
