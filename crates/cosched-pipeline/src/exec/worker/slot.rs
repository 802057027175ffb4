//! Where a buffer and the leave to go on meet, whichever comes first.
//!
//! Problem: a buffer arrives at a stage, and its predecessor leaves the stage, on two workers at once; one of the two has to
//! carry the buffer on, and neither may wait. Rule: both swap what they bring into one word. Who finds the other's part has
//! both and goes on; who finds nothing has left its part there.

use std::ptr;

use super::sync::{AtomicPtr, Ordering};
use crate::buffer::{Buffer, Inner};

/// Empty, a buffer, or the leave. All its uses for one buffer happen before all its uses for the next: its owner sees to that.
#[derive(Default)]
pub(super) struct Slot(AtomicPtr<Inner>);

/// No buffer lies at an odd address.
fn leave() -> *mut Inner {
    ptr::without_provenance_mut(1)
}

impl Slot {
    /// The buffer arrives. It comes back if it may go on; else who brings the leave gets it.
    #[inline]
    pub(super) fn arrive(&self, buffer: Buffer) -> Option<Buffer> {
        // The common case, without a read-modify-write: the predecessor has gone long ago.
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
        // SAFETY: `raw` is the buffer from above. Only who brings the leave could have taken it, and it came before.
        Some(unsafe { from_raw(raw) })
    }

    /// The leave arrives. Returns the buffer, if it is there already.
    #[inline]
    pub(super) fn let_go_on(&self) -> Option<Buffer> {
        let found = self.0.swap(leave(), Ordering::AcqRel);
        if found.is_null() {
            return None;
        }
        debug_assert_ne!(found, leave(), "the leave came twice");
        self.0.store(ptr::null_mut(), Ordering::Relaxed);
        // SAFETY: `arrive` put it there and has forgotten it; the leave comes once, so nobody else takes it.
        Some(unsafe { from_raw(found) })
    }

    /// As [`Slot::let_go_on`], where one thread alone uses the slot at all times: no locked instruction.
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

    /// Whether a buffer waits in it now.
    pub(super) fn waits(&self) -> bool {
        let found = self.0.load(Ordering::Relaxed);
        !found.is_null() && found != leave()
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let found = self.0.load(Ordering::Relaxed);
        if !found.is_null() && found != leave() {
            // SAFETY: `arrive` put it there and has forgotten it, and nobody else looks at this slot any more.
            drop(unsafe { from_raw(found) });
        }
    }
}

/// The buffer as one word, for atomic cells.
#[inline]
pub(super) fn into_raw(buffer: Buffer) -> *mut Inner {
    Box::into_raw(buffer.0)
}

/// The buffer again.
///
/// # Safety
/// `raw` comes from [`into_raw`], and this is the only call for it.
#[inline]
pub(super) unsafe fn from_raw(raw: *mut Inner) -> Buffer {
    // SAFETY: as above: `raw` is a Box that was given away.
    Buffer(unsafe { Box::from_raw(raw) })
}
