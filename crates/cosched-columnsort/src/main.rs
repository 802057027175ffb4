//! The program cosched-columnsort: generates records, sorts them, and checks whether they are
//! sorted.

mod cli;

fn main() -> std::process::ExitCode {
    cli::main()
}
