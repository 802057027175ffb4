//! Lists of jobs from files.

use crate::out::Failure;
use cosched_sim::JobSpec;
use cosched_sim::workload::read_jobs;
use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;

/// Reads a list of jobs; `-` is standard input.
pub(crate) fn job_list(path: &Path) -> Result<Vec<JobSpec>, Failure> {
    let shown = path.display();
    let read = if path == Path::new("-") {
        read_jobs(io::stdin().lock())
    } else {
        let hint = "give the path of a CSV with the header arrival_s,tasks,exec_s,type, or - for standard input";
        let file = File::open(path)
            .map_err(|e| Failure::explained(1, &format!("cannot open {shown}"), &e.to_string(), hint))?;
        read_jobs(BufReader::new(file))
    };
    // An empty list is an error of the reader's.
    read.map_err(|e| Failure::other(format!("{shown}: {e}")))
}
