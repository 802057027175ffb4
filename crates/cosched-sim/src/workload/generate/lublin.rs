//! Lublin and Feitelson 2003: sizes, run times that depend on them, and arrivals with a daily cycle. The clock is in
//! floating point: the original program truncates it to whole seconds at each job, so its day drifts.

use crate::workload::TraceJob;
use crate::workload::fit::regularised_gamma;
use crate::workload::random::{ARRIVALS, RUNS, Random, SIZES};

/// Which jobs are modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lublin {
    /// Batch jobs.
    Batch,
    /// Interactive jobs.
    Interactive,
    /// Batch and interactive jobs, each with its own arrivals.
    TwoTypes,
    /// All jobs, without distinction.
    NoTypes,
}

/// A row of the model's table. Gamma(a, b) has shape a and scale b.
struct Set {
    serial: f64,
    pow2: f64,
    /// Exponents of sizes on 128 processors: low, middle, high.
    exponents: [f64; 3],
    uprob: f64,
    /// Gamma of the logarithm of run times, short and long.
    short: (f64, f64),
    long: (f64, f64),
    /// The probability of a short run time is `pa · size + pb`.
    pa: f64,
    pb: f64,
    /// Gamma of the logarithm of gaps, and the correction of its shape.
    aarr: f64,
    barr: f64,
    arar: f64,
    /// Gamma of the arrivals over the day, in half hours.
    day: (f64, f64),
}

const BATCH: Set = Set {
    serial: 0.2927,
    pow2: 0.6686,
    exponents: [1.2, 5.0, 7.0],
    uprob: 0.875,
    short: (6.57, 0.823),
    long: (639.1, 0.0156),
    pa: -0.003,
    pb: 0.6986,
    aarr: 6.0415,
    barr: 0.8531,
    arar: 1.0519,
    day: (6.1271, 5.2740),
};

const INTERACTIVE: Set = Set {
    serial: 0.1541,
    pow2: 0.625,
    exponents: [1.0, 3.0, 5.5],
    uprob: 0.705,
    short: (3.8351, 0.6605),
    long: (7.073, 0.6856),
    pa: -0.0118,
    pb: 0.9156,
    aarr: 6.5510,
    barr: 0.6621,
    arar: 0.9797,
    day: (8.9186, 3.6680),
};

const NO_TYPES: Set = Set {
    serial: 0.244,
    pow2: 0.576,
    exponents: [0.8, 4.5, 7.0],
    uprob: 0.86,
    short: (4.2, 0.94),
    long: (312.0, 0.03),
    pa: -0.0054,
    pb: 0.78,
    aarr: 10.2303,
    barr: 0.4871,
    arar: 1.0225,
    day: (8.1737, 3.9631),
};

/// The number of processors for which the table was made.
const PROCS_OF_TABLE: f64 = 128.0;
/// Maximum logarithms of run times and gaps: larger values are redrawn.
const LN_RUN_MAX: f64 = 12.0;
const LN_GAP_MAX: f64 = 13.0;
const BUCKETS: usize = 48;
const BUCKET_S: f64 = 1800.0;
/// The first bucket of the cycle: the day begins at 5:30.
const FIRST_BUCKET: usize = 11;

/// Draws `count` jobs for a machine of `procs` processors, none larger than `size_max`. The clock starts at midnight.
pub fn lublin(which: Lublin, count: usize, procs: u32, size_max: u32, seed: u64) -> Vec<TraceJob> {
    let sets: &[&Set] = match which {
        Lublin::Batch => &[&BATCH],
        Lublin::Interactive => &[&INTERACTIVE],
        Lublin::TwoTypes => &[&BATCH, &INTERACTIVE],
        Lublin::NoTypes => &[&NO_TYPES],
    };
    let mut streams: Vec<Stream<'_>> =
        (0..).zip(sets).map(|(place, set)| Stream::new(set, procs, seed, place)).collect();
    let mut jobs = Vec::with_capacity(count);
    for number in 1..=count as u64 {
        // The type whose next arrival is earlier supplies the job.
        let earliest = streams.iter_mut().min_by(|a, b| a.next_s.total_cmp(&b.next_s));
        jobs.extend(earliest.map(|stream| stream.job(number, size_max.clamp(1, procs.max(1)))));
    }
    jobs
}

struct Stream<'a> {
    set: &'a Set,
    /// Exponents of sizes on this machine.
    exponents: [f64; 3],
    arrivals: Arrivals,
    next_s: f64,
    runs: Random,
    sizes: Random,
}

