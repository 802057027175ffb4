//! Files as pipelines use them, with real files: each engine reads what was written, and errors are reported.

mod engines;
mod errors;
mod full;
mod output;
mod refused;
mod support;
