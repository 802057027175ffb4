//! Model and simulator on the same pipelines (decision 0013: they meet here).

use super::{Priorities, predict, read};
use cosched_sim::pipeline::{PipelineSpec, simulate};
use std::path::Path;

/// Read, sort, exchange, permute, write, with these times in µs.
fn columnsort(io_us: f64, compute_us: f64, cpus: u32, buffers: u32, extra: &str) -> PipelineSpec {
    let text = format!(
        "rounds = 400\nbuffers = {buffers}\n[machine]\ncpus = {cpus}\n{extra}\n\
         [[stage]]\nname = \"read\"\nresource = \"io\"\ncpu_us = 20\nwait_us = {io_us}\n\
         [[stage]]\nname = \"sort\"\nresource = \"compute\"\ncpu_us = {compute_us}\n\
         [[stage]]\nname = \"exchange\"\nresource = \"communicate\"\ncpu_us = 20\nwait_us = 100\n\
         [[stage]]\nname = \"permute\"\nresource = \"compute\"\ncpu_us = {compute_us}\n\
         [[stage]]\nname = \"write\"\nresource = \"io\"\ncpu_us = 20\nwait_us = {io_us}\n"
    );
    toml::from_str(&text).unwrap()
}

/// Simulated time relative to the model's, and relative to its bound.
fn ratios(spec: &PipelineSpec) -> (f64, f64) {
    let out = simulate(spec, "default".parse::<Priorities>().unwrap()).unwrap();
    let model = predict::model(spec);
    let simulated_s = out.elapsed_ns as f64 / 1e9;
    (simulated_s / model.time_s(), simulated_s / model.bound_s())
}

const FREE: &str = "switch_us = 0\ncold_us = 0\nwake_us = 0";

#[test]
fn without_costs_and_variance_the_simulator_is_the_model() {
    for (what, spec, within) in [
        ("the disk limits", columnsort(900.0, 300.0, 4, 8, FREE), 0.001),
        ("one stage limits, CPUs abound", columnsort(200.0, 900.0, 8, 8, FREE), 0.001),
        ("buffers limit", columnsort(900.0, 300.0, 8, 2, FREE), 0.02),
        ("one buffer", columnsort(900.0, 300.0, 2, 1, FREE), 0.001),
        ("the CPUs limit", columnsort(200.0, 900.0, 1, 8, FREE), 0.02),
    ] {
        let (to_model, to_bound) = ratios(&spec);
        assert!((to_model - 1.0).abs() < within, "{what}: {to_model}");
        assert!(to_bound > 0.9999, "{what}: faster than its bound: {to_bound}");
    }
}

#[test]
fn kernel_costs_and_variance_only_add() {
    for (io_us, compute_us) in [(900.0, 300.0), (300.0, 900.0), (800.0, 700.0)] {
        let mut spec = columnsort(io_us, compute_us, 2, 8, "");
        let (to_model, to_bound) = ratios(&spec);
        assert!((1.0..1.10).contains(&to_bound), "{io_us} {compute_us}: {to_bound}");
        assert!((0.95..1.10).contains(&to_model), "{io_us} {compute_us}: {to_model}");
        spec.stages.iter_mut().for_each(|stage| stage.cv = 0.5);
        let (varied, _) = ratios(&spec);
        assert!(varied > to_model && varied < 1.3, "{io_us} {compute_us}: {varied} after {to_model}");
    }
}

#[test]
fn the_papers_programs_take_about_the_papers_time() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/roysden-2004");
    for (file, published_s, limits) in [("compute-bound.toml", 12.61, "the CPUs"), ("io-bound.toml", 24.26, "disk sda")]
    {
        let spec = read(&folder.join(file)).unwrap();
        let out = simulate(&spec, "default".parse::<Priorities>().unwrap()).unwrap();
        let simulated_s = out.elapsed_ns as f64 / 1e9;
        // Their times per stage were chosen from the table's sums, so this checks that the files contain them.
        assert!((simulated_s / published_s - 1.0).abs() < 0.05, "{file}: {simulated_s} s");
        assert_eq!(predict::predict(&spec).unwrap().limiting, limits, "{file}");
    }
}
