//! Predictions and checks for people.

use super::NOW;
use super::kept::{Done, Kept, Past};
use crate::format::{duration_s, or_dash, second};
use crate::out::terminal_width;
use crate::table::{Column, Listing};
use cosched_study::whatif::{Checked, Predicted, calibration, summary};
use std::borrow::Cow;

/// What happens now, and the slowdowns under all policies.
pub(super) fn page(kept: &Kept, settings: &[&str]) -> String {
    format!(
        "the next {} under the present policy ({}), by a look of {}\n\n{}\nslowdowns of that time under other policies, relative to the \
         machine alone\n\n{}",
        duration_s(kept.for_s),
        kept.policy,
        duration_s(kept.look_s),
        now(kept),
        slowdowns(kept, settings),
    )
}

fn slowdown(predicted: &Predicted) -> String {
    let bound = if predicted.is_bound { "≥ " } else { "" };
    predicted.slowdown.map_or("-".to_owned(), |slowdown| format!("{bound}{slowdown:.2}"))
}

fn now(kept: &Kept) -> String {
    let end = |predicted: &Predicted| match (predicted.ends_s, predicted.done) {
        (Some(end), _) => format!("in {}", duration_s(end)),
        (None, Some(done)) => format!("later, {:.0} % done then", done * 100.0),
        (None, None) => "not known".to_owned(),
    };
    Listing::of(kept.jobs.iter().filter_map(|job| Some((job, job.predicted.get(NOW)?))))
        .numbers("JOB", 0, |(job, _)| job.id.to_string())
        .words("NAME", 0, |(job, _)| job.name.as_str())
        .numbers("CPU TIME", 0, |(_, predicted)| duration_s(predicted.cpu_s))
        .numbers("SLOWDOWN", 0, |(_, predicted)| slowdown(predicted))
        .words("END", 0, |(_, predicted)| end(predicted))
        .words("SETTINGS", 1, |(job, _)| job.settings.as_str())
        .render(terminal_width())
}

fn slowdowns(kept: &Kept, settings: &[&str]) -> String {
    let jobs =
        Listing::of(&kept.jobs).numbers("JOB", 0, |job| job.id.to_string()).words("NAME", 0, |job| job.name.as_str());
    let table = settings.iter().fold(jobs, |table, name| {
        let column = Column { title: Cow::Owned(name.to_uppercase()), right: true, dispensable: 0 };
        table.column(column, |job| or_dash(job.predicted.get(*name).map(slowdown)))
    });
    let bound = kept.jobs.iter().flat_map(|job| job.predicted.values()).any(|predicted| predicted.is_bound);
    let note = "≥: it waits by polling, and how often is not seen while it waits busy; where its processes do not run together it may be \
                much slower. A recording (--profile), or `cosched run --wait spin-block`, shows it.\n";
    table.render(terminal_width()) + if bound { note } else { "" }
}

/// The checks made now, and all so far.
pub(super) fn checked(done: &[Done], past: &Past) -> String {
    let mut text = String::new();
    if done.iter().any(|done| !done.jobs.is_empty()) {
        text += &Listing::of(done.iter().flat_map(|done| done.jobs.iter().map(move |job| (done, job))))
            .words("PREDICTED AT", 0, |(done, _)| second(done.at_unix_ms))
            .numbers("JOB", 0, |(_, job)| job.id.to_string())
            .words("NAME", 0, |(_, job)| job.name.as_str())
            .numbers("PREDICTED", 0, |(_, job)| format!("{:.2} s", job.checked.predicted_s))
            .numbers("FOUND", 0, |(_, job)| format!("{:.2} s", job.checked.found_s))
            .numbers("DIFFERENCE", 0, |(_, job)| format!("{:+.1} %", job.checked.difference * 100.0))
            .words("END", 1, |(_, job)| ends(&job.checked))
            .render(terminal_width());
    }
    for changed in done.iter().flat_map(|done| &done.changed) {
        text += &format!("not counted, because something changed: {changed}\n");
    }
    let counted = counted(past);
    if let Some((median, worst)) = summary(counted.iter().map(|(.., checked)| checked.difference)) {
        let (count, median, worst) = (counted.len(), median * 100.0, worst * 100.0);
        text += &format!("of all {count} checked so far: {median:.1} % off in the median, {worst:.1} % at most\n");
    }
    text
}

fn ends(checked: &Checked) -> String {
    let text = |end: Option<f64>| end.map_or("later".to_owned(), |end| format!("in {}", duration_s(end)));
    match (checked.predicted_end_s, checked.found_end_s) {
        (None, None) => "-".to_owned(),
        (predicted, found) => format!("{}, predicted {}", text(found), text(predicted)),
    }
}

/// The checks of predictions in whose time nothing changed.
fn counted(past: &Past) -> Vec<(String, String, String, Checked)> {
    let all = past.done.iter().filter(|done| done.changed.is_empty());
    all.flat_map(|done| {
        let row = |job: &super::kept::DoneJob| {
            (second(done.at_unix_ms), done.policy.clone(), format!("{} {}", job.id, job.name), job.checked)
        };
        done.jobs.iter().map(row)
    })
    .collect()
}

/// The calibration plot of all checks that count.
pub(super) fn calibration_page(past: &Past) -> String {
    calibration(&counted(past))
}
