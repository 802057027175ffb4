//! Checks of a simulated pipeline, by hand and by laws.

mod autotune;
mod by_hand;

use super::*;
use cosched_core::stage::Resource;

/// A stage on a thread of its own, with these times.
pub(super) fn stage(name: &str, resource: Resource, cpu_us: f64, wait_us: f64) -> StageSpec {
    StageSpec {
        name: name.into(),
        resource,
        cpu_us,
        wait_us,
        mb: 0.0,
        disk: None,
        cv: 0.0,
        kind: StageKind::Thread,
        incarnations: 1,
        replicable_to: 1,
    }
}

/// A pipeline on a machine whose kernel has no costs.
pub(super) fn free_of_cost(cpus: u32, rounds: u64, buffers: u32, stages: Vec<StageSpec>) -> PipelineSpec {
    let machine = MachineSpec { cpus, switch_us: 0.0, cold_us: 0.0, wake_us: 0.0, ..MachineSpec::default() };
    PipelineSpec {
        name: "test".into(),
        rounds,
        buffers,
        seed: 1,
        workers: None,
        stages,
        machine,
        disks: Vec::new(),
        hogs: Vec::new(),
    }
}

pub(super) fn default_of(spec: &PipelineSpec) -> PipelineOutcome {
    simulate(spec, "default".parse().unwrap()).unwrap()
}
