//! The description of a simulation: the pipeline, the machine, and what competes with it.

use cosched_core::stage::Resource;
use serde::Deserialize;

/// A pipeline on a machine. Times are means per round.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PipelineSpec {
    /// Its name, for reports.
    #[serde(default)]
    pub name: String,
    /// The number of rounds.
    pub rounds: u64,
    /// The number of buffers in its pool.
    pub buffers: u32,
    /// The seed of the random numbers.
    #[serde(default)]
    pub seed: u64,
    /// Threads that carry buffers through stages of kind `worker` [default: as many as CPUs].
    #[serde(default)]
    pub workers: Option<u32>,
    /// The stages, in the order of flow.
    #[serde(rename = "stage")]
    pub stages: Vec<StageSpec>,
    /// The machine.
    #[serde(default)]
    pub machine: MachineSpec,
    /// Devices that stages share.
    #[serde(default, rename = "disk")]
    pub disks: Vec<DiskSpec>,
    /// Threads of other programs.
    #[serde(default, rename = "hog")]
    pub hogs: Vec<HogSpec>,
}

/// The threads that execute a stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StageKind {
    /// A thread of its own.
    #[default]
    Thread,
    /// The workers, which carry a buffer through as many of these stages as they can.
    Worker,
}

/// A stage. In a round it computes for half of its CPU time, then waits for its device, then computes the other half.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StageSpec {
    /// Its name.
    pub name: String,
    /// The resource that it mostly uses.
    #[serde(deserialize_with = "resource")]
    pub resource: Resource,
    /// CPU time, µs.
    #[serde(default)]
    pub cpu_us: f64,
    /// Time on its device or the network, µs, without waiting for other requests there.
    #[serde(default)]
    pub wait_us: f64,
    /// The amount of data that it moves, in 10⁶ bytes, at the rate of its disk; in addition to `wait_us`.
    #[serde(default)]
    pub mb: f64,
    /// The disk; `None`: a wait that is not shared.
    #[serde(default)]
    pub disk: Option<String>,
    /// Standard deviation over mean of both times (lognormal).
    #[serde(default)]
    pub cv: f64,
    /// The threads that execute it.
    #[serde(default)]
    pub kind: StageKind,
    /// The number of threads that work as this stage.
    #[serde(default = "one")]
    pub incarnations: u32,
    /// The maximum number of threads that autotune may set.
    #[serde(default = "one")]
    pub replicable_to: u32,
}

/// The machine.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MachineSpec {
    /// The number of CPUs.
    pub cpus: u32,
    /// The kernel's own slice, µs; 0: 700 µs × (1 + log2 of the CPUs, at most 8), as in Linux 6.17.
    pub slice_us: u32,
    /// The period of the kernel's scheduling tick, µs.
    pub tick_us: u32,
    /// CPU time of a switch, µs.
    pub switch_us: f64,
    /// CPU time that a thread loses when it continues after an interruption, because its cache is cold, µs.
    pub cold_us: f64,
    /// From the event until a woken thread is in a run queue, µs.
    pub wake_us: f64,
    /// The period of load balancing, µs.
    pub balance_us: u32,
    /// Whether the user may raise priorities and use real-time classes.
    pub may_raise: bool,
    /// Whether autotune uses real-time classes, too, if permitted.
    pub real_time: bool,
}

impl Default for MachineSpec {
    fn default() -> MachineSpec {
        MachineSpec {
            cpus: 2,
            slice_us: 0,
            tick_us: 4_000,
            switch_us: 2.0,
            cold_us: 10.0,
            wake_us: 3.0,
            balance_us: 8_000,
            may_raise: true,
            real_time: false,
        }
    }
}

/// A device.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskSpec {
    /// Its name.
    pub name: String,
    /// 10⁶ bytes per second of one request.
    #[serde(default)]
    pub mb_per_s: f64,
    /// The number of requests that it serves at a time, each at this rate.
    #[serde(default = "one")]
    pub parallel: u32,
}

/// Threads of other programs, each of which computes for a time and then sleeps.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HogSpec {
    /// The number of threads.
    #[serde(default = "one")]
    pub count: u32,
    /// Their nice value.
    #[serde(default)]
    pub nice: i8,
    /// CPU time between two sleeps, µs.
    #[serde(default = "one_ms")]
    pub busy_us: f64,
    /// How long they sleep, µs; 0: never.
    #[serde(default)]
    pub sleep_us: f64,
    /// When they start, s.
    #[serde(default)]
    pub from_s: f64,
    /// When they end, s [default: the end]; a thread that computes then continues until its next sleep.
    #[serde(default)]
    pub until_s: Option<f64>,
}

fn one() -> u32 {
    1
}

fn one_ms() -> f64 {
    1_000.0
}

