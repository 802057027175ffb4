//! The interface that `later`, which is shared with the wait library, needs from a front: this library is preloaded itself.

use core::ffi::{CStr, c_void};

/// The next function of this name after ours.
pub(crate) fn next(name: &CStr) -> *mut c_void {
    // SAFETY: the name ends with a zero.
    unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }
}

/// Whether a function is one that jumps to ours.
pub(crate) fn has(_function: *const c_void) -> bool {
    false
}
