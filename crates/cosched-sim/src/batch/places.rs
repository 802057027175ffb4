//! Which processors a schedule used: always the lowest free ones. Space sharing needs only a count to be correct, so
//! this is computed afterwards, for drawing.

use super::engine::Schedule;
use super::filter::BatchJob;
use super::intervals::{Places, give, take};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// The processors of every job, in the order of the jobs.
pub fn allocate(jobs: &[BatchJob], procs: u32, schedule: &Schedule) -> Vec<Places> {
    let mut free: BTreeMap<u32, u32> = BTreeMap::new();
    if procs > 0 {
        free.insert(0, procs - 1);
    }
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    order.sort_by_key(|job| (schedule.start_us[*job], *job));
    let mut ends: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    let mut places: Vec<Places> = vec![Vec::new(); jobs.len()];
    for job in order {
        let start = schedule.start_us[job];
        while let Some(Reverse((end, ended))) = ends.peek().copied()
            && end <= start
        {
            ends.pop();
            places[ended].iter().for_each(|interval| give(&mut free, *interval));
        }
        places[job] = take(&mut free, jobs[job].size);
        ends.push(Reverse((schedule.end_us[job], job)));
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_disjoint_and_maximal() {
        let job =
            |submit_us, size, run_us| BatchJob { number: 0, user: 0, submit_us, size, run_us, estimate_us: run_us };
        let jobs = [job(0, 1, 10), job(0, 1, 5), job(0, 2, 10), job(0, 1, 5), job(5, 2, 5), job(10, 5, 1)];
        let (start_us, end_us) = (vec![0, 0, 0, 0, 5, 10], vec![10, 5, 10, 5, 10, 11]);
        let schedule = Schedule { start_us, end_us, ..Schedule::default() };
        let texts: Vec<String> =
            allocate(&jobs, 5, &schedule).iter().map(|places| crate::metrics::words_of(places)).collect();
        assert_eq!(texts, ["0", "1", "2-3", "4", "1 4", "0-4"]);
    }
}
