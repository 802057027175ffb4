//! Text without allocation.

use core::fmt::Write;

/// A text of limited length; the excess is cut off.
pub(crate) struct Text<const MAX: usize> {
    bytes: [u8; MAX],
    length: usize,
}

impl<const MAX: usize> Text<MAX> {
    /// An empty one.
    pub(crate) const fn new() -> Self {
        Self { bytes: [0; MAX], length: 0 }
    }

    /// The text so far.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl<const MAX: usize> Write for Text<MAX> {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        let taken = text.len().min(MAX - self.length);
        self.bytes[self.length..self.length + taken].copy_from_slice(&text.as_bytes()[..taken]);
        self.length += taken;
        Ok(())
    }
}
