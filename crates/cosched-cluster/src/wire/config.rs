//! The operator's settings, as they are written.

use super::names::{Packing, Period, Policy, Sharing};
use cosched_core::Shares as CoreShares;
use cosched_core::cluster::{Config as Core, NODE_DEAD_AFTER_NS, Queue as CoreQueue};
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
}

fn usual_dead_after() -> u64 {
    NODE_DEAD_AFTER_NS
}

fn is_usual_dead_after(ns: &u64) -> bool {
    *ns == NODE_DEAD_AFTER_NS
}

/// What the classes are worth; see core's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "core says what each means")]
pub struct Shares {
    pub express: u32,
    pub interactive: u32,
    pub batch: u32,
    pub standby: u32,
}

/// A queue; see core's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "core says what each means")]
pub struct Queue {
    pub name: String,
    pub exclusive: bool,
    pub memory_bytes_max: Option<u64>,
    pub disk_bytes_max: Option<u64>,
    pub time_ns_max: Option<u64>,
}

impl From<&Core> for Config {
    fn from(of_core: &Core) -> Config {
        let Core { slot_length_ns, rows_max, other_share, ceiling_permille, node_dead_after_ns, .. } = *of_core;
        let Core { policy, sharing, packing, working, off, period, queues, .. } = of_core;
        Config {
            slot_length_ns,
            policy: (*policy).into(),
            sharing: (*sharing).into(),
            packing: (*packing).into(),
            rows_max,
            working: working.into(),
            off: off.into(),
            period: (*period).into(),
            other_share,
            ceiling_permille,
            node_dead_after_ns,
            queues: queues.iter().map(Queue::from).collect(),
        }
    }
}

impl From<Config> for Core {
    fn from(of_wire: Config) -> Core {
        let Config { slot_length_ns, rows_max, other_share, ceiling_permille, node_dead_after_ns, .. } = of_wire;
        let Config { policy, sharing, packing, working, off, period, queues, .. } = of_wire;
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
            queues: queues.into_iter().map(CoreQueue::from).collect(),
        }
    }
}

impl From<&CoreShares> for Shares {
    fn from(of_core: &CoreShares) -> Shares {
        let CoreShares { express, interactive, batch, standby } = *of_core;
        Shares { express, interactive, batch, standby }
    }
}

impl From<Shares> for CoreShares {
    fn from(of_wire: Shares) -> CoreShares {
        let Shares { express, interactive, batch, standby } = of_wire;
        CoreShares { express, interactive, batch, standby }
    }
}

impl From<&CoreQueue> for Queue {
    fn from(of_core: &CoreQueue) -> Queue {
        let CoreQueue { name, exclusive, memory_bytes_max, disk_bytes_max, time_ns_max } = of_core.clone();
        Queue { name, exclusive, memory_bytes_max, disk_bytes_max, time_ns_max }
    }
}

impl From<Queue> for CoreQueue {
    fn from(of_wire: Queue) -> CoreQueue {
        let Queue { name, exclusive, memory_bytes_max, disk_bytes_max, time_ns_max } = of_wire;
        CoreQueue { name, exclusive, memory_bytes_max, disk_bytes_max, time_ns_max }
    }
}
