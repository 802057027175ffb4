//! cosched-guard: thaws all jobs when the daemon dies or hangs. The daemon starts it; so does the kernel, as the last
//! resort, when daemon and guard were killed at one instant.

fn main() -> std::process::ExitCode {
    cosched_linux::guard::guard_main(std::env::args_os())
}
