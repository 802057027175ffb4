//! Models of workloads: jobs that are generated from them, and the fit of a trace.

use cosched_sim::workload::generate::{ClassModel, Lublin, ctc_1996_refit, lublin, paper};
use cosched_sim::workload::scale::{Scaling, scale};
use cosched_sim::workload::swf::Record;
use cosched_sim::workload::{TraceJob, TypeMix};

/// The default mean execution time and load of WL1 to WL8.
const PAPER_EXEC_S: f64 = 10.0;
const PAPER_LOAD: f64 = cosched_sim::sweep::LOAD;

/// A model that jobs come from.
#[derive(Clone, Debug, PartialEq)]
pub enum Model {
    /// The distributions of WL1 to WL8, and a mix of types.
    Paper(TypeMix),
    /// A fit of a trace.
    Classes(ClassModel),
    /// Lublin and Feitelson 2003.
    Lublin(Lublin),
}

/// What is to be generated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Asked {
    /// The number of jobs.
    pub jobs: u32,
    /// Nodes of the machine, with one processor each.
    pub nodes: u32,
    /// Maximum tasks of a job; `None`: the number of nodes.
    pub max_tasks: Option<u32>,
    /// The mean execution time in s; `None`: 10 for WL1 to WL8, the model's own for others.
    pub mean_exec_s: Option<f64>,
    /// The load; `None`: 0.7 for WL1 to WL8, the model's own for others.
    pub load: Option<f64>,
    /// All jobs arrive at 0.
    pub together: bool,
    /// The seed of the random draws.
    pub seed: u64,
}

impl Model {
    /// The names that [`Model::named`] knows, for readers.
    pub const NAMES: &str =
        "WL1 to WL8, hyper-erlang, ctc-1996-refit, lublin, lublin-batch, lublin-interactive and lublin-no-types";

    /// A model by its name, in any case.
    pub fn named(name: &str) -> Option<Model> {
        if let Ok(mix) = name.parse() {
            return Some(Model::Paper(mix));
        }
        Some(match name.to_ascii_lowercase().as_str() {
            "hyper-erlang" => Model::Paper(TypeMix::default()),
            "ctc-1996-refit" => Model::Classes(ctc_1996_refit()),
            "lublin" => Model::Lublin(Lublin::TwoTypes),
            "lublin-batch" => Model::Lublin(Lublin::Batch),
            "lublin-interactive" => Model::Lublin(Lublin::Interactive),
            "lublin-no-types" => Model::Lublin(Lublin::NoTypes),
            _ => return None,
        })
    }

    /// Jobs, by arrival.
    ///
    /// # Errors
    /// As text: no job of the model is that small; a time, mean or load that no list can have.
    pub fn generate(&self, asked: &Asked) -> Result<Vec<TraceJob>, String> {
        let &Asked { nodes, seed, .. } = asked;
        let count = asked.jobs as usize;
        let size_max = asked.max_tasks.unwrap_or(nodes).min(nodes);
        let is_paper = matches!(self, Model::Paper(_));
        let mut jobs = match self {
            Model::Paper(_) => paper(count, size_max, seed),
            Model::Lublin(which) => lublin(*which, count, nodes, size_max, seed),
            Model::Classes(model) => model.draw(count, size_max, seed).map_err(|error| error.to_string())?,
        };
        // Run times of WL1 to WL8 are drawn with mean 1 s in expectation; others are scaled to the wanted mean.
        let drawn_s = if is_paper { 1.0 } else { jobs.iter().map(|job| job.run_s).sum::<f64>() / count.max(1) as f64 };
        let load = asked.load.or((is_paper && !asked.together).then_some(PAPER_LOAD));
        let scaling = Scaling {
            lengths: asked.mean_exec_s.or(is_paper.then_some(PAPER_EXEC_S)).map(|mean_s| mean_s / drawn_s),
            times: None,
            load: load.map(|load| (load, nodes)),
            together: asked.together,
            keep_start: true,
        };
        scale(&mut jobs, &scaling).map_err(|error| error.to_string())?;
        Ok(jobs)
    }

    /// The types of its jobs.
    pub fn mix(&self) -> TypeMix {
        match self {
            Model::Paper(mix) => *mix,
            Model::Classes(_) | Model::Lublin(_) => TypeMix::default(),
        }
    }
}

/// The jobs of a trace that a model is fitted to, by submission: those with a run time and processors.
pub fn measured<'a>(records: impl IntoIterator<Item = &'a Record>) -> Vec<TraceJob> {
    let mut jobs: Vec<TraceJob> = records.into_iter().filter_map(TraceJob::measured).collect();
    jobs.sort_by(|a, b| a.submit_s.total_cmp(&b.submit_s));
    jobs
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASKED: Asked =
        Asked { jobs: 200, nodes: 16, max_tasks: None, mean_exec_s: None, load: None, together: false, seed: 1 };

    fn mean_s(jobs: &[TraceJob]) -> f64 {
        jobs.iter().map(|job| job.run_s).sum::<f64>() / jobs.len() as f64
    }

    #[test]
    fn all_names_are_models() {
        for name in ["wl3", "hyper-erlang", "ctc-1996-refit", "lublin", "lublin-batch", "lublin-interactive"] {
            let jobs = Model::named(name).unwrap().generate(&ASKED).unwrap();
            assert!(jobs.len() == 200 && jobs.iter().all(|job| job.size <= 16), "{name}");
        }
        assert_eq!(Model::named("lublin2"), None);
    }

    #[test]
    fn the_mean_is_the_wanted_one_or_the_models_own() {
        let model = Model::named("lublin-no-types").unwrap();
        let own = mean_s(&model.generate(&ASKED).unwrap());
        let scaled = mean_s(&model.generate(&Asked { mean_exec_s: Some(own / 2.0), ..ASKED }).unwrap());
        assert!((scaled / own - 0.5).abs() < 1e-4, "{scaled} of {own}");
        // Those of WL1 to WL8 are drawn with mean 1 s in expectation, so a list's own mean is near the wanted one only.
        let paper = |mean_exec_s| Model::named("WL1").unwrap().generate(&Asked { mean_exec_s, ..ASKED }).unwrap();
        assert_eq!(paper(None), paper(Some(PAPER_EXEC_S)));
        assert!((mean_s(&paper(Some(20.0))) / mean_s(&paper(None)) - 2.0).abs() < 1e-4);
        assert!(model.generate(&Asked { mean_exec_s: Some(f64::NAN), ..ASKED }).is_err());
        assert!(model.generate(&Asked { load: Some(-1.0), ..ASKED }).is_err());
    }
}
