//! Paths: a pool of buffers and the stages that they go through.

use super::stage::StageId;

/// The number of a path in its graph, from 0 in the order of [`Graph::path`](crate::Graph::path).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId(pub(crate) usize);

impl PathId {
    /// Of a buffer that is on none.
    pub(crate) const NONE: PathId = PathId(usize::MAX);

    /// The number.
    pub fn index(self) -> usize {
        self.0
    }
}

/// A way of buffers: from the pool through some stages and back to the pool.
#[derive(Debug, Clone)]
pub struct Path {
    pub(crate) name: String,
    pub(crate) buffers: usize,
    pub(crate) size_bytes: usize,
    pub(crate) stages: Vec<StageId>,
}

impl Path {
    /// A path through nothing, with no buffers.
    pub fn new(name: impl Into<String>) -> Path {
        Path { name: name.into(), buffers: 0, size_bytes: 0, stages: Vec::new() }
    }

    /// Its pool: so many buffers of so many bytes.
    pub fn buffers(mut self, count: usize, size_bytes: usize) -> Path {
        (self.buffers, self.size_bytes) = (count, size_bytes);
        self
    }

    /// Its stages in order; the first one is the source, the last one gives the buffers back.
    pub fn through(mut self, stages: impl IntoIterator<Item = StageId>) -> Path {
        self.stages.extend(stages);
        self
    }
}
