//! Buffers that may go on and come from outside the workers: from stages with threads of their own.
//!
//! A chain through the buffers themselves: who puts hangs its buffer before the chain, who takes takes the whole chain. So
//! nobody ever waits for anybody, whatever the priorities of the threads, and there is always room.

use std::ptr;

use super::slot::{from_raw, into_raw};
use super::sync::{AtomicPtr, AtomicUsize, Ordering};
use crate::buffer::{Buffer, Inner};

#[derive(Default)]
pub(super) struct Inlet {
    newest: AtomicPtr<Inner>,
    /// About how many hang in the chain.
    len: AtomicUsize,
}

impl Inlet {
    /// One more.
    pub(super) fn put(&self, buffer: Buffer) {
        let raw = into_raw(buffer);
        let mut newest = self.newest.load(Ordering::Relaxed);
        loop {
            // SAFETY: the buffer is ours until the exchange succeeds.
            unsafe { (*raw).behind.store(newest, Ordering::Relaxed) };
            match self.newest.compare_exchange_weak(newest, raw, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => break,
                Err(now) => newest = now,
            }
        }
        self.len.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes all: returns the oldest, and gives the others to `rest`, the newest first.
    pub(super) fn take(&self, mut rest: impl FnMut(Buffer)) -> Option<Buffer> {
        if self.is_empty() {
            return None;
        }
        self.len.store(0, Ordering::Relaxed);
        let mut raw = self.newest.swap(ptr::null_mut(), Ordering::SeqCst);
        while !raw.is_null() {
            // SAFETY: `put` hung it into the chain, and the swap took the whole chain for us alone.
            let buffer = unsafe { from_raw(raw) };
            raw = buffer.0.behind.swap(ptr::null_mut(), Ordering::Relaxed);
            if raw.is_null() {
                return Some(buffer);
            }
            rest(buffer);
        }
        None
    }

    /// Whether it looks empty.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.newest.load(Ordering::Relaxed).is_null()
    }

    /// About how many wait.
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
