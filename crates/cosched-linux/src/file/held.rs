//! Memory that the kernel reads or writes while nothing else accesses it.

use std::ptr::NonNull;

/// Something that owns the bytes of a block, such as a buffer of a pipeline.
pub trait Memory: Send + 'static {
    /// All its bytes, always the same ones. Called once per transfer.
    fn storage(&mut self) -> &mut [u8];
}

impl Memory for Vec<u8> {
    fn storage(&mut self) -> &mut [u8] {
        self
    }
}

/// A `Memory` that is inaccessible, and the address of its bytes. It is as if `storage`'s borrow lasted until [`Held::release`].
#[derive(Debug)]
pub(super) struct Held<M> {
    memory: NonNull<M>,
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: it owns the M, and the bytes are the M's; nothing else leads to them.
unsafe impl<M: Send> Send for Held<M> {}

impl<M: Memory> Held<M> {
    pub(super) fn new(memory: M) -> Held<M> {
        let mut memory = NonNull::from(Box::leak(Box::new(memory)));
        // SAFETY: it was leaked just now, so it is valid, and this is the only pointer to it.
        let storage = unsafe { memory.as_mut() }.storage();
        Held { memory, len: storage.len(), base: NonNull::from(storage).cast() }
    }

    /// The length in bytes.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The address of byte `start`. It may be used until the release.
    pub(super) fn at(&self, start: usize) -> *mut u8 {
        assert!(start <= self.len, "byte {start} of {} bytes", self.len);
        // SAFETY: it stays inside of the storage.
        unsafe { self.base.as_ptr().add(start) }
    }

    /// Returns the memory; pointers from [`Held::at`] may no longer be used. If this is not called, the memory is leaked, which is harmless, as
    /// requests may still be in the kernel.
    pub(super) fn release(self) -> M {
        // SAFETY: it comes from a Box, and by value it is released only once.
        *unsafe { Box::from_raw(self.memory.as_ptr()) }
    }
}
