//! Predictions and their checks in a file of the user: a line of JSON each, appended.

use crate::out::json_line;
use crate::out::{Failure, say};
use crate::state::state_directory;
use cosched_study::whatif::{Checked, Predicted};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The version of the lines.
const FORMAT: &str = "cosched-whatif-1";
/// At this size the older half of the file goes.
const BYTES_MAX: u64 = 8 << 20;

/// A line of the file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(super) enum Line {
    Predicted(Kept),
    Checked(Done),
}

/// A prediction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Kept {
    pub(super) at_unix_ms: u64,
    pub(super) for_s: f64,
    pub(super) look_s: f64,
    /// The daemon's.
    pub(super) socket: String,
    /// The machine's policy.
    pub(super) policy: String,
    pub(super) cpus: u32,
    /// The part of the CPU time of processes outside of jobs.
    pub(super) others: f64,
    pub(super) jobs: Vec<KeptJob>,
}

/// A job and what is predicted of it, by policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct KeptJob {
    pub(super) id: u64,
    pub(super) name: String,
    pub(super) submitted_unix_ms: u64,
    /// Its counters at that time.
    pub(super) cpu_us: u64,
    pub(super) spin_ms: Option<u64>,
    pub(super) settings: String,
    pub(super) predicted: BTreeMap<String, Predicted>,
}

/// A check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Done {
    /// Of the prediction of this time and daemon.
    pub(super) at_unix_ms: u64,
    pub(super) socket: String,
    pub(super) policy: String,
    /// What was not as it had been: then the prediction is of something else, and is not counted.
    pub(super) changed: Vec<String>,
    pub(super) jobs: Vec<DoneJob>,
}

/// A job that was predicted, and what it did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct DoneJob {
    pub(super) id: u64,
    pub(super) name: String,
    pub(super) checked: Checked,
}

impl Kept {
    /// With these jobs only, if any are named.
    pub(super) fn only(&self, ids: &[u64]) -> Kept {
        let mut kept = self.clone();
        kept.jobs.retain(|job| ids.is_empty() || ids.contains(&job.id));
        kept
    }

    pub(super) fn end_unix_ms(&self) -> u64 {
        self.at_unix_ms + (self.for_s * 1e3) as u64
    }
}

/// All of the file.
#[derive(Clone, Debug, Default)]
pub(super) struct Past {
    /// Predictions without a check.
    pub(super) open: Vec<Kept>,
    pub(super) done: Vec<Done>,
}

pub(super) fn file() -> PathBuf {
    state_directory().join("whatif.jsonl")
}

/// Reads the file; lines that cannot be read are left out, and counted.
pub(super) fn read(file: &Path) -> Result<Past, Failure> {
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(e) if e.kind() == io::ErrorKind::NotFound => String::new(),
        Err(e) => return Err(failed(file, "read", &e)),
    };
    let (mut past, mut damaged) = (Past::default(), 0);
    for line in text.lines() {
        match serde_json::from_str::<Written>(line).ok().filter(|written| written.format == FORMAT) {
            Some(Written { line: Line::Predicted(kept), .. }) => past.open.push(kept),
            Some(Written { line: Line::Checked(done), .. }) => {
                past.open.retain(|kept| (kept.at_unix_ms, &kept.socket) != (done.at_unix_ms, &done.socket));
                past.done.push(done);
            }
            None => damaged += 1,
        }
    }
    if damaged > 0 {
        say(&format!("{damaged} lines of {} cannot be read and are left out", file.display()));
    }
    Ok(past)
}

/// A line with its version.
#[derive(Serialize, Deserialize)]
struct Written {
    format: String,
    #[serde(flatten)]
    line: Line,
}

/// Appends a line in one write. A file that is too large loses its older half first.
pub(super) fn append(file: &Path, line: &Line) -> Result<(), Failure> {
    let written = Written { format: FORMAT.to_owned(), line: line.clone() };
    let text = json_line(&written)?;
    let put = || {
        if let Some(directory) = file.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        }
        if std::fs::metadata(file).is_ok_and(|found| found.len() > BYTES_MAX) {
            let old = std::fs::read_to_string(file)?;
            let lines: Vec<&str> = old.lines().collect();
            let partial = file.with_extension("partial");
            std::fs::write(&partial, lines[lines.len() / 2..].join("\n") + "\n")?;
            std::fs::rename(&partial, file)?;
        }
        OpenOptions::new().append(true).create(true).mode(0o600).open(file)?.write_all(text.as_bytes())
    };
    put().map_err(|e: io::Error| failed(file, "write", &e))
}

fn failed(file: &Path, what: &str, error: &io::Error) -> Failure {
    let what = format!("cannot {what} the predictions in {}", file.display());
    Failure::explained(1, &what, &error.to_string(), "set XDG_STATE_HOME to a directory that you can write to")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(at_unix_ms: u64) -> Kept {
        Kept {
            at_unix_ms,
            for_s: 60.0,
            look_s: 10.0,
            socket: "s".into(),
            policy: "gang".into(),
            cpus: 2,
            others: 0.0,
            jobs: Vec::new(),
        }
    }

    #[test]
    fn a_check_closes_its_prediction_and_damage_is_left_out() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("deep/whatif.jsonl");
        assert!(read(&file).unwrap().open.is_empty());
        append(&file, &Line::Predicted(kept(1))).unwrap();
        append(&file, &Line::Predicted(kept(2))).unwrap();
        let text = std::fs::read_to_string(&file).unwrap() + "{\"half\":\n";
        std::fs::write(&file, text).unwrap();
        let done = Done { at_unix_ms: 1, socket: "s".into(), policy: "gang".into(), changed: vec![], jobs: vec![] };
        append(&file, &Line::Checked(done.clone())).unwrap();
        let past = read(&file).unwrap();
        assert_eq!((past.open, past.done), (vec![kept(2)], vec![done]));
    }
}
