//! The data that the process shares with its job and its node: the job's page, or the same words in private memory.

use crate::text::Text;
use crate::{local, sys, thread};
use core::ffi::CStr;
use core::fmt::Write;
use core::ptr::{self, null_mut};
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64};
use cosched_core::wait::page::{self, Head, NO_CROWD, Page, Slot};

/// Used without a page.
static OWN_HEAD: Head = Head {
    magic: AtomicU32::new(0),
    mode: AtomicU32::new(0),
    spin_us: AtomicU32::new(0),
    rivals: AtomicU32::new(0),
    cpus: AtomicU32::new(NO_CROWD),
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

/// The page's path, until the page is opened: most programs never poll, and need none.
static PATH: AtomicPtr<libc::c_char> = AtomicPtr::new(null_mut());
/// The job's page; null without one.
static PAGE: AtomicPtr<Page> = AtomicPtr::new(null_mut());
/// The daemon's orders; null without a page.
static ORDERS: AtomicPtr<Head> = AtomicPtr::new(null_mut());
/// The slot of this process in the page; null until it has one.
static SLOT: AtomicPtr<Slot> = AtomicPtr::new(null_mut());
/// Whether a slot has been requested.
static LOOKED: AtomicBool = AtomicBool::new(false);

/// Reads the page's path from the environment.
pub(crate) fn learn() {
    // SAFETY: the handler only stores to this library's own atomics.
    unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    if let Some(path) = sys::variable(c"COSCHED_WAIT_PAGE").filter(|path| !path.is_empty()) {
        PATH.store(path.as_ptr().cast_mut(), Relaxed);
    }
}

/// Maps the page. If that fails, the process continues without it; so do other threads until it is mapped.
#[cold]
fn open(path: &CStr) {
    let saved = sys::errno();
    if let Some(file) = sys::File::open(path, libc::O_RDWR | libc::O_NOCTTY | libc::O_NONBLOCK) {
        let writable = libc::PROT_READ | libc::PROT_WRITE;
        if let Some(page) = map(&file, page::SIZE, writable).map(|head| head.cast::<Page>()) {
            // SAFETY: `map` made it as long as a page, and it stays; all of it is atomics.
            let own_head = ptr::from_ref(unsafe { &(*page).head }).cast_mut();
            ORDERS.store(orders_of(path).unwrap_or(own_head), Relaxed);
            PAGE.store(page, Release);
        }
        file.close();
    }
    sys::set_errno(saved);
}

/// The daemon's orders, in a file beside this page.
fn orders_of(page: &CStr) -> Option<*mut Head> {
    let mut name = Text::<512>::new();
    write!(name, "{}{}\0", page.to_str().ok()?, page::ORDERS_SUFFIX).ok()?;
    let file = sys::File::open(CStr::from_bytes_with_nul(name.bytes()).ok()?, libc::O_RDONLY | libc::O_NONBLOCK)?;
    let head = map(&file, size_of::<Head>(), libc::PROT_READ);
    file.close();
    head
}

/// Maps a file of exactly this size that begins with the magic word.
fn map(file: &sys::File, size: usize, rights: libc::c_int) -> Option<*mut Head> {
    // SAFETY: all zeroes is a valid value of this plain structure, and the kernel overwrites it.
    let mut facts: libc::stat = unsafe { core::mem::zeroed() };
    // SAFETY: `facts` is a place for one structure.
    let known = unsafe { libc::fstat(file.fd(), &raw mut facts) } == 0;
    if !known || facts.st_mode & libc::S_IFMT != libc::S_IFREG || facts.st_size as usize != size {
        return None;
    }
    // SAFETY: a new mapping at a place that the kernel chooses.
    let address = unsafe { libc::mmap(null_mut(), size, rights, libc::MAP_SHARED, file.fd(), 0) };
    if address == libc::MAP_FAILED {
        return None;
    }
    let head = address.cast::<Head>();
    // SAFETY: the mapping has at least a head, and stays; all of it is atomics, for which every value is valid.
    if unsafe { &*head }.magic.load(Relaxed) == page::MAGIC {
        return Some(head);
    }
    // SAFETY: the mapping was made above and no reference to it exists.
    unsafe { libc::munmap(address, size) };
    None
}

/// The page, if there is one.
pub(crate) fn page() -> Option<&'static Page> {
    let mut page = PAGE.load(Acquire);
    if page.is_null() && !PATH.load(Relaxed).is_null() {
        let path = PATH.swap(null_mut(), Relaxed);
        if !path.is_null() {
            // SAFETY: set once, from the environment of the start, which programs replace but do not write into.
            open(unsafe { CStr::from_ptr(path) });
            page = PAGE.load(Acquire);
        }
    }
    // SAFETY: the mapping stays until the process ends; all of it is atomics.
    (!page.is_null()).then(|| unsafe { &*page })
}

/// The page, and the daemon's orders.
pub(crate) fn page_and_orders() -> Option<(&'static Page, &'static Head)> {
    // SAFETY: as for the page, which exists only together with this; this process never writes it.
    page().map(|page| (page, unsafe { &*ORDERS.load(Relaxed) }))
}

/// The words that concern the whole job; without a page, only this process.
pub(crate) fn head() -> &'static Head {
    page().map_or(&OWN_HEAD, |page| &page.head)
}

/// The slot with this process's counters.
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
    let take = |from: u32| move |slot: &&Slot| slot.pid.compare_exchange(from, pid, Relaxed, Relaxed).is_ok();
    let free = || page.slots.iter().find(take(0));
    // The daemon frees no slots: it only reads the page.
    let left = || page.slots.iter().filter(|slot| !lives(slot)).find(|slot| take(slot.pid.load(Relaxed))(slot));
    if let Some(slot) = own.or_else(free).or_else(left) {
        SLOT.store(ptr::from_ref(slot).cast_mut(), Relaxed);
    }
}

/// The number of the job's live processes that poll, by their slots.
pub(crate) fn live_slots(page: &Page) -> u32 {
    page.slots.iter().filter(|slot| slot.pid.load(Relaxed) != 0 && lives(slot)).count() as u32
}

/// Whether the process of a slot lives, as far as this process can see.
fn lives(slot: &Slot) -> bool {
    let pid = slot.pid.load(Relaxed) as i32;
    let saved = sys::errno();
    // SAFETY: signal 0 only tests whether the process exists.
    let lives = pid > 0 && (unsafe { libc::kill(pid, 0) } == 0 || sys::errno() != libc::ESRCH);
    sys::set_errno(saved);
    lives
}

/// Whether this process polls, and so has looked for a slot.
pub(crate) fn polls() -> bool {
    LOOKED.load(Relaxed)
}

/// A forked child is a different process: its counters are zero, and its slot is its parent's.
extern "C" fn in_child() {
    if !polls() {
        return local::passed().set(0);
    }
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
