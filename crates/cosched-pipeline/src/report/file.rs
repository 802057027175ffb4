//! Reading and writing reports as files.

use std::path::Path;

use super::Report;
use crate::live::Snapshot;

/// Why a text is not a report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// It is not JSON, or lacks required fields.
    #[error("it is not a report of a pipeline: {0}")]
    Json(#[from] serde_json::Error),
    /// It has another format, or another version of it.
    #[error("its format is '{0}', not '{expected}'", expected = Report::FORMAT)]
    Format(String),
    /// Its tables do not have the same number of stages.
    #[error("its occupancy has {found} columns, and there are {stages} stages")]
    Columns {
        /// The number of columns in one of the samples.
        found: usize,
        /// The number of stages in the report.
        stages: usize,
    },
}

impl Report {
    /// Parses a report, or the one in a [`Snapshot`].
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn parse(text: &[u8]) -> Result<Report, ReportError> {
        let value: serde_json::Value = serde_json::from_slice(text)?;
        let format = value.get("format").and_then(serde_json::Value::as_str).unwrap_or_default().to_owned();
        let report: Report = match format.as_str() {
            Report::FORMAT => serde_json::from_value(value)?,
            Snapshot::FORMAT => serde_json::from_value::<Snapshot>(value)?.report,
            _ => return Err(ReportError::Format(format)),
        };
        let stages = report.stages.len();
        match report.occupancy.waiting.iter().map(Vec::len).find(|found| *found != stages) {
            Some(found) => Err(ReportError::Columns { found, stages }),
            None => Ok(report),
        }
    }

    /// Writes it as one line of JSON, which [`Report::parse`] and `cosched pipeline report` read.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn save(&self, path: &Path) -> std::io::Result<()> {
        let mut text = serde_json::to_vec(self)?;
        text.push(b'\n');
        std::fs::write(path, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Occupancy, StageReport};

    fn example() -> Report {
        let stages = vec![StageReport { name: "read".into(), rounds: 3, ..StageReport::default() }];
        let occupancy = Occupancy { at_s: vec![0.5], waiting: vec![vec![1.5]] };
        Report { format: Report::FORMAT.into(), name: "p".into(), stages, occupancy, ..Report::default() }
    }

    #[test]
    fn what_is_saved_is_read() {
        let scratch = tempfile::Builder::new().prefix("cst-").tempdir().unwrap();
        let path = scratch.path().join("report.json");
        example().save(&path).unwrap();
        let text = std::fs::read(&path).unwrap();
        assert_eq!(Report::parse(&text).unwrap().text(), example().text());
        assert!(example().save(&scratch.path().join("no/such.json")).is_err());
    }

    #[test]
    fn a_snapshot_has_a_report_too() {
        let report = example();
        let snapshot = Snapshot { format: Snapshot::FORMAT.into(), pid: 1, uid: 0, command: "x".into(), report };
        let text = serde_json::to_vec(&snapshot).unwrap();
        assert_eq!(Report::parse(&text).unwrap().name, "p");
    }

    #[test]
    fn what_is_no_report_is_told() {
        assert!(matches!(Report::parse(b"hello"), Err(ReportError::Json(_))));
        assert!(matches!(Report::parse(b"[]"), Err(ReportError::Format(format)) if format.is_empty()));
        assert!(matches!(Report::parse(br#"{"format":"other-1"}"#), Err(ReportError::Format(_))));
        let half = br#"{"format":"cosched-pipeline-report-1","name":"p"}"#;
        assert!(matches!(Report::parse(half), Err(ReportError::Json(_))));
        let mut wide = example();
        wide.occupancy.waiting.push(vec![1.0, 2.0]);
        let text = serde_json::to_vec(&wide).unwrap();
        assert!(matches!(Report::parse(&text), Err(ReportError::Columns { found: 2, stages: 1 })));
    }
}
