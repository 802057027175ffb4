//! Sampled simulation: simulates long jobs in minutes.
//!
//! Problem: a job of 10⁴ s has 10⁷ iterations, and nothing new happens in most of them. Between two changes of the set of jobs
//! (an arrival, an end) every job progresses at a rate that settles within seconds.
//! Rule. After a change the simulation runs exactly; when the rates of all jobs in successive windows agree, it jumps: all
//! times are increased by the same Δ, every job's tasks advance by the same number of iterations, and counters by their rates;
//! then it runs exactly again until the next change. A jump ends before the next arrival and before the first end of a job, so
//! these are simulated, and Δ is a multiple of a second, so that ticks and the raising of all levels (D24) keep their phase.
//! Under PB jobs can lock into a pattern with the ticks and with each other that lasts for a minute and is then replaced by
//! another one. Jumps extend such a pattern, and a single run cannot detect it; so the first jump after a change comes late,
//! and jumps are short at first. In addition, several copies of the simulation run with different draws, each with its own
//! jumps (`copies.rs`): they settle into different patterns, and the differences of their results are the error.

use super::engine::Why;
use crate::error::SimError;
use crate::outcome::{Outcome, Progress};

const SECOND_NS: u64 = 1_000_000_000;

/// The engines treat the last iterations of a task in a special way.
const KEPT_ITERATIONS: u64 = 100;

/// How to sample. Times are simulated time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// The time that is simulated exactly after every change, before anything is measured.
    pub warm_up_s: u32,
    /// The length of a window in which rates are measured.
    pub window_s: u32,
    /// The minimum number of windows before the first jump after a change. Gangs, which repeat themselves exactly, need no
    /// more than before later jumps.
    pub first: u32,
    /// The minimum and maximum number of windows before each later jump.
    pub windows: (u32, u32),
    /// Rates have settled when their relative standard errors, weighted by the jobs' progress, are below this.
    pub error: f64,
    /// The maximum length of a jump, relative to what was measured since the last change; the first jump after a change is
    /// only as long as that, and each further one may be eight times as long, up to this factor.
    pub reach: u32,
    /// The number of copies of the simulation with different draws.
    pub copies: u32,
}

impl Default for Sampling {
    fn default() -> Sampling {
        Sampling { warm_up_s: 2, window_s: 1, first: 6, windows: (2, 6), error: 0.01, reach: 512, copies: 8 }
    }
}

/// What was skipped by jumps.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Skipped {
    /// The simulated time that was skipped.
    pub skipped_ns: u64,
    /// Jumps.
    pub jumps: u64,
    /// The task-iterations that were skipped.
    pub skipped_iterations: u64,
}

/// The progress of a running job.
#[derive(Clone, Copy, Debug)]
pub(super) struct Course {
    pub(super) job: u32,
    pub(super) tasks: u64,
    /// The iterations done by all tasks.
    pub(super) done: u64,
    /// The iterations left for the task that is furthest ahead.
    pub(super) left: u64,
}

/// Counters that grow at rates: the CPU times, then events of all kinds.
pub(super) type Totals = [u64; 11];

/// An engine that can be moved forward in time.
pub(super) trait Jumps {
    fn go(&mut self, limit: u64, to_change: bool, watch: &mut dyn FnMut(Progress) -> bool) -> Result<Why, SimError>;
    fn now_ns(&self) -> u64;
    fn next_arrival_ns(&self) -> Option<u64>;
    /// The shortest time not below `at_least_ns` that suits this engine's cycles.
    fn window_ns(&self, at_least_ns: u64) -> u64;
    fn courses(&self) -> Vec<Course>;
    fn out(&self) -> &Outcome;
    /// Adds `delta_ns` to all times, and advances the tasks of these jobs by the given number of iterations each.
    fn jump(&mut self, delta_ns: u64, iterations: &[(u32, u64)]);
}

