//! MPI's tests in a crowd: they do not wait, and a program may compute between two of them for less than a yield costs (HPCC's random access: 20 ns).
//! So where Open MPI yields only because it was set here, most of them pass as without a crowd.

use crate::hooks::progress;
use crate::local::{self, CROWD, TESTING};

/// The number of tests that pass between two in which Open MPI yields.
const TESTS: u32 = 255;

/// To be called when a test begins. True if it passes: then [`end`] must follow.
#[inline]
pub(crate) fn begin() -> bool {
    local::passed().get() == CROWD && begin_in_crowd()
}

fn begin_in_crowd() -> bool {
    let tests = local::tests().get();
    let passes = tests < TESTS && progress::yields_as_told();
    local::tests().set(if passes { (tests + 1) | TESTING } else { 0 });
    if passes {
        local::passed().set(0);
    }
    passes
}

/// To be called when a test that passes ends.
pub(crate) fn end() {
    local::tests().set(local::tests().get() & !TESTING);
    local::passed().set(CROWD);
}

/// Whether a call is made by a test that passes.
pub(crate) fn is_one() -> bool {
    local::tests().get() & TESTING != 0
}
