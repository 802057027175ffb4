//! Conservative backfilling (Mu'alem & Feitelson 2001): every job has a reservation from its submission on, and starts
//! earlier only if that delays no other job's.
//!
//! When a job ends, the others move forward one after the other, in the order of submission: a job gives its reservation back and
//! takes the earliest, which is never later, as its old place is free again. So no job starts after its first reservation.

use super::engine::Machine;
use super::profile::Reservation;

impl Machine {
    pub(super) fn pass_conservative(&mut self) {
        if std::mem::take(&mut self.ended) {
            let jobs: Vec<u32> = self.reserved.keys().copied().collect();
            for job in jobs {
                let first_us = self.give_back(job).first_us;
                let at_us = self.find(job);
                self.reserved.insert(job, Reservation { at_us, first_us });
            }
        }
        for job in std::mem::take(&mut self.submitted) {
            let at_us = self.find(job);
            self.reserved.insert(job, Reservation { at_us, first_us: at_us });
        }
        let due = self.reserved.iter().filter(|(_, reservation)| reservation.at_us <= self.now);
        for job in due.map(|(job, _)| *job).collect::<Vec<u32>>() {
            // With a pass after each event its processors may be those of a job that ends at this instant, too.
            if self.jobs[job as usize].size <= self.free {
                let first_us = self.give_back(job).first_us;
                debug_assert!(
                    self.now <= first_us,
                    "job {job} starts at {}, after its reservation at {first_us}",
                    self.now
                );
                self.reserved.remove(&job);
                self.queue.remove(job);
                self.start(job);
            }
        }
    }

    /// Takes the earliest place for a job out of the profile.
    fn find(&mut self, job: u32) -> u64 {
        let spec = &self.jobs[job as usize];
        let at_us = self.promised.earliest(self.now, self.free, spec.size, spec.estimate_us);
        self.promised.take(at_us, spec.size);
        self.promised.give(at_us.saturating_add(spec.estimate_us), spec.size);
        at_us
    }

    fn give_back(&mut self, job: u32) -> Reservation {
        let spec = &self.jobs[job as usize];
        let reservation = self.reserved[&job];
        self.promised.give(reservation.at_us, spec.size);
        self.promised.take(reservation.at_us.saturating_add(spec.estimate_us), spec.size);
        reservation
    }
}
