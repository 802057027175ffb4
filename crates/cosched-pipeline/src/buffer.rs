//! Buffers: page-aligned memory that is recycled and passed by pointer, never copied.

use std::fmt;

use memmap2::MmapMut;

use crate::graph::PathId;

/// A buffer of a path's pool. Moving it moves a pointer.
///
/// Its memory is page-aligned, so that direct I/O needs no copy. What is in it is what the stages before wrote; a buffer
/// that comes from the pool has length 0 and still holds the bytes of its last round.
pub struct Buffer(pub(crate) Box<Inner>);

pub(crate) struct Inner {
    memory: MmapMut,
    len: usize,
    round: u64,
    path: PathId,
    last: bool,
    carries: bool,
    tag: u64,
    pub(crate) token: Token,
}

/// Where a buffer is among the stages that run on workers.
#[derive(Clone, Copy)]
pub(crate) struct Token {
    /// Its number among the buffers that come to this station of its path, without gaps.
    pub(crate) number: u64,
    /// The station.
    pub(crate) station: u32,
    /// The incarnation that works for it, where the station has several.
    pub(crate) incarnation: u32,
    /// The next one in a chain of buffers.
    pub(crate) behind: *mut Inner,
}

// SAFETY: `behind` is null but while the buffer hangs in a chain, where whoever takes the chain owns all of it.
unsafe impl Send for Token {}
// SAFETY: as above; nobody follows `behind` through a shared reference.
unsafe impl Sync for Token {}

impl Default for Token {
    fn default() -> Token {
        Token { number: 0, station: 0, incarnation: 0, behind: std::ptr::null_mut() }
    }
}

impl Buffer {
    /// A buffer of `size_bytes` for the pool of `path`.
    pub(crate) fn new(path: PathId, size_bytes: usize) -> std::io::Result<Buffer> {
        let memory = MmapMut::map_anon(size_bytes)?;
        Ok(Buffer(Box::new(Inner { memory, len: 0, round: 0, path, last: false, carries: true, tag: 0, token: Token::default() })))
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
        self.0.path
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

    /// Back to what a buffer of the pool is.
    pub(crate) fn recycle(&mut self) {
        let inner = &mut *self.0;
        (inner.len, inner.last, inner.carries, inner.tag) = (0, false, true, 0);
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { len, round, path, last, carries, tag, .. } = &*self.0;
        write!(
            f,
            "Buffer {{ path: {path:?}, round: {round}, len: {len}, tag: {tag}, last: {last}, carries: {carries} }}"
        )
    }
}
