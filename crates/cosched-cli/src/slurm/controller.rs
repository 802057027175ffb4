//! What slurmctld says of a job that it does not tell the prolog: name, QOS, the number in an array, memory, all nodes.
//!
//! One request for each job and node. Its name, which is the user's, stands last: no name can pass for a QOS.

use super::environment::{SlurmJob, shares};
use super::hostlist;
use cosched_api::parse;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The job waits meanwhile.
const PATIENCE: Duration = Duration::from_secs(5);

/// The columns of `squeue -O`, with their widths.
const COLUMNS: [(&str, usize); 6] =
    [("JobID", 16), ("JobArrayID", 48), ("QOS", 128), ("tres-alloc", 512), ("NodeList", NODES_WIDTH), ("Name", 256)];
/// Longer host lists come cut off.
const NODES_WIDTH: usize = 4096;

/// Adds to `job` what slurmctld knows.
///
/// # Errors
/// Why it could not be asked.
pub(super) fn complete(job: &mut SlurmJob) -> Result<(), String> {
    let columns: Vec<String> = COLUMNS.iter().map(|(name, width)| format!("{name}:{width}")).collect();
    let mut child = Command::new("squeue")
        .args(["--noheader", "--all", &format!("--jobs={}", job.id), &format!("--Format={}", columns.join(","))])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| format!("squeue cannot be run: {e}"))?;
    let text = output_of(&mut child)?;
    if add(job, &text) { Ok(()) } else { Err("squeue does not know the job".into()) }
}

/// What it writes, which is less than a pipe holds; a child that takes too long is ended.
fn output_of(child: &mut Child) -> Result<String, String> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => break,
            Ok(Some(status)) => return Err(format!("squeue failed: {status}")),
            Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(2)),
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("slurmctld did not answer in {} s", PATIENCE.as_secs()));
            }
            Err(e) => return Err(e.to_string()),
        }
    }
    let mut text = String::new();
    let read = child.stdout.take().map_or(Ok(0), |mut stdout| stdout.read_to_string(&mut text));
    read.map(|_| text).map_err(|e| format!("what squeue wrote cannot be read: {e}"))
}

/// Finds the job's line: the number of an array's first task also means the whole array.
fn add(job: &mut SlurmJob, text: &str) -> bool {
    let id = job.id.to_string();
    let Some(fields) = text.lines().map(fields_of).find(|fields| fields[0] == id) else { return false };
    let [_, label, qos, tres, nodes, name] = fields;
    let known = |text: &str| Some(text.to_owned()).filter(|text| !matches!(text.as_str(), "" | "(null)" | "N/A"));
    job.label = known(label).unwrap_or(id);
    job.qos = known(qos).or(job.qos.take());
    job.name = known(name).or(job.name.take());
    let names = Some(nodes).filter(|nodes| nodes.len() < NODES_WIDTH).and_then(hostlist::expand).unwrap_or_default();
    if names.len() as u32 == job.node_count && job.shares.is_empty() {
        job.shares = shares(names, &job.cpu_counts, |_| None);
    }
    if let Some(bytes) = memory_per_node(tres) {
        job.memory_bytes = Some(bytes);
        job.shares.iter_mut().for_each(|share| share.memory_bytes = Some(bytes));
    }
    true
}

fn fields_of(line: &str) -> [&str; COLUMNS.len()] {
    let mut rest = line;
    COLUMNS.map(|(_, width)| {
        let end = rest.char_indices().nth(width).map_or(rest.len(), |(index, _)| index);
        let (field, behind) = rest.split_at(end);
        rest = behind;
        field.trim()
    })
}

/// Of `cpu=4,mem=200M,node=2,billing=4`. Absent where Slurm does not count memory (SelectTypeParameters).
fn memory_per_node(tres: &str) -> Option<u64> {
    let value = |name: &str| tres.split(',').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    let nodes = value("node")?.parse::<u64>().ok().filter(|nodes| *nodes > 0)?;
    parse::size_bytes(value("mem")?).ok().filter(|bytes| *bytes > 0).map(|bytes| bytes / nodes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(fields: [&str; 6]) -> String {
        let text: String = COLUMNS.iter().zip(fields).map(|((_, width), field)| format!("{field:width$}")).collect();
        text + "\n"
    }

    #[test]
    fn the_line_of_the_job_is_found() {
        let text = line(["21", "17_4", "low", "cpu=1", "n1", "b"])
            + &line(["17", "17_5", "(null)", "cpu=4,mem=200M,node=2,billing=4", "n[1-2]", "naïve job"]);
        let cpu_counts = vec![3, 1];
        let mut job = SlurmJob { id: 17, label: "17".into(), node_count: 2, cpu_counts, ..SlurmJob::default() };
        assert!(add(&mut job, &text));
        let shares: Vec<_> = job.shares.iter().map(|s| (s.node.as_str(), s.cpus, s.memory_bytes)).collect();
        assert_eq!(shares, [("n1", Some(3), Some(100 << 20)), ("n2", Some(1), Some(100 << 20))]);
        assert_eq!((job.label.as_str(), job.qos.as_deref(), job.name.as_deref()), ("17_5", None, Some("naïve job")));
        assert_eq!(job.memory_bytes, Some(100 << 20));
        assert!(!add(&mut SlurmJob { id: 18, ..SlurmJob::default() }, &text));
        assert!(!add(
            &mut SlurmJob { id: 18, ..SlurmJob::default() },
            "slurm_load_jobs error: Invalid job id specified\n"
        ));
    }

    #[test]
    fn memory_that_is_not_counted_is_not_known() {
        assert_eq!(memory_per_node("cpu=2,node=1,billing=2"), None);
        assert_eq!(memory_per_node("cpu=2,mem=1.50G,node=1"), Some(3 << 29));
        assert_eq!(memory_per_node(""), None);
    }
}
