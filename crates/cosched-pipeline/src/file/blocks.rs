//! Files divided into blocks of whole records.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cosched_linux::file::BlockFile;

/// A file to read, or a part of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// The file.
    pub path: PathBuf,
    /// The range of bytes to read; None for all. A file that is read whole must keep its length while it is read.
    pub range: Option<Range<u64>>,
}

impl From<&Path> for Input {
    fn from(path: &Path) -> Input {
        Input { path: path.into(), range: None }
    }
}

impl From<PathBuf> for Input {
    fn from(path: PathBuf) -> Input {
        Input { path, range: None }
    }
}

impl From<&str> for Input {
    fn from(path: &str) -> Input {
        Input { path: path.into(), range: None }
    }
}

/// An open file, or a part of it.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) file: Arc<BlockFile>,
    pub(super) range: Range<u64>,
    /// The file is read whole.
    pub(super) whole: bool,
}

/// The next block to read.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) file: Arc<BlockFile>,
    pub(super) offset: u64,
    pub(super) len: usize,
    /// Its position in the concatenation of all parts, in bytes.
    pub(super) position: u64,
    pub(super) last: bool,
}

/// All blocks, part by part. A block never spans two parts; the last one of each part may be shorter.
#[derive(Debug)]
pub(super) struct Blocks {
    pub(super) parts: Vec<Part>,
    block: u64,
    /// The next part to read, and how many of its bytes have been assigned to blocks.
    part: usize,
    given: u64,
    position: u64,
}

impl Blocks {
    pub(super) fn new(parts: Vec<Part>, block: usize) -> Blocks {
        Blocks { parts, block: block as u64, part: 0, given: 0, position: 0 }
    }

    /// The total number of blocks.
    pub(super) fn count(&self) -> u64 {
        self.parts.iter().map(|part| len(part).div_ceil(self.block)).sum()
    }

    /// The total number of bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.parts.iter().map(len).sum()
    }

    pub(super) fn next(&mut self) -> Option<Block> {
        while len(self.parts.get(self.part)?) == self.given {
            self.part += 1;
            self.given = 0;
        }
        let part = &self.parts[self.part];
        let len = (len(part) - self.given).min(self.block);
        let (file, offset, position) = (part.file.clone(), part.range.start + self.given, self.position);
        self.given += len;
        self.position += len;
        Some(Block { file, offset, len: len as usize, position, last: self.position == self.bytes() })
    }
}

fn len(part: &Part) -> u64 {
    part.range.end - part.range.start
}

/// The largest block of at most `wanted` bytes that holds whole records and, if that costs less than half of it, also
/// whole pages: such blocks bypass the page cache.
pub(super) fn block_bytes(wanted: usize, record: usize, page: usize) -> usize {
    let both = record / gcd(record, page) * page;
    let unit = if both <= wanted { both } else { record };
    wanted / unit * unit
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cosched_linux::file::Caching;

    fn blocks(dir: &Path, lens: &[usize], block: usize) -> Vec<(u64, usize, u64, bool)> {
        let part = |(i, len): (usize, &usize)| {
            let path = dir.join(i.to_string());
            std::fs::write(&path, vec![0; *len]).unwrap();
            let file = Arc::new(BlockFile::open(&path, Caching::Buffered).unwrap());
            Part { range: 0..file.len(), file, whole: true }
        };
        let mut blocks = Blocks::new(lens.iter().enumerate().map(part).collect(), block);
        let count = blocks.count();
        let all: Vec<_> = std::iter::from_fn(|| blocks.next()).map(|b| (b.offset, b.len, b.position, b.last)).collect();
        assert_eq!(all.len() as u64, count);
        all
    }

    #[test]
    fn parts_are_cut_one_by_one_and_the_last_block_is_marked() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(blocks(dir.path(), &[], 10), []);
        assert_eq!(blocks(dir.path(), &[0, 0], 10), []);
        assert_eq!(blocks(dir.path(), &[1], 10), [(0, 1, 0, true)]);
        let expected = [(0, 10, 0, false), (10, 10, 10, false), (0, 10, 20, false), (10, 5, 30, true)];
        assert_eq!(blocks(dir.path(), &[20, 0, 15, 0], 10), expected);
    }

    #[test]
    fn blocks_hold_whole_records_and_whole_pages_where_they_can() {
        assert_eq!(block_bytes(1 << 20, 100, 4096), 1_024_000);
        assert_eq!(block_bytes(1 << 20, 1, 4096), 1 << 20);
        assert_eq!(block_bytes(10_000, 1, 4096), 8192);
        assert_eq!(block_bytes(10_050, 100, 4096), 10_000);
        assert_eq!(block_bytes(100, 100, 4096), 100);
        assert_eq!(block_bytes(99, 100, 4096), 0);
    }
}
