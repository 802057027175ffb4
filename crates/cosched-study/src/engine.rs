//! Chooses the engine that simulates.

use cosched_sim::paper::Sampling;
use cosched_sim::sweep::Simulated;
use cosched_sim::{JobSpec, Params, Progress, Silent, SimError, general, paper};

/// Uses the fast engine if possible, with sampling if requested; otherwise the general one.
///
/// # Errors
/// Those of the engine; [`SimError::Stopped`] if `watch` has returned false.
pub fn simulate(
    is_sampled: bool,
    params: &Params,
    jobs: &[JobSpec],
    mut watch: &mut dyn FnMut(Progress) -> bool,
) -> Result<Simulated, SimError> {
    if !paper::handles(params) {
        return general::run(params, jobs, &mut Silent, &mut watch).map(Simulated::from);
    }
    if !is_sampled {
        return paper::run(params, jobs, &mut Silent, &mut watch).map(Simulated::from);
    }
    let (outcome, sampled) = paper::run_sampled(params, jobs, &Sampling::default(), &mut watch)?;
    Ok(Simulated { outcome, sampling_error_s: Some(sampled.response_error_s) })
}
