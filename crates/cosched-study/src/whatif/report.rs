//! The calibration plot: what was predicted against what was found.

use super::check::{Checked, summary};
use cosched_sim::report::{Page, Pair, Title, against, percent, short};

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
    let pair = |(at, policy, job, checked): &(String, String, String, Checked)| Pair {
        series: policies.iter().position(|other| other == policy).unwrap_or(0),
        x: checked.predicted_s,
        y: checked.found_s,
        title: format!("{job}, {at}: predicted {:.2} s, found {:.2} s", checked.predicted_s, checked.found_s),
    };
    let pairs: Vec<Pair> = all.iter().map(pair).collect();
    let figure = against(&policies, &pairs, "predicted progress in s of CPU time", "found", "Predicted and found");
    page.figure(&figure, "Points on the dashed line were predicted exactly; the policy is the one at that time.");
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
    page.table(&titles, &all.iter().map(row).collect::<Vec<_>>());
    page.finish()
}
