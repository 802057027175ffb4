//! Predictions and checks for people.

use super::NOW;
use super::kept::{Done, Kept, Past};
use crate::format::{duration_s, second};
use crate::out::terminal_width;
use crate::table::{Cell, Column, numbers, render, words};
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
    let columns = [
        numbers("JOB", 0),
        words("NAME", 0),
        numbers("CPU TIME", 0),
        numbers("SLOWDOWN", 0),
        words("END", 0),
        words("SETTINGS", 1),
    ];
    let rows = kept.jobs.iter().filter_map(|job| {
        let predicted = job.predicted.get(NOW)?;
        let end = match (predicted.ends_s, predicted.done) {
            (Some(end), _) => format!("in {}", duration_s(end)),
            (None, Some(done)) => format!("later, {:.0} % done then", done * 100.0),
            (None, None) => "not known".to_owned(),
        };
        let cells: Vec<Cell> = vec![
            job.id.to_string().into(),
            job.name.as_str().into(),
            duration_s(predicted.cpu_s).into(),
            slowdown(predicted).into(),
            end.into(),
            job.settings.as_str().into(),
        ];
        Some(cells)
    });
    render(&columns, &rows.collect::<Vec<_>>(), terminal_width())
}

fn slowdowns(kept: &Kept, settings: &[&str]) -> String {
    let titled = |name: &&str| Column { title: Cow::Owned((*name).to_uppercase()), right: true, dispensable: 0 };
    let columns: Vec<Column> =
        [numbers("JOB", 0), words("NAME", 0)].into_iter().chain(settings.iter().map(titled)).collect();
    let rows: Vec<Vec<Cell>> = kept
        .jobs
        .iter()
        .map(|job| {
            let each = settings.iter().map(|name| job.predicted.get(*name).map_or("-".into(), slowdown).into());
            [job.id.to_string().into(), job.name.as_str().into()].into_iter().chain(each).collect()
        })
        .collect();
    let bound = kept.jobs.iter().flat_map(|job| job.predicted.values()).any(|predicted| predicted.is_bound);
    let note = "≥: it waits by polling, and how often is not seen while it waits busy; where its processes do not run together it may be \
                much slower. A recording (--profile), or `cosched run --wait spin-block`, shows it.\n";
    render(&columns, &rows, terminal_width()) + if bound { note } else { "" }
}

/// The checks made now, and all so far.
pub(super) fn checked(done: &[Done], past: &Past) -> String {
    let columns = [
        words("PREDICTED AT", 0),
        numbers("JOB", 0),
        words("NAME", 0),
        numbers("PREDICTED", 0),
        numbers("FOUND", 0),
        numbers("DIFFERENCE", 0),
        words("END", 1),
    ];
    let mut text = String::new();
    let rows: Vec<Vec<Cell>> = done
        .iter()
        .flat_map(|done| done.jobs.iter().map(move |job| (done, job)))
        .map(|(done, job)| {
            let Checked { predicted_s, found_s, difference, .. } = job.checked;
            vec![
                second(done.at_unix_ms).into(),
                job.id.to_string().into(),
                job.name.as_str().into(),
                format!("{predicted_s:.2} s").into(),
                format!("{found_s:.2} s").into(),
                format!("{:+.1} %", difference * 100.0).into(),
                ends(&job.checked).into(),
            ]
        })
        .collect();
    if !rows.is_empty() {
        text += &render(&columns, &rows, terminal_width());
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
