//! Paths: a pool of buffers and the stages that they pass through.

use super::kinds::StageId;

/// The route of a pool's buffers: from the pool through some stages and back to the pool.
#[derive(Debug, Clone)]
pub struct Path {
    pub(crate) name: String,
    pub(crate) buffers: usize,
    pub(crate) size_bytes: usize,
    pub(crate) stages: Vec<StageId>,
}

impl Path {
    /// A path without stages and without buffers.
    pub fn new(name: impl Into<String>) -> Path {
        Path { name: name.into(), buffers: 0, size_bytes: 0, stages: Vec::new() }
    }

    /// Sets the size of the pool: the number of buffers, and their size in bytes.
    pub fn buffers(mut self, count: usize, size_bytes: usize) -> Path {
        (self.buffers, self.size_bytes) = (count, size_bytes);
        self
    }

    /// Adds stages in order; the first one of the path is its source, the last one returns the
    /// buffers to the pool.
    pub fn through(mut self, stages: impl IntoIterator<Item = StageId>) -> Path {
        self.stages.extend(stages);
        self
    }
}
