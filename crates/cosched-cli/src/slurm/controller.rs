//! What slurmctld knows about a job but does not tell the prolog: QOS, the number in an array, memory, all nodes; and its name.
//!
//! Two requests for each job and node. The name is chosen by the user, may contain lines that look like squeue's, and decides
//! nothing: it is requested separately. No other column contains text that a user chooses.

use super::environment::{SlurmJob, shares};
use super::hostlist;
use cosched_api::parse;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

/// The job waits during this time.
const PATIENCE: Duration = Duration::from_secs(5);
/// More than the lines of the largest array that Slurm permits to run at a time on a node.
const OUTPUT_BYTES_MAX: u64 = 64 << 20;

/// The columns of `squeue -O`, with their widths.
const COLUMNS: [(&str, usize); 5] =
    [("JobID", 16), ("JobArrayID", 48), ("QOS", 128), ("tres-alloc", 512), ("NodeList", NODES_WIDTH)];
/// Longer names are cut.
const NAME: (&str, usize) = ("Name", 256);
/// Longer host lists are truncated.
const NODES_WIDTH: usize = 4096;

/// Adds what slurmctld knows to `job`.
///
/// # Errors
/// Why slurmctld could not be asked.
pub(super) fn complete(job: &mut SlurmJob) -> Result<(), String> {
    let text = ask(job.id, &COLUMNS)?;
    if !add(job, &text) {
        return Err("squeue does not know the job".into());
    }
    job.name = ask(job.id, &[NAME]).ok().and_then(|text| shown(&text)).or(job.name.take());
    Ok(())
}

/// squeue's output for a job: one line, or one for each job of an array if it is the array's first.
fn ask(id: u32, columns: &[(&str, usize)]) -> Result<String, String> {
    let columns: Vec<String> = columns.iter().map(|(name, width)| format!("{name}:{width}")).collect();
    let mut child = Command::new("squeue")
        .args(["--noheader", "--all", &format!("--jobs={id}"), &format!("--Format={}", columns.join(","))])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| format!("squeue cannot be run: {e}"))?;
    output_of(&mut child)
}

/// The output; a child that takes too long is killed. It is read meanwhile: the lines of an array are more than a pipe holds.
fn output_of(child: &mut Child) -> Result<String, String> {
    let (to, read) = channel();
    let stdout = child.stdout.take();
    std::thread::spawn(move || {
        let mut text = String::new();
        let read = stdout.map_or(Ok(0), |stdout| stdout.take(OUTPUT_BYTES_MAX).read_to_string(&mut text));
        // The listener may have given up.
        let _ = to.send(read.map(|_| text));
    });
    let read = read.recv_timeout(PATIENCE);
    // It has written all, or takes too long.
    if read.is_err() {
        let _ = child.kill();
    }
    let status = child.wait().map_err(|e| e.to_string())?;
    match read {
        Err(_) => Err(format!("slurmctld did not answer in {} s", PATIENCE.as_secs())),
        Ok(_) if !status.success() => Err(format!("squeue failed: {status}")),
        Ok(read) => read.map_err(|e| format!("what squeue wrote cannot be read: {e}")),
    }
}

/// Finds the job's line: the number of an array's first task also means the whole array.
pub(super) fn add(job: &mut SlurmJob, text: &str) -> bool {
    let id = job.id.to_string();
    let Some(fields) = text.lines().map(fields_of).find(|fields| fields[0] == id) else { return false };
    let [_, label, qos, tres, nodes] = fields;
    job.label = known(label).unwrap_or(id);
    job.qos = known(qos).or(job.qos.take());
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

/// The value, unless it is missing.
fn known(text: &str) -> Option<String> {
    Some(text.trim().to_owned()).filter(|text| !matches!(text.as_str(), "" | "(null)" | "N/A"))
}

/// The name, for display: its first line only, without control characters for a terminal.
pub(super) fn shown(text: &str) -> Option<String> {
    let line = text.lines().next()?;
    known(&line.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect::<String>())
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

/// The memory in `cpu=4,mem=200M,node=2,billing=4`. Absent where Slurm does not count memory (SelectTypeParameters).
fn memory_per_node(tres: &str) -> Option<u64> {
    let value = |name: &str| tres.split(',').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    let nodes = value("node")?.parse::<u64>().ok().filter(|nodes| *nodes > 0)?;
    parse::size_bytes(value("mem")?).ok().filter(|bytes| *bytes > 0).map(|bytes| bytes / nodes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(fields: [&str; COLUMNS.len()]) -> String {
        let text: String = COLUMNS.iter().zip(fields).map(|((_, width), field)| format!("{field:width$}")).collect();
        text + "\n"
    }

    #[test]
    fn the_line_of_the_job_is_found() {
        let text = line(["21", "17_4", "low", "cpu=1", "n1"])
            + &line(["17", "17_5", "(null)", "cpu=4,mem=200M,node=2,billing=4", "n[1-2]"]);
        let cpu_counts = vec![3, 1];
        let mut job = SlurmJob { id: 17, label: "17".into(), node_count: 2, cpu_counts, ..SlurmJob::default() };
        assert!(add(&mut job, &text));
        let shares: Vec<_> = job.shares.iter().map(|s| (s.node.as_str(), s.cpus, s.memory_bytes)).collect();
        assert_eq!(shares, [("n1", Some(3), Some(100 << 20)), ("n2", Some(1), Some(100 << 20))]);
        assert_eq!((job.label.as_str(), job.qos.as_deref()), ("17_5", None));
        assert_eq!(job.memory_bytes, Some(100 << 20));
        assert!(!add(&mut SlurmJob { id: 18, ..SlurmJob::default() }, &text));
        assert!(!add(
            &mut SlurmJob { id: 18, ..SlurmJob::default() },
            "slurm_load_jobs error: Invalid job id specified\n"
        ));
    }

    /// The output of squeue 22.05 for an array's first task whose name contains a newline.
    #[test]
    fn a_name_decides_nothing() {
        let forged = line(["1", "1_2", "urgent", "cpu=64", "n1"]);
        assert_eq!(shown(&format!("x\n{forged}\n")).as_deref(), Some("x"));
        assert_eq!(shown("\u{1b}[2Jgone  \n").as_deref(), Some("\u{fffd}[2Jgone"));
        assert_eq!((shown(""), shown("(null)\n")), (None, None));
        let users =
            ["Name", "Comment", "AdminComment", "WorkDir", "Command", "WCKey", "Account", "Dependency", "Feature"];
        assert!(COLUMNS.iter().all(|(column, _)| !users.contains(column)), "a column whose words a user chooses");
    }

    #[test]
    fn memory_that_is_not_counted_is_not_known() {
        assert_eq!(memory_per_node("cpu=2,node=1,billing=2"), None);
        assert_eq!(memory_per_node("cpu=2,mem=1.50G,node=1"), Some(3 << 29));
        assert_eq!(memory_per_node(""), None);
    }
}
