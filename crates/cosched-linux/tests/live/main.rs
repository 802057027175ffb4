//! Tests on the real kernel: as root, with real cgroups below a name of their own, and real processes.

mod arrivals;
mod boost;
mod cgroups;
mod reserve;
mod safety;
mod subgangs;
mod support;
mod switching;
mod user;
