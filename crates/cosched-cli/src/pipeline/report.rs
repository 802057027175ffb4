//! `cosched pipeline report`.

use super::{EXIT_INVALID, help, page};
use crate::context::Context;
use crate::out::{Failure, print, print_json, say};
use clap::Args;
use cosched_pipeline::Report;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

#[derive(Args, Debug)]
#[command(after_help = help::REPORT)]
pub(crate) struct ReportOf {
    /// The report as JSON; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Write an HTML page with figures
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Write a Chrome trace
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
}

/// Prints a report, and writes the requested files.
pub(super) fn report(context: &Context, options: &ReportOf) -> Result<u8, Failure> {
    let reports = read(&options.file)?;
    if let Some(path) = &options.html {
        write(path, &page::page(&reports).finish())?;
    }
    if let Some(path) = &options.trace {
        let [report] = &reports[..] else {
            let hint = "`cosched-columnsort sort --trace` writes one of all passes";
            return Err(Failure::explained(EXIT_INVALID, "this report has no trace", "it is of several passes", hint));
        };
        write(path, &report.chrome_trace().to_string())?;
        match &report.trace {
            None => say("the report has no rounds (the run did not have the option `trace`): queues and changes only"),
            Some(trace) if trace.dropped > 0 => {
                say(&format!("{} rounds exceeded the report's capacity", trace.dropped))
            }
            Some(_) => {}
        }
    }
    for report in reports {
        if context.json {
            print_json(&Report { trace: None, ..report })?;
        } else {
            print(&report.text())?;
        }
    }
    Ok(0)
}

/// One report, or one for each pass of a sort.
fn read(path: &Path) -> Result<Vec<Report>, Failure> {
    let name = if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() };
    let text = if path == Path::new("-") { of_stdin() } else { std::fs::read(path) };
    let text = text.map_err(|error| {
        let hint = "give a file that a program saved its report to, or - for standard input";
        Failure::explained(1, &format!("cannot read {name}"), &error.to_string(), hint)
    })?;
    let passes = passes(&text).unwrap_or_else(|| vec![text]);
    let reports: Result<Vec<Report>, _> = passes.iter().map(|text| Report::parse(text)).collect();
    reports.map_err(|error| {
        let hint = "`cosched pipeline show --json` prints one of a running pipeline";
        Failure::explained(EXIT_INVALID, &format!("{name} cannot be shown"), &error.to_string(), hint)
    })
}

/// The reports in what `cosched-columnsort sort --report` writes.
fn passes(text: &[u8]) -> Option<Vec<Vec<u8>>> {
    let value: serde_json::Value = serde_json::from_slice(text).ok()?;
    let passes = value["passes"].as_array().filter(|_| value["format"] == "cosched-columnsort-1")?;
    Some(passes.iter().map(|pass| pass.to_string().into_bytes()).collect())
}

fn of_stdin() -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    io::stdin().read_to_end(&mut text)?;
    Ok(text)
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|error| {
        let what = format!("cannot write {}", path.display());
        Failure::explained(1, &what, &error.to_string(), "its directory must exist and be writable")
    })
}
