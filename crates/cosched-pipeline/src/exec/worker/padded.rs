//! What several threads write needs a cache line of its own.

use std::ops::Deref;

/// Two lines: the processor fetches them in pairs.
#[repr(align(128))]
#[derive(Default)]
pub(super) struct Padded<T>(pub(super) T);

impl<T> Deref for Padded<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}
