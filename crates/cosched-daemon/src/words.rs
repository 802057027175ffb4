//! Conversions between the wire's types, which users see, and those of core and the store.

use crate::refuse::{Answer, refuse};
use cosched_api as api;
use cosched_cluster::wire;
use cosched_core as core;

/// A word of one enumeration for that of another with the same words; it does not compile otherwise.
macro_rules! same {
    ($name:ident: $from:ty => $to:ty, $($word:ident),+) => {
        pub(crate) fn $name(word: $from) -> $to {
            match word { $(<$from>::$word => <$to>::$word),+ }
        }
    };
}

same!(api_class: wire::Class => api::Class, Express, Interactive, Batch, Standby);
same!(packing: api::Packing => wire::Packing, FirstFit, BestFit, Buddy);
same!(api_packing: core::cluster::Packing => api::Packing, FirstFit, BestFit, Buddy);
same!(on_node_loss: api::OnNodeLoss => wire::OnNodeLoss, Kill, Keep, Requeue);
same!(core_class: api::Class => core::Class, Express, Interactive, Batch, Standby);
same!(core_policy: api::Policy => core::Policy, Gang, Local, Pb, Dcs, Auto);
same!(core_sharing: api::Sharing => core::Sharing, Strict, Paired, Soft);
same!(wire_policy: core::Policy => api::Policy, Gang, Local, Pb, Dcs, Auto);
same!(wire_sharing: core::Sharing => api::Sharing, Strict, Paired, Soft);
same!(wait_mode: core::Wait => api::WaitMode, Busy, SpinBlock, SpinYield);

pub(crate) fn class(class: api::Class) -> wire::Class {
    core_class(class).into()
}

pub(crate) fn policy(policy: api::Policy) -> wire::Policy {
    core_policy(policy).into()
}

pub(crate) fn api_policy(policy: wire::Policy) -> api::Policy {
    wire_policy(policy.into())
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
