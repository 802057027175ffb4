//! Sweeps with a cheap engine, and a few with the real one.

use super::run::recall;
use super::*;
use crate::general::Config;
use crate::metrics::seconds;
use crate::{JobSpec, JobTimes, JobType, Outcome, Params, Progress, SimError, Strategy, paper};
use cosched_core::Wait;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const MS: u64 = 1_000_000;

fn base(strategy: Strategy, nodes: Option<u32>) -> Config {
    Config::paper(Params::paper(strategy, nodes.unwrap_or(4)))
}

fn description(strategies: &[&str], workloads: &[&str]) -> Description {
    Description {
        strategies: strategies.iter().map(ToString::to_string).collect(),
        workloads: workloads.iter().map(ToString::to_string).collect(),
        seeds: Seeds::Count(2),
        ..Description::default()
    }
}

fn plan(description: &Description) -> Plan {
    Plan::new(description, &base).unwrap()
}

fn jobs(wanted: &Wanted) -> Result<Vec<JobSpec>, String> {
    if wanted.workload == "missing.csv" {
        return Err("there is no such file".to_owned());
    }
    let job = |k: u64| JobSpec {
        arrival_ns: k * (3 + wanted.seed) * MS,
        tasks: 1 + (k as u32 % 4),
        exec_ns: (20 + 7 * k) * MS,
        kind: JobType::ALL[wanted.workload.len() % 6],
        class: cosched_core::Class::Batch,
        footprint: crate::job::Footprint::default(),
    };
    Ok((0..24).map(job).collect())
}

/// Every job waits for a time that depends on all inputs.
fn cheap(
    config: &Config,
    jobs: &[JobSpec],
    _: &mut (dyn FnMut(Progress) -> bool + Send),
) -> Result<Simulated, SimError> {
    let params = &config.params;
    if params.mpl == 13 {
        return Err(SimError::Broken("13".to_owned()));
    }
    let delay = params.seed * 1_000_003 + u64::from(params.mpl) * 7_919 + params.strategy.name().len() as u64 * 104_729;
    let times = |job: &JobSpec| {
        let start = job.arrival_ns + delay;
        JobTimes { start_ns: Some(start), finish_ns: Some(start + job.exec_ns * 3 / 2) }
    };
    let jobs: Vec<JobTimes> = jobs.iter().map(times).collect();
    let sim_end_ns = jobs.iter().filter_map(|job| job.finish_ns).max().unwrap();
    Ok(Outcome { sim_end_ns, jobs, ..Outcome::default() }.into())
}

fn hooks<'a>(simulate: &'a Simulate<'a>) -> Hooks<'a> {
    Hooks { jobs: &jobs, simulate, now_s: &|| 0.0, progress: &|_| () }
}

/// The table as CSV and JSON, the journal's bytes and the number of simulations.
fn sweep(plan: &Plan, journal: &[u8], threads: usize) -> (String, Vec<u8>, usize) {
    let count = AtomicUsize::new(0);
    let simulate = |config: &Config, jobs: &[JobSpec], watch: &mut (dyn FnMut(Progress) -> bool + Send)| {
        count.fetch_add(1, Relaxed);
        cheap(config, jobs, watch)
    };
    let read = Journal::read(journal).unwrap();
    let mut bytes = journal[..read.whole_bytes as usize].to_vec();
    let taken = run(plan, &read, threads, hooks(&simulate), &mut |line: &str| {
        bytes.extend_from_slice(line.as_bytes());
        Ok(())
    });
    let table = Table::new(plan, &taken.unwrap());
    let mut csv = Vec::new();
    write_csv(&mut csv, &table).unwrap();
    let text = String::from_utf8(csv).unwrap() + &serde_json::to_string(&table).unwrap();
    (text, bytes, count.into_inner())
}

