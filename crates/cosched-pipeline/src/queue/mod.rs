//! The queues between stages, and the means to wake the threads that wait for them.

mod bell;
mod end;
mod gate;
mod inbox;
mod join;
mod ring;
mod sync;

pub(crate) use bell::{Awake, Bell, Topic};
pub(crate) use end::End;
pub(crate) use gate::{Gate, Working};
pub(crate) use inbox::{Inbox, Plan, Which};
pub(crate) use join::Join;
pub(crate) use ring::Ring;
pub(crate) use sync::prepare_heavy_fence;
