//! `libcosched_preload.so` (preload/), which loads us into the programs that we concern: symbols are bound to it, and it jumps to our functions. So
//! the next functions after us are the next ones after it, and it contains our thread-local memory.
//!
//! When we are preloaded ourselves, as where it cannot be built, we interpose without it.

use crate::local;
use core::ffi::{CStr, c_char, c_void};
use core::ptr::null_mut;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicPtr, AtomicU32};

/// The data that it and we share; as `cosched_wait_front` in preload/preload.c.
#[repr(C)]
struct Front {
    version: AtomicU32,
    /// `LOADING` while it loads us; then we set it to `READY`, otherwise it does not use us.
    state: AtomicU32,
    memory_offset: isize,
    memory_size: usize,
    /// dlsym(RTLD_NEXT, name), by its own code.
    next: unsafe extern "C" fn(DlSym, *const c_char) -> *mut c_void,
    /// The range of its functions.
    start: *const c_void,
    end: *const c_void,
}

type DlSym = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;

const VERSION: u32 = 1;
const LOADING: u32 = 1;
const READY: u32 = 2;

/// Null when we were preloaded ourselves.
static FRONT: AtomicPtr<Front> = AtomicPtr::new(null_mut());

/// Finds the front that is loading us, if there is one; the first step of the constructor.
pub(crate) fn find() {
    // SAFETY: the name ends with a zero; the dynamic linker can be called in the constructor.
    let front = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"cosched_wait_front".as_ptr()) }.cast::<Front>();
    // SAFETY: null, or that library's variable of this name, which stays; its first two words are the same in all versions.
    let loading = unsafe { front.as_ref() }
        .is_some_and(|front| front.version.load(Acquire) == VERSION && front.state.load(Acquire) == LOADING);
    if !loading {
        return;
    }
    // SAFETY: as above, and it is of the version known here.
    let known = unsafe { &*front };
    if known.memory_size < local::SIZE {
        return;
    }
    // SAFETY: it has this memory for us, in each thread; ours has not been used, as none of our functions could be called yet.
    unsafe { local::use_memory_at(known.memory_offset) };
    FRONT.store(front, Relaxed);
}

/// Marks that the constructor has run, and the functions may be called.
pub(crate) fn ready() {
    if let Some(front) = front() {
        front.state.store(READY, Release);
    }
}

/// The next function of this name after those that interpose it.
pub(crate) fn next(name: &CStr) -> *mut c_void {
    match front() {
        // SAFETY: the name ends with a zero, and this is dlsym.
        Some(front) => unsafe { (front.next)(libc::dlsym, name.as_ptr()) },
        // SAFETY: the name ends with a zero.
        None => unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) },
    }
}

/// Whether a function is the front's, which jumps to ours.
pub(crate) fn has(function: *const c_void) -> bool {
    front().is_some_and(|front| (front.start..front.end).contains(&function))
}

fn front() -> Option<&'static Front> {
    // SAFETY: null, or as checked in `find`.
    unsafe { FRONT.load(Relaxed).as_ref() }
}