#[test]
fn cells_have_a_fixed_order_and_no_repetitions() {
    let mut description = description(&["GS", "PB"], &["WL3"]);
    description.mpl = vec![2, 5];
    description.cs_us = vec![200.0, 100.0];
    description.quantum_ms = vec![100.0];
    let labels: Vec<String> =
        plan(&description).cells.iter().map(|cell| format!("{} {}", cell.label(), cell.config.params.seed)).collect();
    assert_eq!(
        labels[..6],
        [
            "GS WL3 load=0.7 p=4 mpl=2 s=0.2 cs=2000us q=100ms 1",
            "GS WL3 load=0.7 p=4 mpl=2 s=0.2 cs=2000us q=100ms 2",
            "PB WL3 load=0.7 p=4 mpl=2 s=0.2 cs=200us intr=50us 1",
            "PB WL3 load=0.7 p=4 mpl=2 s=0.2 cs=200us intr=50us 2",
            "PB WL3 load=0.7 p=4 mpl=2 s=0.2 cs=100us intr=50us 1",
            "PB WL3 load=0.7 p=4 mpl=2 s=0.2 cs=100us intr=50us 2",
        ]
    );
    assert_eq!(labels.len(), 12);
    let all = Description { strategies: vec!["all".into(), "GS".into()], ..description };
    assert_eq!(plan(&all).cells.len(), (4 + 14 * 2) * 2 * 2, "gangs have no cs_us, and GS is there once");
}

#[test]
fn interrupts_vary_where_processes_block() {
    let mut description = description(&["GS", "FCS", "SB"], &["WL3"]);
    (description.seeds, description.intr_us) = (Seeds::Count(1), vec![50.0, 20_000.0]);
    let labels = |base: &dyn Fn(Strategy, Option<u32>) -> Config| -> Vec<String> {
        let cells = Plan::new(&description, base).unwrap().cells;
        cells.iter().map(|cell| cell.label().split(" s=0.2 ").last().unwrap().to_owned()).collect()
    };
    let fcs = ["cs=2000us intr=50us q=200ms", "cs=2000us intr=20000us q=200ms"];
    assert_eq!(labels(&base)[..3], ["cs=2000us q=200ms", fcs[0], fcs[1]]);
    // Gangs that block instead of waiting busy.
    let blocks = |strategy, nodes| Config { gang_wait: Wait::SpinBlock, ..base(strategy, nodes) };
    assert_eq!(
        (labels(&base).len(), labels(&blocks).len(), &labels(&blocks)[..2]),
        (5, 6, &fcs.map(str::to_owned)[..])
    );
}

#[test]
fn wrong_descriptions_are_refused() {
    let good = description(&["GS"], &["WL3"]);
    let wrong: [(&str, Description); 14] = [
        ("no workloads", Description { workloads: vec![], ..good.clone() }),
        ("no strategies", Description { strategies: vec![], ..good.clone() }),
        ("no seeds", Description { seeds: Seeds::Count(0), ..good.clone() }),
        ("seeds is 9223372036854775807", Description { seeds: Seeds::Count(i64::MAX as u64), ..good.clone() }),
        ("jobs is 4294967295", Description { jobs: u32::MAX as usize, ..good.clone() }),
        ("'XB' is not a strategy", description(&["XB"], &["WL3"])),
        ("mpl is there twice", Description { mpl: vec![2, 5, 2], ..good.clone() }),
        ("workloads is there twice", description(&["GS"], &["a", "a"])),
        ("(MPL) is 0", Description { mpl: vec![0], ..good.clone() }),
        ("load is -1", Description { load: vec![-1.0], ..good.clone() }),
        ("cs_us is NaN", Description { cs_us: vec![f64::NAN], ..good.clone() }),
        ("skewness is 3", Description { skew: vec![3.0], ..good.clone() }),
        ("max_sim_s for sampled", Description { sampled: true, max_sim_s: Some(1.0), ..good.clone() }),
        ("grain is 0", Description { grain: vec![0], ..good.clone() }),
    ];
    for (part, description) in wrong {
        let error = Plan::new(&description, &base).unwrap_err().to_string();
        assert!(error.contains(part) && error.contains("hint:"), "{part}: {error}");
    }
}

