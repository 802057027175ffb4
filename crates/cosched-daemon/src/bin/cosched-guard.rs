//! The guard.
fn main() {}
