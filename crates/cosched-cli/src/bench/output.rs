//! The table for people, and CSV.

use crate::format::{command_line, grouped, or_dash, percent, size};
use crate::table::Listing;
use cosched_study::slowdown::Baseline;
use cosched_study::slowdown::record::{Document, Each, Ended, Row, Run};
use cosched_study::slowdown::results::OTHERS_DECIDE;
use cosched_study::slowdown::stats::mean;
use std::fmt::Write;
use std::path::Path;

/// Other processes are mentioned if they use more than this fraction of the CPUs.
const OTHERS_WORTH_NAMING: f64 = 0.05;

/// The whole text that is printed at the end.
pub(crate) fn text(document: &Document, directory: Option<&Path>) -> String {
    let mut text = intro(document);
    text.push_str(&table(document));
    text.push_str(&mix_table(document));
    for note in notes(document) {
        let _ = writeln!(text, "{note}");
    }
    if let Some(directory) = directory {
        let _ = writeln!(text, "{0}/report.html, slowdown.json, runs.csv", directory.display());
    }
    text
}

fn intro(document: &Document) -> String {
    let head = &document.head;
    let what = if head.commands.is_empty() {
        command_line(&head.command)
    } else {
        head.commands.iter().map(|job| job.name.as_str()).collect::<Vec<_>>().join(", ")
    };
    let mut text = format!("{what}  ({} CPUs on {}, {} repetitions)\n", head.cpus, head.host, head.repeat);
    if let Some(single) = &document.single {
        let _ = write!(
            text,
            "one job alone under {}: t_1 {}, {} of the CPUs, {}",
            single.policy,
            with_error(single.time_s, single.time_stderr_s, "s"),
            percent(single.cpu_share),
            memory(single.peak_memory_bytes)
        );
        let _ = match single.phase_s {
            Some(phase) => writeln!(text, ", main phase {phase:.2}s"),
            None => writeln!(text),
        };
    }
    text.push('\n');
    text
}

/// 0 means that the job ended before its memory was sampled.
pub(crate) fn memory(bytes: u64) -> String {
    if bytes == 0 { "memory unknown".into() } else { format!("{} memory", size(bytes)) }
}

fn with_error(value: f64, error: Option<f64>, unit: &str) -> String {
    match error {
        Some(error) => format!("{value:.2} ±{error:.2}{unit}"),
        None => format!("{value:.2}{unit}"),
    }
}

fn known(value: Option<f64>, error: Option<f64>, unit: &str) -> String {
    or_dash(value.map(|value| with_error(value, error, unit)))
}

fn table(document: &Document) -> String {
    if document.results.is_empty() {
        return String::new();
    }
    let range = |low: Option<f64>, high: Option<f64>| or_dash(low.zip(high).map(|(a, b)| format!("{a:.2}..{b:.2}")));
    let count = |value: Option<f64>| or_dash(value.map(|value| grouped(value.round() as u64)));
    let not_done = |row: &Row| row.not_done_outcome.map(|outcome| format!("{} ({})", row.not_done, outcome.name()));
    Listing::of(&document.results)
        .words("POLICY", 0, |row| row.policy.as_str())
        .numbers("JOBS", 0, |row| row.jobs.to_string())
        .numbers("RUNS", 3, |row| row.runs.to_string())
        .numbers("TIME", 0, |row| known(row.time_s, row.time_stderr_s, "s"))
        .numbers("MIN..MAX", 4, |row| range(row.time_min_s, row.time_max_s))
        .numbers("SLOWDOWN", 0, |row| known(row.slowdown, row.slowdown_stderr, ""))
        .numbers("CPU", 1, |row| or_dash(row.cpu_share.map(percent)))
        .numbers("JAIN", 2, |row| or_dash(row.jain.map(|jain| format!("{jain:.3}"))))
        .numbers("FIRST..LAST", 5, |row| range(row.first_end_s, row.last_end_s))
        .numbers("VOLUNTARY", 6, |row| count(row.voluntary))
        .numbers("INVOLUNTARY", 6, |row| count(row.involuntary))
        .words("NOT DONE", 0, |row| not_done(row).unwrap_or_default())
        .render(crate::out::terminal_width())
}

