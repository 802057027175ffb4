//! `cosched-soak [SECONDS [SEED]]`: rounds of a soak, each on a cluster of its own, until the time is over (tests/src/soak).
//! `cosched-soak beat PREFIX SECONDS CODE` is the program of its jobs.

use cosched_tests::cluster::needs;
use cosched_tests::soak::{beat, round};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// A round is short enough to be read when it fails, and long enough for leases to lapse many times.
const ROUND_S: u64 = 180;
/// A shorter round has only time for the calm period.
const ROUND_S_MIN: u64 = 45;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |n: usize, or: u64| words.get(n).map_or(Some(or), |word| word.parse().ok());
    match words.first().map(String::as_str) {
        Some("beat") => match (words.get(1), number(2, 10), number(3, 0)) {
            (Some(prefix), Some(seconds), Some(code)) => {
                beat(prefix, seconds, code as i32).map_or(ExitCode::FAILURE, |code| ExitCode::from(code as u8))
            }
            _ => wrong_use(),
        },
        _ => match (number(0, 60), number(1, 2 * u64::from(std::process::id()))) {
            (Some(seconds), Some(seed)) => soak(seconds, seed),
            _ => wrong_use(),
        },
    }
}

fn wrong_use() -> ExitCode {
    eprintln!("cosched-soak [SECONDS [SEED]]");
    ExitCode::from(2)
}

fn soak(seconds: u64, seed: u64) -> ExitCode {
    if !needs(&["etcd", "openssl"]) {
        println!("0 passed, 0 failed");
        return ExitCode::SUCCESS;
    }
    // If the caller names a directory, everything is kept there; otherwise failures are kept below build.
    let named = std::env::var_os("SOAK_KEEP").map(PathBuf::from);
    let keep = named.clone().unwrap_or_else(|| PathBuf::from("build/soak"));
    let (start, mut seed, mut passed, mut failed) = (Instant::now(), seed, 0_u64, 0_u64);
    loop {
        let left = Duration::from_secs(seconds).saturating_sub(start.elapsed()).as_secs();
        let outcome = round(seed, left.clamp(ROUND_S_MIN, ROUND_S), &keep, named.is_some());
        let [asked, jobs, processes, beats, faults] = outcome.counts;
        println!("seed {seed}: {asked} operations, {jobs} jobs, {processes} processes, {beats} beats, {faults} faults");
        outcome.wrong.iter().for_each(|line| println!("    {line}"));
        if let Some(kept) = outcome.kept {
            println!("    kept in {}", kept.display());
        }
        failed += u64::from(!outcome.wrong.is_empty());
        passed += u64::from(outcome.wrong.is_empty());
        seed += 1;
        if start.elapsed() + Duration::from_secs(ROUND_S_MIN) > Duration::from_secs(seconds) {
            break;
        }
    }
    println!("{passed} passed, {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
