//! What lies between the engines (simulator, model) and people: what is simulated and modelled, with which numbers, and what comes
//! of it. Texts and values in, values out: no files, no processes, no options, no exit codes (decision 0041).

pub mod advise;
pub mod compare;
pub mod engine;
mod error;
pub mod live;
pub mod network;
pub mod predict;
pub mod profile;
pub mod program;
pub mod slowdown;
pub mod workload;

pub use error::{Error, Reason};
