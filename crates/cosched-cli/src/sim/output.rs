//! The output of `cosched sim run`: the summary, and files of jobs, traces and figures.

use super::files::{Output, distinct, is_stdout, written};
use super::timed::Timed;
use crate::out::{Failure, say};
use crate::parsers::time_s;
use clap::Args;
use cosched_sim::metrics::{BOUND_S, Energy, Meter, RunMetrics, Watts, write_batsim_jobs, write_jobs_csv};
use cosched_sim::report::run_report;
use cosched_sim::trace::{ChromeTrace, PajeTrace, Places, TextTrace, Window};
use cosched_sim::{JobSpec, Params};
use std::path::{Path, PathBuf};

/// Files that a run writes; `-` is standard output.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Files to write (- is standard output)")]
pub(crate) struct Outputs {
    /// Write the jobs as CSV
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,

    /// Write the jobs as Parquet
    #[arg(long, value_name = "FILE")]
    pub(crate) parquet: Option<PathBuf>,

    /// Write the jobs as Batsim's jobs.csv, for evalys
    #[arg(long, value_name = "FILE")]
    pub(crate) batsim: Option<PathBuf>,

    /// Write a report with figures as a single HTML file
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,

    /// Write the events of the window as Chrome trace JSON, for Perfetto
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,

    /// Write the events of the window as text
    #[arg(long, value_name = "FILE")]
    pub(crate) trace_text: Option<PathBuf>,

    /// Write the events of the window as a Paje trace, for ViTE and pj_dump; they are held in memory
    #[arg(long, value_name = "FILE")]
    pub(crate) paje: Option<PathBuf>,

    /// Start of the traces' window, in simulated time
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = time_s)]
    pub(crate) trace_from: f64,

    /// Length of the traces' window
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = time_s)]
    pub(crate) trace_for: f64,

    /// Energy: the power of a node that is idle, busy, spinning and without a job: `IDLE,BUSY[,SPINNING[,OFF]]`, in W [default: spinning
    /// as busy, off as idle]
    #[arg(long, value_name = "WATTS", value_parser = watts, help_heading = "Costs", conflicts_with = "sampled")]
    pub(crate) watts: Option<Watts>,

    /// Threshold of bounded slowdown: shorter jobs count as this long
    #[arg(long, value_name = "S", default_value_t = BOUND_S, value_parser = positive_seconds)]
    pub(crate) bound_s: f64,
}

/// The traces, the places of jobs and their energy, as far as they are requested.
pub(crate) type Watchers<'a> = (
    (Option<Places>, Option<Meter>),
    (Option<ChromeTrace<'a, Output>>, (Option<TextTrace<Output>>, Option<PajeTrace<Output>>)),
);

/// The open files, and the observers that write to them during the simulation.
pub(crate) struct Recorder<'a> {
    pub(crate) watchers: Watchers<'a>,
    csv: Option<Output>,
    #[cfg(feature = "parquet")]
    parquet: Option<Output>,
    batsim: Option<Output>,
    html: Option<Output>,
    trace: PathBuf,
    trace_text: PathBuf,
    paje: PathBuf,
}

impl Outputs {
    /// Opens all files, so that a name that cannot be written is reported before a long simulation.
    pub(crate) fn open<'a>(
        &self,
        source: &Path,
        params: &Params,
        cpus_per_node: u32,
        jobs: &'a [JobSpec],
    ) -> Result<Recorder<'a>, Failure> {
        distinct(source, &self.files())?;
        #[cfg(not(feature = "parquet"))]
        if self.parquet.is_some() {
            return Err(Failure::not_built("--parquet"));
        }
        let open = |path: &Option<PathBuf>| path.as_deref().map(Output::create).transpose();
        let ns = |s: f64| (s * 1e9).round() as u64;
        let window = Window { start_ns: ns(self.trace_from), end_ns: ns(self.trace_from + self.trace_for) };
        let first = jobs.iter().map(|job| job.arrival_ns).min();
        let asked = [&self.trace, &self.trace_text, &self.paje].into_iter().any(Option::is_some);
        if let Some(first) = first.filter(|first| asked && *first >= window.end_ns) {
            let (end, first) = (window.end_ns as f64 / 1e9, first as f64 / 1e9);
            say(&format!(
                "the traces will be empty\n  why: their window ends at {end} s, and the first job arrives at {first} s\n  hint: \
                 --trace-from {first}s, or a longer --trace-for"
            ));
        }
        let chrome = open(&self.trace)?.map(|out| ChromeTrace::new(out, window, params.nodes, jobs));
        let text = open(&self.trace_text)?.map(|out| TextTrace::new(out, window));
        let paje = open(&self.paje)?.map(|out| PajeTrace::new(out, window, params.nodes));
        let need_places = [&self.batsim, &self.html, &self.parquet].into_iter().any(Option::is_some);
        let meter = self.watts.map(|watts| Meter::new(watts, params.nodes, cpus_per_node));
        Ok(Recorder {
            watchers: ((need_places.then(|| Places::new(jobs.len())), meter), (chrome, (text, paje))),
            csv: open(&self.csv)?,
            #[cfg(feature = "parquet")]
            parquet: open(&self.parquet)?,
            batsim: open(&self.batsim)?,
            html: open(&self.html)?,
            trace: self.trace.clone().unwrap_or_default(),
            trace_text: self.trace_text.clone().unwrap_or_default(),
            paje: self.paje.clone().unwrap_or_default(),
        })
    }

    /// Whether a file is written to standard output, which then contains nothing else.
    pub(crate) fn use_stdout(&self) -> bool {
        self.files().into_iter().any(is_stdout)
    }

    /// The requested files.
    fn files(&self) -> Vec<&Path> {
        let all = [&self.csv, &self.parquet, &self.batsim, &self.html, &self.trace, &self.trace_text, &self.paje];
        all.into_iter().flatten().map(PathBuf::as_path).collect()
    }
}

