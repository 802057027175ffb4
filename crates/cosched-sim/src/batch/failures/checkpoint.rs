//! Checkpoints: what a job keeps, and what they cost.

/// After each `every_us` of work a job takes `cost_us` to store it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// At least 1.
    pub every_us: u64,
    /// The time that it takes.
    pub cost_us: u64,
}

impl Checkpoint {
    /// How long work takes with its checkpoints; none is at its end.
    pub(super) fn lasts_us(self, work_us: u64) -> u64 {
        let count = work_us.saturating_sub(1) / self.every_us;
        work_us.saturating_add(count.saturating_mul(self.cost_us))
    }

    /// The work that is stored after this time.
    pub(super) fn kept_us(self, elapsed_us: u64) -> u64 {
        elapsed_us / self.every_us.saturating_add(self.cost_us) * self.every_us
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn four_checkpoints_of_ten_seconds() {
        let each = Checkpoint { every_us: 2_000_000, cost_us: 500_000 };
        assert_eq!(
            [10_000_000, 10_000_001, 2_000_000].map(|work| each.lasts_us(work)),
            [12_000_000, 12_500_001, 2_000_000]
        );
        assert_eq!([2_499_999, 2_500_000, 11_999_999].map(|time| each.kept_us(time)), [0, 2_000_000, 8_000_000]);
    }

    proptest! {
        #[test]
        fn a_job_that_has_not_ended_has_not_stored_all(work in 1..1000_u64, every_us in 1..100_u64, cost_us in 0..100_u64) {
            let each = Checkpoint { every_us, cost_us };
            for elapsed in 0..each.lasts_us(work) {
                prop_assert!(each.kept_us(elapsed) < work);
            }
        }
    }
}