#[test]
fn a_sweep_cut_at_every_byte_goes_on() {
    let one = Description { seeds: Seeds::Count(1), ..description(&["GS", "PB"], &["WL3"]) };
    let plan = plan(&one);
    let (table, whole, count) = sweep(&plan, b"", 1);
    assert_eq!(count, 2);
    let ends: Vec<usize> = (0..whole.len()).filter(|&at| whole[at] == b'\n').map(|at| at + 1).collect();
    assert_eq!(ends.len(), 2);
    for cut in 0..=whole.len() {
        let (again, journal, count) = sweep(&plan, &whole[..cut], 1);
        let kept = ends.iter().filter(|end| **end <= cut).count();
        assert_eq!(count, 2 - kept, "cut at {cut}");
        assert_eq!(again, table, "cut at {cut}");
        assert_eq!(Journal::read(&journal[..]).unwrap().results.len(), 2, "cut at {cut}");
    }
}

#[test]
fn strange_lines_are_counted_and_not_used() {
    let plan = plan(&description(&["GS"], &["WL3"]));
    let (table, whole, _) = sweep(&plan, b"", 1);
    let mut journal = b"{\"key\":\"12\"}\n\xff\xfe\n\n[]\n".to_vec();
    journal.extend_from_slice(&whole);
    let read = Journal::read(&journal[..]).unwrap();
    assert_eq!((read.strange, read.results.len(), read.whole_bytes), (3, 2, journal.len() as u64));
    let (again, _, count) = sweep(&plan, &journal, 1);
    assert_eq!((again, count), (table, 0));
}

#[test]
fn a_foreign_end_is_told() {
    let is_foreign = |bytes: &[u8]| Journal::read(bytes).unwrap().is_foreign;
    for ours in ["", "{", "{\"key\":\"00", "\n{\"k"] {
        assert!(!is_foreign(ours.as_bytes()), "{ours}");
    }
    assert!(is_foreign(b"my notes") && is_foreign(b"\0") && is_foreign(b"{\"name"));
    // Endless input is not read for ever.
    assert!(Journal::read(io::BufReader::new(io::repeat(0))).unwrap().is_foreign);
}

#[test]
fn a_changed_input_computes_only_its_cells_again() {
    let mut description = description(&["GS", "PB"], &["WL3", "WL33"]);
    description.mpl = vec![2, 5];
    let (_, journal, count) = sweep(&plan(&description), b"", 2);
    assert_eq!(count, 16);
    let changes: [(usize, Description); 7] = [
        (0, Description { mpl: vec![5, 2], ..description.clone() }),
        (8, Description { mpl: vec![2, 4], ..description.clone() }),
        (8, Description { seeds: Seeds::Count(3), ..description.clone() }),
        (8, Description { gang_cs_us: vec![1000.0], ..description.clone() }),
        (16, Description { bound_s: 1.0, ..description.clone() }),
        (16, Description { max_sim_s: Some(1.0), ..description.clone() }),
        (16, Description { sampled: true, ..description.clone() }),
    ];
    for (expected, changed) in changes {
        assert_eq!(sweep(&plan(&changed), &journal, 2).2, expected, "{changed:?}");
    }
    let read = Journal::read(&journal[..]).unwrap();
    let wider = plan(&Description { mpl: vec![2, 5, 9], ..description });
    let recalled = recall(&wider, &read, hooks(&cheap)).unwrap();
    assert_eq!(recalled.iter().filter(|taken| taken.result().is_some()).count(), 16);
}

/// The paper's engine on four nodes.
fn real(
    config: &Config,
    jobs: &[JobSpec],
    watch: &mut (dyn FnMut(Progress) -> bool + Send),
) -> Result<Simulated, SimError> {
    paper::run(&config.params, jobs, &mut crate::Silent, watch).map(Simulated::from)
}

#[test]
fn any_number_of_threads_gives_the_same_bytes() {
    let mut description = description(&["GS", "SB", "PB"], &["a", "bb"]);
    description.skew = vec![0.2, 1.5];
    let plan = plan(&description);
    let tables: Vec<String> = [1, 2, 7]
        .into_iter()
        .map(|threads| {
            let taken = run(&plan, &Journal::default(), threads, hooks(&real), &mut |_| Ok(())).unwrap();
            serde_json::to_string(&Table::new(&plan, &taken)).unwrap()
        })
        .collect();
    assert!(tables[0].len() > 10_000 && tables[0] == tables[1] && tables[0] == tables[2]);
}

