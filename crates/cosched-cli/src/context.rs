//! The global options: the daemon's socket, and whether to print JSON.

use clap::Args;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(crate) struct Context {
    /// The daemon's socket [default: the system's daemon if it runs, else your own]
    #[arg(long, global = true, value_name = "PATH", help_heading = "Global options")]
    pub(crate) socket: Option<PathBuf>,

    /// Print JSON, one object per line
    #[arg(long, global = true, help_heading = "Global options")]
    pub(crate) json: bool,
}
