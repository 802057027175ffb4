//! The operator's settings in their serialised form.

use super::names::{Packing, Period, Policy, Sharing, same_fields};
use cosched_core::cluster::{Config as Core, NODE_DEAD_AFTER_NS};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Config {
    slot_length_ns: u64,
    policy: Policy,
    sharing: Sharing,
    packing: Packing,
    rows_max: u32,
    working: Shares,
    off: Shares,
    period: Period,
    other_share: u32,
    ceiling_permille: u32,
    #[serde(default = "usual_dead_after", skip_serializing_if = "is_usual_dead_after")]
    node_dead_after_ns: u64,
    queues: Vec<Queue>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fair_share: Option<FairShare>,
}

/// The parameters of fair share; see core's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "core says what each means")]
pub struct FairShare {
    pub half_life_ns: u64,
    pub weight_ns: u64,
}

same_fields!(FairShare = cosched_core::cluster::FairShare { half_life_ns, weight_ns });

fn usual_dead_after() -> u64 {
    NODE_DEAD_AFTER_NS
}

fn is_usual_dead_after(ns: &u64) -> bool {
    *ns == NODE_DEAD_AFTER_NS
}

/// The classes' shares; see core's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "core says what each means")]
pub struct Shares {
    pub express: u32,
    pub interactive: u32,
    pub batch: u32,
    pub standby: u32,
}

same_fields!(Shares = cosched_core::Shares { express, interactive, batch, standby });

/// A queue; see core's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "core says what each means")]
pub struct Queue {
    pub name: String,
    pub exclusive: bool,
    pub memory_bytes_max: Option<u64>,
    pub disk_bytes_max: Option<u64>,
    pub time_ns_max: Option<u64>,
    #[serde(default, skip_serializing_if = "Rights::are_none")]
    pub rights: Rights,
}

same_fields! {
    Queue = cosched_core::cluster::Queue { name, exclusive, memory_bytes_max, disk_bytes_max, time_ns_max, rights }
}

/// A queue's users and their limits; see core's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "core says what each means")]
pub struct Rights {
    #[serde(default)]
    pub users: Vec<u32>,
    #[serde(default)]
    pub groups: Vec<u32>,
    #[serde(default)]
    pub memory_bytes_max: Option<u64>,
    #[serde(default)]
    pub jobs_max: Option<u32>,
}

same_fields!(Rights = cosched_core::cluster::Rights { users, groups, memory_bytes_max, jobs_max });

impl Rights {
    fn are_none(&self) -> bool {
        *self == Rights::default()
    }
}

impl From<&Core> for Config {
    fn from(of_core: &Core) -> Config {
        let Core { slot_length_ns, rows_max, other_share, ceiling_permille, node_dead_after_ns, .. } = *of_core;
        let Core { policy, sharing, packing, working, off, period, queues, fair_share, .. } = of_core;
        Config {
            slot_length_ns,
            policy: (*policy).into(),
            sharing: (*sharing).into(),
            packing: (*packing).into(),
            rows_max,
            working: (*working).into(),
            off: (*off).into(),
            period: (*period).into(),
            other_share,
            ceiling_permille,
            node_dead_after_ns,
            queues: queues.iter().cloned().map(Into::into).collect(),
            fair_share: fair_share.map(Into::into),
        }
    }
}

impl From<Config> for Core {
    fn from(of_wire: Config) -> Core {
        let Config { slot_length_ns, rows_max, other_share, ceiling_permille, node_dead_after_ns, .. } = of_wire;
        let Config { policy, sharing, packing, working, off, period, queues, fair_share, .. } = of_wire;
        Core {
            slot_length_ns,
            policy: policy.into(),
            sharing: sharing.into(),
            packing: packing.into(),
            rows_max,
            working: working.into(),
            off: off.into(),
            period: period.into(),
            other_share,
            ceiling_permille,
            node_dead_after_ns,
            queues: queues.into_iter().map(Into::into).collect(),
            fair_share: fair_share.map(Into::into),
        }
    }
}
