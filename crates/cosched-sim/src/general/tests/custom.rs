//! Strategies written outside: GS and SB written again are GS and SB, and wrong answers end the run.

use super::*;
use crate::general::{Begin, Custom, View, Waiting, simulate_custom};
use crate::strategy::Strategy;
use cosched_core::Wait;

/// Takes every decision itself, from what it is told alone.
struct Own {
    tasks: Vec<u32>,
    mpl: u32,
    wait: Option<(Wait, u64)>,
}

impl Custom for Own {
    fn arrival(&mut self, view: View) -> Result<Begin, String> {
        let (job, free_of) = (view.waiting[0], |row: &Vec<Option<u32>>| {
            (0..row.len() as u32).filter(|column| row[*column as usize].is_none()).collect::<Vec<u32>>()
        });
        let tasks = self.tasks[job as usize] as usize;
        let (row, mut places) = if view.rows.is_empty() {
            let mut nodes: Vec<u32> = (0..view.loads.len() as u32).collect();
            nodes.retain(|node| view.loads[*node as usize] < self.mpl);
            nodes.sort_by_key(|node| view.loads[*node as usize]);
            (0, nodes)
        } else {
            let fits = view.rows.iter().map(free_of).enumerate().find(|(_, free)| free.len() >= tasks);
            fits.unwrap_or_default()
        };
        places.truncate(tasks);
        Ok(if places.len() == tasks { Begin::Job { job, row, places } } else { Begin::NoJob })
    }

    fn row_change(&mut self, view: View) -> Result<Option<usize>, String> {
        let rows = view.rows.len();
        let has_jobs = |row: &usize| view.rows[*row].iter().any(Option::is_some);
        Ok((1..=rows).map(|step| (view.row + step) % rows).find(has_jobs))
    }

    fn wait(&mut self, _: Waiting) -> Result<Option<(Wait, u64)>, String> {
        Ok(self.wait)
    }
}

fn lists() -> Vec<Vec<JobSpec>> {
    let of = |seed: u64, count: u64| -> Vec<JobSpec> {
        let kinds = [JobType::J1, JobType::J3, JobType::J4, JobType::J6];
        let one = |i: u64| {
            let n = (i + 1) * (seed * 2 + 7);
            job(i * (n % 5) * 9 * MS, 1 + (n % 4) as u32, (5 + n % 40) * MS, kinds[(n % 4) as usize])
        };
        (0..count).map(one).collect()
    };
    vec![of(1, 12), of(2, 20), of(3, 7), of(9, 16)]
}

#[test]
fn gs_and_sb_written_again_are_the_same_to_the_nanosecond() {
    for (strategy, base, wait) in [
        ("GS", "GS", None),
        ("GS", "GS", Some((Wait::Busy, 0))),
        ("SB", "Local", Some((Wait::SpinBlock, 200 * US))),
        ("SY", "Local", Some((Wait::SpinYield, 200 * US))),
        ("PB-SB", "PB", Some((Wait::SpinBlock, 200 * US))),
    ] {
        for jobs in lists() {
            let of = |name: &str| Params {
                mpl: 3,
                quantum_ns: 20 * MS,
                check_invariants: true,
                ..Params::paper(name.parse().unwrap(), 4)
            };
            let works: Vec<Work> = jobs.iter().map(|job| Work::Paper(*job)).collect();
            let mut own = Own { tasks: jobs.iter().map(|job| job.tasks).collect(), mpl: 3, wait };
            let config = Config::paper(of(base));
            let found = simulate_custom(&config, &works, &mut own, &mut Silent, &mut |_| true).unwrap();
            assert_eq!(found, simulate(&of(strategy), &jobs), "{strategy} as {base}");
        }
    }
}

/// Answers from a list of what to say.
struct Says(Result<Begin, String>, Result<Option<usize>, String>, Option<(Wait, u64)>);

impl Custom for Says {
    fn arrival(&mut self, _: View) -> Result<Begin, String> {
        self.0.clone()
    }

    fn row_change(&mut self, _: View) -> Result<Option<usize>, String> {
        self.1.clone()
    }

    fn wait(&mut self, _: Waiting) -> Result<Option<(Wait, u64)>, String> {
        Ok(self.2)
    }
}

#[test]
fn what_cannot_be_ends_the_run_with_the_reason() {
    let begin = |job, row, places: &[u32]| Ok(Begin::Job { job, row, places: places.to_vec() });
    let usual = || Ok(Begin::Usual);
    for (base, says, expected) in [
        ("GS", Says(begin(7, 0, &[0, 1]), Ok(None), None), "does not wait"),
        ("GS", Says(begin(0, 0, &[0]), Ok(None), None), "with 2 tasks on [0]"),
        ("GS", Says(begin(0, 0, &[1, 1]), Ok(None), None), "a CPU of its own"),
        ("GS", Says(begin(0, 0, &[0, 4]), Ok(None), None), "not all of these exist"),
        ("GS", Says(begin(0, usize::MAX, &[0, 1]), Ok(None), None), "not all of these exist"),
        ("Local", Says(begin(0, 0, &[0, 9]), Ok(None), None), "not all of these exist"),
        ("Local", Says(Ok(Begin::NoJob), Ok(None), None), "starts none of 2 waiting jobs"),
        ("GS", Says(Err("has no idea".into()), Ok(None), None), "has no idea"),
        ("GS", Says(usual(), Ok(Some(2)), None), "row 2, which has no jobs"),
        ("GS", Says(usual(), Err("stops here".into()), None), "stops here"),
        ("GS", Says(usual(), Ok(None), Some((Wait::SpinYield, 1))), "yield"),
    ] {
        let mut says = says;
        let works = [0, 1].map(|_| Work::Paper(job(0, 2, 900 * MS, JobType::J3)));
        let config = Config::paper(Params::paper(base.parse().unwrap(), 4));
        let error = simulate_custom(&config, &works, &mut says, &mut Silent, &mut |_| true).unwrap_err();
        assert!(matches!(&error, SimError::Strategy(what) if what.contains(expected)), "{expected}: {error}");
    }
    for strategy in [Strategy::Live, Strategy::Auto, "EASY".parse().unwrap()] {
        let config = Config::paper(Params::paper(strategy, 4));
        let error = simulate_custom(&config, &[], &mut Says(usual(), Ok(None), None), &mut Silent, &mut |_| true);
        assert!(error.unwrap_err().to_string().contains("base it on GS"));
    }
}
