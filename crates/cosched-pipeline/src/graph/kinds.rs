//! The words of graphs that queues, buffers and threads know, too: what stages and paths are numbered by, how a stage runs, what it returns.

/// The index of a stage in its graph, from 0 in the order of the calls of [`Graph::stage`](crate::Graph::stage).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StageId(pub(crate) usize);

impl StageId {
    /// The index, from 0.
    pub fn index(self) -> usize {
        self.0
    }
}

/// The index of a path in its graph, from 0 in the order of the calls of
/// [`Graph::path`](crate::Graph::path).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId(pub(crate) usize);

impl PathId {
    /// For buffers that are on no path.
    pub(crate) const NONE: PathId = PathId(usize::MAX);

    /// The index, from 0.
    pub fn index(self) -> usize {
        self.0
    }
}

/// What a source returns for a buffer. All other stages return `Continue`: the caboose ends them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// More buffers follow.
    Continue,
    /// This buffer is the last.
    Last,
    /// This buffer carries no block; the previous one was the last.
    End,
}

/// How a stage runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// On a thread of its own: for stages that block (I/O, messages, foreign calls).
    Thread,
    /// On the graph's workers, which carry a buffer through as many stages as they can: for stages that compute.
    Worker,
}
