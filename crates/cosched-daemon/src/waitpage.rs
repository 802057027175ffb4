//! The wait page of a job, from the daemon's side: a file that its processes map and the daemon reads and writes.
//!
//! It belongs to the job's user, who can do with it what he likes. So it is never mapped here: a file that was cut short
//! would kill the daemon. What cannot be read counts as nothing.

use cosched_core::wait::page::{self, Head, Page, Slot};
use cosched_linux::waits::PageLayout;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::mem::offset_of;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// With more slots than this taken by processes that have ended, these are given free.
const SLOTS_CROWDED: usize = page::SLOTS / 2;

/// What the daemon tells a job's processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Orders {
    /// [`page::BUSY`], [`page::SPIN_BLOCK`] or [`page::SPIN_YIELD`].
    pub(crate) mode: u32,
    /// In µs, or [`page::ADAPTIVE`].
    pub(crate) spin_us: u32,
    /// Jobs that compete for its CPUs.
    pub(crate) rivals: u32,
    /// CPUs of the node.
    pub(crate) cpus: u32,
}

/// What the processes have counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Processes that live.
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
    file: File,
    path: PathBuf,
    ordered: Option<Orders>,
    /// What processes had counted whose slots were given free.
    past: Counts,
}

impl WaitPage {
    /// Makes the page of job `id` in `dir`, for `uid`.
    pub(crate) fn create(dir: &Path, id: u64, uid: u32, orders: Orders) -> io::Result<WaitPage> {
        let mode = if rustix::process::geteuid().is_root() { 0o755 } else { 0o700 };
        std::fs::DirBuilder::new().recursive(true).mode(mode).create(dir)?;
        let path = path_of(dir, id);
        // A page of this number can only be left from a daemon whose state was lost.
        let _ = std::fs::remove_file(&path);
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
        let mut page = WaitPage { file, path, ordered: None, past: Counts::default() };
        page.prepare(uid, orders).inspect_err(|_| page.remove())?;
        Ok(page)
    }

    fn prepare(&mut self, uid: u32, orders: Orders) -> io::Result<()> {
        self.file.set_len(page::SIZE as u64)?;
        self.order(orders);
        self.file.write_all_at(&page::MAGIC.to_ne_bytes(), offset_of!(Head, magic) as u64)?;
        if rustix::process::geteuid().as_raw() != uid {
            std::os::unix::fs::fchown(&self.file, Some(uid), None)?;
        }
        Ok(())
    }

