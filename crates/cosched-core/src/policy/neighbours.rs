//! Fairness to neighbours: the part of each slot that belongs to programs that are not jobs.
//!
//! The problem: a gang makes progress only while all of it runs, so it cannot share its CPUs with others as Linux shares them, some
//! milliseconds here and some there (Ousterhout 1982). A weight that keeps the others away takes from them what Linux would give them.
//! The rule: time is shared instead of CPUs. A part of every slot, the *held part*, is kept for neighbours: the gang is held on all its CPUs
//! together. The part is what proportional sharing by weight gives to the neighbours, each job counting as one session. That is what
//! they get under plain Linux, as long as they want all CPUs. A few threads that leave CPUs free get more there, up to a CPU each, as the load
//! balancer moves the gang's processes out of their way; a gang as wide as the machine cannot run beside them, and would pay with all its
//! CPUs for one. The gang keeps a tenth of each slot in any case. When slots are divided, and in what proportion, is decided in `held.rs`.
//! Sources: calc_group_shares and find_busiest_group in kernel/sched/fair.c (a group's weight is divided over the CPUs where it runs, and load is
//! balanced by weight); measured in docs/decisions/0046.

/// Threads that share one weight and belong to no job: a session, a cgroup or a bare task.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Neighbour {
    /// Its weight, relative to a job's weight of 1.
    pub weight: f64,
    /// Its threads that run or wait for a CPU.
    pub threads: u32,
}

/// The jobs against which neighbours are weighed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Ours {
    /// CPUs of the machine.
    pub cpus: u32,
    /// Jobs that take part.
    pub jobs: u32,
    /// CPUs that the fullest turn gives to gangs.
    pub held: u32,
}

/// The largest part of a slot that is held.
const PART_MAX: f64 = 0.9;
/// The part of the time (0 to 0.9) that belongs to `neighbours` that want a CPU now, where they and the gangs cannot run side by side.
pub(super) fn fair_part(ours: Ours, neighbours: &[Neighbour]) -> f64 {
    let (threads, weight) = neighbours.iter().fold((0u32, 0.0), |(threads, weight), neighbour| {
        (threads.saturating_add(neighbour.threads), weight + neighbour.weight)
    });
    if threads.saturating_add(ours.held) <= ours.cpus || ours.held == 0 || weight <= 0.0 {
        return 0.0;
    }
    (weight / (weight + f64::from(ours.jobs.max(1)))).min(PART_MAX)
}

/// Longer slots are divided into pieces of at most this length, each with its own held part, so that neighbours do not wait longer.
const PIECE_NS_MAX: u64 = 40_000_000;

/// Whether the time `into_ns` nanoseconds after the beginning of a slot is held, and how long after that beginning this changes. Gangs have
/// the first part of each piece, so that they begin together on all nodes of a cluster, whatever part each node keeps for its neighbours.
pub fn phase(slot_length_ns: u64, part: f64, into_ns: u64) -> (bool, u64) {
    let pieces = slot_length_ns.div_ceil(PIECE_NS_MAX).max(1);
    let piece_ns = (slot_length_ns / pieces).max(1);
    let own_ns = piece_ns - (piece_ns as f64 * part.clamp(0.0, PART_MAX)) as u64;
    let begin_ns = into_ns / piece_ns * piece_ns;
    let held = into_ns >= begin_ns + own_ns;
    (held, begin_ns + if held { piece_ns } else { own_ns })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    pub(crate) const ONE_GANG: Ours = Ours { cpus: 2, jobs: 1, held: 2 };

    pub(crate) fn sessions(count: usize, threads: u32) -> Vec<Neighbour> {
        vec![Neighbour { weight: 1.0, threads }; count]
    }

    pub(crate) fn close(part: f64, expected: f64) {
        assert!((part - expected).abs() < 1e-9, "{part} instead of {expected}");
    }

    #[test]
    fn neighbours_have_what_proportional_sharing_gives_them() {
        close(fair_part(ONE_GANG, &[]), 0.0);
        // A lone thread gets half of the time, not a CPU of its own: all of the gang's CPUs wait for it.
        close(fair_part(ONE_GANG, &sessions(1, 1)), 0.5);
        close(fair_part(ONE_GANG, &sessions(2, 1)), 2.0 / 3.0);
        close(fair_part(ONE_GANG, &sessions(4, 1)), 0.8);
        // One session on all CPUs shares them equally with the gang, whatever its number of threads.
        close(fair_part(ONE_GANG, &sessions(1, 2)), 0.5);
        close(fair_part(ONE_GANG, &sessions(1, 1000)), 0.5);
        let two_gangs = Ours { jobs: 2, ..ONE_GANG };
        close(fair_part(two_gangs, &sessions(2, 1)), 0.5);
        close(fair_part(ONE_GANG, &[Neighbour { weight: 0.25, threads: 2 }]), 0.2);
        let mixed = [Neighbour { weight: 3.0, threads: 1 }, Neighbour { weight: 1.0, threads: 2 }];
        close(fair_part(ONE_GANG, &mixed), 0.8);
    }

    #[test]
    fn who_fits_beside_the_gangs_holds_nobody() {
        let half = Ours { cpus: 4, jobs: 1, held: 2 };
        close(fair_part(half, &sessions(2, 1)), 0.0);
        assert!(fair_part(half, &sessions(3, 1)) > 0.0);
        close(fair_part(Ours { held: 0, ..ONE_GANG }, &sessions(9, 1)), 0.0);
    }

    #[test]
    fn the_gang_keeps_a_tenth_and_they_lose_no_more_than_that() {
        for count in 1..400 {
            let (weight, gang) = (count as f64 / 2.0, 0.5);
            let (part, linux) = (fair_part(ONE_GANG, &sessions(count, 2)), weight / (weight + gang));
            assert!(part <= PART_MAX && part >= 0.9 * linux, "{count}: {part} of {linux}");
        }
    }

    #[test]
    fn slots_are_divided_in_pieces() {
        assert_eq!(phase(40_000_000, 0.75, 0), (false, 10_000_000));
        assert_eq!(phase(40_000_000, 0.75, 9_999_999), (false, 10_000_000));
        assert_eq!(phase(40_000_000, 0.75, 10_000_000), (true, 40_000_000));
        assert_eq!(phase(1_000_000_000, 0.5, 790_000_000), (true, 800_000_000));
        assert_eq!(phase(60_000_000, 0.5, 32_000_000), (false, 45_000_000));
        assert_eq!(phase(40_000_000, 0.0, 39_999_999), (false, 40_000_000));
        assert_eq!(phase(20_000_000, 7.0, 1_999_999), (false, 2_000_000), "a tenth is the gang's");
    }
}
