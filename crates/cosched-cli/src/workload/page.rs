//! The page of `cosched workload show --html`: a single file that loads nothing from a network.

use super::plot::{Curve, bars, curves, escape};
use super::show::{Shown, class_label, facts};
use crate::format::short;
use cosched_sim::workload::TraceJob;
use cosched_sim::workload::fit::{HyperErlang, Moments, fit_em, fit_moments, ks_distance, ks_exponential};
use cosched_sim::workload::stats::{arrivals_by_hour, jobs_by_class};
use std::fmt::Write;

const STYLE: &str = "\
:root{color-scheme:light dark;--fg:#222;--bg:#fff;--grid:#ddd;--a:#2b6cb0;--b:#c05621;--c:#2f855a;--d:#888}\
@media(prefers-color-scheme:dark){:root{--fg:#ddd;--bg:#181818;--grid:#333;--a:#63b3ed;--b:#f6ad55;--c:#68d391;--d:#999}}\
body{font:15px/1.45 system-ui,sans-serif;color:var(--fg);background:var(--bg);max-width:720px;margin:2em auto;padding:0 1em}\
h1{font-size:1.3em}h2{font-size:1.05em;margin-top:2em}table{border-collapse:collapse}\
td,th{padding:.15em .8em .15em 0;text-align:left;vertical-align:top;font-variant-numeric:tabular-nums}\
svg{width:100%;height:auto}text{font-size:11px;fill:var(--fg)}path{fill:none;stroke-width:1.6}\
.grid{stroke:var(--grid);stroke-width:1}rect.a{fill:var(--a)}path.a{stroke:var(--a);stroke-width:2.4}\
path.b{stroke:var(--b)}path.c{stroke:var(--c)}path.d{stroke:var(--d);stroke-dasharray:4 3}";

/// The page.
pub(super) fn page(shown: &Shown<'_>) -> String {
    let title = escape(shown.title);
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><title>{title}</title><style>{STYLE}</style>\n<h1>{title}</h1>\n<table>\n"
    );
    for (name, value) in facts(shown) {
        let _ = writeln!(html, "<tr><th>{}<td>{}", escape(name), escape(&value));
    }
    html.push_str("</table>\n");
    let hours = arrivals_by_hour(shown.jobs, shown.header);
    let hours: Vec<(String, f64)> = hours.iter().enumerate().map(|(h, n)| (format!("{h}h"), *n as f64)).collect();
    section(&mut html, "Arrivals by hour of the day", &bars("Arrivals by hour of the day", &hours));
    let runs: Vec<f64> = shown.jobs.iter().map(|job| job.run_s).collect();
    distribution(&mut html, "Run times", runs);
    distribution(&mut html, "Between submissions", gaps(shown.jobs));
    let sizes = jobs_by_class(shown.jobs);
    let sizes: Vec<(String, f64)> =
        sizes.into_iter().map(|(class, count)| (class_label(&class.name()), count as f64)).collect();
    section(&mut html, "Processors of jobs", &bars("Processors of jobs", &sizes));
    html.push_str("</html>\n");
    html
}

fn section(html: &mut String, title: &str, body: &str) {
    let _ = writeln!(html, "<h2>{}</h2>\n{body}", escape(title));
}

fn gaps(jobs: &[TraceJob]) -> Vec<f64> {
    let mut times: Vec<f64> = jobs.iter().map(|job| job.submit_s).collect();
    times.sort_by(f64::total_cmp);
    times.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// The empirical distribution with its fits, and a table of the fits.
fn distribution(html: &mut String, title: &str, mut sample: Vec<f64>) {
    sample.sort_by(f64::total_cmp);
    let Some(moments) = Moments::of(&sample) else { return };
    let mut plotted = vec![Curve { name: "sample".into(), class: "a", points: steps(&sample) }];
    let mut rows = String::new();
    let fits = [
        ("three moments", "b", fit_moments(&moments)),
        ("maximum likelihood (EM)", "c", fit_em(&sample).map(|fit| fit.model)),
    ];
    let xs = grid(&sample);
    for (name, class, fit) in fits {
        let Some(fit) = fit else { continue };
        let ks = ks_distance(&sample, |t| fit.cdf(t));
        let points = xs.iter().map(|x| (*x, fit.cdf(*x))).collect();
        plotted.push(Curve { name: format!("{name}, KS {ks:.3}"), class, points });
        let HyperErlang { order, lambda1, lambda2, p1 } = fit;
        let numbers = [short(lambda1), short(lambda2), short(p1), format!("{ks:.3}")].join("<td>");
        let _ = writeln!(rows, "<tr><th>{name}<td>{order}<td>{numbers}");
    }
    let mean = moments.raw[0].max(f64::MIN_POSITIVE);
    let points = xs.iter().map(|x| (*x, -(-x / mean).exp_m1())).collect();
    let ks = ks_exponential(&sample, &moments);
    plotted.push(Curve { name: format!("exponential, KS {ks:.3}"), class: "d", points });
    let head = "<tr><th>fit<th>n<th>λ1<th>λ2<th>p1<th>KS";
    let body =
        format!("{}\n<table>\n{head}\n{rows}</table>", curves(&format!("{title}: part of jobs below"), &plotted));
    section(html, title, &body);
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
