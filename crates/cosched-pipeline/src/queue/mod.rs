//! The queues between stages.

mod inbox;
mod join;

pub(crate) use inbox::{Inbox, Which};
pub(crate) use join::Join;
