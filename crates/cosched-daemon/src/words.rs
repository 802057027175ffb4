//! Conversions between the wire's types, which users see, and those of core and the store.

use crate::refuse::{Answer, refuse};
use cosched_api as api;
use cosched_cluster::wire;
use cosched_core as core;
pub(crate) fn class(class: api::Class) -> wire::Class {
    core_class(class).into()
}

pub(crate) fn api_class(class: wire::Class) -> api::Class {
    match class {
        wire::Class::Express => api::Class::Express,
        wire::Class::Interactive => api::Class::Interactive,
        wire::Class::Batch => api::Class::Batch,
        wire::Class::Standby => api::Class::Standby,
    }
}

pub(crate) fn policy(policy: api::Policy) -> wire::Policy {
    core_policy(policy).into()
}

pub(crate) fn api_policy(policy: wire::Policy) -> api::Policy {
    wire_policy(policy.into())
}

pub(crate) fn packing(packing: api::Packing) -> wire::Packing {
    match packing {
        api::Packing::FirstFit => wire::Packing::FirstFit,
        api::Packing::BestFit => wire::Packing::BestFit,
        api::Packing::Buddy => wire::Packing::Buddy,
    }
}

pub(crate) fn api_packing(packing: core::cluster::Packing) -> api::Packing {
    match packing {
        core::cluster::Packing::FirstFit => api::Packing::FirstFit,
        core::cluster::Packing::BestFit => api::Packing::BestFit,
        core::cluster::Packing::Buddy => api::Packing::Buddy,
    }
}

pub(crate) fn api_shares(shares: core::Shares) -> api::ClassShares {
    let core::Shares { express, interactive, batch, standby } = shares;
    api::ClassShares { express, interactive, batch, standby }
}

pub(crate) fn shares(shares: api::ClassShares) -> wire::Shares {
    let api::ClassShares { express, interactive, batch, standby } = shares;
    wire::Shares { express, interactive, batch, standby }
}

pub(crate) fn api_fair_share(fair: core::cluster::FairShare) -> api::FairShare {
    let ms = |ns: u64| ns / 1_000_000;
    api::FairShare { half_life_ms: ms(fair.half_life_ns), weight_ms: ms(fair.weight_ns) }
}

pub(crate) fn waiting(waiting: api::Waiting) -> wire::WaitAsk {
    wire::WaitAsk { mode: waiting.mode.name().to_owned(), spin_us: waiting.spin_us }
}

pub(crate) fn api_waiting(asked: &wire::WaitAsk) -> api::Waiting {
    let mode = api::WaitMode::ALL.into_iter().find(|mode| mode.name() == asked.mode).unwrap_or_default();
    api::Waiting { mode, spin_us: asked.spin_us }
}

pub(crate) fn on_node_loss(rule: api::OnNodeLoss) -> wire::OnNodeLoss {
    match rule {
        api::OnNodeLoss::Kill => wire::OnNodeLoss::Kill,
        api::OnNodeLoss::Keep => wire::OnNodeLoss::Keep,
        api::OnNodeLoss::Requeue => wire::OnNodeLoss::Requeue,
    }
}

pub(crate) fn out_of_memory(told: api::OutOfMemory) -> wire::OutOfMemory {
    let api::OutOfMemory { killed, limit_bytes } = told;
    wire::OutOfMemory { killed, limit_bytes }
}

pub(crate) fn api_out_of_memory(told: wire::OutOfMemory) -> api::OutOfMemory {
    let wire::OutOfMemory { killed, limit_bytes } = told;
    api::OutOfMemory { killed, limit_bytes }
}

/// A share of the slots from its part of the time.
///
/// # Errors
/// It is no valid part: 0, more than 1, or nearer to 0 than a thousandth.
pub(crate) fn slot_share(part: f64) -> Answer<core::SlotShare> {
    let permille = (part * 1000.0).round();
    let share = (0.0..=1000.0).contains(&permille).then_some(permille as u32).and_then(core::SlotShare::new);
    share.filter(|_| part <= 1.0).ok_or_else(|| {
        let percent = part * 100.0;
        let why = "a share is the part of the time that the job runs: more than 0%, and at most 100%";
        let hint = "Give for example 50%; `cosched suspend` stops a job, and the share `none` lifts the limit.";
        refuse(api::ErrorCode::Invalid, format!("a share of {percent}% is not possible"), why, hint)
    })
}

/// The part of the time for a share in thousandths.
pub(crate) fn api_share(permille: u32) -> f64 {
    f64::from(permille) / 1000.0
}

pub(crate) fn core_class(class: api::Class) -> core::Class {
    match class {
        api::Class::Express => core::Class::Express,
        api::Class::Interactive => core::Class::Interactive,
        api::Class::Batch => core::Class::Batch,
        api::Class::Standby => core::Class::Standby,
    }
}

/// Converts the wire's policy to core's.
pub(crate) fn core_policy(policy: api::Policy) -> core::Policy {
    match policy {
        api::Policy::Gang => core::Policy::Gang,
        api::Policy::Local => core::Policy::Local,
        api::Policy::Pb => core::Policy::Pb,
        api::Policy::Dcs => core::Policy::Dcs,
        api::Policy::Auto => core::Policy::Auto,
    }
}

/// Converts the wire's sharing to core's.
pub(crate) fn core_sharing(sharing: api::Sharing) -> core::Sharing {
    match sharing {
        api::Sharing::Strict => core::Sharing::Strict,
        api::Sharing::Paired => core::Sharing::Paired,
        api::Sharing::Soft => core::Sharing::Soft,
    }
}

/// Converts core's policy to the wire's.
pub(crate) fn wire_policy(policy: core::Policy) -> api::Policy {
    match policy {
        core::Policy::Gang => api::Policy::Gang,
        core::Policy::Local => api::Policy::Local,
        core::Policy::Pb => api::Policy::Pb,
        core::Policy::Dcs => api::Policy::Dcs,
        core::Policy::Auto => api::Policy::Auto,
    }
}

/// Converts core's sharing to the wire's.
pub(crate) fn wire_sharing(sharing: core::Sharing) -> api::Sharing {
    match sharing {
        core::Sharing::Strict => api::Sharing::Strict,
        core::Sharing::Paired => api::Sharing::Paired,
        core::Sharing::Soft => api::Sharing::Soft,
    }
}
