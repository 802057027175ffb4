//! What the process shares with its job and its node: the job's page, or the same words in private memory.

use crate::{sys, thread};
use core::ptr::{self, null_mut};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering::Relaxed};
use cosched_core::wait::page::{self, Head, Page, Slot};

/// What is used without a page.
static OWN_HEAD: Head = Head {
    magic: AtomicU32::new(0),
    mode: AtomicU32::new(0),
    spin_us: AtomicU32::new(0),
    rivals: AtomicU32::new(0),
    cpus: AtomicU32::new(0),
    doorbell: AtomicU32::new(0),
    sleepers: AtomicU32::new(0),
};
static OWN_SLOT: Slot = Slot {
    pid: AtomicU32::new(0),
    state: AtomicU32::new(0),
    spin_us: AtomicU32::new(0),
    since_us: AtomicU32::new(0),
    polls: AtomicU64::new(0),
    waits: AtomicU64::new(0),
    spins: AtomicU64::new(0),
    blocks: AtomicU64::new(0),
    yields: AtomicU64::new(0),
    spin_ns: AtomicU64::new(0),
    block_ns: AtomicU64::new(0),
    timeouts: AtomicU64::new(0),
};

/// The job's page; null without one.
static PAGE: AtomicPtr<Page> = AtomicPtr::new(null_mut());
/// The slot of this process in the page; null until it has one.
static SLOT: AtomicPtr<Slot> = AtomicPtr::new(null_mut());
/// Whether a slot was looked for.
static LOOKED: AtomicBool = AtomicBool::new(false);

/// Maps the page that the environment names. Whatever is wrong with it, the process goes on without.
pub(crate) fn open() {
    // SAFETY: the handler only stores to this library's own atomics.
    unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    let Some(path) = sys::variable(c"COSCHED_WAIT_PAGE").filter(|path| !path.is_empty()) else { return };
    let Some(file) = sys::File::open(path, libc::O_RDWR | libc::O_NOCTTY | libc::O_NONBLOCK) else { return };
    if let Some(page) = map(&file) {
        PAGE.store(page, Relaxed);
    }
    file.close();
}

fn map(file: &sys::File) -> Option<*mut Page> {
    // SAFETY: all zeroes is a valid value of this plain structure, and the kernel overwrites it.
    let mut facts: libc::stat = unsafe { core::mem::zeroed() };
    // SAFETY: `facts` is a place for one structure.
    let known = unsafe { libc::fstat(file.fd(), &raw mut facts) } == 0;
    if !known || facts.st_mode & libc::S_IFMT != libc::S_IFREG || facts.st_size as usize != page::SIZE {
        return None;
    }
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping at a place that the kernel chooses.
    let address = unsafe { libc::mmap(null_mut(), page::SIZE, rights, libc::MAP_SHARED, file.fd(), 0) };
    if address == libc::MAP_FAILED {
        return None;
    }
    let page = address.cast::<Page>();
    // SAFETY: the mapping is as long as a page and stays; all of it is atomics, for which every value is valid.
    if unsafe { &*page }.head.magic.load(Relaxed) == page::MAGIC {
        return Some(page);
    }
    // SAFETY: the mapping was made above and nobody has seen it.
    unsafe { libc::munmap(address, page::SIZE) };
    None
}

/// The page, if there is one.
pub(crate) fn page() -> Option<&'static Page> {
    let page = PAGE.load(Relaxed);
    // SAFETY: the mapping stays until the process ends; all of it is atomics.
    (!page.is_null()).then(|| unsafe { &*page })
}

/// What concerns the whole job; without a page, only this process.
pub(crate) fn head() -> &'static Head {
    page().map_or(&OWN_HEAD, |page| &page.head)
}

/// Where this process counts.
pub(crate) fn slot() -> &'static Slot {
    let slot = SLOT.load(Relaxed);
    // SAFETY: it points into the page, which stays, or is null.
    if slot.is_null() { &OWN_SLOT } else { unsafe { &*slot } }
}

/// Takes a slot of the page: only a process that polls does, so that launchers and shells are not counted as waiting.
pub(crate) fn take_slot() {
    if LOOKED.swap(true, Relaxed) {
        return;
    }
    let Some(page) = page() else { return };
    // SAFETY: no arguments, no effect.
    let pid = unsafe { libc::getpid() } as u32;
    // After an exec the process has its slot already.
    let own = page.slots.iter().find(|slot| slot.pid.load(Relaxed) == pid);
    let free = || page.slots.iter().find(|slot| slot.pid.compare_exchange(0, pid, Relaxed, Relaxed).is_ok());
    if let Some(slot) = own.or_else(free) {
        SLOT.store(ptr::from_ref(slot).cast_mut(), Relaxed);
    }
}

/// The processes of the job that poll and live, by their slots.
pub(crate) fn live_slots(page: &Page) -> u32 {
    let saved = sys::errno();
    let lives = |slot: &&Slot| {
        let pid = slot.pid.load(Relaxed) as i32;
        // SAFETY: signal 0 only asks whether the process is there.
        pid > 0 && (unsafe { libc::kill(pid, 0) } == 0 || sys::errno() != libc::ESRCH)
    };
    let count = page.slots.iter().filter(lives).count();
    sys::set_errno(saved);
    count as u32
}

/// A forked child is another process: it has counted nothing, and its slot is its parent's.
extern "C" fn in_child() {
    SLOT.store(null_mut(), Relaxed);
    LOOKED.store(false, Relaxed);
    for counter in counters(&OWN_SLOT) {
        counter.store(0, Relaxed);
    }
    OWN_HEAD.sleepers.store(0, Relaxed);
    thread::forget();
}

/// The counters of a slot, in their order there.
pub(crate) fn counters(slot: &Slot) -> [&AtomicU64; 8] {
    [&slot.polls, &slot.waits, &slot.spins, &slot.blocks, &slot.yields, &slot.spin_ns, &slot.block_ns, &slot.timeouts]
}
