//! The fuzz targets for untrusted input of the daemon; `fuzz/src/runner.rs` says how they run.

#[path = "../../../fuzz/src/runner.rs"]
mod runner;
// Public for the fuzz programs.
#[allow(unreachable_pub)]
#[path = "../../../fuzz/src/strangers.rs"]
mod strangers;

runner::targets! { strangers: request answer labels journal wait_page configuration stored backup repairs }