/// Simulates with jumps. The engine's accounts are to be closed afterwards.
pub(super) fn drive(
    engine: &mut impl Jumps,
    sampling: &Sampling,
    watch: &mut dyn FnMut(Progress) -> bool,
) -> Result<(Skipped, Totals), SimError> {
    let mut report = Skipped::default();
    let mut more = Totals::default();
    let mut why = Why::Change;
    while why != Why::Done {
        why = interval(engine, sampling, watch, &mut Sums { report: &mut report, more: &mut more })?;
    }
    Ok((report, more))
}

/// The totals of all jumps.
struct Sums<'a> {
    report: &'a mut Skipped,
    more: &'a mut Totals,
}

/// Simulates from a change to the next one, with jumps.
fn interval(
    engine: &mut impl Jumps,
    sampling: &Sampling,
    watch: &mut dyn FnMut(Progress) -> bool,
    sums: &mut Sums<'_>,
) -> Result<Why, SimError> {
    let later = |from_ns: u64, s: u32| (from_ns + u64::from(s) * SECOND_NS) << 3;
    let limit = later(engine.now_ns(), sampling.warm_up_s);
    let why = engine.go(limit, true, watch)?;
    if why != Why::Limit {
        return Ok(why);
    }
    let mut windows = Windows::new(engine, limit >> 3);
    loop {
        let measured = windows.rates.len();
        while !windows.settled(sampling, measured) {
            let limit = (windows.end_ns + engine.window_ns(u64::from(sampling.window_s) * SECOND_NS)) << 3;
            let why = engine.go(limit, true, watch)?;
            if why != Why::Limit {
                return Ok(why);
            }
            windows.add(engine, limit >> 3);
        }
        if !windows.jump(engine, sampling, sums) {
            // The next change is near, or no job progresses: simulates exactly, and then checks again.
            let near = later(windows.end_ns, 4 * (sampling.warm_up_s + sampling.window_s));
            return engine.go(near, true, watch);
        }
    }
}

/// Measurements since the last change.
struct Windows {
    /// The length of the measured time, and when the last window ended.
    measured_ns: u64,
    end_ns: u64,
    totals: Totals,
    courses: Vec<Course>,
    /// Per window and job: iterations of a task per second.
    rates: Vec<Vec<f64>>,
    jumps: u32,
}

impl Windows {
    fn new(engine: &mut impl Jumps, now_ns: u64) -> Windows {
        let totals = totals(engine.out());
        Windows { measured_ns: 0, end_ns: now_ns, totals, courses: engine.courses(), rates: Vec::new(), jumps: 0 }
    }

    fn add(&mut self, engine: &mut impl Jumps, now_ns: u64) {
        let courses = engine.courses();
        let seconds = (now_ns - self.end_ns) as f64 / 1e9;
        let rate = |(old, new): (&Course, &Course)| (new.done - old.done) as f64 / new.tasks as f64 / seconds;
        self.rates.push(self.courses.iter().zip(&courses).map(rate).collect());
        self.measured_ns += now_ns - self.end_ns;
        (self.courses, self.end_ns) = (courses, now_ns);
    }

    /// Mean and standard error of a job's rate.
    fn rate(&self, job: usize) -> (f64, f64) {
        let n = self.rates.len() as f64;
        let mean = self.rates.iter().map(|window| window[job]).sum::<f64>() / n;
        let squares: f64 = self.rates.iter().map(|window| (window[job] - mean).powi(2)).sum();
        (mean, (squares / (n - 1.0).max(1.0) / n).sqrt())
    }

    /// Whether rates have settled, with enough windows since the last jump (there were `before` then).
    fn settled(&self, sampling: &Sampling, before: usize) -> bool {
        let (least, most) = sampling.windows;
        let least = if self.jumps == 0 { sampling.first } else { least };
        let windows = self.rates.len() - before;
        if windows < least.max(2) as usize {
            return false;
        }
        let all: Vec<(f64, f64)> = (0..self.courses.len()).map(|job| self.rate(job)).collect();
        let (rates, errors) = all.iter().fold((0.0, 0.0), |(r, e), (rate, error)| (r + rate, e + error));
        errors <= sampling.error * rates && all.iter().all(|(rate, _)| *rate > 0.0) || windows >= most as usize
    }

