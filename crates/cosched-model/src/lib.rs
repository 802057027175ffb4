//! The cost of sharing CPUs for a parallel program, in closed form: Strazdins & Uhlmann 2004, section 5.
//!
//! Functions from texts to values: no files, no clock, no randomness. A [`machine::Machine`] has the constants; the
//! closed form of a program ([`matmul`], [`lu`], [`profile`]) makes a [`cost::Cost`] of named terms from them;
//! [`slowdown::Job`] computes the slowdown of j of these; [`errors`] analyses the difference to a measurement.
//! docs/model.md has the derivations.

pub mod cache;
pub mod cost;
pub mod errors;
pub mod fit;
pub mod grid;
pub mod lu;
pub mod machine;
pub mod matmul;
pub mod pipeline;
pub mod profile;
pub mod slowdown;
pub mod switch;
pub mod table3;
pub mod waitpage;

pub use cost::{Cost, Kind, Term};
pub use grid::{Grid, Problem, ShapeError};
pub use machine::{Machine, MachineError};
pub use slowdown::Job;
