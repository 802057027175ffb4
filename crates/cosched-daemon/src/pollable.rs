//! Kernel file descriptors in the event loop.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A copy of a descriptor that the event loop waits on until it is readable.
pub(crate) fn pollable(fd: &impl AsFd) -> io::Result<AsyncFd<OwnedFd>> {
    let copy = fd.as_fd().try_clone_to_owned()?;
    #[expect(deprecated, reason = "its successor is unsafe, for types whose descriptor can change; OwnedFd's cannot")]
    AsyncFd::with_interest(copy, Interest::READABLE)
}
