//! The global options: the daemon's socket, and whether to print JSON.

use crate::out::{Failure, print, print_json};
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(crate) struct Context {
    /// The daemon's socket [default: the system's daemon if it runs, else your own]
    #[arg(long, global = true, value_name = "PATH", help_heading = "Global options")]
    pub(crate) socket: Option<PathBuf>,

    /// Print JSON: one value, or one object per line where output continues
    #[arg(long, global = true, help_heading = "Global options")]
    pub(crate) json: bool,
}

impl Context {
    /// Prints a result, as JSON or as text; returns the exit code for success.
    pub(crate) fn give(&self, value: &impl Serialize, text: impl FnOnce() -> String) -> Result<u8, Failure> {
        if self.json {
            print_json(value)?
        } else {
            print(&text())?
        }
        Ok(0)
    }
}
