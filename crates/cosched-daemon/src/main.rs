//! coschedd, the daemon of cosched.

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args = cosched_daemon::Args::parse();
    match cosched_daemon::run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("coschedd: {e:#}");
            ExitCode::from(if e.is::<cosched_daemon::NoPlace>() { cosched_api::NO_PLACE } else { 1 })
        }
    }
}
