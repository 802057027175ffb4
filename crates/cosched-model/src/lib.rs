//! What sharing CPUs costs a parallel program, in closed form: Strazdins & Uhlmann 2004, section 5.
//!
//! Texts go in, values come out: no file, no clock, no randomness. [`machine`] has the constants of a machine.
//! docs/model.md has the derivations.

pub mod machine;

pub use machine::{Machine, MachineError};
