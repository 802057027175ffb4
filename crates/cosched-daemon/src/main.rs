//! coschedd, the daemon.
fn main() {}
