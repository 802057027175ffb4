//! How a process waits on a live node: the page that it shares with the node, and how long to spin.

pub mod page;
pub mod spin;
