//! Jann et al. 1997: an independent renewal stream for each size class, with hyper-Erlang gaps and run times. The
//! published tables could not be obtained; the refit is the same procedure on the same weeks of the CTC log.

use crate::workload::TraceJob;
use crate::workload::classes::SizeClass;
use crate::workload::fit::{HyperErlang, Moments, fit_em, fit_moments};
use crate::workload::random::{ARRIVALS, RUNS, Random, SIZES};
use serde::{Deserialize, Serialize};

/// A size class of a model.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassShape {
    /// The smallest size.
    pub low: u32,
    /// The largest size.
    pub high: u32,
    /// The mean size.
    pub mean_size: f64,
    /// Between submissions, s.
    pub interarrival: HyperErlang,
    /// Run times, s.
    pub runtime: HyperErlang,
}

/// A model of a machine's workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassModel {
    /// The machine or log that it models.
    pub name: String,
    /// The machine's processors.
    pub procs: u32,
    /// Its classes.
    pub classes: Vec<ClassShape>,
}

/// Jobs cannot be drawn from this model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the model cannot be used\n  why: {why}\n  hint: `cosched workload fit --json` writes a model that can")]
pub struct ModelError {
    why: String,
}

/// How the distributions of a model are fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FitMethod {
    /// Three moments: load and burstiness are exact.
    Moments,
    /// Maximum likelihood: the body of the distribution is closer.
    Likelihood,
}

impl FitMethod {
    /// Its name in options and models.
    pub fn name(self) -> &'static str {
        match self {
            FitMethod::Moments => "moments",
            FitMethod::Likelihood => "em",
        }
    }

    /// Fits a sample; `None` if it has no fit.
    pub fn fit(self, mut sample: Vec<f64>) -> Option<HyperErlang> {
        match self {
            FitMethod::Moments => fit_moments(&Moments::of(&sample)?),
            FitMethod::Likelihood => {
                sample.sort_by(f64::total_cmp);
                fit_em(&sample).map(|fit| fit.model)
            }
        }
    }
}

impl ClassModel {
    /// Fits the classes of jobs that are sorted by submission, ignoring gaps above `gap_s_max`. The second value
    /// contains the classes that were left out because a distribution has no fit.
    pub fn fit(
        name: &str,
        procs: u32,
        jobs: &[TraceJob],
        method: FitMethod,
        gap_s_max: f64,
    ) -> (ClassModel, Vec<SizeClass>) {
        let (mut classes, mut left_out) = (Vec::new(), Vec::new());
        for class in SizeClass::all() {
            let of: Vec<&TraceJob> = jobs.iter().filter(|job| SizeClass::of(job.size) == class).collect();
            let Some(high) = of.iter().map(|job| job.size).max() else { continue };
            let gaps = of.windows(2).map(|pair| pair[1].submit_s - pair[0].submit_s);
            let gaps = gaps.filter(|gap| *gap <= gap_s_max).collect();
            let mean_size = of.iter().map(|job| f64::from(job.size)).sum::<f64>() / of.len() as f64;
            let runs = of.iter().map(|job| job.run_s).collect();
            match (method.fit(gaps), method.fit(runs)) {
                (Some(interarrival), Some(runtime)) => {
                    let high = class.high().map_or(high, |end| end.min(procs.max(high)));
                    classes.push(ClassShape { low: class.low(), high, mean_size, interarrival, runtime });
                }
                _ => left_out.push(class),
            }
        }
        (ClassModel { name: name.into(), procs, classes }, left_out)
    }

    /// `Σ E[size] E[run] / (E[gap] procs)`: the load that it generates.
    pub fn rho(&self, procs: u32) -> f64 {
        let work = |class: &ClassShape| class.mean_size * class.runtime.mean() / class.interarrival.mean();
        self.classes.iter().map(work).sum::<f64>() / f64::from(procs)
    }

    /// Checks that jobs can be drawn.
    ///
    /// # Errors
    /// No classes; sizes, rates or probabilities out of their range.
    pub fn check(&self) -> Result<(), ModelError> {
        let wrong = |why: String| Err(ModelError { why });
        if self.classes.is_empty() {
            return wrong("it has no classes".into());
        }
        for class in &self.classes {
            let ClassShape { low, high, mean_size, .. } = *class;
            if low == 0 || low > high || !(f64::from(low)..=f64::from(high)).contains(&mean_size) {
                return wrong(format!("class {low}-{high} with mean size {mean_size} is no class of sizes"));
            }
            for (name, model) in [("interarrival", class.interarrival), ("runtime", class.runtime)] {
                let is_rate = |rate: f64| rate > 1e-12 && rate < 1e12;
                let is_proper = is_rate(model.lambda1) && is_rate(model.lambda2) && (0.0..=1.0).contains(&model.p1);
                if !is_proper || !(1..=1000).contains(&model.order) {
                    return wrong(format!("{name} of class {low}-{high} is no distribution"));
                }
            }
        }
        Ok(())
    }

