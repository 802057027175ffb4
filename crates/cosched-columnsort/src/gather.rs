//! From a sorted column to blocks of bytes: the records of its runs, one run after the other, divided into blocks.
//!
//! This is the only place where records are moved. A block may begin and end inside a record, so that blocks can be whole
//! pages.

use crate::format::Format;
use crate::layout::{PAGE, Piece, Run, push_piece};
use crate::sort::place;

/// A column's records for one file as a stream of bytes.
///
/// In working files each run begins at a page and is rounded up to whole pages, so that direct I/O can write all of it. In
/// the output records are contiguous; there the stream begins at the same offset within a page as the first run does in the
/// file.
#[derive(Debug, Clone)]
pub struct Stream {
    format: Format,
    /// For each run, where it begins in the stream, and where it ends without and with the padding to whole pages.
    spans: Vec<Span>,
}

#[derive(Debug, Clone, Copy)]
struct Span {
    run: Run,
    begin: u64,
    end: u64,
    end_rounded: u64,
}

impl Stream {
    /// The stream of several runs to a working file, or of one run to the output.
    pub fn new(format: Format, runs: Vec<Run>, output: bool) -> Stream {
        let mut at = if output { runs.first().map_or(0, |run| run.offset % PAGE) } else { 0 };
        let spans = runs
            .into_iter()
            .map(|run| {
                let (begin, end) = (at, at + run.count * format.record_bytes as u64);
                at = if output { end } else { end.next_multiple_of(PAGE) };
                Span { run, begin, end, end_rounded: at }
            })
            .collect();
        Stream { format, spans }
    }

    /// The length of the stream in bytes.
    pub fn len(&self) -> u64 {
        self.spans.last().map_or(0, |span| span.end_rounded)
    }

    /// The position of its first byte: the offset within a page that it has in the file.
    pub fn begins_at(&self) -> u64 {
        self.spans.first().map_or(0, |span| span.begin)
    }

    /// Whether it has no records.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The number of the stream's bytes in the block with index `block`, with blocks of `block_bytes`.
    pub fn bytes_in(&self, block: u64, block_bytes: u64) -> u64 {
        self.len().saturating_sub(block * block_bytes).min(block_bytes)
    }

    /// The spans that overlap the bytes from `from` to `to`.
    fn spans(&self, from: u64, to: u64) -> impl Iterator<Item = &Span> {
        let first = self.spans.partition_point(|span| span.end_rounded <= from);
        self.spans[first..].iter().take_while(move |span| span.begin < to)
    }

    /// The places of a block's bytes in the file; in the buffer the block begins at `base`.
    pub fn pieces(&self, block: u64, block_bytes: u64, base: usize) -> Vec<Piece> {
        let (from, to) = (block * block_bytes, (block + 1) * block_bytes);
        let mut pieces = Vec::new();
        for span in self.spans(from, to) {
            let (low, high) = (span.begin.max(from), span.end_rounded.min(to));
            let range = base + (low - from) as usize..base + (high - from) as usize;
            push_piece(&mut pieces, Piece { offset: span.run.offset + (low - span.begin), range });
        }
        pieces
    }

    /// Fills a block from a column in `bytes` whose sorted order is `order`.
    pub fn fill(&self, block: u64, dest: &mut [u8], bytes: &[u8], order: &[u8]) {
        let (from, to) = (block * dest.len() as u64, (block + 1) * dest.len() as u64);
        for span in self.spans(from, to) {
            let (low, high) = (span.begin.max(from), span.end.min(to));
            if low < high {
                let part = &mut dest[(low - from) as usize..(high - from) as usize];
                self.fill_run(&span.run, (low - span.begin) as usize, part, bytes, order);
            }
        }
    }

    /// Copies the bytes of a run, starting at byte `skip` of it.
    fn fill_run(&self, run: &Run, skip: usize, dest: &mut [u8], bytes: &[u8], order: &[u8]) {
        let size = self.format.record_bytes;
        let mut rank = run.first as usize + skip / size;
        let mut rest = dest;
        let begun = skip % size;
        if begun > 0 {
            let len = (size - begun).min(rest.len());
            let at = place(order, rank) + begun;
            rest[..len].copy_from_slice(&bytes[at..at + len]);
            rest = &mut rest[len..];
            rank += 1;
        }
        let mut whole = rest.chunks_exact_mut(size);
        for record in &mut whole {
            let at = place(order, rank);
            record.copy_from_slice(&bytes[at..at + size]);
            rank += 1;
        }
        let last = whole.into_remainder();
        if !last.is_empty() {
            let at = place(order, rank);
            last.copy_from_slice(&bytes[at..at + last.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Together the blocks write exactly the runs to the file, byte by byte.
        #[test]
        fn blocks_are_the_runs(size in 1usize..200, counts in proptest::collection::vec(1u64..60, 1..5),
                               pages in 1u64..3, start in 0u64..10_000, output: bool) {
            let format = Format::new(size, 0, 1).unwrap();
            let counts = if output { &counts[..1] } else { &counts[..] };
            let mut offset = if output { start } else { start.next_multiple_of(PAGE) };
            let mut first = 0;
            let runs: Vec<Run> = counts.iter().map(|count| {
                let run = Run { first, count: *count, offset };
                first += count;
                offset += (count * size as u64).next_multiple_of(PAGE) + PAGE;
                run
            }).collect();
            // Records that are all different, in an order that differs from their places.
            let total = first as usize;
            let bytes: Vec<u8> = (0..total * size).map(|i| (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()[0]).collect();
            let order: Vec<u8> = (0..total).rev().flat_map(|i| ((i * size) as u32).to_le_bytes()).collect();
            let stream = Stream::new(format, runs.clone(), output);
            let block_bytes = pages * PAGE;
            let mut file = vec![None; (offset + PAGE) as usize];
            for block in 0..stream.len().div_ceil(block_bytes) {
                let mut dest = vec![0u8; block_bytes as usize];
                stream.fill(block, &mut dest, &bytes, &order);
                for piece in stream.pieces(block, block_bytes, 0) {
                    if !output {
                        prop_assert!(piece.offset.is_multiple_of(PAGE) && (piece.range.len() as u64).is_multiple_of(PAGE));
                    }
                    prop_assert_eq!(piece.offset % PAGE, piece.range.start as u64 % PAGE);
                    for (at, byte) in (piece.offset..).zip(&dest[piece.range]) {
                        prop_assert_eq!(file[at as usize], None);
                        file[at as usize] = Some(*byte);
                    }
                }
            }
            for run in runs {
                for i in 0..run.count {
                    let record = place(&order, (run.first + i) as usize);
                    for b in 0..size {
                        prop_assert_eq!(file[run.offset as usize + i as usize * size + b], Some(bytes[record + b]));
                    }
                }
            }
        }
    }
}
