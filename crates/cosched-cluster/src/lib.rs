//! The control plane of one node of a cluster: which daemon has which name, which one plans, and what the node has to do.
//!
//! No input or output, no clock, no randomness: all of these are arguments. The daemon drives it with a real store; tests
//! and simulations use [`store::MemoryStore`].

pub mod backup;
#[doc(hidden)]
pub mod fuzz;
mod keys;
mod member;
pub mod repair;
pub mod store;
pub mod wire;

pub use keys::{BadName, Keys, check_name, request_id};
pub use member::{Action, AskId, Fenced, Found, Kept, Member, Moment, NotTaken, Notice, OpId, Settings};
