//! Buffers: page-aligned memory that is recycled and passed by pointer, never copied.

use std::fmt;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use memmap2::MmapMut;

use crate::graph::PathId;

/// A buffer of a path's pool. Moving it moves a pointer.
///
/// Its memory is page-aligned, so that direct I/O needs no copy. It contains what the previous stages wrote; a buffer that
/// comes from the pool has length 0, and its storage still contains the bytes of its last round.
pub struct Buffer(pub(crate) Box<Inner>);

/// Number of buffers allocated in this process.
static ALIVE: AtomicUsize = AtomicUsize::new(0);

/// The first cache line moves from CPU to CPU with the buffer; rarely used fields come after it.
#[repr(C, align(64))]
pub(crate) struct Inner {
    memory: MmapMut,
    len: usize,
    round: u64,
    tag: u64,
    token: Token,
    path: u32,
    last: bool,
    carries: bool,
    /// The next buffer in a chain of buffers (see `inlet`). Null while the buffer is in no chain.
    pub(crate) behind: AtomicPtr<Inner>,
}

const _: () = assert!(std::mem::offset_of!(Inner, behind) <= 64, "the line is full");

/// The position of a buffer: its place in the order, and its station among the stages that run on workers.
#[derive(Default)]
pub(crate) struct Token {
    /// Its number among the buffers that arrive at the next stage of its path: consecutive, without gaps.
    pub(crate) number: u64,
    /// The station that it is at or on its way to.
    pub(crate) station: u32,
    /// The incarnation that works on it, if the station has several.
    pub(crate) incarnation: u32,
}

impl Buffer {
    /// A buffer of `size_bytes` for the pool of `path`.
    pub(crate) fn new(path: PathId, size_bytes: usize) -> std::io::Result<Buffer> {
        let memory = MmapMut::map_anon(size_bytes)?;
        // Huge pages save TLB misses in stages with scattered accesses. A kernel without them returns an error, which is
        // ignored.
        let _ = memory.advise(memmap2::Advice::HugePage);
        ALIVE.fetch_add(1, Ordering::Relaxed);
        Ok(Buffer(Box::new(Inner {
            memory,
            len: 0,
            round: 0,
            tag: 0,
            token: Token::default(),
            path: path.0 as u32,
            last: false,
            carries: true,
            behind: AtomicPtr::default(),
        })))
    }

    /// The number of buffers of all graphs of this process that are allocated now. For tests: a graph that has ended leaves
    /// none behind.
    #[doc(hidden)]
    pub fn alive() -> usize {
        ALIVE.load(Ordering::Relaxed)
    }

    /// A buffer that belongs to no pool: to try a stage without a pipeline, or as a temporary replacement for another buffer.
    ///
    /// # Errors
    /// If the memory cannot be allocated.
    pub fn auxiliary(size_bytes: usize) -> std::io::Result<Buffer> {
        Buffer::new(PathId::NONE, size_bytes)
    }

    /// Its capacity in bytes.
    pub fn capacity(&self) -> usize {
        self.0.memory.len()
    }

    /// The length of its contents in bytes.
    pub fn len(&self) -> usize {
        self.0.len
    }

    /// Whether its contents are empty.
    pub fn is_empty(&self) -> bool {
        self.0.len == 0
    }

    /// Sets the length of its contents in bytes.
    ///
    /// # Panics
    /// If the length exceeds the capacity.
    pub fn set_len(&mut self, len: usize) {
        assert!(len <= self.capacity(), "{len} bytes in a buffer of {}", self.capacity());
        self.0.len = len;
    }

    /// Its contents: `len()` bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0.memory[..self.0.len]
    }

    /// Its contents: `len()` bytes.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let len = self.0.len;
        &mut self.0.memory[..len]
    }

    /// All of its memory, regardless of the length of the contents.
    pub fn storage_mut(&mut self) -> &mut [u8] {
        &mut self.0.memory
    }

    /// The number of its round on its path, from 0: the index of the buffer in the order in which the path's source conveyed
    /// them.
    pub fn round(&self) -> u64 {
        self.0.round
    }

    /// The path whose pool it belongs to.
    pub fn path(&self) -> PathId {
        PathId(self.0.path as usize)
    }

    /// Whether it is the last one of its path (FG's caboose).
    pub fn is_last(&self) -> bool {
        self.0.last
    }

    /// Marks it as the last one of its path: for the first stage of the path, before it conveys the buffer.
    pub fn mark_last(&mut self) {
        self.0.last = true;
    }

    /// Whether it carries a block. The last buffer carries none if its source found the end of the data only after the last
    /// block; then stages that work on single buffers do not see it, only a [`Body`](crate::Body) does.
    pub fn carries_block(&self) -> bool {
        self.0.carries
    }

    /// A number that the program may attach to the buffer; it travels with it.
    pub fn tag(&self) -> u64 {
        self.0.tag
    }

    /// Sets the number that the program attaches to the buffer.
    pub fn set_tag(&mut self, tag: u64) {
        self.0.tag = tag;
    }

    #[inline]
    pub(crate) fn token(&self) -> &Token {
        &self.0.token
    }

    #[inline]
    pub(crate) fn token_mut(&mut self) -> &mut Token {
        &mut self.0.token
    }

    pub(crate) fn set_last(&mut self, last: bool) {
        self.0.last = last;
    }

    pub(crate) fn set_round(&mut self, round: u64) {
        self.0.round = round;
    }

    /// Turns it into a buffer without a block that only announces the end of its path.
    pub(crate) fn make_caboose(&mut self) {
        self.0.len = 0;
        self.0.last = true;
        self.0.carries = false;
    }

    /// Resets it to an empty buffer. This is done by the source when it takes the buffer, which saves one transfer of its
    /// cache line between CPUs.
    pub(crate) fn recycle(&mut self) {
        let inner = &mut *self.0;
        (inner.len, inner.last, inner.carries, inner.tag) = (0, false, true, 0);
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        ALIVE.fetch_sub(1, Ordering::Relaxed);
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { len, round, last, carries, tag, .. } = &*self.0;
        let path = self.path();
        write!(
            f,
            "Buffer {{ path: {path:?}, round: {round}, len: {len}, tag: {tag}, last: {last}, carries: {carries} }}"
        )
    }
}
