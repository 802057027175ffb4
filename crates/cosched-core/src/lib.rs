//! The decisions of cosched, without input or output: plain data in, plain data out.
//!
//! Two state machines. The [`Planner`] turns jobs into an immutable [`Plan`]: the Ousterhout matrix and the cycle of
//! its rows. The [`Agent`] of a node observes the jobs under a plan and tells the node what to do. Both take the
//! time as an argument; the row at a time is a pure function of the plan and that time. The daemon and the simulator
//! drive these same two machines.
#![no_std]
extern crate alloc;

mod agent;
pub mod backfill;
mod class;
pub mod cluster;
mod decision;
mod id;
mod job;
mod matrix;
mod plan;
mod planner;
mod policy;
mod reason;
mod sound;
pub mod stage;
mod table;
mod time;
mod topology;
pub mod wait;

pub use agent::{Agent, AgentAction, AgentConfig, AgentInput};
pub use class::{Class, Shares};
pub use decision::{Asker, Bound, Decision, Decisions, Matter};
pub use id::{JobId, NodeId};
pub use job::{Job, Node, Packing, Policy, Sharing};
pub use matrix::{Column, Matrix, Placement, Row};
pub use plan::{Disposition, Plan, PlannedJob, Standing, Turn};
pub use planner::{Planner, PlannerAction, PlannerConfig, PlannerError, PlannerInput};
pub use policy::SLOT_LENGTH_NS;
pub use policy::auto::{Auto, AutoConfig, Choice, GANG_SPIN_NS, Seen};
pub use policy::boost::{Boost, BoostConfig, BoostView, Booster};
pub use policy::dynamic::{Endpoint, Heuristic, Look, OnArrival, Wait, boost_candidate, interrupts, yield_level};
pub use policy::fill;
pub use policy::gang::next_row;
pub use policy::held::{Held, HeldPart};
pub use policy::neighbours::{Neighbour, Ours, phase};
pub use policy::share::SlotShare;
pub use policy::subgangs;
pub use reason::Reason;
pub use sound::Flaw;
pub use table::{Apart, Entry, Fill, Prepared, Table};
pub use time::Time;
pub use topology::{Cpu, Topology};
