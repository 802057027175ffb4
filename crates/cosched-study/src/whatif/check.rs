//! How right predictions were.

use super::Predicted;
use serde::{Deserialize, Serialize};

/// What a job did in the predicted time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Found {
    /// The CPU time that it used, in seconds.
    pub cpu_s: f64,
    /// That part of it in which it did not spin for messages, if that was seen.
    pub work_s: Option<f64>,
    /// When it ended, in seconds from the beginning, if it has.
    pub ended_s: Option<f64>,
}

/// A prediction beside what happened. Differences are (found - predicted) / predicted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the fields are named by what they are")]
pub struct Checked {
    /// The progress is CPU time without spinning, not all CPU time.
    pub without_spinning: bool,
    pub predicted_s: f64,
    pub found_s: f64,
    pub difference: f64,
    /// It was predicted to end in this time, or did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted_end_s: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found_end_s: Option<f64>,
}

/// Compares the progress of a job; None if no progress was predicted.
pub fn check(predicted: &Predicted, found: &Found) -> Option<Checked> {
    let (predicted_s, found_s) = match found.work_s {
        Some(work_s) => (predicted.work_s, work_s),
        None => (predicted.cpu_s, found.cpu_s),
    };
    (predicted_s > 0.0).then(|| Checked {
        without_spinning: found.work_s.is_some(),
        predicted_s,
        found_s,
        difference: found_s / predicted_s - 1.0,
        predicted_end_s: predicted.ends_s,
        found_end_s: found.ended_s,
    })
}

/// The median and the largest of the absolute differences; None without any.
pub fn summary(differences: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    let mut sizes: Vec<f64> = differences.into_iter().map(f64::abs).collect();
    sizes.sort_by(f64::total_cmp);
    let (last, half) = (sizes.last().copied()?, sizes.len() / 2);
    let median = if sizes.len().is_multiple_of(2) { (sizes[half - 1] + sizes[half]) / 2.0 } else { sizes[half] };
    Some((median, last))
}