#[test]
fn progress_ends_with_everything_done() {
    let plan = plan(&description(&["GS", "PB"], &["WL3"]));
    let seen = Mutex::new(Vec::new());
    let progress = |progress| seen.lock().unwrap().push(progress);
    let hooks = Hooks { progress: &progress, ..hooks(&real) };
    run(&plan, &Journal::default(), 2, hooks, &mut |_| Ok(())).unwrap();
    let seen = seen.into_inner().unwrap();
    let last = *seen.iter().max_by_key(|progress| progress.cells).unwrap();
    assert_eq!((last.cells, last.cells_all, last.resumed, last.work), (4, 4, 0, last.work_all));
    assert!(seen.iter().all(|progress| progress.work <= progress.work_all));
}

#[test]
fn rows_have_means_over_seeds_and_pairs_with_the_first_strategy() {
    let plan = plan(&description(&["GS", "PB-SB"], &["WL3"]));
    let taken = run(&plan, &Journal::default(), 1, hooks(&cheap), &mut |_| Ok(())).unwrap();
    let table = Table::new(&plan, &taken);
    let [gang, boost] = &table.rows[..] else { panic!("{} rows", table.rows.len()) };
    // Waits are 1000003·seed + 5·7919 + 2·104729 ns: a mean of 1.5 seeds.
    let wait = gang.value("mean_wait_s").unwrap();
    assert!((wait.mean - (1_500_004.5 + 39_595.0 + 209_458.0) / 1e9).abs() < 1e-15, "{wait:?}");
    assert_eq!(wait.n, 2);
    // At least t(1) = 12.7062 times half of the distance of the two.
    assert!(wait.ci95.unwrap() >= 12.706_204_736 * 500_001.5 / 1e9 - 1e-11, "{wait:?}");
    assert_eq!(gang.response_ratio, None);
    // The two strategies differ by 3 · 104729 ns for every seed, so the pairs have no spread.
    let difference = boost.response_difference_s.unwrap();
    assert!((difference.mean - 314_187e-9).abs() < 1e-12 && difference.ci95.unwrap() < 1e-12, "{difference:?}");
    assert!(boost.response_ratio.unwrap().excludes(1.0));
}

#[test]
fn one_seed_has_no_intervals() {
    let one = Description { seeds: Seeds::List(vec![7]), ..description(&["GS", "PB-SB"], &["WL3"]) };
    let plan = plan(&one);
    let taken = run(&plan, &Journal::default(), 1, hooks(&cheap), &mut |_| Ok(())).unwrap();
    let table = Table::new(&plan, &taken);
    let response = table.rows[0].value("mean_response_s").unwrap();
    assert_eq!((response.ci95, table.rows[1].response_difference_s.unwrap().ci95), (None, None));
}

#[test]
fn a_wanted_precision_takes_the_seeds_that_it_needs() {
    // Responses are about 0.15 s and differ by some milliseconds between seeds; 0.3 % takes more than the first twenty.
    let simulate = |config: &Config, jobs: &[JobSpec], watch: &mut (dyn FnMut(Progress) -> bool + Send)| {
        let params = Params { seed: config.params.seed % 7, ..config.params };
        cheap(&Config { params, ..*config }, jobs, watch)
    };
    let wanted = |part, seeds_max| Description {
        precision: Some(part),
        seeds_max,
        ..description(&["GS", "PB-SB"], &["WL3", "WL7"])
    };
    let sweep = |description: &Description| {
        let mut lines = Vec::new();
        let (plan, taken) = run_precisely(&plan(description), &Journal::default(), 2, hooks(&simulate), &mut |line| {
            lines.push(line.to_owned());
            Ok(())
        })
        .unwrap();
        (Table::new(&plan, &taken), plan, lines)
    };
    let (loose, plan_of_twenty, _) = sweep(&wanted(0.5, 200));
    assert_eq!((loose.seeds(), plan_of_twenty.cells.len()), (20, 80), "no fewer than twenty");
    let (table, larger, lines) = sweep(&wanted(0.003, 200));
    assert!(table.seeds() > 20 && table.imprecise(0.003) == 0, "{}", table.seeds());
    assert_eq!(lines.len(), larger.cells.len(), "each cell was simulated once");
    for row in &table.rows {
        let seeds: Vec<u64> = row.results.iter().map(|(seed, _)| *seed).collect();
        assert_eq!(seeds, (1..=seeds.len() as u64).collect::<Vec<u64>>(), "{}", row.cell.label());
    }
    let (bounded, ..) = sweep(&wanted(0.001, 22));
    assert_eq!((bounded.seeds(), bounded.imprecise(0.001)), (22, 4));
    let journal = Journal::read(lines.concat().as_bytes()).unwrap();
    let (recalled, taken) = recall_precisely(&plan(&wanted(0.003, 200)), &journal, hooks(&simulate)).unwrap();
    assert_eq!(Table::new(&recalled, &taken), table, "the journal has all of it");
}

