//! Alignment to separate cache lines, against false sharing.

use std::ops::Deref;

/// Two lines: the CPU fetches them in pairs.
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
