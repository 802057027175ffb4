//! The command `cosched` as its users run it, against a daemon that pretends.

mod bench;
mod commands;
mod compare;
mod demo;
mod fake;
mod model;
mod pipeline;
mod run;
mod sim_misuse;
mod sim_results;
mod workload;