    /// Opens the page that an earlier daemon made for job `id` of `uid`.
    pub(crate) fn open(dir: &Path, id: u64, uid: u32) -> io::Result<WaitPage> {
        let path = path_of(dir, id);
        let file = OpenOptions::new().read(true).write(true).custom_flags(NOFOLLOW).open(&path)?;
        let facts = file.metadata()?;
        if !facts.is_file() || facts.uid() != uid || facts.permissions().mode() & 0o777 != 0o600 {
            return Err(io::Error::other("it is not the file that was made for the job"));
        }
        Ok(WaitPage { file, path, ordered: None, past: Counts::default() })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Tells the processes, unless they have been told just that.
    pub(crate) fn order(&mut self, orders: Orders) {
        if self.ordered == Some(orders) {
            return;
        }
        let words = [
            (offset_of!(Head, spin_us), orders.spin_us),
            (offset_of!(Head, rivals), orders.rivals),
            (offset_of!(Head, cpus), orders.cpus),
            (offset_of!(Head, mode), orders.mode),
        ];
        let done = words.iter().try_for_each(|(at, word)| self.file.write_all_at(&word.to_ne_bytes(), *at as u64));
        self.ordered = done.is_ok().then_some(orders);
    }

    /// Another descriptor of the page, for the thread that boosts.
    pub(crate) fn reader(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// What is in force.
    pub(crate) fn ordered(&self) -> Option<Orders> {
        self.ordered
    }

    /// What its processes have counted so far.
    pub(crate) fn read(&self) -> Counts {
        self.scan().0
    }

    /// The same, and gives the slots of processes that have ended free, when many are taken.
    pub(crate) fn recycle(&mut self) -> Counts {
        let (counts, dead) = self.scan();
        if dead.len() > SLOTS_CROWDED {
            self.free(&dead);
        }
        counts
    }

    /// The counts, and those of the dead by the places of their slots.
    fn scan(&self) -> (Counts, BTreeMap<usize, Counts>) {
        let mut bytes = vec![0; page::SIZE];
        let mut counts = Counts { spin_us: None, ..self.past };
        let mut dead = BTreeMap::new();
        if self.file.read_exact_at(&mut bytes, 0).is_err() {
            return (counts, dead);
        }
        for number in 0..page::SLOTS {
            let at = offset_of!(Page, slots) + number * size_of::<Slot>();
            let slot = &bytes[at..at + size_of::<Slot>()];
            let pid = word(slot, offset_of!(Slot, pid));
            let own = counted(slot);
            if pid == 0 {
                continue;
            }
            counts.add(&own);
            if is_alive(pid) {
                counts.processes += 1;
                let spin_us = word(slot, offset_of!(Slot, spin_us));
                let (low, high) = counts.spin_us.unwrap_or((spin_us, spin_us));
                counts.spin_us = Some((low.min(spin_us), high.max(spin_us)));
            } else {
                dead.insert(at, own);
            }
        }
        (counts, dead)
    }

    fn free(&mut self, dead: &BTreeMap<usize, Counts>) {
        for (at, own) in dead {
            // The process number last: with it the slot can be taken.
            let pid_at = *at + offset_of!(Slot, pid);
            let rest = vec![0; size_of::<Slot>() - size_of::<u32>()];
            let emptied = self.file.write_all_at(&rest, (pid_at + size_of::<u32>()) as u64);
            if emptied.and_then(|()| self.file.write_all_at(&[0; 4], pid_at as u64)).is_ok() {
                self.past.add(own);
            }
        }
    }

    /// Takes the file away; who has it mapped keeps it.
    pub(crate) fn remove(&self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Where in a page the slot thread finds what it needs.
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

const NOFOLLOW: i32 = rustix::fs::OFlags::NOFOLLOW.bits() as i32;

/// The page of a job.
fn path_of(dir: &Path, id: u64) -> PathBuf {
    dir.join(format!("job-{id}"))
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

/// Sums of what a user wrote must not overflow: nobody waits 2^48 ns or counts so far.
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

    fn page(dir: &Path) -> WaitPage {
        WaitPage::create(dir, 7, rustix::process::geteuid().as_raw(), orders()).unwrap()
    }

    fn put(page: &WaitPage, number: usize, at: usize, bytes: &[u8]) {
        let at = offset_of!(Page, slots) + number * size_of::<Slot>() + at;
        page.file.write_all_at(bytes, at as u64).unwrap();
    }

    #[test]
    fn a_new_page_has_its_magic_and_orders() {
        let dir = tempfile::tempdir().unwrap();
        let page = page(dir.path());
        let bytes = std::fs::read(page.path()).unwrap();
        assert_eq!(bytes.len(), page::SIZE);
        let at = [offset_of!(Head, magic), offset_of!(Head, mode), offset_of!(Head, spin_us), offset_of!(Head, rivals)];
        assert_eq!(at.map(|at| word(&bytes, at)), [page::MAGIC, page::SPIN_BLOCK, 50, 3]);
    }

    #[test]
    fn the_living_are_counted_and_the_dead_remembered() {
        let dir = tempfile::tempdir().unwrap();
        let mut page = page(dir.path());
        put(&page, 0, offset_of!(Slot, pid), &std::process::id().to_ne_bytes());
        put(&page, 0, offset_of!(Slot, spin_us), &40_u32.to_ne_bytes());
        put(&page, 0, offset_of!(Slot, waits), &5_u64.to_ne_bytes());
        for number in 1..page::SLOTS {
            // Above the largest process number that Linux gives.
            put(&page, number, offset_of!(Slot, pid), &(1_u32 << 30).to_ne_bytes());
            put(&page, number, offset_of!(Slot, waits), &2_u64.to_ne_bytes());
        }
        let expected = 5 + 2 * (page::SLOTS as u64 - 1);
        for round in 0..2 {
            let counts = page.read();
            assert_eq!((counts.processes, counts.waits, counts.spin_us), (1, expected, Some((40, 40))), "{round}");
            page.recycle();
        }
        let bytes = std::fs::read(page.path()).unwrap();
        assert_eq!(word(&bytes, offset_of!(Page, slots) + size_of::<Slot>()), 0, "a dead process's slot is free again");
    }

    #[test]
    fn a_page_that_its_user_cut_or_filled_with_rubbish_harms_nobody() {
        let dir = tempfile::tempdir().unwrap();
        let page = page(dir.path());
        std::fs::write(page.path(), vec![0xff; page::SIZE]).unwrap();
        page.read();
        std::fs::write(page.path(), "short").unwrap();
        assert_eq!(page.read().processes, 0);
    }

    #[test]
    fn only_the_file_that_was_made_is_opened_again() {
        let dir = tempfile::tempdir().unwrap();
        let uid = rustix::process::geteuid().as_raw();
        page(dir.path());
        assert!(WaitPage::open(dir.path(), 7, uid).is_ok());
        assert!(WaitPage::open(dir.path(), 7, uid + 1).is_err());
        std::fs::rename(path_of(dir.path(), 7), path_of(dir.path(), 8)).unwrap();
        std::os::unix::fs::symlink(path_of(dir.path(), 8), path_of(dir.path(), 7)).unwrap();
        assert!(WaitPage::open(dir.path(), 7, uid).is_err(), "not through a link");
    }
}
