//! The running time of a pipeline of stages, in closed form: Roysden 2004, section 1.
//!
//! "The lower bound of a pipelined program is not the sum of computation, communication, and I/O time, but only the
//! maximum of the three times." For stages with the CPU time c_i and the time w_i on a device or the network, per round and
//! as means, on k CPUs, a round takes at least
//!
//! - Σ c_i / k: all CPU time goes through k CPUs;
//! - (c_i + w_i) / m_i: a stage is not faster than its m_i threads;
//! - Σ w_i / p_d over the stages on device d: it serves p_d requests at a time;
//! - L / B with L = Σ (c_i + w_i): a buffer is in flight for L, and there are B of them (Little's law).
//!
//! The largest of these is the *period* p. The first round needs L to pass through, so n rounds need about t = L + (n − 1) p:
//! the pipeline fills before its slowest stage and drains after it. If one stage or device limits and times do not vary, that
//! is exact; if CPUs limit, others compute while the pipeline fills, and t may be shorter by up to L. So the
//! [*bound*](Pipeline::bound_s) counts the fill only if a stage limits. Times that vary make a pipeline slower than t, all
//! the more the fewer buffers there are to level them out; the scheduler's overhead comes on top of that. Units: s.

use serde::Serialize;

/// A stage and its mean times per round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Stage {
    /// CPU time per round, s.
    pub cpu_s: f64,
    /// Time on its device or the network per round, s, without waiting for other users of it.
    pub wait_s: f64,
    /// The number of threads that work for this stage.
    pub threads: u32,
    /// Its device, as an index into [`Pipeline::devices`]; None: it shares no device.
    pub device: Option<usize>,
}

impl Stage {
    fn time_s(&self) -> f64 {
        self.cpu_s + self.wait_s
    }
}

/// A pipeline on a machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pipeline {
    /// The stages in the order of flow.
    pub stages: Vec<Stage>,
    /// The number of requests that each device serves at a time.
    pub devices: Vec<u32>,
    /// The number of CPUs.
    pub cpus: u32,
    /// The number of buffers.
    pub buffers: u32,
    /// The number of rounds.
    pub rounds: u64,
}

/// What determines a pipeline's period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limiting {
    /// All CPUs together.
    Cpus,
    /// One stage, by its index.
    Stage(usize),
    /// One device, by its index.
    Device(usize),
    /// The number of buffers.
    Buffers,
}

/// Why a pipeline is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PipelineError {
    /// It has no stages, CPUs, buffers or rounds.
    #[error("a pipeline needs a stage, a CPU, a buffer and a round at least")]
    Empty,
    /// A time is negative or not finite, or a stage has no thread.
    #[error("stage {0} has a time that is not a finite one of 0 s or more, or no thread")]
    Stage(usize),
    /// A stage is on a device that does not exist, or that serves no requests.
    #[error("stage {0} is on a device that does not exist or serves no request")]
    Device(usize),
}

impl Pipeline {
    /// Checks whether the pipeline is valid.
    ///
    /// # Errors
    /// No stage, CPU, buffer or round; invalid times, threads or devices.
    pub fn check(&self) -> Result<(), PipelineError> {
        if self.stages.is_empty() || self.cpus == 0 || self.buffers == 0 || self.rounds == 0 {
            return Err(PipelineError::Empty);
        }
        let good = |time: f64| time >= 0.0 && time.is_finite();
        for (k, stage) in self.stages.iter().enumerate() {
            if !good(stage.cpu_s) || !good(stage.wait_s) || stage.threads == 0 {
                return Err(PipelineError::Stage(k));
            }
            if stage.device.is_some_and(|device| self.devices.get(device).is_none_or(|parallel| *parallel == 0)) {
                return Err(PipelineError::Device(k));
            }
        }
        Ok(())
    }

    /// L: the time that one round is in flight.
    pub fn latency_s(&self) -> f64 {
        self.stages.iter().map(Stage::time_s).sum()
    }

    /// The time if nothing overlapped: n L.
    pub fn serial_s(&self) -> f64 {
        self.latency_s() * self.rounds as f64
    }

