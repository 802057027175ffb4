//! `cosched setup`: whether this machine suits cosched, and what would be better. The daemon's program checks the machine (with the same
//! code as when it starts); this module adds what jobs need.

use crate::context::Context;
use crate::out::{EXIT_REFUSED, Failure, use_colour, with_documents};
use crate::table::{Cell, Listing};
use crate::{programs, run};
use clap::Args;
use cosched_api::Activation;
use serde::{Deserialize, Serialize};
use std::process::{Command, Stdio};

#[derive(Args, Debug)]
#[command(after_help = crate::commands::help::SETUP)]
pub(crate) struct Setup {
    /// Change kernel settings that are in the way, until the next restart of the machine (root)
    #[arg(long)]
    fix: bool,
}

#[derive(Debug, Deserialize, Serialize)]
struct Finding {
    subject: String,
    state: State,
    found: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    hint: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fix: Option<Fix>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum State {
    Ok,
    Better,
    Missing,
}

#[derive(Debug, Deserialize, Serialize)]
struct Fix {
    path: String,
    value: String,
    done: bool,
}

/// `cosched setup`; the exit code is 6 if something is missing.
pub(crate) fn setup(context: &Context, options: &Setup) -> Result<u8, Failure> {
    let mut found = of_daemon(options.fix)?;
    found.push(match programs::mpirun(None) {
        Some(launcher) => finding("MPI", State::Ok, &launcher.path.display().to_string(), ""),
        None => finding(
            "MPI",
            State::Better,
            "no mpirun in PATH",
            "MPI programs need Open MPI or MPICH; other programs do not",
        ),
    });
    found.push(match run::wait_library() {
        Some(path) => finding("wait library", State::Ok, &path.display().to_string(), ""),
        None => {
            let hint = "install lib/cosched/libcosched_wait.so: without it, programs that poll for messages spin (docs/waiting.md)";
            finding("wait library", State::Better, "not found", hint)
        }
    });
    context.give(&found, || text(&found, use_colour()))?;
    let is_missing = found.iter().any(|finding| finding.state == State::Missing);
    Ok(if is_missing { EXIT_REFUSED } else { 0 })
}

fn finding(subject: &str, state: State, found: &str, hint: &str) -> Finding {
    Finding { subject: subject.to_owned(), state, found: found.to_owned(), hint: hint.to_owned(), fix: None }
}

/// The findings of the daemon's program.
fn of_daemon(fix: bool) -> Result<Vec<Finding>, Failure> {
    let daemon = Activation::find(Vec::new())?.daemon;
    let failed = |why: &str| {
        Failure::explained_in_lines(1, "the machine could not be examined", why, "`coschedd --check` may say more")
    };
    let mut command = Command::new(&daemon);
    command.arg(if fix { "--setup=fix" } else { "--setup" }).env("COSCHED_LOG", "error").stdin(Stdio::null());
    let output = command.output().map_err(|e| failed(&format!("{} cannot be executed: {e}", daemon.display())))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(failed(said.trim()));
    }
    let lines = String::from_utf8_lossy(&output.stdout);
    let found: Result<Vec<Finding>, _> = lines.lines().map(serde_json::from_str).collect();
    found.map_err(|e| failed(&format!("{} gave an answer that cannot be read: {e}", daemon.display())))
}

fn text(found: &[Finding], colour: bool) -> String {
    let state = |finding: &Finding| {
        let (state, tint) = match finding.state {
            State::Ok if finding.fix.as_ref().is_some_and(|fix| fix.done) => ("fixed", "\x1b[32m"),
            State::Ok => ("ok", "\x1b[32m"),
            State::Better => ("could be better", "\x1b[33m"),
            State::Missing => ("missing", "\x1b[31m"),
        };
        Cell { text: state.into(), colour: if colour { tint } else { "" } }
    };
    let mut text = Listing::of(found)
        .words("WHAT", 0, |finding| finding.subject.as_str())
        .words("STATE", 0, state)
        .words("FOUND", 0, |finding| finding.found.as_str())
        .render(None);
    for finding in found.iter().filter(|finding| finding.state != State::Ok && !finding.hint.is_empty()) {
        let fix = match &finding.fix {
            Some(fix) => format!("; `cosched setup --fix` as root writes {} to {}", fix.value, fix.path),
            None => String::new(),
        };
        text += &format!("\n{}: {}{fix}\n", finding.subject, with_documents(&finding.hint));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_be_better_is_told_below_the_table() {
        let line = r#"{"subject":"swap","state":"better","found":"2048 MiB","hint":"declare --mem"}"#;
        let fixed = r#"{"subject":"real-time priority","state":"ok","found":"x","hint":"h","fix":{"path":"/p","value":"1","done":true}}"#;
        let found: Vec<Finding> = [line, fixed].map(|line| serde_json::from_str(line).unwrap()).into();
        let text = text(&found, false);
        assert_eq!(
            text,
            "WHAT                STATE            FOUND\nswap                could be better  2048 MiB\n\
             real-time priority  fixed            x\n\nswap: declare --mem\n"
        );
    }
}
