//! `cosched workload generate`.

use super::args::{Estimates, Generate};
use super::input;
use super::output::{Origin, format_of, write_workload};
use crate::context::Context;
use crate::out::{EXIT_REFUSED, Failure, print_json, say};
use cosched_sim::workload::estimates::{EstimateError, EstimateModel};
use cosched_sim::workload::generate::{ClassModel, Lublin, ctc_1996_refit, lublin, paper};
use cosched_sim::workload::scale::{Scaling, load, scale};
use cosched_sim::workload::{TraceJob, TypeMix};
use serde::Serialize;
use std::io::Read;
use std::path::Path;

/// The default mean execution time and load of WL1 to WL8.
const PAPER_EXEC_S: f64 = 10.0;
const PAPER_LOAD: f64 = 0.7;

/// The model that jobs come from.
enum Model {
    Paper(TypeMix),
    Classes(ClassModel),
    Lublin(Lublin),
}

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
    let mut jobs = draw(&model, options)?;
    let is_paper = matches!(model, Model::Paper(_));
    let scaling = Scaling {
        lengths: lengths(&jobs, options, is_paper)?,
        times: None,
        load: options.load.or((is_paper && !options.together).then_some(PAPER_LOAD)).map(|rho| (rho, options.nodes)),
        together: options.together,
        keep_start: true,
    };
    scale(&mut jobs, &scaling).map_err(|error| Failure { code: EXIT_REFUSED, message: error.to_string() })?;
    estimate(&mut jobs, &options.estimates, options.draw.seed)?;
    let mix = match &model {
        Model::Paper(mix) => *mix,
        Model::Classes(_) | Model::Lublin(_) => TypeMix::default(),
    };
    let mix = options.draw.types.unwrap_or(mix);
    let note = format!("model {}, seed {}", options.model, options.draw.seed);
    let origin = Origin { note: &note, procs: options.nodes };
    let format = format_of(&options.output_file, options.output.format);
    write_workload(&options.output_file, format, &jobs, &origin, (mix, options.draw.seed))?;
    let summary = Summary::of(&jobs, options.nodes);
    if context.json {
        print_json(&summary)?;
    } else {
        say(&summary.text(options.nodes));
    }
    Ok(0)
}

fn model(name: &str) -> Result<Model, Failure> {
    if let Ok(mix) = name.parse::<TypeMix>() {
        return Ok(Model::Paper(mix));
    }
    match name.to_ascii_lowercase().as_str() {
        // The distributions of WL1 to WL8, with the mix of --types.
        "hyper-erlang" => Ok(Model::Paper(TypeMix::default())),
        "ctc-1996-refit" => Ok(Model::Classes(ctc_1996_refit())),
        "lublin" => Ok(Model::Lublin(Lublin::TwoTypes)),
        "lublin-batch" => Ok(Model::Lublin(Lublin::Batch)),
        "lublin-interactive" => Ok(Model::Lublin(Lublin::Interactive)),
        "lublin-no-types" => Ok(Model::Lublin(Lublin::NoTypes)),
        lower if lower.ends_with(".json") => read_model(Path::new(name)).map(Model::Classes),
        _ => {
            let why = "valid are WL1 to WL8, hyper-erlang, ctc-1996-refit, lublin, lublin-batch, lublin-interactive and lublin-no-types";
            let hint = "or a file .json that `cosched workload fit --save` wrote";
            Err(Failure::explained(2, &format!("unknown model '{name}'"), why, hint))
        }
    }
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

fn draw(model: &Model, options: &Generate) -> Result<Vec<TraceJob>, Failure> {
    let (count, seed) = (options.jobs as usize, options.draw.seed);
    let size_max = options.max_tasks.unwrap_or(options.nodes).min(options.nodes);
    match model {
        Model::Paper(_) => Ok(paper(count, size_max, seed)),
        Model::Lublin(which) => Ok(lublin(*which, count, options.nodes, size_max, seed)),
        Model::Classes(model) => model
            .draw(count, size_max, seed)
            .map_err(|error| Failure { code: EXIT_REFUSED, message: error.to_string() }),
    }
}

/// The factor for run times. Those of WL1 to WL8 are drawn with mean 1 s; others are scaled to the requested mean.
fn lengths(jobs: &[TraceJob], options: &Generate, is_paper: bool) -> Result<Option<f64>, Failure> {
    let mean = match options.mean_exec_s {
        Some(mean) if !(mean > 0.0 && mean.is_finite()) => {
            let why = "execution times must be above 0";
            return Err(Failure::explained(2, &format!("--mean-exec-s cannot be {mean}"), why, "give seconds"));
        }
        other => other,
    };
    if is_paper {
        return Ok(Some(mean.unwrap_or(PAPER_EXEC_S)));
    }
    let drawn = jobs.iter().map(|job| job.run_s).sum::<f64>() / jobs.len().max(1) as f64;
    Ok(mean.map(|mean| mean / drawn))
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
