//! `cosched workload fit`.

use super::args::Fit;
use super::input;
use super::shown::class_label;
use crate::context::Context;
use crate::format::{duration_s, grouped, short};
use crate::out::{EXIT_REFUSED, Failure, say};
use crate::progress::Progress;
use crate::table::{Cell, Column, numbers, render, words};
use cosched_sim::workload::fit::{EmFit, HyperErlang, Moments, fit_em, fit_moments, ks_distance, ks_exponential};
use cosched_sim::workload::generate::ClassModel;
use cosched_sim::workload::{SizeClass, TraceJob};
use cosched_study::generate::measured;
use serde::Serialize;

/// A sample with both fits.
#[derive(Serialize)]
struct SampleFits {
    samples: u64,
    mean: f64,
    cv2: f64,
    moments: Option<WithDistance>,
    em: Option<EmWithDistance>,
    ks_exponential: f64,
}

#[derive(Serialize)]
struct WithDistance {
    #[serde(flatten)]
    model: HyperErlang,
    ks: f64,
}

#[derive(Serialize)]
struct EmWithDistance {
    #[serde(flatten)]
    fit: EmFit,
    ks: f64,
}

/// A class of jobs with its fits.
#[derive(Serialize)]
struct ClassReport {
    class: String,
    jobs: u64,
    interarrival: Option<SampleFits>,
    runtime: Option<SampleFits>,
}

/// The JSON output: the model, and how well its parts fit.
#[derive(Serialize)]
struct Output<'a> {
    #[serde(flatten)]
    model: &'a ClassModel,
    method: &'static str,
    rho: f64,
    left_out: Vec<String>,
    fits: &'a [ClassReport],
}

/// `cosched workload fit`.
pub(super) fn fit(context: &Context, options: &Fit) -> Result<u8, Failure> {
    let (records, header, _) = input::read(&options.file, None, options.strict.strict)?.into_trace();
    let inside = records.iter().filter(|record| options.window.has(record));
    let jobs = measured(inside);
    let Some(largest) = jobs.iter().map(|job| job.size).max() else {
        let what = format!("{}: nothing is usable", options.file.display());
        let why = "no record in the window has run time and processors above 0";
        return Err(Failure::explained(EXIT_REFUSED, &what, why, "check the file, --from-s and --to-s"));
    };
    let procs = options.procs.or_else(|| header.processors()).unwrap_or(largest);
    let progress = Progress::new(false);
    let mut reports = vec![report("all", &jobs, options)];
    for class in SizeClass::all() {
        let of: Vec<TraceJob> = jobs.iter().copied().filter(|job| SizeClass::of(job.size) == class).collect();
        if !of.is_empty() {
            progress.show(|| format!("cosched: fitting: class {}", class.name()));
            reports.push(report(&class.name(), &of, options));
        }
    }
    let name = options.file.file_name().unwrap_or_default().to_string_lossy();
    let max_gap_s = options.max_gap_s.unwrap_or(f64::INFINITY);
    let (model, left_out) = ClassModel::fit(&name, procs, &jobs, options.method, max_gap_s);
    progress.done();
    finish(context, options, &model, left_out.into_iter().map(SizeClass::name).collect(), &reports)
}

fn finish(
    context: &Context,
    options: &Fit,
    model: &ClassModel,
    left_out: Vec<String>,
    reports: &[ClassReport],
) -> Result<u8, Failure> {
    let method = options.method.name();
    if !left_out.is_empty() {
        say(&format!("left out of the model, as a distribution could not be fitted: {}", left_out.join(", ")));
    }
    let output = Output { model, method, rho: model.rho(model.procs), left_out, fits: reports };
    if let Some(path) = &options.save {
        model.check().map_err(|error| Failure { code: EXIT_REFUSED, message: error.to_string() })?;
        super::write_to(path, |out| {
            serde_json::to_writer_pretty(&mut *out, &output)?;
            writeln!(out)
        })?;
    }
    context.give(&output, || {
        let load = format!("load of the model ({method}) on {} processors: {:.3}\n", model.procs, output.rho);
        table(reports) + &load
    })
}

fn report(class: &str, jobs: &[TraceJob], options: &Fit) -> ClassReport {
    let longest = options.max_gap_s.unwrap_or(f64::INFINITY);
    let gaps = jobs.windows(2).map(|pair| pair[1].submit_s - pair[0].submit_s).filter(|gap| *gap <= longest);
    ClassReport {
        class: class.into(),
        jobs: jobs.len() as u64,
        interarrival: fits(gaps.collect()),
        runtime: fits(jobs.iter().map(|job| job.run_s).collect()),
    }
}

fn fits(mut sample: Vec<f64>) -> Option<SampleFits> {
    sample.sort_by(f64::total_cmp);
    let moments = Moments::of(&sample)?;
    let distance = |model: &HyperErlang| ks_distance(&sample, |t| model.cdf(t));
    Some(SampleFits {
        samples: moments.samples,
        mean: moments.raw[0],
        cv2: moments.cv2(),
        moments: fit_moments(&moments).map(|model| WithDistance { model, ks: distance(&model) }),
        em: fit_em(&sample).map(|fit| EmWithDistance { fit, ks: distance(&fit.model) }),
        ks_exponential: ks_exponential(&sample, &moments),
    })
}

const COLUMNS: [Column; 10] = [
    words("SIZE", 0),
    words("OF", 0),
    numbers("N", 0),
    numbers("MEAN", 0),
    words("FIT", 0),
    numbers("n", 0),
    numbers("λ1", 1),
    numbers("λ2", 1),
    numbers("p1", 1),
    numbers("KS", 0),
];

fn table(reports: &[ClassReport]) -> String {
    let mut rows = Vec::new();
    for report in reports {
        for (of, fits) in [("gaps", &report.interarrival), ("runs", &report.runtime)] {
            let Some(fits) = fits else { continue };
            let start = [class_label(&report.class), of.into(), grouped(fits.samples), duration_s(fits.mean)];
            let moments = fits.moments.as_ref().map(|fit| (fit.model, fit.ks));
            let em = fits.em.as_ref().map(|fit| (fit.fit.model, fit.ks));
            rows.push(row(&start, "moments", moments));
            rows.push(row(&["", "", "", ""].map(String::from), "em", em));
        }
    }
    render(&COLUMNS, &rows, crate::out::terminal_width())
}

fn row(start: &[String], name: &str, fit: Option<(HyperErlang, f64)>) -> Vec<Cell> {
    let mut row: Vec<Cell> = start.iter().map(|text| text.clone().into()).collect();
    row.push(name.into());
    match fit {
        Some((model, ks)) => row.extend(
            [model.order.to_string(), short(model.lambda1), short(model.lambda2), short(model.p1), format!("{ks:.3}")]
                .map(Cell::from),
        ),
        None => row.extend(["-", "-", "-", "-", "no fit"].map(Cell::from)),
    }
    row
}