    /// Draws `count` jobs of at most `size_max` tasks: larger classes are left out, larger sizes are redrawn.
    ///
    /// # Errors
    /// As for [`ClassModel::check`], or if no class has jobs that small.
    pub fn draw(&self, count: usize, size_max: u32, seed: u64) -> Result<Vec<TraceJob>, ModelError> {
        self.check()?;
        let fits = |class: &&ClassShape| class.low <= size_max;
        let mut streams: Vec<Stream<'_>> =
            (0..).zip(self.classes.iter().filter(fits)).map(|(place, class)| Stream::new(class, place, seed)).collect();
        let mut jobs = Vec::with_capacity(count);
        for number in 1..=count as u64 {
            let earliest = streams.iter_mut().min_by(|a, b| a.next_s.total_cmp(&b.next_s));
            let Some(stream) = earliest else {
                return Err(ModelError { why: format!("none of its classes has jobs of {size_max} tasks or fewer") });
            };
            jobs.push(stream.job(number, size_max));
        }
        Ok(jobs)
    }
}

/// The arrivals of a class.
struct Stream<'a> {
    class: &'a ClassShape,
    arrivals: Random,
    runs: Random,
    sizes: Random,
    next_s: f64,
}

impl Stream<'_> {
    fn new(class: &ClassShape, place: u64, seed: u64) -> Stream<'_> {
        let [mut arrivals, runs, sizes] = [ARRIVALS, RUNS, SIZES].map(|stream| Random::new(seed, stream + place));
        let next_s = class.interarrival.sample(&mut arrivals);
        Stream { class, arrivals, runs, sizes, next_s }
    }

    fn job(&mut self, number: u64, size_max: u32) -> TraceJob {
        let submit_s = self.next_s;
        self.next_s += self.class.interarrival.sample(&mut self.arrivals);
        let run_s = self.class.runtime.sample(&mut self.runs);
        let size = std::iter::repeat_with(|| size(self.class, &mut self.sizes)).find(|size| *size <= size_max);
        TraceJob { number, submit_s, run_s, size: size.unwrap_or(self.class.low), estimate_s: None, kind: None }
    }
}

/// A size with the class's mean: its upper end (most sizes are powers of two) or its lower end, otherwise uniform. The
/// published model leaves this open.
fn size(class: &ClassShape, random: &mut Random) -> u32 {
    let (low, high) = (f64::from(class.low), f64::from(class.high));
    let middle = (low + high) / 2.0;
    let end = if class.mean_size >= middle { class.high } else { class.low };
    let reach = f64::from(end) - middle;
    let share = if reach == 0.0 { 0.0 } else { (class.mean_size - middle) / reach };
    if random.chance(share) { end } else { class.low + random.below(u64::from(class.high - class.low) + 1) as u32 }
}

/// The procedure of Jann et al. on the CTC SP2's log, 26 June to 12 September 1996 (17,818 jobs on 338 processors).
/// These are not the values of their table.
pub fn ctc_1996_refit() -> ClassModel {
    let erlang = |(order, lambda1, lambda2, p1)| HyperErlang { order, lambda1, lambda2, p1 };
    let class = |(low, high, mean_size, interarrival, runtime)| ClassShape {
        low,
        high,
        mean_size,
        interarrival: erlang(interarrival),
        runtime: erlang(runtime),
    };
    ClassModel { name: "CTC-1996 refit".into(), procs: 338, classes: CTC_1996.into_iter().map(class).collect() }
}

type FourNumbers = (u32, f64, f64, f64);