fn mix_table(document: &Document) -> String {
    if document.mix.is_empty() {
        return String::new();
    }
    let table = Listing::of(&document.mix)
        .words("POLICY", 0, |row| row.policy.as_str())
        .words("JOB", 0, |row| row.name.as_str())
        .numbers("TURNAROUND", 0, |row| known(row.turnaround_s, row.turnaround_stderr_s, "s"))
        .numbers("ALONE", 0, |row| known(row.alone_s, None, "s"))
        .numbers("SLOWDOWN", 0, |row| known(row.slowdown, row.slowdown_stderr, ""));
    format!("\n{}", table.render(crate::out::terminal_width()))
}

/// What a reader has to know about the numbers.
pub(crate) fn notes(document: &Document) -> Vec<String> {
    let mut notes = Vec::new();
    let base = match (document.mix.is_empty(), document.head.baseline) {
        (false, _) => "Slowdown is a job's turnaround against its own alone under plain Linux",
        (true, Baseline::Linux) => "Slowdown is t_j / t_1, t_1 of one job alone under plain Linux",
        (true, Baseline::Own) => "Slowdown is t_j / t_1, t_1 of one job alone under the same policy",
    };
    notes.push(format!("{base}; times are medians, ± is one standard error."));
    for row in document.results.iter().filter(|row| row.not_done > 0) {
        let why = row.not_done_why.as_deref().unwrap_or("unknown reason");
        let outcome = row.not_done_outcome.map_or("", |outcome| outcome.name());
        notes.push(format!(
            "{}, {} job{}: {} of {} runs not done: {outcome}: {why}",
            row.policy,
            row.jobs,
            if row.jobs == 1 { "" } else { "s" },
            row.not_done,
            row.not_done + row.runs
        ));
    }
    let alone = document.runs.iter().filter(|run| run.alone.is_some() && run.why.is_some());
    for run in alone {
        notes.push(format!(
            "a job of the mix alone: {}: {}",
            run.outcome.name(),
            run.why.as_deref().unwrap_or_default()
        ));
    }
    // Only runs whose times are shown: a job that hangs asleep leaves all CPUs to others.
    let done = document.runs.iter().filter(|run| run.outcome == Ended::Done);
    let others: Vec<f64> = done.filter_map(|run| run.others_cpu_share).collect();
    let others = mean(&others).unwrap_or(0.0);
    if others > OTHERS_DECIDE {
        notes.push(format!(
            "These numbers are unreliable: other processes used {} of the CPUs meanwhile. Under plain Linux each process competes \
             with them individually, under cosched jobs have their own share; measure again when the machine is idle.",
            percent(others)
        ));
    } else if others > OTHERS_WORTH_NAMING {
        let share = others;
        notes.push(format!("Other processes used {} of the CPUs meanwhile; all times include that.", percent(share)));
    }
    notes
}

/// The results as CSV, one line for each policy and number of jobs.
pub(crate) fn results_csv(document: &Document) -> String {
    let mut text =
        "policy,jobs,runs,time_s,time_mean_s,time_stderr_s,time_min_s,time_max_s,phase_s,slowdown,slowdown_stderr,\
        cpu_share,jain,first_end_s,last_end_s,voluntary,involuntary,job_memory_bytes,not_done,not_done_outcome\n"
            .to_owned();
    for row in &document.results {
        let values = [
            row.time_s,
            row.time_mean_s,
            row.time_stderr_s,
            row.time_min_s,
            row.time_max_s,
            row.phase_s,
            row.slowdown,
            row.slowdown_stderr,
            row.cpu_share,
            row.jain,
            row.first_end_s,
            row.last_end_s,
            row.voluntary,
            row.involuntary,
        ];
        let values: Vec<String> = values.iter().map(|value| number(*value)).collect();
        let outcome = row.not_done_outcome.map_or("", |outcome| outcome.name());
        let _ = writeln!(
            text,
            "{},{},{},{},{},{},{outcome}",
            row.policy,
            row.jobs,
            row.runs,
            values.join(","),
            row.job_memory_bytes,
            row.not_done
        );
    }
    text
}