fn resource<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Resource, D::Error> {
    let name = String::deserialize(from)?;
    let found = Resource::ALL.into_iter().find(|resource| resource.name() == name);
    found.ok_or_else(|| serde::de::Error::custom(format!("a resource is compute, communicate or io, not {name:?}")))
}

/// Why a pipeline cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PipelineError {
    /// The description is invalid.
    #[error("{what}\n  why: {why}\n  hint: {hint}")]
    Spec {
        /// What is wrong.
        what: String,
        /// Why it is.
        why: &'static str,
        /// What to do.
        hint: &'static str,
    },
    /// The pipeline did not end.
    #[error(
        "the pipeline had done {rounds} of {of} rounds after {time_s} s of simulated time\n  why: a stage gets no CPU, or \
         the run is longer than it may be\n  hint: fewer rounds, or another setting of the priorities"
    )]
    Endless {
        /// The number of completed rounds.
        rounds: u64,
        /// The number of all rounds.
        of: u64,
        /// Simulated time.
        time_s: u64,
    },
}

fn wrong(what: String, why: &'static str, hint: &'static str) -> Result<(), PipelineError> {
    Err(PipelineError::Spec { what, why, hint })
}

impl PipelineSpec {
    /// Refuses descriptions that cannot be simulated.
    pub fn check(&self) -> Result<(), PipelineError> {
        if self.stages.is_empty() {
            return wrong("the pipeline has no stage".into(), "nothing would be done", "add a [[stage]]");
        }
        if self.rounds == 0 || self.buffers == 0 {
            let what = format!("{} rounds with {} buffers", self.rounds, self.buffers);
            return wrong(what, "nothing would ever flow", "give rounds and buffers, 1 or more each");
        }
        if !(1..=64).contains(&self.machine.cpus) {
            let what = format!("a machine with {} CPUs", self.machine.cpus);
            return wrong(what, "1 to 64 can be simulated", "set cpus in [machine]");
        }
        if self.machine.tick_us == 0 || self.machine.balance_us == 0 || self.workers == Some(0) {
            let what = "tick_us, balance_us or workers is 0".into();
            return wrong(what, "simulated time would stand still", "leave the line away for the default");
        }
        self.stages.iter().try_for_each(|stage| self.check_stage(stage))?;
        for disk in &self.disks {
            if disk.parallel == 0 || !is_time(disk.mb_per_s) {
                let what = format!("disk {:?} cannot serve a request", disk.name);
                return wrong(what, "parallel is 1 or more, mb_per_s not negative", "correct its lines");
            }
        }
        self.hogs.iter().try_for_each(check_hog)
    }

    fn check_stage(&self, stage: &StageSpec) -> Result<(), PipelineError> {
        let named = |what: &str| format!("stage {:?} {what}", stage.name);
        if ![stage.cpu_us, stage.wait_us, stage.mb, stage.cv].into_iter().all(is_time) {
            return wrong(named("has an impossible time"), "times are 0 or more, finite", "correct its lines");
        }
        if stage.cpu_us + stage.wait_us + stage.mb == 0.0 {
            return wrong(named("takes no time"), "its rounds would have no end", "give it cpu_us or wait_us");
        }
        if stage.incarnations == 0 {
            return wrong(named("has no thread"), "its buffers would wait for ever", "give it incarnations, 1 or more");
        }
        if stage.kind == StageKind::Worker && stage.wait_us + stage.mb > 0.0 {
            let hint = "let it be kind = \"thread\"";
            return wrong(named("waits for a device on a worker"), "workers are for stages that compute", hint);
        }
        let Some(name) = &stage.disk else {
            let hint = "name its disk, or give wait_us";
            return if stage.mb > 0.0 { wrong(named("moves bytes without a disk"), "no rate", hint) } else { Ok(()) };
        };
        match self.disks.iter().find(|disk| disk.name == *name) {
            None => wrong(named(&format!("uses disk {name:?}")), "no [[disk]] has this name", "add one"),
            Some(disk) if stage.mb > 0.0 && disk.mb_per_s == 0.0 => {
                wrong(named("moves bytes"), "its disk has no rate", "give the disk mb_per_s")
            }
            Some(_) => Ok(()),
        }
    }
}

fn check_hog(hog: &HogSpec) -> Result<(), PipelineError> {
    let until = hog.until_s.unwrap_or(f64::MAX);
    let times = [hog.sleep_us, hog.from_s, until].into_iter().all(is_time);
    if !times || !is_time(hog.busy_us) || hog.busy_us == 0.0 || until < hog.from_s {
        let what = "a hog has an impossible time".into();
        return wrong(what, "busy_us is above 0, until_s not before from_s", "correct the lines of [[hog]]");
    }
    Ok(())
}

fn is_time(value: f64) -> bool {
    value.is_finite() && value >= 0.0
}
