//! coschedd: manages the jobs of one node and drives the policy. Decisions are made in cosched-core, system calls in cosched-linux.

mod accounting;
mod args;
mod audit;
mod bounds;
mod budget;
mod calendar;
mod call;
mod check;
mod clock;
pub mod cluster;
mod config;
mod containers;
mod decided;
mod door;
mod driver;
mod events;
#[doc(hidden)]
pub mod fuzz;
mod ground;
mod guard;
mod guest;
mod http;
mod instance;
mod journal;
mod lives;
mod log;
mod logfile;
mod metrics;
mod neighbours;
mod pace;
mod places;
mod pollable;
mod privacy;
mod probe;
mod record;
mod refuse;
mod rights;
mod rules;
mod serve;
mod setup;
mod sizes;
#[cfg(feature = "etcd")]
mod spans;
#[cfg(not(feature = "etcd"))]
#[path = "spans/without.rs"]
mod spans;
mod start;
mod store;
mod stored;
#[cfg(feature = "etcd")]
mod tls;
mod users;
mod waitpage;
mod watchdogs;
mod words;

pub use args::Args;
pub use ground::NoPlace;
pub use start::run;
