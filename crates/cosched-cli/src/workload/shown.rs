//! What `cosched workload show` shows, as text and as a page.

use crate::format::{duration_s, grouped, short};
use cosched_sim::workload::TraceJob;
use cosched_sim::workload::stats::TraceStats;
use cosched_sim::workload::swf::SwfHeader;

/// Everything that is shown.
pub(super) struct Shown<'a> {
    pub(super) title: &'a str,
    pub(super) header: &'a SwfHeader,
    pub(super) stats: &'a TraceStats,
    pub(super) jobs: &'a [TraceJob],
}

/// The class `1-1` is shown as `1`.
pub(super) fn class_label(name: &str) -> String {
    match name.split_once('-') {
        Some((low, high)) if low == high => low.to_string(),
        _ => name.to_string(),
    }
}

/// The facts that are printed in one line each.
pub(super) fn facts(shown: &Shown<'_>) -> Vec<(&'static str, String)> {
    let Shown { header, stats, .. } = shown;
    let mut facts = Vec::new();
    let first_line = |key| header.get(key).and_then(|value| value.lines().next()).filter(|line| !line.is_empty());
    if let Some(computer) = first_line("Computer") {
        let place = first_line("Installation").map(|place| format!(", {place}")).unwrap_or_default();
        facts.push(("machine", format!("{computer}{place}")));
    }
    let statuses: Vec<String> =
        stats.status.iter().map(|(status, count)| format!("{} {}", grouped(*count), status_word(*status))).collect();
    facts.extend([
        ("processors", grouped(stats.procs.into())),
        (
            "records",
            format!(
                "{} ({} usable, {} lines skipped)",
                grouped(stats.records),
                grouped(stats.usable),
                grouped(stats.malformed)
            ),
        ),
        ("status", statuses.join(", ")),
        ("users", grouped(stats.users)),
        ("span", format!("{:.2} days", stats.span_s / 86_400.0)),
        ("utilisation", format!("{:.2}%", stats.utilization * 100.0)),
        (
            "run time",
            format!(
                "mean {}, median {}, CV {:.2}",
                duration_s(stats.run_mean),
                duration_s(stats.run_median),
                stats.run_cv
            ),
        ),
        (
            "size",
            format!(
                "mean {}, at most {}, {:.1}% serial",
                short(stats.size_mean),
                grouped(stats.size_max.into()),
                stats.size_serial * 100.0
            ),
        ),
        ("estimates", format!("{} known, {} exceeded", grouped(stats.estimate_known), grouped(stats.run_gt_estimate))),
    ]);
    facts.push(match stats.recorded_avebsld {
        Some(mean) => ("waits", format!("{} known, mean bounded slowdown {mean:.3}", grouped(stats.wait_known))),
        None => ("waits", "unknown: submissions may be starts".into()),
    });
    if !stats.sorted_by_submit {
        facts.push(("order", "not sorted by submission".into()));
    }
    facts
}

fn status_word(status: i64) -> String {
    match status {
        -1 => "unknown".into(),
        0 => "failed".into(),
        1 => "completed".into(),
        2 => "parts".into(),
        3 => "last parts, completed".into(),
        4 => "last parts, failed".into(),
        5 => "cancelled".into(),
        other => format!("of status {other}"),
    }
}
