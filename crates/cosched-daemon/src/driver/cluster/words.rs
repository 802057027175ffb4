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

pub(super) fn on_node_loss(rule: api::OnNodeLoss) -> wire::OnNodeLoss {
    match rule {
        api::OnNodeLoss::Kill => wire::OnNodeLoss::Kill,
        api::OnNodeLoss::Keep => wire::OnNodeLoss::Keep,
        api::OnNodeLoss::Requeue => wire::OnNodeLoss::Requeue,
    }
}