const CTC_1996: [(u32, u32, f64, FourNumbers, FourNumbers); 10] = [
    (
        1,
        1,
        1.000_000_000_000e0,
        (1, 2.303_822_496_992e-3, 1.483_677_011_609e-4, 9.307_865_618_951e-1),
        (4, 6.791_879_720_168e-3, 1.186_262_218_489e-4, 6.110_488_064_390e-1),
    ),
    (
        2,
        2,
        2.000_000_000_000e0,
        (1, 8.724_360_679_304e-4, 3.621_551_365_006e-5, 9.042_943_368_087e-1),
        (8, 4.033_858_040_102e-2, 1.758_290_451_872e-4, 6.913_361_250_462e-1),
    ),
    (
        3,
        4,
        3.841_458_245_019e0,
        (1, 1.334_327_175_587e-3, 6.229_688_741_227e-5, 8.709_272_045_570e-1),
        (5, 3.211_673_943_292e-2, 1.428_008_547_712e-4, 7.927_911_496_032e-1),
    ),
    (
        5,
        8,
        6.976_617_727_026e0,
        (1, 1.624_013_298_764e-3, 7.181_875_386_829e-5, 7.848_013_160_659e-1),
        (2, 3.041_585_531_302e-3, 9.593_634_395_228e-5, 7.766_584_085_847e-1),
    ),
    (
        9,
        16,
        1.407_208_791_209e1,
        (1, 7.155_213_100_092e-4, 6.716_860_714_015e-5, 8.935_901_585_529e-1),
        (3, 2.178_880_041_735e-2, 1.127_246_351_715e-4, 6.834_117_806_548e-1),
    ),
    (
        17,
        32,
        2.716_211_293_260e1,
        (1, 3.786_710_366_825e-4, 3.380_101_374_301e-5, 8.751_294_045_338e-1),
        (3, 1.979_148_804_560e-2, 1.045_655_185_156e-4, 6.820_411_024_389e-1),
    ),
    (
        33,
        64,
        5.326_546_391_753e1,
        (1, 1.518_850_888_793e-3, 5.551_901_061_540e-5, 5.584_026_700_667e-1),
        (3, 8.862_358_678_765e-3, 1.012_428_239_375e-4, 5.829_130_055_744e-1),
    ),
    (
        65,
        128,
        1.138_300_000_000e2,
        (2, 4.635_579_982_075e-4, 3.345_029_563_215e-5, 4.970_283_130_872e-1),
        (5, 1.204_012_540_547e-1, 1.214_363_518_900e-4, 6.771_806_898_597e-1),
    ),
    (
        129,
        256,
        1.698_585_858_586e2,
        (2, 2.786_548_086_745e-4, 5.785_206_001_426e-6, 8.308_635_144_116e-1),
        (1, 7.638_693_167_316e-3, 2.930_745_677_845e-4, 6.500_816_175_114e-1),
    ),
    (
        257,
        338,
        3.048_200_000_000e2,
        (1, 1.763_744_466_685e-5, 1.670_602_133_933e-6, 8.520_787_250_797e-1),
        (6, 3.156_767_854_908e-2, 1.438_916_464_205e-4, 7.938_850_973_911e-1),
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::scale::load;

    #[test]
    fn the_refit_has_the_logs_load() {
        let model = ctc_1996_refit();
        model.check().unwrap();
        assert!((model.rho(338) - 0.823_310_971).abs() < 1e-6, "{}", model.rho(338));
        let jobs = model.draw(60_000, 338, 1).unwrap();
        assert!(jobs.is_sorted_by(|a, b| a.submit_s <= b.submit_s));
        assert!((load(&jobs, 338).unwrap() / 0.8233 - 1.0).abs() < 0.08, "{:?}", load(&jobs, 338));
        let serial: Vec<&TraceJob> = jobs.iter().filter(|job| job.size == 1).collect();
        assert!((serial.len() as f64 / 60_000.0 - 7397.0 / 17_818.0).abs() < 0.02, "{}", serial.len());
    }

    #[test]
    fn sizes_have_their_means() {
        let mut random = Random::new(4, 0);
        for class in ctc_1996_refit().classes {
            let mean = (0..20_000).map(|_| f64::from(size(&class, &mut random))).sum::<f64>() / 20_000.0;
            assert!((mean / class.mean_size - 1.0).abs() < 0.01, "{} {mean}", class.low);
        }
    }

    #[test]
    fn a_model_is_fitted_back() {
        let model = ctc_1996_refit();
        let jobs = model.draw(40_000, 4, 3).unwrap();
        for method in [FitMethod::Moments, FitMethod::Likelihood] {
            let (fitted, left_out) = ClassModel::fit("again", 338, &jobs, method, f64::INFINITY);
            assert!(left_out.is_empty() && fitted.classes.len() == 3);
            for (found, class) in fitted.classes.iter().zip(&model.classes) {
                assert!((found.runtime.mean() / class.runtime.mean() - 1.0).abs() < 0.1, "{found:?}");
                assert!((found.interarrival.mean() / class.interarrival.mean() - 1.0).abs() < 0.1, "{found:?}");
            }
        }
    }

    #[test]
    fn impossible_models_are_refused() {
        let good = ctc_1996_refit();
        let with = |change: &dyn Fn(&mut ClassShape)| {
            let mut model = good.clone();
            change(&mut model.classes[3]);
            model.draw(5, 32, 1).unwrap_err().to_string()
        };
        assert!(with(&|class| class.low = 0).contains("no class of sizes"));
        assert!(with(&|class| class.mean_size = f64::NAN).contains("no class of sizes"));
        assert!(with(&|class| class.runtime.order = 0).contains("runtime of class 5-8"));
        assert!(with(&|class| class.interarrival.lambda2 = 0.0).contains("interarrival of class 5-8"));
        assert!(with(&|class| class.runtime.p1 = 1.5).contains("no distribution"));
        assert!(ClassModel { classes: vec![], ..good.clone() }.draw(1, 1, 1).is_err());
        assert!(ClassModel { classes: good.classes[3..].to_vec(), ..good }.draw(1, 4, 1).is_err());
    }

    #[test]
    fn only_sizes_that_fit_are_drawn() {
        let jobs = ctc_1996_refit().draw(5_000, 20, 1).unwrap();
        assert!(jobs.iter().all(|job| job.size <= 20) && jobs.iter().any(|job| job.size > 16));
    }
}