impl Stream<'_> {
    fn new(set: &Set, procs: u32, seed: u64, place: u64) -> Stream<'_> {
        let [arrivals, runs, sizes] = [ARRIVALS, RUNS, SIZES].map(|stream| Random::new(seed, stream + place));
        let larger = libm::log2(f64::from(procs.max(1)) / PROCS_OF_TABLE);
        let [low, middle, high] = set.exponents;
        let (middle, high) = ((middle + larger).max(0.0), (high + larger).max(0.0));
        let mut arrivals = Arrivals::new(set, arrivals);
        let next_s = arrivals.next();
        Stream { set, exponents: [low.min(middle), middle, high], arrivals, next_s, runs, sizes }
    }

    fn job(&mut self, number: u64, size_max: u32) -> TraceJob {
        let submit_s = self.next_s;
        self.next_s = self.arrivals.next();
        let size = loop {
            let size = self.size();
            if size <= size_max {
                break size;
            }
        };
        // A run time of 0 is less than half a second; such a job would be useless.
        TraceJob { number, submit_s, run_s: self.run(size).max(0.5), size, estimate_s: None, kind: None }
    }

    fn size(&mut self) -> u32 {
        let u = self.sizes.unit();
        if u <= self.set.serial {
            return 1;
        }
        let [low, middle, high] = self.exponents;
        let (from, to) = if self.sizes.chance(self.set.uprob) { (low, middle) } else { (middle, high) };
        let exponent = self.sizes.uniform(from, to);
        let is_power = u <= self.set.serial + self.set.pow2;
        let exponent = if is_power { (exponent + 0.5).floor() } else { exponent };
        (libm::exp2(exponent) + 0.5).floor() as u32
    }

    fn run(&mut self, size: u32) -> f64 {
        let p = (self.set.pa * f64::from(size) + self.set.pb).clamp(0.0, 1.0);
        loop {
            let (shape, scale) = if self.runs.chance(p) { self.set.short } else { self.set.long };
            let h = self.runs.gamma(shape, scale);
            if h <= LN_RUN_MAX {
                return libm::exp(h).floor();
            }
        }
    }
}

/// The daily cycle: gaps are drawn in points, and a half hour with many arrivals has many points to spend.
struct Arrivals {
    weights: [f64; BUCKETS],
    gap: (f64, f64),
    random: Random,
    bucket: usize,
    /// The start of the bucket, and the fraction of it that has passed.
    bucket_s: f64,
    spent: f64,
}

impl Arrivals {
    fn new(set: &Set, random: Random) -> Arrivals {
        let (shape, scale) = set.day;
        let cdf = |half_hours: f64| regularised_gamma(shape, half_hours / scale);
        let mut weights = [0.0; BUCKETS];
        for i in FIRST_BUCKET..FIRST_BUCKET + BUCKETS {
            weights[(i - 1) % BUCKETS] = cdf(i as f64 + 0.5) - cdf(i as f64 - 0.5);
        }
        let mean = weights.iter().sum::<f64>() / BUCKETS as f64;
        let weights = weights.map(|weight| weight / mean);
        Arrivals { weights, gap: (set.aarr * set.arar, set.barr), random, bucket: 0, bucket_s: 0.0, spent: 0.0 }
    }