    /// The time of a round that each limit alone would allow: CPUs, stages, devices, buffers.
    pub fn limits(&self) -> Vec<(Limiting, f64)> {
        let cpu_s: f64 = self.stages.iter().map(|stage| stage.cpu_s).sum();
        let stages =
            self.stages.iter().enumerate().map(|(k, one)| (Limiting::Stage(k), one.time_s() / f64::from(one.threads)));
        let on =
            |device: usize| self.stages.iter().filter(move |stage| stage.device == Some(device)).map(|one| one.wait_s);
        let devices = self.devices.iter().enumerate();
        let devices = devices.map(|(d, parallel)| (Limiting::Device(d), on(d).sum::<f64>() / f64::from(*parallel)));
        let cpus = (Limiting::Cpus, cpu_s / f64::from(self.cpus));
        let buffers = (Limiting::Buffers, self.latency_s() / f64::from(self.buffers));
        std::iter::once(cpus).chain(stages).chain(devices).chain(std::iter::once(buffers)).collect()
    }

    /// The period, and what determines it; among equal limits CPUs have precedence over stages, these over devices, and
    /// buffers come last.
    pub fn period_s(&self) -> (Limiting, f64) {
        let first = (Limiting::Cpus, 0.0);
        self.limits().into_iter().fold(first, |most, one| if one.1 > most.1 { one } else { most })
    }

    /// t = L + (n − 1) p: the expected time if times do not vary much and the scheduler has no overhead.
    pub fn time_s(&self) -> f64 {
        self.latency_s() + (self.rounds - 1) as f64 * self.period_s().1
    }

