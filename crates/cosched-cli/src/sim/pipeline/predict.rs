//! The model's prediction for the simulated pipeline: both read the same file (decision 0013).

use crate::out::Failure;
use cosched_model::pipeline::{Limiting, Pipeline, Stage};
use cosched_sim::pipeline::{PipelineSpec, StageSpec};

/// The closed form beside the simulation.
pub(super) struct Predicted {
    /// A lower bound for all schedules, s.
    pub(super) bound_s: f64,
    /// The expected time, s.
    pub(super) time_s: f64,
    /// The time without any overlap, s.
    pub(super) serial_s: f64,
    /// The resource that determines the pipeline's period.
    pub(super) limiting: String,
}

/// The model's pipeline of a description.
pub(super) fn model(spec: &PipelineSpec) -> Pipeline {
    let stage = |stage: &StageSpec| {
        let device = stage.disk.as_ref().and_then(|name| spec.disks.iter().position(|disk| disk.name == *name));
        let rate = device.map_or(0.0, |device| spec.disks[device].mb_per_s);
        let moved_s = if stage.mb > 0.0 { stage.mb / rate } else { 0.0 };
        let (cpu_s, wait_s) = (stage.cpu_us / 1e6, stage.wait_us / 1e6 + moved_s);
        Stage { cpu_s, wait_s, threads: stage.incarnations, device }
    };
    Pipeline {
        stages: spec.stages.iter().map(stage).collect(),
        devices: spec.disks.iter().map(|disk| disk.parallel).collect(),
        cpus: spec.machine.cpus,
        buffers: spec.buffers,
        rounds: spec.rounds,
    }
}

pub(super) fn predict(spec: &PipelineSpec) -> Result<Predicted, Failure> {
    let model = model(spec);
    model.check().map_err(|error| Failure::other(error.to_string()))?;
    let limiting = match model.period_s().0 {
        Limiting::Cpus => "the CPUs".to_owned(),
        Limiting::Stage(stage) => format!("stage {}", spec.stages[stage].name),
        Limiting::Device(device) => format!("disk {}", spec.disks[device].name),
        Limiting::Buffers => "the number of buffers".to_owned(),
    };
    Ok(Predicted { bound_s: model.bound_s(), time_s: model.time_s(), serial_s: model.serial_s(), limiting })
}
