//! The earliest time at which a new plan may take effect.
//!
//! Problem: daemons see a new plan at different times, and two that run different plans in the same slot give a CPU to
//! two gangs. Rule. A node that has acknowledged the newest plan is well and sees the next one within a known time. A node
//! that has not may be disconnected, but not for ever: a node reads the plan before it renews its lease, and runs no gang
//! slots once its lease has expired. So when its lease ends, it either has seen the new plan or does no harm, and the plan
//! takes effect then. Nodes whose lease has expired no longer count. When the node that lagged acknowledges after all, there is no
//! need to wait for its lease: the plan is overtaken by the next one ([`super::Planner::overtake`]).
//! Source: leases as in Gray & Cheriton 1989; DESIGN.md, chapter 6.

use crate::id::NodeId;
use crate::time::Time;

/// What the store contains about a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// The node.
    pub node: NodeId,
    /// When its lease ends unless it is renewed.
    pub lease_until: Time,
    /// The newest generation that it has acknowledged.
    pub acknowledged: u64,
}

/// How far ahead of their start plans are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lead {
    /// The time within which a well node sees a new plan.
    pub ahead_ns: u64,
    /// The largest difference between the clocks of two nodes.
    pub clock_error_ns: u64,
}

impl Default for Lead {
    fn default() -> Lead {
        Lead { ahead_ns: 500_000_000, clock_error_ns: 10_000_000 }
    }
}

/// The earliest time at which the plan after generation `newest` may take effect.
pub fn holds_from(now: Time, newest: u64, members: &[Member], lead: &Lead) -> Time {
    let live = members.iter().filter(|member| member.lease_until + lead.clock_error_ns > now);
    let behind = live.filter(|member| member.acknowledged < newest);
    let leases_end = behind.map(|member| member.lease_until + lead.clock_error_ns).max();
    (now + lead.ahead_ns).max(leases_end.unwrap_or(now))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAD: Lead = Lead { ahead_ns: 500, clock_error_ns: 10 };

    fn member(lease_until: u64, acknowledged: u64) -> Member {
        Member { node: NodeId(0), lease_until: Time(lease_until), acknowledged }
    }

    #[test]
    fn nodes_that_are_well_need_the_usual_time() {
        assert_eq!(holds_from(Time(1000), 7, &[member(9000, 7), member(2000, 8)], &LEAD), Time(1500));
        assert_eq!(holds_from(Time(1000), 7, &[], &LEAD), Time(1500));
    }

    #[test]
    fn a_node_that_lags_is_waited_for_until_its_lease_ends() {
        assert_eq!(holds_from(Time(1000), 7, &[member(9000, 7), member(3000, 6)], &LEAD), Time(3010));
        assert_eq!(holds_from(Time(1000), 7, &[member(1200, 6)], &LEAD), Time(1500), "sooner than the others see it");
    }

    #[test]
    fn a_node_whose_lease_is_out_counts_no_more() {
        assert_eq!(holds_from(Time(1000), 7, &[member(990, 2)], &LEAD), Time(1500));
        // By its own clock its lease may last a little longer.
        assert_eq!(holds_from(Time(1000), 7, &[member(995, 2)], &Lead { ahead_ns: 0, ..LEAD }), Time(1005));
    }
}
