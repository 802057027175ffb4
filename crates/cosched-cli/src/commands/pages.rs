//! Man pages, completions, versions and metrics.

use crate::context::Context;
use crate::out::{EXIT_REFUSED, Failure, print};
use clap::Command;
use cosched_api::{ClientError, ErrorCode, SocketChoice};
use std::io;
use std::path::Path;

/// `cosched man`: the main page to standard output, or all pages to a directory.
pub(crate) fn man(command: Command, directory: Option<&Path>) -> Result<u8, Failure> {
    let command = command.disable_help_subcommand(true);
    let failed = |e: io::Error| Failure::other(format!("cannot write the man pages: {e}"));
    match directory {
        Some(directory) => {
            std::fs::create_dir_all(directory).map_err(failed)?;
            clap_mangen::generate_to(command, directory).map_err(failed)?;
        }
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(command).render(&mut page).map_err(failed)?;
            print(&String::from_utf8_lossy(&page))?;
        }
    }
    Ok(0)
}

/// `cosched completions SHELL`: a script that calls this command for completions.
pub(crate) fn completions(shell: clap_complete::Shell) -> Result<u8, Failure> {
    let shells = clap_complete::env::Shells::builtins();
    let failed = |e: io::Error| Failure::other(format!("cannot write the completions: {e}"));
    let mut text = Vec::new();
    if let Some(shell) = shells.completer(&shell.to_string()) {
        shell
            .write_registration(crate::complete::VARIABLE, "cosched", "cosched", "cosched", &mut text)
            .map_err(failed)?;
    }
    if shell == clap_complete::Shell::Zsh {
        // A file in $fpath is itself the function when it is called for the first time.
        text.extend(b"[ \"${funcstack[1]}\" = _cosched ] && _clap_dynamic_completer_cosched \"$@\"\n");
    }
    print(&String::from_utf8_lossy(&text))?;
    Ok(0)
}

/// `cosched metrics`: the daemon's text, unchanged; with --json the same in an object.
pub(crate) fn metrics(context: &Context) -> Result<u8, Failure> {
    let text = crate::jobs::connect(context)?.metrics().map_err(|error| match &error {
        ClientError::Refused(body) if body.code == ErrorCode::NotFound => Failure::explained(
            EXIT_REFUSED,
            "this daemon has no metrics",
            "it is older than this command",
            "restart it with the coschedd of this version; jobs continue meanwhile",
        ),
        _ => error.into(),
    })?;
    context.give(&serde_json::json!({ "format": "openmetrics-1.0.0", "text": text }), || text.clone())
}

/// `cosched version`: this command's, and the daemon's if one runs.
pub(crate) fn version(context: &Context) -> Result<u8, Failure> {
    let own = env!("CARGO_PKG_VERSION");
    let status = SocketChoice::find(context.socket.clone()).connect().and_then(|mut client| client.status());
    let daemon = status.ok().map(|status| status.version);
    context.give(&serde_json::json!({ "cosched": own, "coschedd": daemon }), || {
        let daemon = daemon.map_or("coschedd: not running".to_owned(), |version| format!("coschedd {version}"));
        format!("cosched {own}\n{daemon}\n")
    })
}
