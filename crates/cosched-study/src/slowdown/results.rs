//! From runs to results: pure functions.

use super::plan::{Cell, LINUX, cells, single_policy};
use super::record::{Baseline, Document, Ended, Head, MixRow, Row, Run, Single};
use super::stats::{jain, mean, median, ratio_stderr, stderr};

/// If other processes use more than this share of the CPUs, they influence the times more than the
/// policies do.
pub const OTHERS_DECIDE: f64 = 0.25;

/// Builds the document from the measurements so far.
pub fn document(head: &Head, runs: &[Run]) -> Document {
    let mut wanted: Vec<Cell> = cells(head, 0).into_iter().filter(|cell| cell.alone.is_none()).collect();
    // In the order for reading: each policy with increasing numbers of jobs.
    let place = |cell: &Cell| head.policies.iter().position(|policy| *policy == cell.policy);
    wanted.sort_by_key(|cell| (place(cell), cell.jobs));
    let rows = wanted.iter().filter_map(|cell| row(head, runs, cell)).collect();
    Document {
        head: head.clone(),
        runs: runs.to_vec(),
        single: single(head, runs),
        results: rows,
        mix: mix(head, runs),
    }
}

/// The CPU shares of the completed runs of a row.
pub fn cpu_shares(document: &Document, row: &Row) -> Vec<f64> {
    let cell = Cell { policy: row.policy.clone(), jobs: row.jobs, alone: None };
    done(&document.runs, &cell).iter().map(|run| cpu_share(run, document.head.cpus)).collect()
}

/// CPU time of all jobs / (elapsed time × CPUs).
fn cpu_share(run: &Run, cpus: usize) -> f64 {
    run.each.iter().map(|each| each.cpu_s()).sum::<f64>() / (run.elapsed_s * cpus as f64)
}

fn phase(run: &Run) -> Option<f64> {
    let all: Option<Vec<f64>> = run.each.iter().map(|each| each.phase_s).collect();
    all?.into_iter().reduce(f64::max)
}

fn done<'a>(runs: &'a [Run], cell: &Cell) -> Vec<&'a Run> {
    runs.iter().filter(|run| cell.is_of(run) && run.outcome == Ended::Done).collect()
}

fn elapsed(runs: &[&Run]) -> Vec<f64> {
    runs.iter().map(|run| run.elapsed_s).collect()
}

/// The median of `of` over the runs; None if it is None for any run.
fn median_of(runs: &[&Run], of: impl Fn(&Run) -> Option<f64>) -> Option<f64> {
    median(&runs.iter().map(|run| of(run)).collect::<Option<Vec<f64>>>()?)
}

fn voluntary(run: &Run) -> Option<f64> {
    Some(run.each.iter().map(|each| each.voluntary).sum::<u64>() as f64)
}

fn involuntary(run: &Run) -> Option<f64> {
    Some(run.each.iter().map(|each| each.involuntary).sum::<u64>() as f64)
}

fn single(head: &Head, runs: &[Run]) -> Option<Single> {
    let policy = single_policy(head);
    let runs = done(runs, &Cell { policy: policy.to_owned(), jobs: 1, alone: None });
    let times = elapsed(&runs);
    Some(Single {
        policy: policy.to_owned(),
        time_s: median(&times)?,
        time_stderr_s: stderr(&times),
        phase_s: median_of(&runs, phase),
        cpu_share: median_of(&runs, |run| Some(cpu_share(run, head.cpus)))?,
        peak_memory_bytes: runs.iter().flat_map(|run| &run.each).map(|each| each.max_memory_bytes).max()?,
        voluntary: median_of(&runs, voluntary)?,
        involuntary: median_of(&runs, involuntary)?,
    })
}

