//! The fuzz targets for what the simulator reads; `fuzz/src/runner.rs` says how they run.

#[path = "../../../fuzz/src/runner.rs"]
mod runner;

// Public for the fuzzer's programs.
#[allow(unreachable_pub)]
#[path = "../../../fuzz/src/simulator.rs"]
mod targets;

runner::targets! { targets: swf job_list batsim decisions outages phases platform_toml platform_xml sweep program }
