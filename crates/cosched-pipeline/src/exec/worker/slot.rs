//! Where a buffer and its permission to proceed meet, whichever comes first.
//!
//! Problem: a buffer arrives at a stage, and its predecessor leaves the stage, on two workers at the same time; one of the two
//! has to carry the buffer on, and neither may wait. Rule: both swap what they bring into one word. The one that finds the
//! other's part has both and proceeds; the one that finds nothing has left its part there.

use std::ptr;

use super::sync::{AtomicPtr, Ordering};
use crate::buffer::{Buffer, Inner};

/// Empty, a buffer, or the permission. All uses for one buffer happen before all uses for the next: the owner of the slot
/// ensures that.
#[derive(Default)]
pub(super) struct Slot(AtomicPtr<Inner>);

/// The permission. No buffer is at an odd address.
fn leave() -> *mut Inner {
    ptr::without_provenance_mut(1)
}

impl Slot {
    /// The buffer arrives. Returned if it may proceed; otherwise the worker that brings the permission gets it.
    #[inline]
    pub(super) fn arrive(&self, buffer: Buffer) -> Option<Buffer> {
        // The common case, without a read-modify-write: the predecessor left long ago.
        if self.0.load(Ordering::Acquire) == leave() {
            self.0.store(ptr::null_mut(), Ordering::Relaxed);
            return Some(buffer);
        }
        let raw = into_raw(buffer);
        let found = self.0.swap(raw, Ordering::AcqRel);
        if found.is_null() {
            return None;
        }
        debug_assert_eq!(found, leave(), "two buffers in one slot");
        self.0.store(ptr::null_mut(), Ordering::Relaxed);
        // SAFETY: `raw` is the buffer from above. Only the worker that brings the permission could have taken it, and that
        // came before.
        Some(unsafe { from_raw(raw) })
    }

    /// The permission arrives. Returns the buffer, if it has arrived already.
    #[inline]
    pub(super) fn let_go_on(&self) -> Option<Buffer> {
        let found = self.0.swap(leave(), Ordering::AcqRel);
        if found.is_null() {
            return None;
        }
        debug_assert_ne!(found, leave(), "the leave came twice");
        self.0.store(ptr::null_mut(), Ordering::Relaxed);
        // SAFETY: `arrive` put it there and forgot it; the permission comes only once, so no other thread takes it.
        Some(unsafe { from_raw(found) })
    }

    /// Like [`Slot::let_go_on`], if only one thread ever uses the slot: no locked instruction.
    #[inline]
    pub(super) fn let_go_on_alone(&self) -> Option<Buffer> {
        let found = self.0.load(Ordering::Relaxed);
        if found.is_null() {
            self.0.store(leave(), Ordering::Relaxed);
            return None;
        }
        debug_assert_ne!(found, leave(), "the leave came twice");
        self.0.store(ptr::null_mut(), Ordering::Relaxed);
        // SAFETY: as in `let_go_on`.
        Some(unsafe { from_raw(found) })
    }

    /// Whether a buffer waits in the slot now.
    pub(super) fn waits(&self) -> bool {
        let found = self.0.load(Ordering::Relaxed);
        !found.is_null() && found != leave()
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let found = self.0.load(Ordering::Relaxed);
        if !found.is_null() && found != leave() {
            // SAFETY: `arrive` put it there and forgot it, and no other thread uses this slot any more.
            drop(unsafe { from_raw(found) });
        }
    }
}

/// Turns the buffer into one word, for atomic cells.
#[inline]
pub(super) fn into_raw(buffer: Buffer) -> *mut Inner {
    Box::into_raw(buffer.0)
}

/// Turns the word back into the buffer.
///
/// # Safety
/// `raw` comes from [`into_raw`], and this is the only call for it.
#[inline]
pub(super) unsafe fn from_raw(raw: *mut Inner) -> Buffer {
    // SAFETY: see above: `raw` is a leaked Box.
    Buffer(unsafe { Box::from_raw(raw) })
}
