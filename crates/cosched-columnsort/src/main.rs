//! cosched-columnsort, the program: makes records, sorts them, looks whether they are sorted.

mod cli;

fn main() -> std::process::ExitCode {
    cli::main()
}
