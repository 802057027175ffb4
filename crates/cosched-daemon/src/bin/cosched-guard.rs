//! cosched-guard: thaws all jobs when the daemon dies or hangs. It is started by the daemon, and by the kernel as the last resort when daemon and
//! guard were killed at the same moment.

fn main() -> std::process::ExitCode {
    cosched_linux::guard::guard_main(std::env::args_os())
}
