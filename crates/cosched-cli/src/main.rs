//! cosched, the command.

fn main() -> std::process::ExitCode {
    cosched_cli::main()
}
