//! How fast a job advances, until something changes. Its work is the time that it would run alone on its processors, in µs.

/// The pace of a job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Pace {
    /// This part of its speed alone.
    Rate(f64),
    /// At full speed in some slots of a cycle.
    Turns(Turns),
}

/// The slots of a cycle in which a job runs; bit 0 is the one that begins at `origin_us`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turns {
    /// Not later than the time at which the pace is set.
    pub(super) origin_us: u64,
    pub(super) slot_us: u64,
    /// Slots of a cycle.
    pub(super) rows: u32,
    pub(super) runs: u32,
    /// What it loses at the beginning of a slot if it did not run in the one before.
    pub(super) switch_us: u64,
}

impl Turns {
    /// The work that it does in a slot of the cycle.
    fn work_in(&self, row: u32) -> u64 {
        self.slot_us - self.lost_in(row)
    }

    fn lost_in(&self, row: u32) -> u64 {
        let ran_before = self.runs & (1 << ((row + self.rows - 1) % self.rows)) != 0;
        match self.runs & (1 << row) != 0 {
            false => self.slot_us,
            true if ran_before => 0,
            true => self.switch_us,
        }
    }

    fn work_in_cycle(&self) -> u64 {
        (0..self.rows).map(|row| self.work_in(row)).sum()
    }

    /// The work done from `origin_us` to a time.
    fn work_until(&self, time_us: u64) -> u64 {
        let (slots, rest_us) = ((time_us - self.origin_us) / self.slot_us, (time_us - self.origin_us) % self.slot_us);
        let (cycles, row) = (slots / u64::from(self.rows), (slots % u64::from(self.rows)) as u32);
        let whole: u64 = (0..row).map(|row| self.work_in(row)).sum();
        cycles * self.work_in_cycle() + whole + rest_us.saturating_sub(self.lost_in(row))
    }

    /// The first time at which this work, at least 1, is done since `origin_us`; it must run in some slot.
    fn time_of(&self, work_us: u64) -> u64 {
        let of_cycle = self.work_in_cycle();
        let cycles = (work_us - 1) / of_cycle;
        let mut left_us = work_us - cycles * of_cycle;
        // Lists of billions of years end at the end of the clock.
        let cycle_us = u64::from(self.rows) * self.slot_us;
        let mut time_us = self.origin_us.saturating_add(cycles.saturating_mul(cycle_us));
        for row in 0..self.rows {
            let here = self.work_in(row);
            if left_us <= here {
                return time_us.saturating_add(self.lost_in(row) + left_us);
            }
            left_us -= here;
            time_us = time_us.saturating_add(self.slot_us);
        }
        time_us
    }
}

impl Pace {
    /// The pace of a job that is suspended.
    pub(super) const STOPPED: Pace = Pace::Rate(0.0);

    /// The work that is done between two times.
    pub(super) fn work(&self, from_us: u64, to_us: u64) -> f64 {
        match self {
            Pace::Rate(rate) => (to_us - from_us) as f64 * rate,
            Pace::Turns(turns) => (turns.work_until(to_us) - turns.work_until(from_us)) as f64,
        }
    }

    /// When this work, above 0, is done; `None`: never.
    pub(super) fn end(&self, now_us: u64, left_us: f64) -> Option<u64> {
        match self {
            Pace::Rate(rate) if *rate <= 0.0 => None,
            Pace::Rate(rate) => Some(now_us.saturating_add(((left_us / rate).ceil() as u64).max(1))),
            Pace::Turns(turns) => Some(turns.time_of(turns.work_until(now_us).saturating_add(left_us.ceil() as u64))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a walk of one µs after the other.
        #[test]
        fn work_of_turns_is_that_of_its_slots(rows in 1..5_u32, bits in 1..16_u32, switch_us in 0..7_u64, work in 1..80_u64, now in 0..90_u64) {
            let runs = (bits & ((1 << rows) - 1)).max(1);
            let turns = Turns { origin_us: 100, slot_us: 7, rows, runs, switch_us };
            prop_assume!(turns.work_in_cycle() > 0);
            let works = |at: u64| {
                let (row, within) = ((at / 7 % u64::from(rows)) as u32, at % 7);
                let ran = runs & (1 << ((row + rows - 1) % rows)) != 0;
                runs & (1 << row) != 0 && (ran || within >= switch_us)
            };
            let pace = Pace::Turns(turns);
            let end = (now..).scan(0, |done, at| { *done += u64::from(works(at)); Some((*done, at + 1)) }).find(|(done, _)| *done == work);
            prop_assert_eq!(pace.end(100 + now, work as f64), end.map(|(_, at)| 100 + at));
            prop_assert_eq!(pace.work(100 + now, 180 + now), (now..now + 80).filter(|at| works(*at)).count() as f64);
        }
    }
}
