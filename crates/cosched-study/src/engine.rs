//! Chooses the engine that simulates.

use cosched_sim::general::{Config, Work};
use cosched_sim::paper::Sampling;
use cosched_sim::sweep::Simulated;
use cosched_sim::{JobSpec, Progress, Silent, SimError, general, paper};

/// Uses the fast engine if possible, with sampling if requested; otherwise the general one. All in the caller's thread: sweeps have one
/// for each CPU.
///
/// # Errors
/// Those of the engine; [`SimError::Stopped`] if `watch` has returned false.
pub fn simulate(
    is_sampled: bool,
    config: &Config,
    jobs: &[JobSpec],
    mut watch: &mut (dyn FnMut(Progress) -> bool + Send),
) -> Result<Simulated, SimError> {
    if !is_papers(config) {
        let works: Vec<Work> = jobs.iter().map(|job| Work::Paper(*job)).collect();
        return general::simulate(config, &works, &mut Silent, &mut watch).map(Simulated::from);
    }
    if !is_sampled {
        return paper::run(&config.params, jobs, &mut Silent, &mut watch).map(Simulated::from);
    }
    let (outcome, sampled) = paper::run_sampled(&config.params, jobs, &Sampling::default(), 1, &mut watch)?;
    Ok(Simulated { outcome, sampled: Some(sampled) })
}

/// Whether the fast engine can simulate this: nothing goes beyond the paper's machine.
pub fn is_papers(config: &Config) -> bool {
    let paper = Config {
        bytes_per_s: config.bytes_per_s,
        linux: config.linux,
        local_switch_ns: config.local_switch_ns,
        live: config.live,
        ..Config::paper(config.params)
    };
    paper::handles(&config.params) && *config == paper
}
