//! The progress engines of MPI libraries: what they call again and again while they wait, also where shared memory
//! carries the messages and no system call is made.
//!
//! UCX (MPICH, and Open MPI's pml ucx) says whether it found something. Open MPI's `opal_progress` does not, but calls
//! sched_yield when it found nothing, if a variable of its library says so; that one is set while there is a crowd.

use crate::later::Later;
use crate::sys;
use crate::thread::{self, Verdict};
use core::ffi::{c_uint, c_void};
use core::ptr::null;
use core::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};

static OPAL_PROGRESS: Later = Later::named(c"opal_progress");
static OPAL_YIELD: Later = Later::named(c"opal_progress_yield_when_idle");
static UCP_PROGRESS: Later = Later::named(c"ucp_worker_progress");

/// Open MPI is here: its loop has been seen.
static IS_OPAL: AtomicBool = AtomicBool::new(false);
/// What its variable was at first; [`UNKNOWN`] before.
static YIELD_AT_FIRST: AtomicU8 = AtomicU8::new(UNKNOWN);
const UNKNOWN: u8 = 2;

/// Open MPI's progress loop.
///
/// # Safety
/// As Open MPI's.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn opal_progress() -> usize {
    // Newer ones return a number, older ones nothing; a word does for both.
    type Function = unsafe extern "C-unwind" fn() -> usize;
    let next = OPAL_PROGRESS.get(opal_progress as *const c_void);
    if let Some(thread) = thread::enter() {
        // In a crowd: sched_yield does the rest.
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

/// Makes Open MPI yield when it finds nothing, or as it did before.
pub(crate) fn prefer_yields(on: bool) {
    if !IS_OPAL.load(Relaxed) {
        return;
    }
    let variable = OPAL_YIELD.get(null()).cast::<AtomicU8>();
    // SAFETY: Open MPI's variable of this name is a bool, one byte, which its threads only read; or it is null.
    let Some(variable) = (unsafe { variable.as_ref() }) else { return };
    let _ = YIELD_AT_FIRST.compare_exchange(UNKNOWN, variable.load(Relaxed), Relaxed, Relaxed);
    variable.store(u8::from(on || YIELD_AT_FIRST.load(Relaxed) == 1), Relaxed);
}

/// The progress loop of UCX; it says how much it found.
///
/// # Safety
/// As UCX's.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn ucp_worker_progress(worker: *mut c_void) -> c_uint {
    type Function = unsafe extern "C-unwind" fn(*mut c_void) -> c_uint;
    let next = UCP_PROGRESS.get(ucp_worker_progress as *const c_void);
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
        thread.found();
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
