//! How a process waits on a live node: what it and the node tell each other, and how long to spin.

pub mod page;
pub mod spin;
