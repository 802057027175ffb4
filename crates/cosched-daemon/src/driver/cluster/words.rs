//! The words of the wire to users in those of the store, and back.

use super::super::machine;
use cosched_api as api;
use cosched_cluster::wire;

pub(super) fn class(class: api::Class) -> wire::Class {
    machine::core_class(class).into()
}

pub(super) fn api_class(class: wire::Class) -> api::Class {
    match class {
        wire::Class::Express => api::Class::Express,
        wire::Class::Interactive => api::Class::Interactive,
        wire::Class::Batch => api::Class::Batch,
        wire::Class::Standby => api::Class::Standby,
    }
}

pub(super) fn policy(policy: api::Policy) -> wire::Policy {
    machine::core_policy(policy).into()
}

pub(super) fn api_policy(policy: wire::Policy) -> api::Policy {
    machine::wire_policy(policy.into())
}

pub(super) fn packing(packing: api::Packing) -> wire::Packing {
    match packing {
        api::Packing::FirstFit => wire::Packing::FirstFit,
        api::Packing::BestFit => wire::Packing::BestFit,
        api::Packing::Buddy => wire::Packing::Buddy,
    }
}

pub(super) fn api_packing(packing: cosched_core::cluster::Packing) -> api::Packing {
    match packing {
        cosched_core::cluster::Packing::FirstFit => api::Packing::FirstFit,
        cosched_core::cluster::Packing::BestFit => api::Packing::BestFit,
        cosched_core::cluster::Packing::Buddy => api::Packing::Buddy,
    }
}

pub(super) fn api_shares(shares: cosched_core::Shares) -> api::ClassShares {
    let cosched_core::Shares { express, interactive, batch, standby } = shares;
    api::ClassShares { express, interactive, batch, standby }
}

pub(super) fn shares(shares: api::ClassShares) -> wire::Shares {
    let api::ClassShares { express, interactive, batch, standby } = shares;
    wire::Shares { express, interactive, batch, standby }
}

pub(super) fn api_fair_share(fair: cosched_core::cluster::FairShare) -> api::FairShare {
    let ms = |ns: u64| ns / 1_000_000;
    api::FairShare { half_life_ms: ms(fair.half_life_ns), weight_ms: ms(fair.weight_ns) }
}

pub(super) fn waiting(waiting: api::Waiting) -> wire::WaitAsk {
    wire::WaitAsk { mode: waiting.mode.name().to_owned(), spin_us: waiting.spin_us }
}

pub(super) fn api_waiting(asked: &wire::WaitAsk) -> api::Waiting {
    let mode = api::WaitMode::ALL.into_iter().find(|mode| mode.name() == asked.mode).unwrap_or_default();
    api::Waiting { mode, spin_us: asked.spin_us }
}

pub(super) fn on_node_loss(rule: api::OnNodeLoss) -> wire::OnNodeLoss {
    match rule {
        api::OnNodeLoss::Kill => wire::OnNodeLoss::Kill,
        api::OnNodeLoss::Keep => wire::OnNodeLoss::Keep,
        api::OnNodeLoss::Requeue => wire::OnNodeLoss::Requeue,
    }
}

pub(super) fn out_of_memory(told: api::OutOfMemory) -> wire::OutOfMemory {
    let api::OutOfMemory { killed, limit_bytes } = told;
    wire::OutOfMemory { killed, limit_bytes }
}

pub(super) fn api_out_of_memory(told: wire::OutOfMemory) -> api::OutOfMemory {
    let wire::OutOfMemory { killed, limit_bytes } = told;
    api::OutOfMemory { killed, limit_bytes }
}
