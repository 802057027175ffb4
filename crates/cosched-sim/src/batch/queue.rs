//! The queue of a batch machine. Its head is the oldest job; the others are considered in the order of backfilling: by
//! submission, or by estimate.
//!
//! A pass over a long queue must not visit every job, because there is a pass after each of 77,000 ends. So the jobs are
//! leaves of a tree whose nodes store the smallest size and the shortest estimate below, and branches in which nothing fits
//! are skipped.

use super::engine::Policy;
use super::filter::BatchJob;
use cosched_core::backfill::Hole;

/// The smallest size and the shortest estimate of some waiting jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Least {
    size: u32,
    estimate_us: u64,
}

/// No waiting job.
const NO_JOB: Least = Least { size: u32::MAX, estimate_us: u64::MAX };

/// For a single job: whether it fits. For several: whether one of them might.
fn takes(hole: &Hole, least: Least) -> bool {
    hole.takes(least.size.into(), Some(least.estimate_us))
}

/// The waiting jobs.
#[derive(Debug)]
pub(super) struct Queue {
    waiting: Vec<bool>,
    count: usize,
    /// No job before this one waits.
    head: usize,
    /// The leaf of each job and the job of each leaf.
    leaf_of: Vec<u32>,
    job_of: Vec<u32>,
    /// Node i has the children 2i and 2i + 1; leaves begin at `leaves`. Empty if it is never scanned.
    tree: Vec<Least>,
    leaves: usize,
}

impl Queue {
    /// An empty queue for these jobs.
    pub(super) fn new(jobs: &[BatchJob], policy: Policy) -> Queue {
        let mut job_of: Vec<u32> = (0..jobs.len() as u32).collect();
        if policy == Policy::EasySjbf {
            // Ties keep the order of submission.
            job_of.sort_by_key(|job| jobs[*job as usize].estimate_us);
        }
        let mut leaf_of = vec![0; jobs.len()];
        for (leaf, job) in (0..).zip(&job_of) {
            leaf_of[*job as usize] = leaf;
        }
        let leaves = jobs.len().next_power_of_two();
        let scans = matches!(policy, Policy::Easy | Policy::EasySjbf);
        let tree = if scans { vec![NO_JOB; 2 * leaves] } else { Vec::new() };
        Queue { waiting: vec![false; jobs.len()], count: 0, head: 0, leaf_of, job_of, tree, leaves }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The oldest waiting job.
    pub(super) fn head(&mut self) -> Option<u32> {
        if self.is_empty() {
            return None;
        }
        self.head += self.waiting[self.head..].iter().position(|waits| *waits)?;
        Some(self.head as u32)
    }

    /// Adds a job that was submitted, or that waits again at its old place.
    pub(super) fn push(&mut self, job: u32, spec: &BatchJob) {
        self.waiting[job as usize] = true;
        self.head = self.head.min(job as usize);
        self.count += 1;
        self.set(job, Least { size: spec.size, estimate_us: spec.estimate_us });
    }

    /// Removes a job that starts.
    pub(super) fn remove(&mut self, job: u32) {
        self.waiting[job as usize] = false;
        self.count -= 1;
        self.set(job, NO_JOB);
    }

    fn set(&mut self, job: u32, least: Least) {
        if self.tree.is_empty() {
            return;
        }
        let mut node = self.leaves + self.leaf_of[job as usize] as usize;
        self.tree[node] = least;
        while node > 1 {
            node /= 2;
            let (a, b) = (self.tree[2 * node], self.tree[2 * node + 1]);
            let both = Least { size: a.size.min(b.size), estimate_us: a.estimate_us.min(b.estimate_us) };
            if self.tree[node] == both {
                break;
            }
            self.tree[node] = both;
        }
    }

    /// The first job that fits into the hole, in the order of backfilling from place `from` on, and the place after it.
    pub(super) fn next_fitting(&self, from: usize, hole: &Hole) -> Option<(u32, usize)> {
        if from >= self.leaves {
            return None;
        }
        let mut node = self.leaves + from;
        loop {
            let is_possible = self.tree.get(node).is_some_and(|least| takes(hole, *least));
            if is_possible && node >= self.leaves {
                let leaf = node - self.leaves;
                return Some((self.job_of[leaf], leaf + 1));
            }
            if is_possible {
                node *= 2;
                continue;
            }
            // Up to a node that has a right neighbour; there is none after the last branch.
            while node % 2 == 1 {
                node /= 2;
            }
            if node == 0 {
                return None;
            }
            node += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_first_that_fits_is_found(
            sizes in prop::collection::vec((1..9_u32, 1..9_u64, any::<bool>()), 0..40),
            hole in (0..9_u32, 0..9_u32, 0..9_u64),
            from in 0..45_usize,
        ) {
            let job = |(size, estimate_us, _): &(u32, u64, bool)| {
                BatchJob { number: 0, user: 0, submit_us: 0, size: *size, run_us: 1, estimate_us: *estimate_us }
            };
            let jobs: Vec<BatchJob> = sizes.iter().map(job).collect();
            let mut queue = Queue::new(&jobs, Policy::Easy);
            for (place, spec) in (0..).zip(&jobs) {
                queue.push(place, spec);
            }
            for (place, _) in (0..).zip(&sizes).filter(|(_, (.., waits))| !waits) {
                queue.remove(place);
            }
            let (free, extra, time_us) = hole;
            let hole = Hole { free: free.into(), extra: extra.into(), time: time_us };
            let fits = |place: &usize| {
                let (size, estimate_us, waits) = sizes[*place];
                waits && size <= free && (estimate_us <= time_us || size <= extra)
            };
            let expected = (from..sizes.len()).find(fits).map(|place| (place as u32, place + 1));
            prop_assert_eq!(queue.next_fitting(from, &hole), expected);
            prop_assert_eq!(queue.head(), sizes.iter().position(|(.., waits)| *waits).map(|place| place as u32));
        }
    }
}
