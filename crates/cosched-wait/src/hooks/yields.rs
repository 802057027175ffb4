//! sched_yield: it has no descriptor, so a thread that waits by it sleeps on the doorbell of the job.

use crate::thread::{self, Verdict};
use crate::{real, sys, testing};
use core::ffi::c_int;

/// sched_yield, as the C library's.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn sched_yield() -> c_int {
    let Some(thread) = thread::enter() else {
        if testing::is_one() {
            return 0;
        }
        // SAFETY: no arguments.
        return unsafe { real::sched_yield() };
    };
    let before = sys::errno();
    match thread.nothing(true) {
        Verdict::Block => thread.block_for_bell(),
        Verdict::Spin if thread.spins_out() => {}
        Verdict::Spin | Verdict::Yield => thread.give_way(),
    }
    thread.leave();
    sys::set_errno(before);
    0
}
