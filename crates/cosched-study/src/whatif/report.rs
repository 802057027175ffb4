//! The calibration plot: what was predicted against what was found.

use super::check::{Checked, summary};
use cosched_report::{Chart, Page, Point, Series, Shape, Title, axis, percent, short};

/// A page with all checked predictions: the time of the prediction, its policy, the job, and the check.
pub fn calibration(all: &[(String, String, String, Checked)]) -> String {
    let mut policies: Vec<String> = all.iter().map(|(_, policy, ..)| policy.clone()).collect();
    policies.sort();
    policies.dedup();
    let mut page =
        Page::new("How right cosched sim whatif was", &format!("{} predictions of a job's progress", all.len()));
    if let Some((median, worst)) = summary(all.iter().map(|(.., checked)| checked.difference)) {
        page.paragraph(&format!(
            "The difference is {} % in the median and {} % at most.",
            percent(median),
            percent(worst)
        ));
    }
    let series = |(style, policy): (usize, &String)| {
        let own = all.iter().filter(|(_, other, ..)| other == policy);
        let point = |(at, _, job, checked): &(String, String, String, Checked)| Point {
            note: format!("{job}, {at}"),
            ..(checked.predicted_s, checked.found_s).into()
        };
        Series::new(policy, style, Shape::Marks, own.map(point))
    };
    let end = all.iter().flat_map(|(.., checked)| [checked.predicted_s, checked.found_s]).fold(0.0, f64::max);
    let equal = Series::new("predicted exactly", 0, Shape::Rule, [(0.0, 0.0), (end, end)]);
    page.chart(Chart::new(
        "Predicted and found",
        "Points on the dashed line were predicted exactly; the policy is the one at that time.",
        axis("predicted progress in CPU time", "s"),
        axis("found progress in CPU time", "s"),
        policies.iter().enumerate().map(series).chain([equal]),
    ));
    let titles: [Title<'_>; 6] = [
        ("predicted at", true),
        ("policy", true),
        ("job", true),
        ("predicted s", false),
        ("found s", false),
        ("difference %", false),
    ];
    let row = |(at, policy, job, checked): &(String, String, String, Checked)| {
        let sign = if checked.difference < 0.0 { "-" } else { "+" };
        vec![
            at.clone(),
            policy.clone(),
            job.clone(),
            short(checked.predicted_s),
            short(checked.found_s),
            format!("{sign}{}", percent(checked.difference.abs())),
        ]
    };
    page.table(&titles, all.iter().map(row).collect());
    page.finish()
}
