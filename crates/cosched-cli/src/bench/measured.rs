//! Reads what was measured, for who sets something beside it. Only what is needed is asked for: others may write the
//! document too.

use super::record::FORMAT;
use crate::out::{EXIT_REFUSED, Failure};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// The part of a document that is compared.
#[derive(Debug, Deserialize)]
pub(crate) struct Measured {
    format: String,
    pub(crate) cpus: Option<u32>,
    #[serde(default)]
    pub(crate) command: Vec<String>,
    pub(crate) single: Option<Single>,
    #[serde(default)]
    pub(crate) results: Vec<Outcome>,
}

/// One job alone.
#[derive(Debug, Deserialize)]
pub(crate) struct Single {
    pub(crate) time_s: f64,
    pub(crate) phase_s: Option<f64>,
    pub(crate) cpu_share: Option<f64>,
}

/// A policy with a number of jobs.
#[derive(Debug, Deserialize)]
pub(crate) struct Outcome {
    pub(crate) policy: String,
    pub(crate) jobs: u32,
    pub(crate) time_s: Option<f64>,
    pub(crate) phase_s: Option<f64>,
    pub(crate) slowdown: Option<f64>,
    pub(crate) slowdown_stderr: Option<f64>,
    pub(crate) cpu_share: Option<f64>,
}

impl Measured {
    /// Reads a document, or that in a directory of `--out`.
    pub(crate) fn read(path: &Path) -> Result<Measured, Failure> {
        let path = if path.is_dir() { path.join("slowdown.json") } else { PathBuf::from(path) };
        let hint = "give the slowdown.json that `cosched bench slowdown` wrote, or the directory of its --out";
        let text = std::fs::read_to_string(&path)
            .map_err(|e| Failure::explained(1, &format!("cannot read {}", path.display()), &e.to_string(), hint))?;
        let measured: Measured = serde_json::from_str(&text).map_err(|e| not_valid(&path, &e.to_string(), hint))?;
        if measured.format != FORMAT {
            return Err(not_valid(&path, &format!("its format is `{}`, not `{FORMAT}`", measured.format), hint));
        }
        Ok(measured)
    }
}

/// What was measured cannot be used.
pub(crate) fn not_valid(path: &Path, why: &str, hint: &str) -> Failure {
    Failure::explained(EXIT_REFUSED, &format!("{} cannot be analysed", path.display()), why, hint)
}

impl Outcome {
    /// s_j of the whole job.
    pub(crate) fn job_slowdown(&self, single: &Single) -> Option<f64> {
        positive(self.slowdown).or_else(|| Some(positive(self.time_s)? / single.time_s))
    }

    /// s_j of the main phase, if the program tells it.
    pub(crate) fn phase_slowdown(&self, single: &Single) -> Option<f64> {
        positive(self.phase_s).zip(positive(single.phase_s)).map(|(several, one)| several / one)
    }
}

/// A figure that makes sense.
pub(crate) fn positive(value: Option<f64>) -> Option<f64> {
    value.filter(|value| *value > 0.0 && value.is_finite())
}
