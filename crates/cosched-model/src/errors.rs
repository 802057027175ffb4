//! How much of the model's error is due to each assumption: Strazdins & Uhlmann 2004, section 5.3, Table 3.
//!
//! The slowdown that is derived from CPU utilisation includes all overlap that occurred, but not the cost of cold
//! caches. So its distance from the measured slowdown is the error by assumption 2 (cold caches are neglected); the rest
//! of the model's total error is by assumption 1 (there is always another process ready to run). Errors are shares of
//! the measured slowdown; as in the table, a negative error by assumption 2 counts as 0.

use serde::Serialize;

/// The measurements of j jobs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Measured {
    /// j.
    pub jobs: u32,
    /// s_j of the whole job: row `expt, job`.
    pub job: f64,
    /// s_j by CPU utilisation: row `expt, %CPU`.
    pub cpu: f64,
    /// s_j of the main phase, which the model describes: rows `expt, MM` and `expt, LU`.
    pub phase: f64,
}

/// The errors, as shares of the measured slowdown; the table has them in per cent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Errors {
    /// Of the model: (phase − model) / phase.
    pub total: f64,
    /// By assumption 1: `total` − `assumption2`.
    pub assumption1: f64,
    /// By assumption 2: (job − cpu) / job, at least 0.
    pub assumption2: f64,
}

/// s_j by CPU utilisation: j jobs need j times the CPU time of one, so s_j = j U_1 / U_j, where U_j is the share of the
/// CPUs that j jobs together used. None if a share is not above 0.
pub fn slowdown_by_utilisation(jobs: u32, one_share: f64, all_share: f64) -> Option<f64> {
    (one_share > 0.0 && all_share > 0.0).then(|| f64::from(jobs) * one_share / all_share)
}

/// Splits the error of a model's slowdown by assumption.
pub fn split(measured: &Measured, model: f64) -> Errors {
    let total = (measured.phase - model) / measured.phase;
    let assumption2 = ((measured.job - measured.cpu) / measured.job).max(0.0);
    Errors { total, assumption1: total - assumption2, assumption2 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table3::{LU, MATMUL, Published};

    /// Errors in whole per cent, as the table prints them: the last row is the difference of the two rounded ones.
    fn rounded(published: &Published, at: usize) -> [i32; 3] {
        let measured = Measured {
            jobs: published.jobs[at],
            job: published.job[at],
            cpu: published.cpu[at],
            phase: published.phase[at],
        };
        let errors = split(&measured, published.model[at]);
        let [total, assumption2] = [errors.total, errors.assumption2].map(|share| (share * 100.0).round() as i32);
        [assumption2, total, total - assumption2]
    }

    #[test]
    fn all_24_errors_of_table_3_follow_from_its_slowdowns() {
        for published in [&MATMUL, &LU] {
            for at in 0..4 {
                let expected = [published.error2[at], published.error[at], published.error1[at]];
                assert_eq!(rounded(published, at), expected, "{} j = {}", published.name, published.jobs[at]);
            }
        }
    }

    #[test]
    fn the_last_row_is_a_difference_of_rounded_figures() {
        // Without rounding first, two of its eight cells are one less: matrix multiply and LU at j = 8.
        let mut off = Vec::new();
        for published in [&MATMUL, &LU] {
            for at in 0..4 {
                let total = 1.0 - published.model[at] / published.phase[at];
                let second = (1.0 - published.cpu[at] / published.job[at]).max(0.0);
                let first = ((total - second) * 100.0).round() as i32;
                if first != published.error1[at] {
                    off.push((published.name, published.jobs[at], first, published.error1[at]));
                }
            }
        }
        assert_eq!(off, [("matmul", 8, 33, 34), ("lu", 8, 4, 5)]);
    }

    #[test]
    fn utilisation_tells_a_slowdown() {
        // One job uses a quarter of the CPUs and two use half: no slowdown. Four use all of them: no slowdown either.
        assert_eq!(slowdown_by_utilisation(2, 0.25, 0.5), Some(1.0));
        assert_eq!(slowdown_by_utilisation(8, 0.25, 1.0), Some(2.0));
        assert_eq!(slowdown_by_utilisation(2, 0.0, 0.5), None);
    }
}
