//! `cosched workload generate`.

use super::args::{Estimates, Generate};
use super::input;
use super::output::{Origin, write_workload};
use crate::context::Context;
use crate::out::{EXIT_REFUSED, Failure, print_json, say};
use cosched_sim::workload::TraceJob;
use cosched_sim::workload::estimates::{EstimateError, EstimateModel};
use cosched_sim::workload::generate::ClassModel;
use cosched_sim::workload::scale::load;
use cosched_study::generate::{Asked, Model};
use serde::Serialize;
use std::io::Read;
use std::path::Path;

/// A summary of the generated or converted jobs.
#[derive(Serialize)]
pub(super) struct Summary {
    pub(super) jobs: usize,
    pub(super) load: Option<f64>,
    pub(super) last_arrival_s: f64,
    pub(super) mean_exec_s: f64,
    pub(super) mean_tasks: f64,
}

impl Summary {
    pub(super) fn of(jobs: &[TraceJob], nodes: u32) -> Summary {
        let n = jobs.len().max(1) as f64;
        Summary {
            jobs: jobs.len(),
            load: load(jobs, nodes),
            last_arrival_s: jobs.iter().map(|job| job.submit_s).fold(0.0, f64::max),
            mean_exec_s: jobs.iter().map(|job| job.run_s).sum::<f64>() / n,
            mean_tasks: jobs.iter().map(|job| f64::from(job.size)).sum::<f64>() / n,
        }
    }

    /// In words.
    pub(super) fn text(&self, nodes: u32) -> String {
        let load = self.load.map_or("all at 0".into(), |load| format!("load {load:.3} on {nodes} nodes"));
        format!(
            "{} jobs, {load}, mean execution time {:.3} s, mean tasks {:.2}, last arrival {:.3} s",
            self.jobs, self.mean_exec_s, self.mean_tasks, self.last_arrival_s
        )
    }
}

/// `cosched workload generate`.
pub(super) fn generate(context: &Context, options: &Generate) -> Result<u8, Failure> {
    let is_stdout = options.output_file.as_os_str() == "-";
    if context.json && is_stdout {
        let hint = "write the jobs to a file with --output, or leave --json out";
        return Err(Failure::explained(
            2,
            "--json conflicts with writing to standard output",
            "standard output gets the jobs",
            hint,
        ));
    }
    let model = model(&options.model)?;
    if let Some(mean) = options.mean_exec_s.filter(|mean| !(*mean > 0.0 && mean.is_finite())) {
        let why = "execution times must be above 0";
        return Err(Failure::explained(2, &format!("--mean-exec-s cannot be {mean}"), why, "give seconds"));
    }
    let asked = Asked {
        jobs: options.jobs,
        nodes: options.nodes,
        max_tasks: options.max_tasks,
        mean_exec_s: options.mean_exec_s,
        load: options.load,
        together: options.together,
        seed: options.draw.seed,
    };
    let mut jobs = model.generate(&asked).map_err(|message| Failure { code: EXIT_REFUSED, message })?;
    estimate(&mut jobs, &options.estimates, options.draw.seed)?;
    let mix = options.draw.types.unwrap_or(model.mix());
    let note = format!("model {}, seed {}", options.model, options.draw.seed);
    let origin = Origin { note: &note, procs: options.nodes };
    write_workload(&options.output_file, options.output, &jobs, &origin, (mix, options.draw.seed))?;
    let summary = Summary::of(&jobs, options.nodes);
    if context.json {
        print_json(&summary)?;
    } else {
        say(&summary.text(options.nodes));
    }
    Ok(0)
}

fn model(name: &str) -> Result<Model, Failure> {
    if let Some(model) = Model::named(name) {
        return Ok(model);
    }
    if name.to_ascii_lowercase().ends_with(".json") {
        return read_model(Path::new(name)).map(Model::Classes);
    }
    let why = format!("valid are {}", Model::NAMES);
    let hint = "or a file .json that `cosched workload fit --save` wrote";
    Err(Failure::explained(2, &format!("unknown model '{name}'"), &why, hint))
}

fn read_model(path: &Path) -> Result<ClassModel, Failure> {
    let mut text = String::new();
    let read = input::open(path)?.read_to_string(&mut text);
    read.map_err(|error| Failure::other(format!("cannot read {}: {error}", path.display())))?;
    let model: ClassModel = serde_json::from_str(&text).map_err(|error| {
        let what = format!("{} is not a model", path.display());
        Failure::explained(EXIT_REFUSED, &what, &error.to_string(), "`cosched workload fit --save FILE` writes one")
    })?;
    model.check().map_err(|error| Failure { code: EXIT_REFUSED, message: format!("{}: {error}", path.display()) })?;
    Ok(model)
}

/// Gives the jobs estimates if requested.
pub(super) fn estimate(jobs: &mut [TraceJob], asked: &Estimates, seed: u64) -> Result<(), Failure> {
    let Some(max_s) = asked.estimates_max_s else { return Ok(()) };
    let model = EstimateModel { max_s, known: asked.estimates_known.clone() };
    let refused = |error: EstimateError| Failure { code: EXIT_REFUSED, message: error.to_string() };
    let cut = model.estimate(jobs, seed).map_err(refused)?;
    if cut > 0 {
        say(&format!("{cut} run times exceeded the longest estimate and were cut to it"));
    }
    Ok(())
}
