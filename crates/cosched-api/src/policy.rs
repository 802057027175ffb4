//! The words for how jobs are scheduled.

use crate::wire::wire;
use serde::{Deserialize, Serialize};

wire! {
    /// How a job (or, by default, every job) is scheduled.
    pub enum Policy {
        /// All processes of a job run in the same time slots.
        Gang,
        /// Linux schedules the job, with a share by its class.
        Local,
        /// As local; every 1 to 2 ms the node raises a job that has a message waiting (periodic boost).
        Pb,
        /// As local; the arrival of a message raises its job (demand-based coscheduling).
        Dcs,
        /// One of the others, chosen and changed by what the job is seen to do.
        Auto,
    }
}

impl Policy {
    /// Every policy.
    pub const ALL: [Policy; 5] = [Policy::Auto, Policy::Gang, Policy::Local, Policy::Pb, Policy::Dcs];
}

impl Sharing {
    /// Every sharing.
    pub const ALL: [Sharing; 3] = [Sharing::Soft, Sharing::Paired, Sharing::Strict];
}

wire! {
    /// What the gangs that are not current may do in a slot.
    pub enum Sharing {
        /// Nothing: they are frozen.
        Strict,
        /// The gang of the next turn runs on what the current one leaves idle.
        Paired,
        /// Run on what the current gang leaves idle.
        Soft,
    }
}