    /// The next arrival, s since the first midnight.
    fn next(&mut self) -> f64 {
        let gap = loop {
            let g = self.random.gamma(self.gap.0, self.gap.1);
            if g <= LN_GAP_MAX {
                break libm::exp(g) / BUCKET_S;
            }
        };
        let mut points = self.spent * self.weights[self.bucket] + gap;
        while points > self.weights[self.bucket] {
            points -= self.weights[self.bucket];
            self.bucket = (self.bucket + 1) % BUCKETS;
            self.bucket_s += BUCKET_S;
        }
        self.spent = points / self.weights[self.bucket];
        self.bucket_s + self.spent * BUCKET_S
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::scale::load;

    struct Means {
        gap: f64,
        gap_cv: f64,
        size: f64,
        run: f64,
        run_median: f64,
        load: f64,
    }

    /// Means over seeds of 5,000 jobs each, computed like the check values.
    fn means(which: Lublin) -> Means {
        const SEEDS: u64 = 60;
        let mut sum = Means { gap: 0.0, gap_cv: 0.0, size: 0.0, run: 0.0, run_median: 0.0, load: 0.0 };
        for seed in 0..SEEDS {
            let jobs = lublin(which, 5000, 128, 128, seed);
            let gaps: Vec<f64> = jobs.windows(2).map(|pair| pair[1].submit_s - pair[0].submit_s).collect();
            let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
            let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
            let mut runs: Vec<f64> = jobs.iter().map(|job| job.run_s.floor()).collect();
            runs.sort_by(f64::total_cmp);
            let part = 1.0 / SEEDS as f64;
            sum.gap += part * mean;
            sum.gap_cv += part * variance.sqrt() / mean;
            sum.size += part * jobs.iter().map(|job| f64::from(job.size)).sum::<f64>() / 5000.0;
            sum.run += part * runs.iter().sum::<f64>() / 5000.0;
            sum.run_median += part * runs[2500];
            sum.load += part * load(&jobs, 128).unwrap();
        }
        sum
    }

    fn close(name: &str, value: f64, expected: f64, relative: f64) {
        assert!((value / expected - 1.0).abs() < relative, "{name}: {value}, not {expected}");
    }

    /// The values are means of 400 lists of the published program (standard errors: gap 0.7 %, run 1 %, load 1.1 %).
    #[test]
    fn two_types_have_the_published_programs_means() {
        let found = means(Lublin::TwoTypes);
        close("gap", found.gap, 528.7, 0.03);
        close("CV of gaps", found.gap_cv, 7.1, 0.08);
        close("size", found.size, 8.94, 0.03);
        close("run", found.run, 1655.0, 0.03);
        close("median run", found.run_median, 18.2, 0.03);
        close("load", found.load, 0.409, 0.03);
    }

    #[test]
    fn without_types_too() {
        let found = means(Lublin::NoTypes);
        close("gap", found.gap, 918.4, 0.03);
        close("CV of gaps", found.gap_cv, 7.2, 0.08);
        close("size", found.size, 12.15, 0.03);
        close("run", found.run, 4356.0, 0.03);
        close("median run", found.run_median, 107.9, 0.03);
        close("load", found.load, 0.725, 0.03);
    }

    /// E[e^g | g ≤ 13] for the gap's gamma distribution, by the midpoint rule.
    fn mean_gap(set: &Set) -> f64 {
        let (shape, scale) = (set.aarr * set.arar, set.barr);
        let step = LN_GAP_MAX / 100_000.0;
        let (mut mass, mut sum) = (0.0, 0.0);
        for place in 0..100_000 {
            let g = (f64::from(place) + 0.5) * step;
            let density = (g.ln() * (shape - 1.0) - g / scale).exp();
            mass += density;
            sum += density * g.exp();
        }
        sum / mass
    }

    #[test]
    fn each_type_alone() {
        let batch = means(Lublin::Batch);
        close("size", batch.size, 13.86, 0.03);
        close("run", batch.run, 9513.0, 0.03);
        for (which, set) in [(Lublin::Batch, &BATCH), (Lublin::Interactive, &INTERACTIVE), (Lublin::NoTypes, &NO_TYPES)]
        {
            let jobs = lublin(which, 300_000, 128, 128, 5);
            close("gap", jobs.last().unwrap().submit_s / 300_000.0, mean_gap(set), 0.04);
        }
    }

    #[test]
    fn the_day_does_not_drift() {
        let busy = |jobs: &[TraceJob]| {
            let mut hours = [0.0; 24];
            for job in jobs {
                hours[(job.submit_s.rem_euclid(86_400.0) / 3600.0) as usize] += 1.0 / jobs.len() as f64;
            }
            hours
        };
        let jobs = lublin(Lublin::NoTypes, 200_000, 128, 128, 1);
        for part in [&jobs[..100_000], &jobs[100_000..]] {
            let hours = busy(part);
            for (hour, share) in hours.iter().enumerate() {
                assert!(hours[13] > *share - 0.01, "{hour}: {share}");
            }
            close("peak", hours[12..15].iter().sum::<f64>() / 3.0, 0.075, 0.06);
            close("bottom", hours[4], 0.008, 0.3);
        }
    }

    #[test]
    fn other_machines_have_other_sizes() {
        let jobs = lublin(Lublin::TwoTypes, 2000, 16, 16, 1);
        assert!(jobs.iter().all(|job| (1..=16).contains(&job.size)) && jobs.iter().any(|job| job.size == 16));
        assert!(lublin(Lublin::NoTypes, 100, 1, 1, 1).iter().all(|job| job.size == 1));
        assert!(lublin(Lublin::Batch, 2000, 1000, 1000, 1).iter().any(|job| job.size > 500));
    }
}
