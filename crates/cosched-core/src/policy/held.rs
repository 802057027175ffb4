//! When slots are divided with neighbours, and in what proportion: the evaluation of several samples.
//!
//! The problem: a sample shows which programs want a CPU at one moment; a part that followed each sample would swing, and every shell would cost
//! the gangs time. The rule: the part in force is the mean of the last ten samples' parts (`neighbours.rs`), but no more than twice what the
//! neighbours have used: programs that wait in every sample and compute little cannot stop gangs that way.
//! Slots are divided only with neighbours that want a CPU most of the time: a program that sleeps in between, such as a shell, gets its CPU by
//! weight when it wakes, and in a divided slot it would have to wait for its held part. Hysteresis: a division begins when six of the last ten
//! samples have found a part of a tenth or more, and ends when two have; in between, the part in force changes when the mean has moved by 0.05.
//! Held gangs may fill CPUs that stay idle, as Linux would let them, while the neighbours have threads for at most a quarter of the CPUs, in
//! most of the samples that have found any. Where fewer CPUs are idle, a gang crowds onto them, and is still there when its own part begins.
//! Units: parts of the time, 0 to 1.

use super::neighbours::{Neighbour, Ours, fair_part};

/// A sample counts as one that has found neighbours from this part on: a smaller part is left to weights, which cost a gang no more than that.
const FOUND: f64 = 0.1;
/// Slots are divided from this number of such samples on, and no longer when at most `END` are left.
const BEGIN: usize = 6;
const END: usize = 2;
/// The part in force follows the mean in steps of at least this.
const STEP: f64 = 0.05;
/// The part is at most this multiple of what neighbours have used: neighbours that have waited use a growing part at once.
const USED_TIMES: f64 = 2.0;
/// The number of samples that count.
const LOOKS: usize = 10;

/// How slots are divided.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Held {
    /// The part of each slot that is held, 0 to 0.9.
    pub part: f64,
    /// Whether held gangs may fill idle CPUs.
    pub fill: bool,
}

/// The result of one sample.
#[derive(Clone, Copy, Debug, Default)]
struct Found {
    /// The part of the time that belongs to the neighbours.
    part: f64,
    /// The part that they have used since the previous sample, of the CPUs on which they were seen.
    used: f64,
    /// They left most CPUs free.
    leave_most: bool,
}

/// The division that is in force, by the last samples.
#[derive(Clone, Debug, Default)]
pub struct HeldPart {
    looks: [Found; LOOKS],
    next: usize,
    in_force: Held,
}

impl HeldPart {
    /// Takes one sample, and the CPUs' worth of time that neighbours have used since the previous one, where that is known. Returns
    /// the division in force from now on.
    pub fn look(&mut self, ours: Ours, neighbours: &[Neighbour], used_cpus: Option<f64>) -> Held {
        let threads = neighbours.iter().fold(0u32, |sum, neighbour| sum.saturating_add(neighbour.threads));
        let on_cpus = f64::from(threads.clamp(1, ours.cpus.max(1)));
        let used = used_cpus.map_or(1.0, |cpus| cpus / on_cpus);
        self.take(Found { part: fair_part(ours, neighbours), used, leave_most: threads.saturating_mul(4) <= ours.cpus })
    }

    fn take(&mut self, look: Found) -> Held {
        self.looks[self.next] = look;
        self.next = (self.next + 1) % LOOKS;
        let mean = |of: fn(&Found) -> f64| self.looks.iter().map(of).sum::<f64>() / LOOKS as f64;
        let mean = mean(|look| look.part).min(USED_TIMES * mean(|look| look.used).max(0.0));
        let found = self.looks.iter().filter(|look| look.part >= FOUND);
        let (leave, found) = found.fold((0, 0), |(leave, all), look| (leave + usize::from(look.leave_most), all + 1));
        let (before, moved) = (self.in_force.part, mean - self.in_force.part);
        if found <= END || (before == 0.0 && found < BEGIN) {
            self.in_force.part = 0.0;
        } else if before == 0.0 || moved.max(-moved) >= STEP {
            self.in_force.part = mean;
        }
        self.in_force.fill = self.in_force.part > 0.0 && 2 * leave > found;
        self.in_force
    }

    /// Whether the last samples have found no neighbours.
    pub fn is_quiet(&self) -> bool {
        self.in_force.part == 0.0 && self.looks.iter().all(|look| look.part == 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::neighbours::tests::{ONE_GANG, close, sessions};
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn busy_neighbours_are_found_within_six_looks_and_forgotten_within_eight() {
        let mut held = HeldPart::default();
        let found: Vec<f64> = (0..10).map(|_| held.look(ONE_GANG, &sessions(2, 1), None).part).collect();
        assert_eq!(found[..5], [0.0; 5]);
        assert!(found[5] > 0.3, "{found:?}");
        close(found[9], 2.0 / 3.0);
        let ended: Vec<f64> = (0..8).map(|_| held.look(ONE_GANG, &[], Some(0.0)).part).collect();
        assert!(ended.is_sorted_by(|a, b| a >= b), "{ended:?}");
        assert_eq!(ended[7], 0.0);
        (0..2).for_each(|_| assert_eq!(held.look(ONE_GANG, &[], Some(0.0)).part, 0.0));
        assert!(held.is_quiet());
    }

    #[test]
    fn who_is_seen_now_and_then_holds_nobody() {
        let mut held = HeldPart::default();
        for look in 0..800 {
            let shell = sessions(usize::from(look % 10 < 5), 1);
            assert_eq!(held.look(ONE_GANG, &shell, None), Held::default());
        }
    }

    #[test]
    fn gangs_fill_where_most_cpus_stay_idle() {
        let mut held = HeldPart::default();
        let wide = Ours { cpus: 8, jobs: 1, held: 8 };
        let fills = |held: &mut HeldPart, hogs: &[usize]| {
            (0..16).map(|look| held.look(wide, &sessions(hogs[look % hogs.len()], 1), None).fill).collect::<Vec<bool>>()
        };
        assert_eq!(fills(&mut held, &[2])[8..], [true; 8]);
        assert_eq!(fills(&mut held, &[3, 3, 2])[8..], [false; 8]);
        assert_eq!(fills(&mut held, &[0])[8..], [false; 8], "slots are not divided");
    }

    #[test]
    fn who_is_seen_at_each_look_and_uses_little_holds_little() {
        let mut held = HeldPart::default();
        let last = (0..40).map(|_| held.look(ONE_GANG, &sessions(2, 1), Some(0.1)).part).last();
        assert!(last.unwrap() <= 0.1, "{last:?}");
        // A hog uses everything that is held for it.
        let mut used = 0.3;
        (0..60).for_each(|_| used = 2.0 * held.look(ONE_GANG, &sessions(2, 1), Some(used)).part);
        assert!(used > 1.2, "{used}");
    }

    #[test]
    fn the_part_rests_while_the_mean_moves_little() {
        let of = |part| Found { part, used: 1.0, leave_most: false };
        let mut held = HeldPart::default();
        (0..LOOKS).for_each(|_| assert!(held.take(of(0.5)).part <= 0.5));
        let mut seen: Vec<f64> =
            (0..400).map(|look| held.take(of(if look % 2 == 0 { 0.47 } else { 0.53 })).part).collect();
        seen.dedup();
        assert_eq!(seen.len(), 1, "{seen:?}");
    }
}
