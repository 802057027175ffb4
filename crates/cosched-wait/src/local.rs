//! The memory of one thread: the number of its calls since it last checked for a crowd, and the number of MPI's tests, words that every call reads,
//! and after them the data of `thread`.
//!
//! The compiler reaches the thread-local memory of a library by a call, as the library might be loaded late; then the first use in each thread
//! allocates, which a signal handler must not do. The `front` that loads us contains such memory for us, which exists from the start: it is at a
//! fixed distance from the thread's pointer, and three instructions suffice.

use core::cell::{Cell, UnsafeCell};
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicIsize, Ordering::Relaxed};

/// Larger than any count of calls: there is a crowd, and every call is examined.
pub(crate) const CROWD: u32 = 1 << 31;

/// This thread is in a test of MPI's that passes.
pub(crate) const TESTING: u32 = 1 << 31;

/// The size of a thread's memory, in bytes, all of them zero at its start.
pub(crate) const SIZE: usize = 1024;
/// The offset of the data of `thread`.
const REST: usize = 16;

/// Aligned for all that is kept there.
#[repr(C, align(16))]
struct Memory(UnsafeCell<[u8; SIZE]>);

thread_local! {
    /// The memory without a front.
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

/// This thread's pointer. On an architecture where it is unknown, [`use_memory_at`] is never called.
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

/// The number of calls since the last check, or [`CROWD`].
#[inline]
pub(crate) fn passed() -> &'static Cell<u32> {
    // SAFETY: the start of this thread's own memory, which has sufficient size and alignment and lives as long as the thread; no
    // call outlives its thread.
    unsafe { &*memory().cast::<Cell<u32>>() }
}

/// The number of MPI's tests that have passed in a crowd, with [`TESTING`] while one does.
#[inline]
pub(crate) fn tests() -> &'static Cell<u32> {
    // SAFETY: as above; it is between the first word and the data of `thread`.
    unsafe { &*memory().wrapping_add(size_of::<Cell<u32>>()).cast::<Cell<u32>>() }
}

/// The data of `thread` with a flag; zero at the start.
#[repr(C)]
struct Kept<T> {
    begun: Cell<bool>,
    value: UnsafeCell<MaybeUninit<T>>,
}

/// The data of this thread; a new value at the first call.
///
/// # Safety
/// All calls have the same type, and it needs no destructor.
pub(crate) unsafe fn kept<T>(new: impl FnOnce() -> T) -> &'static T {
    const { assert!(size_of::<Kept<T>>() <= SIZE - REST && align_of::<Kept<T>>() <= REST) };
    // SAFETY: memory of this thread alone, of sufficient size and alignment, in which any value is valid. It lives as long as the
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
