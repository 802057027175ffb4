//! The program of a soak's jobs: it records when it ran, and ends by itself after a while.

use super::history::Life;
use super::{now, sleep_ms};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// Set in the environment of the processes that a client starts: they first wait for a byte of input. A job that a daemon
/// restarts does not have it.
pub(super) const GATE: &str = "SOAK_GATE";

/// Between two beats: several in each slot.
const PERIOD_MS: u64 = 5;

/// Writes beats into a file of its own, `PREFIX.LIFE.PID.HOST`; returns the exit code with which the program has to end.
pub fn beat(prefix: &str, seconds: u64, code: i32) -> std::io::Result<i32> {
    let pid = std::process::id();
    let life = if std::env::var_os(GATE).is_some() { 0 } else { pid };
    if life == 0 && std::io::stdin().read(&mut [0])? == 0 {
        return Ok(0);
    }
    let host = fs::read_to_string("/proc/sys/kernel/hostname")?;
    let mut file = File::create(format!("{prefix}.{life}.{pid}.{}", host.trim()))?;
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(seconds) {
        file.write_all(format!("{}\n", now()).as_bytes())?;
        sleep_ms(PERIOD_MS);
    }
    file.write_all(format!("end {code}\n").as_bytes())?;
    Ok(code)
}

/// Reads what the programs of a run wrote into a directory. Hosts are n1, n2, …
pub(super) fn read(dir: &Path) -> Vec<Life> {
    let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
    let mut lives = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let file = entry.file_name().to_string_lossy().into_owned();
        let fields: Vec<&str> = file.split('.').collect();
        let [name, life, pid, host] = fields[..] else { continue };
        let text = fs::read_to_string(entry.path()).unwrap_or_default();
        // A life that a daemon began is told from other lives of its job by the number of its process.
        let of_client = life == "0";
        let next = numbers.entry(name.to_owned()).or_insert(0);
        *next += usize::from(!of_client);
        lives.push(Life {
            name: name.to_owned(),
            node: host.trim_start_matches('n').parse::<usize>().map_or(0, |n| n.saturating_sub(1)),
            pid: pid.parse().unwrap_or(0),
            life: if of_client { 0 } else { *next },
            beats: text.lines().filter_map(|line| line.parse().ok()).collect(),
            ended: text.lines().last().and_then(|line| line.strip_prefix("end ")?.parse().ok()),
        });
    }
    lives
}