/// The runs as CSV, one line for each job; a run without jobs (it did not fit into memory) has one line without
/// numbers.
pub(crate) fn runs_csv(document: &Document) -> String {
    let mut text =
        "policy,jobs,alone,repetition,outcome,elapsed_s,others_cpu_share,job,command,start_s,end_s,user_s,system_s,\
        max_memory_bytes,voluntary,involuntary,phase_s,exit\n"
            .to_owned();
    for run in &document.runs {
        let start = run_start(run);
        if run.each.is_empty() {
            let _ = writeln!(text, "{start},,,,,,,,,,,");
        }
        for each in &run.each {
            let _ = writeln!(text, "{start},{}", each_csv(each));
        }
    }
    text
}

fn run_start(run: &Run) -> String {
    let alone = run.alone.map(|place| place.to_string()).unwrap_or_default();
    let (elapsed, others) = (number(Some(run.elapsed_s)), number(run.others_cpu_share));
    format!("{},{},{alone},{},{},{elapsed},{others}", run.policy, run.jobs, run.repetition, run.outcome.name())
}

fn each_csv(each: &Each) -> String {
    let exit = each.exit.map(|exit| exit.to_string()).unwrap_or_default();
    let times = [each.start_s, each.end_s, each.user_s, each.system_s].map(|time| number(Some(time))).join(",");
    let (memory, voluntary, involuntary) = (each.max_memory_bytes, each.voluntary, each.involuntary);
    let phase = number(each.phase_s);
    format!("{},{},{times},{memory},{voluntary},{involuntary},{phase},{exit}", each.job, each.command)
}

fn number(value: Option<f64>) -> String {
    value.map(|value| format!("{}", (value * 1e6).round() / 1e6)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cosched_study::slowdown::results::document;
    use cosched_study::slowdown::samples::{head, run};

    fn example() -> Document {
        let head = head(&["linux", "gang"], &[1, 2], 1);
        let mut failed = run("gang", 0, &[2.0, 3.0]);
        (failed.outcome, failed.why) = (Ended::Failed, Some("job 1: exit code 3".into()));
        document(&head, &[run("linux", 0, &[1.0]), run("linux", 0, &[2.0, 2.5]), failed])
    }

    #[test]
    fn says_what_was_measured_and_what_was_not() {
        let text = text(&example(), None);
        assert!(
            text.contains("one job alone under linux: t_1 1.00s, 25% of the CPUs, 1.0M memory, main phase 0.90s"),
            "{text}"
        );
        let line = text.lines().find(|line| line.starts_with("linux      2")).unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words, ["linux", "2", "1", "2.50s", "2.50..2.50", "2.50", "45%", "0.988", "2.00..2.50", "20", "4"]);
        assert!(text.contains("gang, 2 jobs: 1 of 1 runs not done: failed: job 1: exit code 3"), "{text}");
    }

    #[test]
    fn memory_that_nobody_saw_is_not_zero() {
        let mut unseen = run("linux", 0, &[1.0]);
        unseen.each[0].max_memory_bytes = 0;
        let text = text(&document(&head(&["linux"], &[1], 1), &[unseen]), None);
        assert!(text.contains("memory unknown"), "{text}");
    }

    #[test]
    fn others_are_named_for_runs_that_were_done_only() {
        let with = |share: f64, outcome| Run { others_cpu_share: Some(share), outcome, ..run("linux", 0, &[1.0]) };
        let notes_of = |runs: &[Run]| notes(&document(&head(&["linux"], &[1], 2), runs)).join("\n");
        let hung = with(0.9, Ended::Limit);
        assert!(!notes_of(std::slice::from_ref(&hung)).contains("other processes"), "there are no numbers");
        assert!(!notes_of(&[hung, with(0.0, Ended::Done)]).contains("other processes"));
        assert!(notes_of(&[with(0.9, Ended::Done)]).contains("other processes used 90%"));
    }

    #[test]
    fn csv_has_as_many_fields_in_every_line() {
        let mut document = example();
        document.runs[0].each.clear();
        for text in [results_csv(&document), runs_csv(&document)] {
            let counts: Vec<usize> = text.lines().map(|line| line.split(',').count()).collect();
            assert!(counts.iter().all(|count| *count == counts[0]), "{text}");
            assert!(counts.len() >= 4);
        }
    }
}
