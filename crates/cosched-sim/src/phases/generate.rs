//! Lists of jobs at random.

use crate::draw::Draws;
use crate::workload::phase_jobs::PhaseJob;

/// Mean time between arrivals, µs.
const GAP_US: f64 = 1_200e6;

/// Draws jobs: exponential gaps of 20 min in the mean; 1, 2 or 4 nodes, of both pools; first phases log-uniform from 60 to 600 s, second ones
/// a log-uniform quarter to double of them; 50 to 200 iterations, 200 to 800 GB and limits of 1 to 2, uniform. The distribution is ours:
/// published descriptions of such jobs give ranges only.
pub fn generate_phase_jobs(count: usize, seed: u64) -> Vec<PhaseJob> {
    let mut arrival_us = 0.0;
    let job = |number: usize| {
        // Tasks 0 and 1 of a job are the lengths of its phases.
        let draws = Draws::new(seed, number as u64, 2);
        let unit = |kind| draws.unit(0, kind);
        let between = |kind, least: f64, most: f64| least + (most - least) * unit(kind);
        let log_between = |kind, least: f64, most: f64| least * libm::pow(most / least, unit(kind));
        arrival_us += -GAP_US * libm::log(1.0 - unit(0));
        let nodes = [1, 2, 4][(unit(1) * 3.0) as usize];
        let first_us = log_between(2, 60e6, 600e6);
        PhaseJob {
            name: format!("job-{number}"),
            arrival_us: arrival_us as u64,
            iterations: between(3, 50.0, 201.0) as u32,
            nodes: [nodes; 2],
            phase_us: [first_us as u64, (first_us * log_between(4, 0.25, 2.0)) as u64],
            memory_gb: between(5, 200.0, 801.0) as u32,
            slowdown_max: between(6, 1.0, 2.0),
        }
    };
    (0..count).map(job).collect()
}
