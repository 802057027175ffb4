//! The progress engines of MPI libraries: the functions that they call repeatedly while they wait, also where messages go through shared memory and
//! no system call is made.
//!
//! UCX (MPICH, and Open MPI's pml ucx) reports whether it found something. Open MPI's `opal_progress` does not, but calls sched_yield when it found
//! nothing, if a variable of its library says so. While there is a crowd that variable is set, and afterwards restored to Open MPI's own value: the
//! one found there, or the one that Open MPI has set since.

use crate::later::Later;
use crate::sys;
use crate::thread::{self, Verdict};
use core::ffi::{c_uint, c_void};
use core::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed, Ordering::SeqCst};

static OPAL_PROGRESS: Later = Later::named(c"opal_progress");
static OPAL_YIELD: Later = Later::named(c"opal_progress_yield_when_idle");
static OPAL_SET_YIELD: Later = Later::named(c"opal_progress_set_yield_when_idle");
static UCP_PROGRESS: Later = Later::named(c"ucp_worker_progress");

/// Open MPI is in use: its loop has been called.
static IS_OPAL: AtomicBool = AtomicBool::new(false);
static YIELDS: Yields = Yields { wanted: AtomicU8::new(UNKNOWN), on: AtomicBool::new(false) };

/// Open MPI's progress loop.
///
/// # Safety
/// As Open MPI's.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn opal_progress() -> usize {
    // Newer versions return a number, older ones nothing; a word does for both.
    type Function = unsafe extern "C-unwind" fn() -> usize;
    let next = OPAL_PROGRESS.get();
    if let Some(thread) = thread::enter() {
        // In a crowd: sched_yield handles the rest.
        IS_OPAL.store(true, Relaxed);
        thread.leave();
    } else if !IS_OPAL.load(Relaxed) {
        IS_OPAL.store(true, Relaxed);
    }
    if next.is_null() {
        return 0;
    }
    // SAFETY: Open MPI's function of this name has this type.
    let next = unsafe { core::mem::transmute::<*mut c_void, Function>(next) };
    // SAFETY: the caller keeps its contract.
    unsafe { next() }
}

/// Open MPI's setting whether it yields, from MPI_Init: it is recorded as its own, whatever is in force meanwhile.
///
/// # Safety
/// As Open MPI's.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn opal_progress_set_yield_when_idle(yields: bool) -> bool {
    type Function = unsafe extern "C-unwind" fn(bool) -> bool;
    let next = OPAL_SET_YIELD.get();
    if next.is_null() {
        return false;
    }
    // SAFETY: Open MPI's function of this name has this type.
    let next = unsafe { core::mem::transmute::<*mut c_void, Function>(next) };
    // SAFETY: the caller keeps its contract.
    let before = unsafe { next(yields) };
    let known = YIELDS.wanted.swap(u8::from(yields), SeqCst);
    if YIELDS.on.load(SeqCst) {
        YIELDS.put(opal_yield());
    }
    if known == UNKNOWN { before } else { known == 1 }
}

/// Makes Open MPI yield when it finds nothing, or restores its own setting. A variable that was never changed is not written.
pub(crate) fn prefer_yields(on: bool) {
    if IS_OPAL.load(Relaxed) {
        YIELDS.prefer(on, opal_yield());
    }
}

/// Whether Open MPI yields by itself (its launcher sets that, with more ranks than CPUs): among ranks of one job that is as good, and costs less than
/// this library's way.
pub(crate) fn yields_by_itself() -> bool {
    IS_OPAL.load(Relaxed) && YIELDS.wants(opal_yield())
}

/// Whether Open MPI yields only because it was set here.
pub(crate) fn yields_as_told() -> bool {
    YIELDS.on.load(Relaxed) && YIELDS.wanted.load(Relaxed) == 0
}

fn opal_yield() -> Option<&'static AtomicU8> {
    // SAFETY: Open MPI's variable of this name is a bool, one byte, or it is null. Its library stays while its loop runs.
    unsafe { OPAL_YIELD.get().cast::<AtomicU8>().as_ref() }
}