impl Recorder<'_> {
    /// Whether there are no observers, so that the simulation need not report events.
    pub(crate) fn is_silent(&self) -> bool {
        matches!(self.watchers, ((None, None), (None, (None, None))))
    }

    /// The energy, if it was requested.
    pub(crate) fn energy(&self, sim_end_ns: u64) -> Option<Energy> {
        self.watchers.0.1.as_ref().map(|meter| meter.energy(sim_end_ns))
    }

    /// Writes all files. `source` names the workload.
    pub(crate) fn finish(
        self,
        source: &Path,
        params: &Params,
        jobs: &[JobSpec],
        timed: &Timed,
        metrics: &RunMetrics,
    ) -> Result<(), Failure> {
        let outcome = &timed.outcome;
        let bound_s = metrics.bounded_slowdown_threshold_s;
        let ((places, _), (chrome, (text, paje))) = self.watchers;
        if let Some(trace) = chrome {
            written(&self.trace, trace.finish(outcome.sim_end_ns))?;
        }
        if let Some(trace) = paje {
            written(&self.paje, trace.finish(outcome.sim_end_ns))?;
        }
        if let Some(trace) = text {
            written(&self.trace_text, trace.finish())?;
        }
        let name = source.file_stem().map_or("jobs".into(), |name| name.to_string_lossy());
        let places = places.unwrap_or_default();
        if let Some(mut out) = self.csv {
            let result = write_jobs_csv(&mut out, jobs, outcome, bound_s);
            out.written(result)?;
        }
        if let Some(mut out) = self.batsim {
            let result = write_batsim_jobs(&mut out, &name, jobs, outcome, &places.nodes());
            let left_out = out.written(result)?;
            if left_out > 0 {
                let shown = out.path();
                crate::out::say(&format!("{left_out} jobs have not ended and are not in {}", shown.display()));
            }
        }
        #[cfg(feature = "parquet")]
        if let Some(mut out) = self.parquet {
            let result =
                super::parquet::write_parquet(&mut out, &name, params, jobs, outcome, places.places(), bound_s);
            out.written(result)?;
        }
        if let Some(out) = self.html {
            out.finish(&run_report(&name, params, jobs, outcome, metrics, places.places()))?;
        }
        Ok(())
    }
}

/// `IDLE,BUSY[,SPINNING[,OFF]]`.
fn watts(text: &str) -> Result<Watts, String> {
    let number = |part: &str| part.trim().parse::<f64>().ok().filter(|watts| (0.0..=1e9).contains(watts));
    let all: Option<Vec<f64>> = text.split(',').map(number).collect();
    match all.as_deref() {
        Some([idle, busy]) => Ok(Watts { idle: *idle, busy: *busy, spinning: *busy, off: *idle }),
        Some([idle, busy, spinning]) => Ok(Watts { idle: *idle, busy: *busy, spinning: *spinning, off: *idle }),
        Some([idle, busy, spinning, off]) => Ok(Watts { idle: *idle, busy: *busy, spinning: *spinning, off: *off }),
        _ => Err("give two to four numbers of watts from 0, as 90,200,180,5".into()),
    }
}

/// Seconds above 0.
pub(crate) fn positive_seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(s) if s > 0.0 && s <= 1e9 => Ok(s),
        _ => Err("give seconds, more than 0".into()),
    }
}
