//! The layer between the engines (simulator, model) and the user interface: what to simulate and model, with which numbers, and
//! how to evaluate the results. Functions from texts and values to values: no files, no processes, no options, no exit codes
//! (decision 0041).

pub mod advise;
pub mod compare;
pub mod engine;
mod error;
pub mod generate;
pub mod live;
pub mod network;
pub mod predict;
pub mod profile;
pub mod program;
pub mod slowdown;
pub mod whatif;
pub mod workload;

pub use error::{Error, Reason};
