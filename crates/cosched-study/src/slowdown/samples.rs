//! Examples for tests, here and in the command.

use super::record::{Baseline, Each, Ended, FORMAT, Head, Run};

/// A head for tests.
pub fn head(policies: &[&str], jobs: &[u32], repeat: u32) -> Head {
    Head {
        format: FORMAT.into(),
        host: "here".into(),
        cpus: 2,
        cosched: "0.1.0".into(),
        started: "2026-01-01T00:00:00Z".into(),
        command: vec!["prog".into()],
        jobs: jobs.to_vec(),
        policies: policies.iter().map(|name| (*name).to_owned()).collect(),
        repeat,
        limit_s: None,
        baseline: Baseline::Linux,
        phase_regex: None,
        commands: Vec::new(),
    }
}

/// A run whose jobs end at these times and use half of the time as CPU time.
pub fn run(policy: &str, repetition: u32, ends: &[f64]) -> Run {
    let each = |(job, end_s): (usize, &f64)| Each {
        job,
        command: 0,
        start_s: 0.0,
        end_s: *end_s,
        user_s: end_s / 2.0,
        system_s: 0.0,
        max_memory_bytes: 1 << 20,
        voluntary: 10,
        involuntary: 2,
        phase_s: Some(end_s - 0.1),
        exit: Some(0),
    };
    Run {
        policy: policy.into(),
        jobs: ends.len() as u32,
        repetition,
        outcome: Ended::Done,
        why: None,
        elapsed_s: ends.iter().copied().fold(0.0, f64::max),
        others_cpu_share: Some(0.01),
        each: ends.iter().enumerate().map(each).collect(),
        alone: None,
    }
}
