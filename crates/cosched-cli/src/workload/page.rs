//! The page of `cosched workload show --html`.

use super::shown::{Shown, class_label, facts};
use crate::format::short;
use cosched_report::{Chart, Page, Series, Shape, axis, middle};
use cosched_sim::workload::TraceJob;
use cosched_sim::workload::fit::{HyperErlang, Moments, fit_em, fit_moments, ks_distance, ks_exponential};
use cosched_sim::workload::stats::{arrivals_by_hour, jobs_by_class};

/// The page.
pub(super) fn page(shown: &Shown<'_>) -> String {
    let mut page = Page::new(shown.title, &format!("cosched {}", env!("CARGO_PKG_VERSION")));
    page.table(&[("", true); 2], facts(shown).into_iter().map(|(name, value)| vec![name.to_owned(), value]).collect());
    let hours = arrivals_by_hour(shown.jobs, shown.header);
    let hours = hours.iter().enumerate().map(|(hour, count)| (format!("{hour}h"), *count as f64));
    counts(&mut page, "Arrivals by hour of the day", "hour", hours);
    distribution(&mut page, "Run times", shown.jobs.iter().map(|job| job.run_s).collect());
    distribution(&mut page, "Between submissions", gaps(shown.jobs));
    let sizes = jobs_by_class(shown.jobs).into_iter();
    counts(
        &mut page,
        "Processors of jobs",
        "processors",
        sizes.map(|(class, count)| (class_label(&class.name()), count as f64)),
    );
    page.finish()
}

/// A bar of jobs for each name.
fn counts(page: &mut Page, title: &str, of: &str, counts: impl Iterator<Item = (String, f64)>) {
    let (names, lengths): (Vec<String>, Vec<f64>) = counts.unzip();
    let bars = lengths.into_iter().enumerate().map(|(place, length)| (middle(place), length));
    let series = Series::new("jobs", 0, Shape::Bars, bars);
    page.heading(title);
    page.chart(Chart::new(title, "", axis(of, "").named(names), axis("jobs", ""), [series]));
}

fn gaps(jobs: &[TraceJob]) -> Vec<f64> {
    let mut times: Vec<f64> = jobs.iter().map(|job| job.submit_s).collect();
    times.sort_by(f64::total_cmp);
    times.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// The empirical distribution with its fits, and a table of the fits.
fn distribution(page: &mut Page, title: &str, mut sample: Vec<f64>) {
    sample.sort_by(f64::total_cmp);
    let Some(moments) = Moments::of(&sample) else { return };
    let mut plotted = vec![Series::new("sample", 0, Shape::Steps, steps(&sample))];
    let mut rows = Vec::new();
    let fits = [
        ("three moments", 1, fit_moments(&moments)),
        ("maximum likelihood (EM)", 2, fit_em(&sample).map(|fit| fit.model)),
    ];
    let xs = grid(&sample);
    let along = |of: &dyn Fn(f64) -> f64| xs.iter().map(|x| (*x, of(*x))).collect::<Vec<_>>();
    for (name, style, fit) in fits {
        let Some(fit) = fit else { continue };
        let ks = ks_distance(&sample, |t| fit.cdf(t));
        plotted.push(Series::new(format!("{name}, KS {ks:.3}"), style, Shape::Curve, along(&|x| fit.cdf(x))));
        let HyperErlang { order, lambda1, lambda2, p1 } = fit;
        let words = [name.to_owned(), order.to_string(), short(lambda1), short(lambda2), short(p1), format!("{ks:.3}")];
        rows.push(words.to_vec());
    }
    let mean = moments.raw[0].max(f64::MIN_POSITIVE);
    let ks = ks_exponential(&sample, &moments);
    let exponential = along(&|x| -(-x / mean).exp_m1());
    plotted.push(Series::new(format!("exponential, KS {ks:.3}"), 8, Shape::Rule, exponential));
    page.heading(title);
    let (x, y) = (axis("time", "s").log(), axis("part of the jobs", ""));
    page.chart(Chart::new(title, "Part of the jobs below.", x, y, plotted));
    page.table(&["fit", "n", "λ1", "λ2", "p1", "KS"].map(|name| (name, name == "fit")), rows);
}

/// At most a few hundred points of the empirical distribution.
fn steps(sorted: &[f64]) -> Vec<(f64, f64)> {
    let n = sorted.len();
    let every = n.div_ceil(400).max(1);
    let place = |place: usize| (sorted[place], (place + 1) as f64 / n as f64);
    (0..n).step_by(every).chain(n.checked_sub(1)).map(place).collect()
}

/// Points in even steps of the logarithm.
fn grid(sorted: &[f64]) -> Vec<f64> {
    let low = sorted.iter().copied().find(|x| *x > 0.0);
    let (Some(low), Some(high)) = (low, sorted.last().copied()) else { return Vec::new() };
    let decades = (high / low).log10();
    (0..=200).map(|place| low * 10_f64.powf(decades * f64::from(place) / 200.0)).collect()
}
