//! Which bytes of a buffer belong at which offset of a file, and how they are cut into requests to the kernel.
//!
//! O_DIRECT requires aligned offsets, lengths and memory. An extent is cut into an unaligned head and tail, which go through the page cache, and a
//! middle that bypasses it. The cut is made at pages, not at the (smaller) sectors that the device would accept: a page that is written by both ways
//! at the same time could lose one of the two writes.

use std::ops::Range;

/// A run of bytes: `range` of the buffer is at `offset` of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extent {
    /// Where it starts in the file, in bytes.
    pub offset: u64,
    /// The range of the bytes in the buffer.
    pub range: Range<usize>,
}

impl Extent {
    /// The first `len` bytes of the buffer at `offset` of the file.
    pub fn start(offset: u64, len: usize) -> Extent {
        Extent { offset, range: 0..len }
    }

    /// The number of bytes.
    pub fn len(&self) -> usize {
        self.range.end.saturating_sub(self.range.start)
    }

    /// True when it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Why the extent is invalid, if it is: outside the buffer's `capacity` bytes, or beyond the maximum length of a file.
    pub(super) fn wrong(&self, capacity: usize) -> Option<String> {
        let Range { start, end } = self.range;
        if start > end || end > capacity {
            return Some(format!("bytes {start} to {end} of a buffer of {capacity} bytes"));
        }
        let last = self.offset.checked_add(self.len() as u64);
        last.is_none_or(|last| last > i64::MAX as u64)
            .then(|| format!("offset {} is behind the end of all files", self.offset))
    }
}

/// The alignment for O_DIRECT, in bytes; powers of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alignment {
    /// Of addresses in memory.
    pub memory: usize,
    /// Of offsets and lengths, and where an extent is cut: at least a page.
    pub offset: u64,
}

/// One request: a part of an extent, and whether it may bypass the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) offset: u64,
    /// The offset in the buffer.
    pub(super) start: usize,
    pub(super) len: usize,
    pub(super) direct: bool,
}

impl Piece {
    /// The rest after `done` bytes. Only an aligned rest can stay direct.
    pub(super) fn rest(self, done: usize, alignment: Option<Alignment>) -> Piece {
        let direct = self.direct && alignment.is_some_and(|a| (done as u64).is_multiple_of(a.offset));
        Piece { offset: self.offset + done as u64, start: self.start + done, len: self.len - done, direct }
    }
}

/// Cuts `extent` of a buffer at `address` into requests of at most `chunk` bytes, in the file's order.
pub(super) fn cut(extent: &Extent, address: usize, alignment: Option<Alignment>, chunk: usize, out: &mut Vec<Piece>) {
    let len = extent.len() as u64;
    let (head, middle) = match alignment {
        Some(alignment) => {
            let head = (extent.offset.next_multiple_of(alignment.offset) - extent.offset).min(len);
            let fits = (address + extent.range.start + head as usize).is_multiple_of(alignment.memory);
            let middle = (len - head) / alignment.offset * alignment.offset;
            if fits { (head, middle) } else { (len, 0) }
        }
        None => (len, 0),
    };
    let granule = alignment.map_or(1, |a| a.offset as usize);
    let direct_chunk = (chunk / granule).max(1) * granule;
    let mut done = 0;
    for (len, chunk, direct) in
        [(head, chunk, false), (middle, direct_chunk, true), (len - head - middle, chunk, false)]
    {
        let mut left = len as usize;
        while left > 0 {
            let now = left.min(chunk.max(1));
            out.push(Piece { offset: extent.offset + done as u64, start: extent.range.start + done, len: now, direct });
            done += now;
            left -= now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PAGES: Alignment = Alignment { memory: 512, offset: 4096 };

    fn pieces(offset: u64, range: Range<usize>, address: usize, chunk: usize) -> Vec<Piece> {
        let mut out = Vec::new();
        cut(&Extent { offset, range }, address, Some(PAGES), chunk, &mut out);
        out
    }

    #[test]
    fn an_aligned_extent_is_direct_and_its_tail_is_not() {
        let out = pieces(8192, 0..10_000, 0x1_0000, 4096);
        let short: Vec<_> = out.iter().map(|p| (p.offset, p.len, p.direct)).collect();
        assert_eq!(short, [(8192, 4096, true), (12_288, 4096, true), (16_384, 1808, false)]);
    }

    #[test]
    fn a_head_brings_the_middle_to_the_next_page() {
        let out = pieces(4000, 4000..20_000, 0x1_0000, 1 << 20);
        let short: Vec<_> = out.iter().map(|p| (p.offset, p.start, p.len, p.direct)).collect();
        assert_eq!(short, [(4000, 4000, 96, false), (4096, 4096, 12_288, true), (16_384, 16_384, 3616, false)]);
    }

    #[test]
    fn memory_that_does_not_fit_goes_through_the_page_cache() {
        assert!(pieces(4096, 100..20_000, 0x1_0000, 1 << 20).iter().all(|p| !p.direct));
    }

    #[test]
    fn what_cannot_be_is_named() {
        assert!(Extent { offset: 0, range: 5..11 }.wrong(10).is_some());
        assert!(Extent { offset: u64::MAX, range: 0..1 }.wrong(10).is_some());
        assert!(Extent { offset: i64::MAX as u64, range: 0..1 }.wrong(10).is_some());
        assert!(Extent { offset: 7, range: 0..10 }.wrong(10).is_none());
    }

    proptest! {
        /// The pieces are the extent, in order and without a gap, and what is direct is aligned.
        #[test]
        fn pieces_are_the_extent(offset in 0u64..50_000, start in 0usize..50_000, len in 0usize..200_000, chunk in 1usize..70_000) {
            let out = pieces(offset, start..start + len, 0x7000, chunk);
            let (mut at, mut place) = (offset, start);
            for piece in out {
                prop_assert_eq!((piece.offset, piece.start), (at, place));
                prop_assert!(piece.len > 0 && piece.len <= chunk.max(4096));
                if piece.direct {
                    prop_assert!(piece.offset % 4096 == 0 && piece.len % 4096 == 0 && (0x7000 + piece.start) % 512 == 0);
                }
                at += piece.len as u64;
                place += piece.len;
            }
            prop_assert_eq!(place, start + len);
        }
    }
}
