//! The planner of a cluster: jobs that span nodes, queues, memory, and plans that take effect in a later slot.
//!
//! Problem: a gang's processes run on several nodes, and must have their CPUs at the same time without a message at the
//! slot boundary; nodes join and leave, and any daemon may be the planner.
//!
//! Rule. Gangs that span nodes are preallocated: each has cells in one row of a matrix over all CPUs of the cluster. Jobs
//! of one node have no entries: the planner only picks their node, and the node runs them on the CPUs that a turn leaves free
//! (see `fill.rs`), so that it responds to its own users at once and the cluster's plan stays small. How much a turn must
//! leave free follows from threads and load (`cycle.rs`). The planner's whole knowledge is a [`State`], plain data; a plan
//! is a function of it.
//!
//! Source: LLNL, "Gang Scheduler Design": "Programs spanning multiple computers … preallocated specific time-slices",
//! "for programs which execute exclusively on one computer, scheduling decisions are made at the beginning of each
//! time-slice"; SCore as described by Strazdins & Uhlmann (2004, section 3).

mod admit;
mod adrift;
mod buddy;
mod ceiling;
mod change;
mod cycle;
mod fair;
mod fill;
mod follow;
mod generation;
mod input;
mod layout;
mod lineup;
mod local;
mod nodes;
mod pace;
mod place;
mod plan;
mod planner;
mod publish;
mod queue;
mod rebalance;
mod reserve;
mod resources;
mod row;
mod sound;
mod state;
mod terms;

pub use adrift::{held, released};
pub use fair::{FairShare, Usage};
pub use fill::{fill, without};
pub use follow::{FollowAction, Follower};
pub use generation::{Lead, Member, holds_from};
pub use input::{Action, Input, Refusal};
pub use layout::{Laid, Layout, Span};
pub use local::{Known, LocalAction, LocalConfig, LocalJob, LocalScheduler};
pub use plan::{LINEUPS_MAX, Plan, PlannedJob, PlannedRow, Turn};
pub use planner::{BadState, Planner};
pub use queue::{Limit, Queue, Rights};
pub use state::{
    Capacity, Cells, Config, JobRecord, JobSpec, NEVER, NODE_DEAD_AFTER_NS, NUMBERS_END, NodeRecord, NodeWant,
    OnNodeLoss, Packing, Part, Period, Place, Stage, State, Want,
};
pub use terms::{After, Suspended, Terms};

/// A planner of two nodes with this number of CPUs each, for tests.
#[cfg(test)]
fn two_nodes(cpus: u32) -> Planner {
    use crate::{NodeId, Time};
    let mut planner = Planner::new(State::default()).unwrap();
    let capacity = Capacity { cpus, memory_bytes: 1 << 30, disk_bytes: 1 << 30 };
    for node in 0..2 {
        planner.handle(Time(0), Time(0), Input::Join(NodeId(node), capacity)).unwrap();
    }
    planner
}
