//! The number of busy CPUs over time, in bounded memory.

/// Busy time in intervals of equal width; when there are too many, pairs of them are merged.
#[derive(Clone, Debug)]
pub(super) struct Busy {
    start_ns: u64,
    width_ns: u64,
    sums_ns: Vec<u64>,
}

/// The initial width of intervals, in ns: one activation of the scheduler.
const WIDTH_NS: u64 = 1_000_000;
/// The maximum number of intervals; even.
const COUNT_MAX: usize = 4096;

impl Busy {
    pub(super) fn new(start_ns: u64) -> Busy {
        Busy { start_ns, width_ns: WIDTH_NS, sums_ns: Vec::new() }
    }

    /// A CPU was busy in [from, to), which is not before the start.
    pub(super) fn add(&mut self, from_ns: u64, to_ns: u64) {
        let (mut from, to) = (from_ns - self.start_ns, to_ns - self.start_ns);
        while to.div_ceil(self.width_ns) > COUNT_MAX as u64 {
            self.halve();
        }
        while from < to {
            let place = (from / self.width_ns) as usize;
            let until = to.min((place as u64 + 1) * self.width_ns);
            if self.sums_ns.len() <= place {
                self.sums_ns.resize(place + 1, 0);
            }
            self.sums_ns[place] += until - from;
            from = until;
        }
    }

    fn halve(&mut self) {
        self.sums_ns = self.sums_ns.chunks(2).map(|pair| pair.iter().sum()).collect();
        self.width_ns *= 2;
    }

    /// The mean number of busy CPUs of each interval, with its start in ns.
    pub(super) fn means(&self) -> impl Iterator<Item = (u64, f64)> {
        self.sums_ns
            .iter()
            .enumerate()
            .map(|(place, sum)| (self.start_ns + place as u64 * self.width_ns, *sum as f64 / self.width_ns as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_stay_when_intervals_grow() {
        let mut busy = Busy::new(500);
        busy.add(500, 500 + WIDTH_NS * 3 / 2);
        busy.add(500, 500 + WIDTH_NS);
        assert_eq!(busy.means().collect::<Vec<_>>(), [(500, 2.0), (500 + WIDTH_NS, 0.5)]);
        let long = WIDTH_NS * COUNT_MAX as u64 * 10;
        busy.add(500 + long - WIDTH_NS, 500 + long);
        assert_eq!((busy.width_ns, busy.sums_ns.len()), (16 * WIDTH_NS, 2560));
        assert_eq!(busy.sums_ns.iter().sum::<u64>(), WIDTH_NS * 7 / 2);
    }
}