/// None if it was never run.
fn row(head: &Head, all: &[Run], cell: &Cell) -> Option<Row> {
    let of_cell: Vec<&Run> = all.iter().filter(|run| cell.is_of(run)).collect();
    let first_failure = of_cell.iter().find(|run| run.outcome != Ended::Done);
    let runs = done(all, cell);
    let times = elapsed(&runs);
    let base = match head.baseline {
        Baseline::Linux => LINUX,
        Baseline::Own => &cell.policy,
    };
    let base_cell = Cell { policy: base.to_owned(), jobs: 1, alone: None };
    let base_times = elapsed(&done(all, &base_cell));
    let (slowdown, slowdown_stderr) = if *cell == base_cell {
        (median(&times).map(|_| 1.0), median(&times).map(|_| 0.0))
    } else {
        ratio(&times, &base_times)
    };
    let ends = |run: &Run| run.each.iter().map(|each| each.end_s).collect::<Vec<f64>>();
    (!of_cell.is_empty()).then(|| Row {
        policy: cell.policy.clone(),
        jobs: cell.jobs,
        runs: runs.len(),
        time_s: median(&times),
        time_mean_s: mean(&times),
        time_stderr_s: stderr(&times),
        time_min_s: times.iter().copied().reduce(f64::min),
        time_max_s: times.iter().copied().reduce(f64::max),
        phase_s: median_of(&runs, phase),
        slowdown,
        slowdown_stderr,
        cpu_share: median_of(&runs, |run| Some(cpu_share(run, head.cpus))),
        jain: median_of(&runs, |run| fairness(head, run)),
        first_end_s: median_of(&runs, |run| ends(run).into_iter().reduce(f64::min)),
        last_end_s: median_of(&runs, |run| ends(run).into_iter().reduce(f64::max)),
        voluntary: median_of(&runs, voluntary),
        involuntary: median_of(&runs, involuntary),
        not_done: of_cell.len() - runs.len(),
        not_done_outcome: first_failure.map(|run| run.outcome),
        not_done_why: first_failure.and_then(|run| run.why.clone()),
        job_memory_bytes: of_cell.iter().flat_map(|run| &run.each).map(|each| each.max_memory_bytes).max().unwrap_or(0),
    })
}

/// Only for equal jobs: different ones need not end at the same time.
fn fairness(head: &Head, run: &Run) -> Option<f64> {
    let turnarounds: Vec<f64> = run.each.iter().map(|each| each.turnaround_s()).collect();
    if head.commands.is_empty() { jain(&turnarounds) } else { None }
}

/// The ratio of the medians, and the standard error of the ratio of the means.
fn ratio(above: &[f64], below: &[f64]) -> (Option<f64>, Option<f64>) {
    let (Some(a), Some(b), Some(mean_a), Some(mean_b)) = (median(above), median(below), mean(above), mean(below))
    else {
        return (None, None);
    };
    (Some(a / b), ratio_stderr((mean_a, stderr(above)), (mean_b, stderr(below))))
}

