//! Accounting: each ended job as a line of JSON in `accounting.log` beside the journal (decision 0054).
//!
//! The journal keeps only the newest jobs of each user; this log keeps as many jobs, of all users, as fit into its files. A line is the job as `GET
//! /v1/jobs/{id}` reported it at its end. Each node has a line for a job's part on it, with the resources used there.

use crate::logfile;
use crate::record;
use cosched_api::{Adopted, Job, JobList};
use std::collections::{BTreeSet, VecDeque};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::SyncSender;

/// The length of the part of a command that is kept, in bytes.
const COMMAND_BYTES_MAX: usize = 512;
/// The longest line that is written, in bytes.
const LINE_BYTES_MAX: usize = 16 << 10;
/// Only this number of a job's nodes, and of the usage on them, is kept: a line has to fit.
const NODES_MAX: usize = 32;
/// The limit on the jobs in an answer.
pub(crate) const JOBS_MAX: usize = 1000;

/// Selects jobs by the time of their end, both bounds included, in milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Period {
    pub(crate) since_unix_ms: u64,
    pub(crate) until_unix_ms: u64,
}

/// The handle of the log's writer.
#[derive(Debug)]
pub(crate) struct Accounting {
    to_writer: SyncSender<String>,
}

/// The path of the log.
pub(crate) fn path(state_dir: &Path) -> PathBuf {
    state_dir.join("accounting.log")
}

impl Accounting {
    /// Opens the log in this directory and starts its writer.
    pub(crate) fn start(state_dir: &Path) -> io::Result<Accounting> {
        Ok(Accounting { to_writer: logfile::start(path(state_dir), "accounting")? })
    }

    /// Writes a job that has ended.
    pub(crate) fn write(&self, job: Job) {
        let id = job.id;
        let mut job = Job {
            adopted: job.adopted.map(|adopted| Adopted { cgroup: None, limits: Vec::new(), ..adopted }),
            command: record::cut_to(job.command, COMMAND_BYTES_MAX),
            cwd: None,
            log_path: None,
            cgroup: String::new(),
            waiting: None,
            ..job
        };
        job.nodes.truncate(NODES_MAX);
        job.use_of_nodes.iter_mut().for_each(|nodes| nodes.truncate(NODES_MAX));
        let line = serde_json::to_string(&job).unwrap_or_default() + "\n";
        if self.to_writer.try_send(line).is_err() {
            tracing::error!(id, "an ended job is not in the accounting log: the disk takes no lines");
        }
    }
}

/// The jobs that ended in a period, the latest first: at most [`JOBS_MAX`] for which `is_seen` holds. Blocks on the disk: not for the driver's
/// thread.
pub(crate) fn read(path: &Path, period: Period, is_seen: impl Fn(&Job) -> bool) -> io::Result<JobList> {
    let mut jobs = Vec::new();
    let mut known = BTreeSet::new();
    let old = (1..=logfile::OLD_FILES).map(|number| logfile::old(path, number));
    for file in std::iter::once(path.to_owned()).chain(old) {
        let mut found = match File::open(&file) {
            Ok(file) => of_file(file, period, &is_seen)?,
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            Err(e) => return Err(e),
        };
        let earliest = found.earliest;
        // A daemon that was killed may have written a job twice.
        found.jobs.retain(|job| known.insert((job.id, job.submitted_unix_ms, job.restarts)));
        jobs.extend(found.jobs);
        if earliest.is_some_and(|earliest| earliest < period.since_unix_ms) || jobs.len() > JOBS_MAX {
            break;
        }
    }
    jobs.sort_by_key(|job| std::cmp::Reverse((job.ended_unix_ms, job.id)));
    jobs.truncate(JOBS_MAX);
    Ok(JobList { jobs })
}

/// The last jobs of a file in a period, at most the number that fits in an answer, and the end time of the first job in the file.
struct Found {
    jobs: VecDeque<Job>,
    earliest: Option<u64>,
}