    /// A lower bound: no schedule is faster, if times do not vary.
    pub fn bound_s(&self) -> f64 {
        let rounds = self.rounds as f64;
        let latency_s = self.latency_s();
        let of = |(limiting, period_s): (Limiting, f64)| match limiting {
            // Round by round through each of its threads, the first one after the fill, the last one before the drain.
            Limiting::Stage(k) => {
                let turns = self.rounds.div_ceil(u64::from(self.stages[k].threads)) as f64;
                latency_s + (turns - 1.0) * self.stages[k].time_s()
            }
            Limiting::Buffers => latency_s * self.rounds.div_ceil(u64::from(self.buffers)) as f64,
            Limiting::Cpus | Limiting::Device(_) => rounds * period_s,
        };
        self.limits().into_iter().map(of).fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stage(cpu_s: f64, wait_s: f64) -> Stage {
        Stage { cpu_s, wait_s, threads: 1, device: None }
    }

    /// The time until the slowest stage has its first buffer, and the time from its last buffer to the end; if no single
    /// stage limits, those of the first and last round.
    fn fill_and_drain_s(pipeline: &Pipeline) -> (f64, f64) {
        let slowest = match pipeline.period_s().0 {
            Limiting::Stage(k) => k,
            _ => 0,
        };
        let time_s = |stages: &[Stage]| stages.iter().map(Stage::time_s).sum();
        (time_s(&pipeline.stages[..slowest]), time_s(&pipeline.stages[slowest + 1..]))
    }

    /// The smallest number of buffers with which something other than their number limits.
    fn buffers_enough(pipeline: &Pipeline) -> u32 {
        let others = pipeline.limits().into_iter().filter(|(limiting, _)| *limiting != Limiting::Buffers);
        let period_s = others.map(|(_, period_s)| period_s).fold(0.0, f64::max);
        if period_s == 0.0 { 1 } else { (pipeline.latency_s() / period_s - 1e-9).ceil().max(1.0) as u32 }
    }

    /// Read, compute, communicate, compute, write.
    fn five(io_s: f64, compute_s: f64, buffers: u32) -> Pipeline {
        let stages =
            vec![stage(0.0, io_s), stage(compute_s, 0.0), stage(0.0, 1.0), stage(compute_s, 0.0), stage(0.0, io_s)];
        Pipeline { stages, devices: Vec::new(), cpus: 2, buffers, rounds: 100 }
    }

    #[test]
    fn section_1_the_greatest_of_the_three_counts_and_not_their_sum() {
        let disk = five(5.0, 2.0, 10);
        assert_eq!(disk.period_s(), (Limiting::Stage(0), 5.0));
        assert_eq!((disk.latency_s(), disk.serial_s()), (15.0, 1500.0));
        assert_eq!((disk.time_s(), disk.bound_s()), (15.0 + 99.0 * 5.0, 15.0 + 99.0 * 5.0));
        let compute = five(1.0, 4.0, 10);
        assert_eq!(compute.period_s(), (Limiting::Cpus, 4.0), "two CPUs for 8 s of CPU time");
    }

    #[test]
    fn a_serial_stage_is_not_faster_on_more_cpus() {
        let mut one = five(1.0, 4.0, 40);
        one.cpus = 8;
        assert_eq!(one.period_s(), (Limiting::Stage(1), 4.0));
        assert_eq!(fill_and_drain_s(&one), (1.0, 6.0));
        one.stages[1].threads = 2;
        assert_eq!(one.period_s(), (Limiting::Stage(3), 4.0));
        one.stages[3].threads = 2;
        assert_eq!(one.period_s().1, 2.0);
    }

    #[test]
    fn a_disk_that_serves_one_request_adds_reads_and_writes() {
        let mut shared = five(3.0, 1.0, 10);
        shared.devices.push(1);
        [0, 4].into_iter().for_each(|k| shared.stages[k].device = Some(0));
        assert_eq!(shared.period_s(), (Limiting::Device(0), 6.0));
        shared.devices[0] = 2;
        assert_eq!(shared.period_s(), (Limiting::Stage(0), 3.0));
    }

    #[test]
    fn few_buffers_limit() {
        let few = five(5.0, 2.0, 2);
        assert_eq!(few.period_s(), (Limiting::Buffers, 7.5));
        assert_eq!(buffers_enough(&few), 3);
        assert_eq!(five(5.0, 2.0, 1).time_s(), five(5.0, 2.0, 1).serial_s(), "one buffer: nothing overlaps");
        assert_eq!(five(5.0, 2.0, 3).period_s().0, Limiting::Stage(0));
    }

    #[test]
    fn one_round_is_its_latency() {
        let one = Pipeline { rounds: 1, ..five(5.0, 2.0, 4) };
        assert_eq!((one.time_s(), one.bound_s()), (15.0, 15.0));
    }

    #[test]
    fn impossible_pipelines_are_refused() {
        assert_eq!(five(1.0, 1.0, 0).check(), Err(PipelineError::Empty));
        let wrong = |change: fn(&mut Stage)| {
            let mut pipeline = five(1.0, 1.0, 1);
            change(&mut pipeline.stages[2]);
            pipeline.check()
        };
        assert_eq!(wrong(|stage| stage.cpu_s = f64::NAN), Err(PipelineError::Stage(2)));
        assert_eq!(wrong(|stage| stage.wait_s = -1.0), Err(PipelineError::Stage(2)));
        assert_eq!(wrong(|stage| stage.threads = 0), Err(PipelineError::Stage(2)));
        assert_eq!(wrong(|stage| stage.device = Some(0)), Err(PipelineError::Device(2)));
        assert_eq!(wrong(|_| {}), Ok(()));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_bound_is_between_the_longest_round_and_everything_in_turn(
            times in prop::collection::vec((0.001..5.0_f64, 0.0..5.0_f64, 1..4_u32), 1..6),
            cpus in 1..9_u32, buffers in 1..12_u32, rounds in 1..500_u64,
        ) {
            let stages = times.iter().map(|(cpu, wait, threads)| Stage { threads: *threads, ..stage(*cpu, *wait) }).collect();
            let pipeline = Pipeline { stages, devices: Vec::new(), cpus, buffers, rounds };
            prop_assert_eq!(pipeline.check(), Ok(()));
            let (bound_s, time_s) = (pipeline.bound_s(), pipeline.time_s());
            prop_assert!(bound_s >= pipeline.latency_s() - 1e-9 && bound_s <= pipeline.serial_s() + 1e-6);
            prop_assert!(time_s >= rounds as f64 * pipeline.period_s().1 - 1e-9);
            let more = Pipeline { buffers: buffers + 1, cpus: cpus + 1, ..pipeline.clone() };
            prop_assert!(more.bound_s() <= bound_s + 1e-9, "more of anything is not slower");
            let enough = Pipeline { buffers: buffers_enough(&pipeline), ..pipeline };
            prop_assert!(enough.period_s().0 != Limiting::Buffers);
        }
    }
}
