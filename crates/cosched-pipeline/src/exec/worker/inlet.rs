//! Buffers that may proceed and come from outside the workers: from stages with threads of their own.
//!
//! A chain that is linked through the buffers themselves: `put` adds a buffer at its head, `take` takes the whole chain.
//! So no thread ever waits for another, whatever their priorities, and the chain cannot be full.

use std::ptr;

use super::slot::{from_raw, into_raw};
use super::sync::{AtomicPtr, AtomicUsize, Ordering};
use crate::buffer::{Buffer, Inner};

#[derive(Default)]
pub(super) struct Inlet {
    newest: AtomicPtr<Inner>,
    /// The approximate length of the chain.
    len: AtomicUsize,
}

impl Inlet {
    /// Adds a buffer.
    pub(super) fn put(&self, buffer: Buffer) {
        let raw = into_raw(buffer);
        let mut newest = self.newest.load(Ordering::Relaxed);
        loop {
            // SAFETY: the buffer is owned by this thread until the exchange succeeds.
            unsafe { (*raw).behind.store(newest, Ordering::Relaxed) };
            match self.newest.compare_exchange_weak(newest, raw, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => break,
                Err(now) => newest = now,
            }
        }
        self.len.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes all buffers: returns the oldest, and passes the others to `rest`, newest first.
    pub(super) fn take(&self, mut rest: impl FnMut(Buffer)) -> Option<Buffer> {
        if self.is_empty() {
            return None;
        }
        self.len.store(0, Ordering::Relaxed);
        let mut raw = self.newest.swap(ptr::null_mut(), Ordering::SeqCst);
        while !raw.is_null() {
            // SAFETY: `put` added it to the chain, and the swap gave the whole chain to this thread alone.
            let buffer = unsafe { from_raw(raw) };
            raw = buffer.0.behind.swap(ptr::null_mut(), Ordering::Relaxed);
            if raw.is_null() {
                return Some(buffer);
            }
            rest(buffer);
        }
        None
    }

    /// Whether it appears to be empty.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.newest.load(Ordering::Relaxed).is_null()
    }

    /// The approximate number of buffers that wait.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }
}

impl Drop for Inlet {
    fn drop(&mut self) {
        let oldest = self.take(drop);
        drop(oldest);
    }
}
