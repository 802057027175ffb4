//! What sharing CPUs costs a parallel program, in closed form: Strazdins & Uhlmann 2004, section 5.
//!
//! Texts go in, values come out: no file, no clock, no randomness. A [`machine::Machine`] has the constants; a program's
//! form ([`matmul`], [`lu`], [`profile`]) makes a [`cost::Cost`] of them, whose terms have names; [`slowdown::Job`] says
//! what j of these cost each other; [`errors`] splits what a measurement then shows. docs/model.md has the derivations.

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