    /// Jumps as far as nothing can change, but not much further than what was measured: states that last long must be observed
    /// more than once. False if there is no room.
    fn jump(&mut self, engine: &mut impl Jumps, sampling: &Sampling, sums: &mut Sums<'_>) -> bool {
        let all: Vec<(f64, f64)> = (0..self.courses.len()).map(|job| self.rate(job)).collect();
        let ends = self.courses.iter().zip(&all).filter(|(_, (rate, _))| *rate > 0.0);
        // The time that is left for exact simulation: a second, and a few times the error of the estimate.
        let end_s = |(course, (rate, error)): (&Course, &(f64, f64))| {
            let left_s = course.left as f64 / rate;
            left_s - 1.0 - 3.0 * left_s * error / rate
        };
        let first_s = ends.map(end_s).fold(f64::INFINITY, f64::min);
        let arrival_s =
            engine.next_arrival_ns().map_or(f64::INFINITY, |at| at.saturating_sub(self.end_ns) as f64 / 1e9);
        let reach = 1_u32.checked_shl(3 * self.jumps).unwrap_or(u32::MAX).min(sampling.reach);
        let most_s = self.measured_ns as f64 / 1e9 * f64::from(reach);
        let delta_s = first_s.min(arrival_s - 0.001).min(most_s).floor();
        if !(delta_s.is_finite() && delta_s >= 1.0) {
            return false;
        }
        let delta_ns = delta_s as u64 * SECOND_NS;
        let each = |(course, (rate, _)): (&Course, &(f64, f64))| {
            (course.job, ((rate * delta_s) as u64).min(course.left.saturating_sub(KEPT_ITERATIONS)))
        };
        let iterations: Vec<(u32, u64)> = self.courses.iter().zip(&all).map(each).collect();
        self.extrapolate(engine.out(), delta_s, sums.more);
        engine.jump(delta_ns, &iterations);
        sums.report.jumps += 1;
        sums.report.skipped_ns += delta_ns;
        let skipped = |(course, (_, count)): (&Course, &(u32, u64))| count * course.tasks;
        sums.report.skipped_iterations += self.courses.iter().zip(&iterations).map(skipped).sum::<u64>();
        self.end_ns += delta_ns;
        self.jumps += 1;
        self.courses = engine.courses();
        true
    }

    /// Adds what the counters would have grown by.
    fn extrapolate(&self, out: &Outcome, delta_s: f64, more: &mut Totals) {
        let now = totals(out);
        let factor = delta_s * 1e9 / self.measured_ns as f64;
        for (i, more) in more.iter_mut().enumerate() {
            *more += ((now[i] - self.totals[i]) as f64 * factor).round() as u64;
        }
    }
}

/// Adds what was extrapolated to an outcome, on `nodes` nodes.
pub(super) fn add_totals(out: &mut Outcome, more: &Totals, nodes: u64) {
    let cpu = &mut out.cpu;
    let fields = [
        &mut cpu.compute_ns,
        &mut cpu.spin_ns,
        &mut cpu.switch_ns,
        &mut cpu.interrupt_ns,
        &mut cpu.sched_ns,
        &mut out.context_switches,
        &mut out.messages,
        &mut out.interrupts,
        &mut out.boosts,
        &mut out.blocks,
        &mut out.yields,
    ];
    fields.into_iter().zip(more).for_each(|(field, more)| *field += more);
    let busy = cpu.compute_ns + cpu.spin_ns + cpu.switch_ns + cpu.interrupt_ns + cpu.sched_ns;
    cpu.idle_ns = (out.sim_end_ns * nodes).saturating_sub(busy);
}

fn totals(out: &Outcome) -> Totals {
    let cpu = &out.cpu;
    [
        cpu.compute_ns,
        cpu.spin_ns,
        cpu.switch_ns,
        cpu.interrupt_ns,
        cpu.sched_ns,
        out.context_switches,
        out.messages,
        out.interrupts,
        out.boosts,
        out.blocks,
        out.yields,
    ]
}
