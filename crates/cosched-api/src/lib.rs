//! What cosched's daemon and its clients say to each other: JSON over HTTP/1.1 on a Unix socket.

mod types;

pub use types::*;
