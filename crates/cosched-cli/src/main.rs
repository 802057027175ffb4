//! cosched, the command.
fn main() {}
