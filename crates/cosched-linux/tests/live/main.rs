//! Tests on the real kernel: root, real cgroups below a name of their own, real processes.

mod arrivals;
mod boost;
mod cgroups;
mod reserve;
mod safety;
mod support;
mod switching;
mod user;
