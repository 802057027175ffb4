//! The command `cosched` as users run it, against a fake daemon.

mod bench;
mod commands;
mod compare;
mod decide;
mod demo;
mod evalys;
mod fake;
mod model;
mod phases;
mod pipeline;
mod platform;
mod run;
mod sim_misuse;
mod sim_results;
mod thaw;
mod waits;
mod workload;
