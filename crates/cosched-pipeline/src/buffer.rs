//! Buffers: page-aligned memory that is recycled and passed by pointer, never copied.

use std::fmt;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use memmap2::MmapMut;

use crate::graph::PathId;

/// A buffer of a path's pool. Moving it moves a pointer.
///
/// Its memory is page-aligned, so that direct I/O needs no copy. What is in it is what the stages before wrote; a buffer
/// that comes from the pool has length 0 and still holds the bytes of its last round.
pub struct Buffer(pub(crate) Box<Inner>);

/// How many buffers this process has.
static ALIVE: AtomicUsize = AtomicUsize::new(0);

/// One cache line goes from processor to processor with the buffer; what is seldom used lies behind it.
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
    /// The next one in a chain of buffers. Null, and nobody's, but while it hangs in one.
    pub(crate) behind: AtomicPtr<Inner>,
}

const _: () = assert!(std::mem::offset_of!(Inner, behind) <= 64, "the line is full");

/// Where a buffer is: its place in the order, and among the stages that run on workers.
#[derive(Default)]
pub(crate) struct Token {
    /// Its number among the buffers that come to the next stage of its path, in their order, without gaps.
    pub(crate) number: u64,
    /// The station.
    pub(crate) station: u32,
    /// The incarnation that works for it, where the station has several.
    pub(crate) incarnation: u32,
}

impl Buffer {
    /// A buffer of `size_bytes` for the pool of `path`.
    pub(crate) fn new(path: PathId, size_bytes: usize) -> std::io::Result<Buffer> {
        let memory = MmapMut::map_anon(size_bytes)?;
        // Stages that touch a large buffer here and there pay for its small pages. A kernel without large ones says no.
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

    /// How many buffers of all graphs of this process there are now: none is left behind by a graph that has ended. For tests.
    #[doc(hidden)]
    pub fn alive() -> usize {
        ALIVE.load(Ordering::Relaxed)
    }

    /// A buffer of no pool: to try a stage without a pipeline, or to stand in for another while that is elsewhere.
    ///
    /// # Errors
    /// Memory that cannot be had.
    pub fn auxiliary(size_bytes: usize) -> std::io::Result<Buffer> {
        Buffer::new(PathId::NONE, size_bytes)
    }

    /// How many bytes it can hold.
    pub fn capacity(&self) -> usize {
        self.0.memory.len()
    }

    /// How many bytes it holds.
    pub fn len(&self) -> usize {
        self.0.len
    }

    /// Whether it holds no bytes.
    pub fn is_empty(&self) -> bool {
        self.0.len == 0
    }

    /// Says how many bytes it holds.
    ///
    /// # Panics
    /// If that is more than its capacity.
    pub fn set_len(&mut self, len: usize) {
        assert!(len <= self.capacity(), "{len} bytes in a buffer of {}", self.capacity());
        self.0.len = len;
    }

    /// The bytes that it holds.
    pub fn bytes(&self) -> &[u8] {
        &self.0.memory[..self.0.len]
    }

    /// The bytes that it holds.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let len = self.0.len;
        &mut self.0.memory[..len]
    }

    /// All its memory, whatever it holds.
    pub fn storage_mut(&mut self) -> &mut [u8] {
        &mut self.0.memory
    }

    /// The number of its round on its path, from 0: the how-manieth buffer the path's source conveyed.
    pub fn round(&self) -> u64 {
        self.0.round
    }

    /// The path whose pool it belongs to.
    pub fn path(&self) -> PathId {
        PathId(self.0.path as usize)
    }

    /// Whether it is its path's last one (FG's caboose).
    pub fn is_last(&self) -> bool {
        self.0.last
    }

    /// Says that it is its path's last one: for the stage at the path's beginning, before it conveys it.
    pub fn mark_last(&mut self) {
        self.0.last = true;
    }

    /// Whether it carries a block. The last buffer does not when its source found the end only behind the last block;
    /// then it goes by the stages that work on single buffers, and only a [`Body`](crate::Body) sees it.
    pub fn carries_block(&self) -> bool {
        self.0.carries
    }

    /// A number of the user's own that goes with the buffer.
    pub fn tag(&self) -> u64 {
        self.0.tag
    }

    /// Sets the user's number.
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

    /// It announces the end of its path and nothing else.
    pub(crate) fn make_caboose(&mut self) {
        self.0.len = 0;
        self.0.last = true;
        self.0.carries = false;
    }

    /// Back to what an empty buffer is. Done where the source takes it, so that its memory goes to one processor less.
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
