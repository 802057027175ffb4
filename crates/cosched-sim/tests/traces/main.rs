//! The reader, the statistics and the fits compared with values that another program computed from real logs
//! (`expected.json`). The logs are not in the repository; without them these tests say so and pass.

mod backfilling;
mod statistics;
mod synthetic;

use cosched_sim::workload::swf::{ReadReport, Record, SwfHeader, read_records, unpack};
use serde_json::Value;
use std::fs::File;
use std::path::PathBuf;

/// The logs of the reference values.
pub const LOGS: [&str; 4] =
    ["LLNL-Thunder-2007-1.1-cln", "LLNL-Atlas-2006-2.1-cln", "CTC-SP2-1996-3.1-cln", "KTH-SP2-1996-2.1-cln"];

/// The directory of the logs: `COSCHED_TRACES`, otherwise beside the repository.
pub fn traces() -> Option<PathBuf> {
    let beside = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/workloads");
    let folders = [std::env::var_os("COSCHED_TRACES").map(PathBuf::from), Some(beside())];
    let found = folders.into_iter().flatten().find(|folder| folder.join("expected.json").exists());
    if found.is_none() {
        eprintln!("SKIPPED: no logs: set COSCHED_TRACES to a folder with expected.json and the .swf.gz files");
    }
    found
}

/// The reference values.
pub fn expected(folder: &std::path::Path) -> Value {
    serde_json::from_reader(File::open(folder.join("expected.json")).unwrap()).unwrap()
}

/// A whole log.
pub fn log(folder: &std::path::Path, name: &str) -> (Vec<Record>, SwfHeader, ReadReport) {
    let file = File::open(folder.join(format!("{name}.swf.gz"))).unwrap();
    read_records(unpack(file).unwrap()).unwrap()
}

/// Compares every value in `expected`; numbers to this relative difference.
pub fn compare(path: &str, actual: &Value, expected: &Value, relative: f64) {
    match expected {
        Value::Object(fields) => {
            for (name, value) in fields {
                compare(&format!("{path}/{name}"), &actual[name], value, relative);
            }
        }
        Value::Array(values) => {
            for (place, value) in values.iter().enumerate() {
                compare(&format!("{path}/{place}"), &actual[place], value, relative);
            }
        }
        Value::Number(number) => {
            let (expected, actual) = (number.as_f64().unwrap(), actual.as_f64());
            let actual = actual.unwrap_or_else(|| panic!("{path} is missing, not {expected}"));
            let difference = (actual - expected).abs();
            assert!(difference <= relative * expected.abs(), "{path}: {actual}, not {expected}");
        }
        other => assert_eq!(actual, other, "{path}"),
    }
}
