//! Do 95 % intervals cover 95 %? Small experiments are repeated with seeds of their own, and it is counted how often an
//! interval has the mean over all of them.
//!
//! The quick form has fixed seeds and wide bounds. The measurement (decision 0059 has its numbers):
//!     COVERAGE=200 cargo test --release -p cosched-study --test coverage -- --nocapture
//! with the jobs of a list in COVERAGE_JOBS (10).

use cosched_sim::general::Config;
use cosched_sim::metrics::Estimate;
use cosched_sim::sweep::{Description, Hooks, Journal, Plan, Row, Seeds, Table, Taken, run_precisely};
use cosched_sim::{Params, Strategy};
use cosched_study::engine::simulate;
use cosched_study::workload::generated;

/// Seeds that belong to one repetition.
const APART: u64 = 10_000;
const STRATEGIES: [&str; 3] = ["GS", "SB", "PB"];

fn number(name: &str, or: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(or)
}

/// One small experiment: a workload near saturation on 8 nodes.
fn experiment(repetition: u64, seeds: u64, precision: Option<f64>) -> Table {
    let first = repetition * APART + 1;
    let description = Description {
        strategies: STRATEGIES.map(str::to_owned).to_vec(),
        workloads: vec!["WL3".into()],
        seeds: Seeds::List((first..first + seeds).collect()),
        jobs: number("COVERAGE_JOBS", 10) as usize,
        mean_exec_s: 0.4,
        grain: vec![8],
        precision,
        ..Description::default()
    };
    let base = |strategy: Strategy, _: Option<u32>| Config::paper(Params::paper(strategy, 8));
    let plan = Plan::new(&description, &base).unwrap();
    let hooks = Hooks {
        jobs: &generated,
        simulate: &|config, jobs, watch| simulate(false, config, jobs, watch),
        now_s: &|| 0.0,
        progress: &|_| (),
    };
    let (plan, taken): (Plan, Vec<Taken>) =
        run_precisely(&plan, &Journal::default(), 2, hooks, &mut |_| Ok(())).unwrap();
    Table::new(&plan, &taken)
}

/// What is estimated: a strategy's mean response, its ratio and its difference to the first one's.
type Quantity = fn(&Row) -> Option<Estimate>;
const QUANTITIES: [(&str, Quantity); 3] = [
    ("mean", |row| row.value("mean_response_s")),
    ("ratio", |row| row.response_ratio),
    ("difference", |row| row.response_difference_s),
];

/// How many of these tables have a quantity's true value in their interval, and of how many.
fn covered(tables: &[Table], strategy: usize, of: Quantity, truth: f64) -> (usize, usize) {
    let estimates: Vec<Estimate> = tables.iter().filter_map(|table| of(&table.rows[strategy])).collect();
    assert!(estimates.iter().all(|estimate| estimate.ci95.is_some()));
    (estimates.iter().filter(|estimate| !estimate.excludes(truth)).count(), estimates.len())
}

/// The mean of a quantity over all tables; of the ratio the ratio of the means.
fn truth(tables: &[Table], strategy: usize, name: &str) -> f64 {
    let mean = |strategy: usize| {
        let means = tables.iter().map(|table| table.rows[strategy].value("mean_response_s").unwrap().mean);
        means.sum::<f64>() / tables.len() as f64
    };
    match name {
        "mean" => mean(strategy),
        "ratio" => mean(strategy) / mean(0),
        _ => mean(strategy) - mean(0),
    }
}

/// Prints what was found; returns the least part that was covered.
fn report(title: &str, tables: &[Table], all: &[Table]) -> f64 {
    let mut least = 1.0_f64;
    for (name, of) in QUANTITIES {
        for (strategy, word) in STRATEGIES.iter().enumerate() {
            let (inside, n) = covered(tables, strategy, of, truth(all, strategy, name));
            if n > 0 {
                println!("{title}: {name} {word} {:.1} % of {n}", 100.0 * inside as f64 / n as f64);
                least = least.min(inside as f64 / n as f64);
            }
        }
    }
    least
}

#[test]
fn intervals_over_seeds_cover_what_they_say() {
    let repetitions = number("COVERAGE", 0);
    if repetitions == 0 {
        let tables: Vec<Table> = (1..=30).map(|repetition| experiment(repetition, 10, None)).collect();
        assert!(report("10 seeds", &tables, &tables) >= 0.8, "30 repetitions");
        return;
    }
    for seeds in [5, 10, 20, 40] {
        let tables: Vec<Table> = (1..=repetitions).map(|repetition| experiment(repetition, seeds, None)).collect();
        report(&format!("{seeds} seeds"), &tables, &tables);
        if seeds == 40 {
            let precise: Vec<Table> =
                (1..=repetitions).map(|repetition| experiment(repetition, 1, Some(0.1))).collect();
            let n: usize = precise.iter().map(Table::seeds).sum();
            report(&format!("10 % wanted, {:.1} seeds", n as f64 / precise.len() as f64), &precise, &tables);
        }
    }
}

#[test]
fn one_run_has_no_interval() {
    let table = experiment(1, 1, None);
    for row in &table.rows {
        let all = row.estimates.iter().copied().chain([row.response_ratio, row.response_difference_s]);
        assert!(all.flatten().all(|estimate| estimate.ci95.is_none()), "{}", row.cell.label());
    }
    assert!(table.rows[1].response_ratio.is_some(), "the ratio itself is there");
}

#[test]
fn a_wanted_precision_is_reached_in_pairs() {
    let table = experiment(2, 1, Some(0.2));
    let n = table.rows[0].results.len();
    assert!((20..=200).contains(&n) && table.rows.iter().all(|row| row.results.len() == n), "{n}");
    assert!(table.imprecise(0.2) == 0 || n == 200);
}