fn of_file(file: File, period: Period, is_seen: impl Fn(&Job) -> bool) -> io::Result<Found> {
    let mut found = Found { jobs: VecDeque::new(), earliest: None };
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    loop {
        line.clear();
        if (&mut reader).take(LINE_BYTES_MAX as u64).read_until(b'\n', &mut line)? == 0 {
            return Ok(found);
        }
        // Lines that report lost lines, and torn lines, are not jobs.
        let Ok(job) = serde_json::from_slice::<Job>(&line) else { continue };
        let Some(ended) = job.ended_unix_ms else { continue };
        found.earliest = Some(found.earliest.map_or(ended, |earliest| earliest.min(ended)));
        if (period.since_unix_ms..=period.until_unix_ms).contains(&ended) && is_seen(&job) {
            found.jobs.push_back(job);
            if found.jobs.len() > JOBS_MAX + 1 {
                found.jobs.pop_front();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn job(id: u64, uid: u32, ended: u64) -> String {
        let job = serde_json::json!({
            "id": id, "name": "a", "uid": uid, "user": "ann", "class": "batch", "policy": "gang", "cpus": 2, "state": "ended",
            "command": ["a"], "pid": 7, "submitted_unix_ms": 5, "ended_unix_ms": ended, "cpu_time_ms": 9, "detached": false,
            "cgroup": "",
        });
        format!("{job}\n")
    }

    fn ids(path: &Path, since: u64, until: u64, uid: u32) -> Vec<u64> {
        let period = Period { since_unix_ms: since, until_unix_ms: until };
        read(path, period, |job| job.uid == uid).unwrap().jobs.iter().map(|job| job.id).collect()
    }

    #[test]
    fn the_latest_jobs_of_all_files_come_first() {
        let dir = tempfile::tempdir().unwrap();
        let path = path(dir.path());
        assert_eq!(ids(&path, 0, u64::MAX, 1), [0; 0], "there is no file yet");
        std::fs::write(logfile::old(&path, 2), job(1, 1, 10)).unwrap();
        std::fs::write(logfile::old(&path, 1), job(2, 1, 20) + &job(3, 2, 25)).unwrap();
        std::fs::write(&path, job(4, 1, 30) + "{\"act\":\"lost\",\"lines\":3}\n" + &job(5, 1, 40) + &job(5, 1, 41))
            .unwrap();
        File::options().append(true).open(&path).unwrap().write_all(b"{\"id\":").unwrap();
        assert_eq!(ids(&path, 0, u64::MAX, 1), [5, 4, 2, 1]);
        assert_eq!(ids(&path, 20, 30, 1), [4, 2]);
        assert_eq!((ids(&path, 0, 19, 1), ids(&path, 0, u64::MAX, 2)), (vec![1], vec![3]));
    }

    #[test]
    fn an_answer_is_bounded_and_has_the_latest() {
        let dir = tempfile::tempdir().unwrap();
        let path = path(dir.path());
        let text: String = (0..JOBS_MAX as u64 + 50).map(|id| job(id, 1, 1000 + id)).collect();
        std::fs::write(&path, text).unwrap();
        let all = ids(&path, 0, u64::MAX, 1);
        assert_eq!((all.len(), all[0], *all.last().unwrap()), (JOBS_MAX, JOBS_MAX as u64 + 49, 50));
    }

    #[test]
    fn what_is_written_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let accounting = Accounting::start(dir.path()).unwrap();
        let mut ended: Job = serde_json::from_str(&job(7, 1, 10)).unwrap();
        (ended.command, ended.cwd) = (vec!["x".repeat(5000)], Some("/secret".to_owned()));
        accounting.write(ended);
        let end = std::time::Instant::now() + std::time::Duration::from_secs(30);
        while ids(&path(dir.path()), 0, 99, 1).is_empty() && std::time::Instant::now() < end {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let period = Period { since_unix_ms: 0, until_unix_ms: 99 };
        let list = read(&path(dir.path()), period, |_| true).unwrap();
        assert!(list.jobs[0].cwd.is_none() && list.jobs[0].command[0].len() <= COMMAND_BYTES_MAX + 4, "{list:?}");
    }
}