/// Whether Open MPI yields.
struct Yields {
    /// Its own setting: 0, 1, or [`UNKNOWN`] while it has not set it and nothing was changed.
    wanted: AtomicU8,
    /// There is a crowd.
    on: AtomicBool,
}

const UNKNOWN: u8 = 2;

impl Yields {
    fn prefer(&self, on: bool, variable: Option<&AtomicU8>) {
        let Some(now) = variable.map(|variable| variable.load(SeqCst)) else { return };
        if on {
            let _ = self.wanted.compare_exchange(UNKNOWN, now, SeqCst, SeqCst);
        }
        if self.on.swap(on, SeqCst) != on {
            self.put(variable);
        }
    }

    fn wants(&self, variable: Option<&AtomicU8>) -> bool {
        match self.wanted.load(SeqCst) {
            UNKNOWN => variable.is_some_and(|variable| variable.load(SeqCst) == 1),
            wanted => wanted == 1,
        }
    }

    /// Of several threads, the one that writes last has seen what the others wanted.
    fn put(&self, variable: Option<&AtomicU8>) {
        let Some(variable) = variable else { return };
        let value = || u8::from(self.on.load(SeqCst) || self.wanted.load(SeqCst) == 1);
        loop {
            let written = value();
            variable.store(written, SeqCst);
            if written == value() {
                return;
            }
        }
    }
}

/// The progress loop of UCX; it returns how much it found.
///
/// # Safety
/// As UCX's.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn ucp_worker_progress(worker: *mut c_void) -> c_uint {
    type Function = unsafe extern "C-unwind" fn(*mut c_void) -> c_uint;
    let next = UCP_PROGRESS.get();
    if next.is_null() {
        return 0;
    }
    // SAFETY: UCX's function of this name has this type.
    let next = unsafe { core::mem::transmute::<*mut c_void, Function>(next) };
    // SAFETY: the caller keeps its contract.
    let found = unsafe { next(worker) };
    let Some(thread) = thread::enter() else { return found };
    let before = sys::errno();
    if found > 0 {
        thread.found(false);
    } else {
        let verdict = thread.nothing(true);
        thread.loop_tells();
        match verdict {
            Verdict::Spin if thread.in_mpi() && !thread.spins_out() => thread.give_way(),
            Verdict::Spin => {}
            Verdict::Block => thread.block_for_bell(),
            Verdict::Yield => thread.give_way(),
        }
    }
    thread.leave();
    sys::set_errno(before);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn yields() -> Yields {
        Yields { wanted: AtomicU8::new(UNKNOWN), on: AtomicBool::new(false) }
    }

    #[test]
    fn what_was_not_changed_is_not_written() {
        let (yields, variable) = (yields(), AtomicU8::new(0));
        yields.prefer(false, Some(&variable));
        variable.store(1, SeqCst);
        yields.prefer(false, Some(&variable));
        assert_eq!(variable.load(SeqCst), 1, "Open MPI set it after the first look");
        assert!(yields.wants(Some(&variable)));
    }

    #[test]
    fn what_was_found_comes_back() {
        for found in [0, 1] {
            let (yields, variable) = (yields(), AtomicU8::new(found));
            for _ in 0..2 {
                yields.prefer(true, Some(&variable));
                assert_eq!((variable.load(SeqCst), yields.wants(Some(&variable))), (1, found == 1));
                yields.prefer(false, Some(&variable));
                assert_eq!(variable.load(SeqCst), found);
            }
        }
    }

    #[test]
    fn what_open_mpi_sets_meanwhile_holds_afterwards() {
        let (yields, variable) = (yields(), AtomicU8::new(0));
        yields.prefer(true, Some(&variable));
        yields.wanted.store(1, SeqCst);
        yields.prefer(false, Some(&variable));
        assert_eq!(variable.load(SeqCst), 1);
    }
}
