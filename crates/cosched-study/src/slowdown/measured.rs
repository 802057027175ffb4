//! Reads the results of a measurement for a comparison. Only the required fields are read, because other programs
//! may write the document too.

use super::record::FORMAT;
use serde::Deserialize;

/// The part of a document that is used in a comparison.
#[derive(Debug, Deserialize)]
#[allow(missing_docs, reason = "the fields are named by what they are")]
pub struct Measured {
    format: String,
    pub cpus: Option<u32>,
    #[serde(default)]
    pub command: Vec<String>,
    pub single: Option<Single>,
    #[serde(default)]
    pub results: Vec<Outcome>,
}

/// One job alone.
#[derive(Debug, Deserialize)]
#[allow(missing_docs, reason = "the fields are named by what they are")]
pub struct Single {
    pub time_s: f64,
    pub phase_s: Option<f64>,
    pub cpu_share: Option<f64>,
}

/// A policy with a number of jobs.
#[derive(Debug, Deserialize)]
#[allow(missing_docs, reason = "the fields are named by what they are")]
pub struct Outcome {
    pub policy: String,
    pub jobs: u32,
    pub time_s: Option<f64>,
    pub phase_s: Option<f64>,
    pub slowdown: Option<f64>,
    pub slowdown_stderr: Option<f64>,
    pub cpu_share: Option<f64>,
    pub runs: Option<u32>,
    #[serde(default)]
    pub not_done: u32,
}

impl Measured {
    /// Parses the text of a document.
    ///
    /// # Errors
    /// Why it is not such a document.
    pub fn parse(text: &str) -> Result<Measured, String> {
        let measured: Measured = serde_json::from_str(text).map_err(|e| e.to_string())?;
        if measured.format != FORMAT {
            return Err(format!("its format is `{}`, not `{FORMAT}`", measured.format));
        }
        Ok(measured)
    }
}

impl Outcome {
    /// Whether half of the runs or more were not done: those that were ended for their time are the longest, so the median of the others is
    /// not that of all.
    pub fn has_no_median(&self) -> bool {
        self.runs.is_some_and(|done| self.not_done >= done) && self.not_done > 0
    }

    /// s_j of the whole job.
    pub fn job_slowdown(&self, single: &Single) -> Option<f64> {
        positive(self.slowdown).or_else(|| Some(positive(self.time_s)? / single.time_s))
    }

    /// s_j of the main phase, if the program reports it.
    pub fn phase_slowdown(&self, single: &Single) -> Option<f64> {
        positive(self.phase_s).zip(positive(single.phase_s)).map(|(several, one)| several / one)
    }
}

/// The value, if it is positive and finite.
pub fn positive(value: Option<f64>) -> Option<f64> {
    value.filter(|value| *value > 0.0 && value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_half_of_the_runs_are_missing_there_is_no_median() {
        let outcome = |more: &str| -> Outcome {
            serde_json::from_str(&format!("{{\"policy\": \"linux\", \"jobs\": 4{more}}}")).unwrap()
        };
        assert!(!outcome("").has_no_median(), "others' documents need not tell");
        assert!(!outcome(", \"runs\": 3, \"not_done\": 2").has_no_median());
        assert!(outcome(", \"runs\": 2, \"not_done\": 2").has_no_median());
    }
}