fn mix(head: &Head, all: &[Run]) -> Vec<MixRow> {
    let turnarounds = |run: &Run, command: usize| -> Option<f64> {
        let of_command = run.each.iter().filter(|each| each.command == command);
        mean(&of_command.map(|each| each.turnaround_s()).collect::<Vec<_>>())
    };
    let mut rows = Vec::new();
    for policy in &head.policies {
        let together: Vec<&Run> = all
            .iter()
            .filter(|run| run.policy == *policy && run.alone.is_none() && run.outcome == Ended::Done)
            .collect();
        for (command, job) in head.commands.iter().enumerate() {
            let alone = done(all, &Cell { policy: LINUX.to_owned(), jobs: 1, alone: Some(command) });
            let alone: Vec<f64> = alone.iter().filter_map(|run| turnarounds(run, command)).collect();
            let values: Vec<f64> = together.iter().filter_map(|run| turnarounds(run, command)).collect();
            let (slowdown, slowdown_stderr) = ratio(&values, &alone);
            rows.push(MixRow {
                policy: policy.clone(),
                command,
                name: job.name.clone(),
                runs: values.len(),
                turnaround_s: median(&values),
                turnaround_stderr_s: stderr(&values),
                alone_s: median(&alone),
                slowdown,
                slowdown_stderr,
            });
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::super::samples::{head, run};
    use super::*;

    #[test]
    fn slowdown_is_against_linux_alone() {
        let head = head(&["linux", "gang"], &[1, 2], 3);
        let runs = [
            run("linux", 0, &[1.0]),
            run("linux", 1, &[1.2]),
            run("linux", 2, &[1.1]),
            run("gang", 0, &[2.0, 2.2]),
            run("gang", 1, &[1.0, 3.0]),
            run("gang", 2, &[2.4, 2.4]),
        ];
        let document = document(&head, &runs);
        let single = document.single.unwrap();
        assert_eq!((single.time_s, single.peak_memory_bytes), (1.1, 1 << 20));
        assert!((single.cpu_share - 0.25).abs() < 1e-9);
        let row = document.results.iter().find(|row| row.policy == "gang" && row.jobs == 2).unwrap();
        assert!((row.slowdown.unwrap() - 2.4 / 1.1).abs() < 1e-9);
        // Means 2.533 and 1.1 with errors 0.2404 and 0.05774: √(0.0949² + 0.0525²) × 2.303.
        assert!((row.slowdown_stderr.unwrap() - 0.2497).abs() < 1e-3, "{:?}", row.slowdown_stderr);
        assert_eq!((row.first_end_s, row.last_end_s, row.voluntary), (Some(2.0), Some(2.4), Some(20.0)));
        assert!((row.jain.unwrap() - 4.2 * 4.2 / (2.0 * (4.0 + 4.84))).abs() < 1e-9);
        assert_eq!(row.phase_s, Some(2.3));
        let base = document.results.iter().find(|row| row.policy == "linux").unwrap();
        assert_eq!((base.slowdown, base.slowdown_stderr), (Some(1.0), Some(0.0)));
    }

    #[test]
    fn what_was_not_done_is_counted_and_never_averaged() {
        let head = head(&["linux"], &[1, 2], 2);
        let failed =
            Run { outcome: Ended::Limit, why: Some("60 s".into()), elapsed_s: 60.0, ..run("linux", 1, &[60.0, 60.0]) };
        let document = document(&head, &[run("linux", 0, &[1.0]), run("linux", 0, &[2.0, 2.0]), failed]);
        let row = document.results.iter().find(|row| row.jobs == 2).unwrap();
        assert_eq!((row.runs, row.not_done, row.time_max_s), (1, 1, Some(2.0)));
        assert_eq!((row.not_done_outcome, row.not_done_why.as_deref()), (Some(Ended::Limit), Some("60 s")));
        assert_eq!((row.time_stderr_s, row.slowdown), (None, Some(2.0)));
    }

    #[test]
    fn own_times_and_no_times() {
        let own = Head { baseline: Baseline::Own, ..head(&["gang"], &[1, 2], 1) };
        let document_of = |runs: &[Run]| document(&own, runs);
        let slow = document_of(&[run("gang", 0, &[2.0]), run("gang", 0, &[3.0, 3.0])]);
        assert_eq!(slow.results[1].slowdown, Some(1.5));
        let nothing = document_of(&[]);
        assert_eq!((nothing.single, nothing.results.len()), (None, 0));
    }

    #[test]
    fn a_mix_compares_each_job_with_itself_alone() {
        use super::super::mix::MixJob;
        let job = |name: &str| MixJob { name: name.into(), class: None, start_s: 0.0, count: 1, command: vec![] };
        let head = Head { commands: vec![job("a"), job("b")], ..head(&["gang"], &[1], 1) };
        let alone = |place: usize, end: f64| {
            let mut run = Run { alone: Some(place), ..run("linux", 0, &[end]) };
            run.each[0].command = place;
            run
        };
        let mut together = run("gang", 0, &[3.0, 4.0]);
        together.each[1].command = 1;
        together.each[1].start_s = 1.0;
        let rows = document(&head, &[alone(0, 1.0), alone(1, 2.0), together]).mix;
        let slowdowns: Vec<_> = rows.iter().map(|row| (row.name.as_str(), row.slowdown)).collect();
        assert_eq!(slowdowns, [("a", Some(3.0)), ("b", Some(1.5))]);
    }
}