#[test]
fn failed_cells_are_told_and_tried_again() {
    let mut description = description(&["GS"], &["WL3"]);
    description.mpl = vec![2, 13];
    let plan = plan(&description);
    let (text, journal, count) = sweep(&plan, b"", 1);
    assert_eq!(count, 4);
    assert!(text.contains("the simulator is wrong: 13"), "{text}");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0].split(',').count(), lines[2].split(',').count());
    assert!(lines[2].contains(",13,") && lines[2].contains(",0,0,2,0,"), "no seeds, two failed: {}", lines[2]);
    assert_eq!(sweep(&plan, &journal, 1).2, 2, "only those that failed");
}

#[test]
fn what_cannot_be_read_or_written_ends_the_sweep() {
    let missing = plan(&description(&["GS"], &["missing.csv"]));
    let error = run(&missing, &Journal::default(), 1, hooks(&cheap), &mut |_| Ok(())).unwrap_err();
    assert_eq!(error.to_string(), "no jobs for missing.csv\n  why: there is no such file");
    let full = plan(&description(&["GS"], &["WL3"]));
    let error = run(&full, &Journal::default(), 2, hooks(&real), &mut |_| Err(io::ErrorKind::StorageFull.into()));
    assert!(error.unwrap_err().to_string().starts_with("the journal cannot be written"));
}

#[test]
fn csv_is_quoted_and_complete() {
    let plan = plan(&description(&["GS"], &["my, \"jobs\".csv"]));
    let (text, ..) = sweep(&plan, b"", 1);
    let line = text.lines().nth(1).unwrap();
    assert!(line.starts_with("GS,\"my, \"\"jobs\"\".csv\",,4,5,0.2,1,2000,50,200,2,2,0,0,"), "{line}");
    assert_eq!(seconds(1_500_000_001), "1.500000001");
}

#[test]
fn a_sampled_run_has_the_mean_that_its_interval_belongs_to() {
    let job = JobSpec {
        arrival_ns: 0,
        exec_ns: 5_000_000,
        tasks: 1,
        kind: JobType::J1,
        class: cosched_core::Class::Batch,
        footprint: crate::job::Footprint::default(),
    };
    let config = base(Strategy::Gang, None);
    let mut run: Simulated = paper::run(&config.params, &[job], &mut crate::Silent, &mut |_| true).unwrap().into();
    run.sampled = Some(paper::Sampled { response_s: 42.0, response_ci95_s: Some(1.5), ..paper::Sampled::default() });
    let result = CellResult::new(&config, &[job], &run, 10.0);
    assert_eq!((result.metrics.response_s.unwrap().mean, result.sampling_ci95_s), (42.0, Some(1.5)));
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_a_journal_or_not(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300)) {
        let read = Journal::read(&bytes[..]).unwrap();
        proptest::prop_assert!(read.whole_bytes <= bytes.len() as u64 && read.results.is_empty());
    }

    #[test]
    fn a_journal_with_a_changed_byte_is_answered(place in 0..4000_usize, byte in proptest::prelude::any::<u8>()) {
        let result = CellResult::new(&base(Strategy::Gang, None), &[], &Simulated::default(), 10.0);
        let mut bytes = (line(7, "x", 1.0, &result) + &line(8, "y", 1.0, &result)).into_bytes();
        let length = bytes.len();
        bytes[place % length] = byte;
        let read = Journal::read(&bytes[..]).unwrap();
        proptest::prop_assert!(read.results.len() <= 2 && read.whole_bytes <= length as u64);
    }
}
