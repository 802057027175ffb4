//! Files as pipelines use them, against real files: what is written is read, by each engine, and what cannot be is told.

mod engines;
mod errors;
mod full;
mod output;
mod refused;
mod support;
