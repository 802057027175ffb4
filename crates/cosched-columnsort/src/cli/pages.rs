//! Man pages and shell completions, generated from the definitions of the options.

use std::path::Path;

use clap::CommandFactory;

use super::args::Cli;
use super::out::{self, Problem};

/// `cosched-columnsort man`: the main page to standard output, or all pages to a directory.
pub(crate) fn man(directory: Option<&Path>) -> Result<u8, Problem> {
    let command = Cli::command().disable_help_subcommand(true);
    let failed = |e: std::io::Error| Problem::failed(format!("cannot write the man pages: {e}"));
    match directory {
        Some(directory) => {
            std::fs::create_dir_all(directory).map_err(failed)?;
            clap_mangen::generate_to(command, directory).map_err(failed)?;
        }
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(command).render(&mut page).map_err(failed)?;
            out::print(&String::from_utf8_lossy(&page))?;
        }
    }
    Ok(0)
}

/// `cosched-columnsort completions SHELL`.
pub(crate) fn completions(shell: clap_complete::Shell) -> Result<u8, Problem> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "cosched-columnsort", &mut text);
    out::print(&String::from_utf8_lossy(&text))?;
    Ok(0)
}
