//! The memory of one thread: how many of its calls have passed since it last looked whether there is a crowd, and how many of MPI's
//! tests, words that every call reads, and after them what `thread` keeps.
//!
//! The compiler reaches the thread-local memory of a library by a call, as the library might be loaded late; then the
//! first use in each thread allocates, which a signal handler must not. What `front` loads us has such memory for us that
//! was there from the start: it lies at a fixed distance from the thread's pointer, and three instructions do.

use core::cell::{Cell, UnsafeCell};
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicIsize, Ordering::Relaxed};

/// More than any number that passes: there is a crowd, and every call is looked at.
pub(crate) const CROWD: u32 = 1 << 31;

/// This thread is in a test of MPI's that passes.
pub(crate) const TESTING: u32 = 1 << 31;

/// The size of a thread's memory, in bytes, all of them zero at its start.
pub(crate) const SIZE: usize = 1024;
/// Where in it the rest begins.
const REST: usize = 16;

/// Aligned for all that is kept there.
#[repr(C, align(16))]
struct Memory(UnsafeCell<[u8; SIZE]>);

thread_local! {
    /// Without a front.
    static OWN: Memory = const { Memory(UnsafeCell::new([0; SIZE])) };
}

/// The distance of the front's memory from the thread's pointer; 0 without one.
static OFFSET: AtomicIsize = AtomicIsize::new(0);

/// Uses memory of every thread at this distance from its pointer.
///
/// # Safety
/// There are [`SIZE`] bytes for us alone, aligned to 16, and zero in a new thread. Nothing has been kept yet.
pub(crate) unsafe fn use_memory_at(offset: isize) {
    OFFSET.store(offset, Relaxed);
}

#[inline]
fn memory() -> *mut u8 {
    match OFFSET.load(Relaxed) {
        0 => own(),
        offset => pointer().wrapping_offset(offset),
    }
}

#[inline(never)]
fn own() -> *mut u8 {
    OWN.with(|memory| memory.0.get().cast())
}

/// This thread's pointer. Where it is not known, nobody calls [`use_memory_at`].
#[inline]
fn pointer() -> *mut u8 {
    let pointer;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the first word of a thread's control block is its own address.
    unsafe {
        core::arch::asm!("mov {}, qword ptr fs:[0]", out(reg) pointer, options(nostack, preserves_flags, readonly));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: reads a register.
    unsafe {
        core::arch::asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nostack, preserves_flags, nomem));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        pointer = own();
    }
    pointer
}

/// How many calls have passed, or [`CROWD`].
#[inline]
pub(crate) fn passed() -> &'static Cell<u32> {
    // SAFETY: the start of this thread's own memory, which is long and aligned enough and lives as long as the thread; no
    // call outlives its thread.
    unsafe { &*memory().cast::<Cell<u32>>() }
}

/// How many of MPI's tests have passed in a crowd, with [`TESTING`] while one does.
#[inline]
pub(crate) fn tests() -> &'static Cell<u32> {
    // SAFETY: as above; it lies between the first word and the rest.
    unsafe { &*memory().wrapping_add(size_of::<Cell<u32>>()).cast::<Cell<u32>>() }
}

/// A value in the rest, which is zero at the start.
#[repr(C)]
struct Kept<T> {
    begun: Cell<bool>,
    value: UnsafeCell<MaybeUninit<T>>,
}

/// What this thread keeps; a new one at first.
///
/// # Safety
/// It is always asked for a value of the same type, one that needs no destructor.
pub(crate) unsafe fn kept<T>(new: impl FnOnce() -> T) -> &'static T {
    const { assert!(size_of::<Kept<T>>() <= SIZE - REST && align_of::<Kept<T>>() <= REST) };
    // SAFETY: memory of this thread alone, long and aligned enough, in which any value is valid. It lives as long as the
    // thread, and no call outlives its thread.
    let kept = unsafe { &*memory().wrapping_add(REST).cast::<Kept<T>>() };
    if !kept.begun.get() {
        // SAFETY: no reference to it exists yet. A signal handler that comes in between leaves a value like this one.
        unsafe { (*kept.value.get()).write(new()) };
        kept.begun.set(true);
    }
    // SAFETY: it was written.
    unsafe { (*kept.value.get()).assume_init_ref() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_has_its_own() {
        assert_eq!(passed().get(), 0);
        passed().set(CROWD);
        std::thread::spawn(|| {
            assert_eq!(passed().get(), 0);
            passed().set(7);
            assert_eq!(passed().get(), 7);
        })
        .join()
        .unwrap();
        assert_eq!(passed().get(), CROWD);
    }
}
