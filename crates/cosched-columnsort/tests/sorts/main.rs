//! Sorts of every shape, on real files: compared with the standard library's sort, with each engine, with one process
//! and several.

mod failures;
mod peers;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cosched_columnsort::format::Format;
use cosched_columnsort::generate::{Generator, Keys};
use cosched_columnsort::peers::Peers;
use cosched_columnsort::plan::{Plan, Wish};
use cosched_columnsort::run::{Job, Outcome, SortError};
use cosched_columnsort::sort::Version;
use cosched_pipeline::file::{Engine, IoOptions};
use cosched_pipeline::{Kind, Options};
use proptest::prelude::*;

/// A time limit, so that a hang is a failure and not a suite that never ends.
fn within_20_s<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (send, receive) = std::sync::mpsc::channel();
    std::thread::spawn(move || send.send(work()));
    match receive.recv_timeout(Duration::from_secs(20)) {
        Ok(result) => result,
        Err(error) => panic!("no end within 20 s, or a panic: {error}"),
    }
}

fn wish(records: u64, format: Format, columns: u64, processes: u64) -> Wish {
    Wish {
        records,
        format,
        version: Version::Io,
        joined: true,
        processes,
        sorters: 1,
        sorters_max: 1,
        threads: 1,
        memory_bytes: 1 << 30,
        buffers: None,
        block_bytes: None,
        rows: None,
        columns: Some(columns),
    }
}

fn job(dir: &Path, wish: &Wish, engine: Engine) -> Job {
    Job {
        input: dir.join("input"),
        output: dir.join("output"),
        temp: None,
        plan: Plan::new(wish).unwrap(),
        io: IoOptions { engine: Some(engine), ..IoOptions::default() },
        kind: Kind::Worker,
        sync: false,
        options: Options::default(),
    }
}

/// Runs a job on all its processes.
fn run(job: &Job) -> Result<Outcome, SortError> {
    run_apart(job, false)
}

/// The same, optionally as if on several machines: then the output needs a name that all can open.
fn run_apart(job: &Job, apart: bool) -> Result<Outcome, SortError> {
    let job = job.clone();
    within_20_s(move || {
        let progress = Arc::new(AtomicU64::new(0));
        if job.plan.shape.processes == 1 {
            let outcome = job.run(None, progress.clone(), |_| {});
            if outcome.is_ok() {
                // Blocks may be rounded up to whole pages, but nothing is left out.
                assert!(progress.load(Ordering::Relaxed) >= job.plan.moved_bytes / 2);
            }
            return outcome;
        }
        let threads: Vec<_> = peers::Threads::all(job.plan.shape.processes as usize, apart)
            .into_iter()
            .map(|peers| {
                let (job, progress) = (job.clone(), progress.clone());
                std::thread::spawn(move || {
                    let named = |path: &Path| assert!(apart && path.exists(), "on one machine no name is needed");
                    let outcome = job.run(Some(peers.clone() as Arc<dyn Peers>), progress, named);
                    // As in the program: the output is read only after all processes have written.
                    peers.barrier().unwrap();
                    outcome
                })
            })
            .collect();
        let mut outcomes: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        outcomes.remove(0)
    })
}

fn records(wish: &Wish, keys: Keys, seed: u64) -> Vec<u8> {
    let generator = Generator { format: wish.format, keys, lines: false, seed, records: wish.records };
    let mut bytes = vec![0; wish.records as usize * wish.format.record_bytes];
    for (i, record) in bytes.chunks_mut(wish.format.record_bytes).enumerate() {
        generator.fill(i as u64, record);
    }
    bytes
}

/// Sorts a file and compares with the standard library; afterwards there are only the input and the output.
fn check(wish: &Wish, engine: Engine, keys: Keys, seed: u64) {
    let dir = tempfile::Builder::new().prefix("cst-columnsort-").tempdir().unwrap();
    let input = records(wish, keys, seed);
    std::fs::write(dir.path().join("input"), &input).unwrap();
    run(&job(dir.path(), wish, engine)).unwrap();
    let output = std::fs::read(dir.path().join("output")).unwrap();
    assert_same_sorted(wish.format, &input, &output);
    assert_eq!(std::fs::read(dir.path().join("input")).unwrap(), input);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
}

/// Asserts that the output is in order, and that it has the input's records.
fn assert_same_sorted(format: Format, input: &[u8], output: &[u8]) {
    let split = |bytes: &[u8]| bytes.chunks(format.record_bytes).map(<[u8]>::to_vec).collect::<Vec<_>>();
    let (mut expected, mut found) = (split(input), split(output));
    assert!(found.windows(2).all(|two| format.key(&two[0]) <= format.key(&two[1])), "out of order");
    expected.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, expected);
}

const ALL_KEYS: [Keys; 4] = [Keys::Random, Keys::Sorted, Keys::Reversed, Keys::Few];

#[test]
fn every_number_of_columns_and_records() {
    let format = Format::new(10, 2, 3).unwrap();
    for columns in 1..=6 {
        for records in [0, 1, 2, 3, 7, 17, 50, 51, 100, 251] {
            for joined in [true, false] {
                let wish = Wish { joined, ..wish(records, format, columns, 1) };
                check(&wish, Engine::Buffered, ALL_KEYS[(columns + records) as usize % 4], columns * 1000 + records);
            }
        }
    }
}

#[test]
fn every_number_of_processes() {
    let format = Format::new(10, 0, 10).unwrap();
    for processes in 2..=4 {
        for each in 1..=2 {
            for records in [0, 1, 5, 60, 119, 500] {
                for joined in [true, false] {
                    let wish = Wish { joined, ..wish(records, format, processes * each, processes) };
                    check(&wish, Engine::Buffered, ALL_KEYS[records as usize % 4], records);
                }
            }
        }
    }
}

#[test]
fn each_engine_and_several_blocks_in_each_piece() {
    let format = Format::default();
    for engine in Engine::ALL {
        for (processes, block_bytes) in [(1, 4096), (1, 12_288), (2, 8192), (2, 65_536)] {
            for joined in [true, false] {
                let wish = Wish { block_bytes: Some(block_bytes), joined, ..wish(20_011, format, 4, processes) };
                check(&wish, engine, Keys::Random, 5);
            }
        }
    }
}

#[test]
fn both_versions_with_several_sorters_on_workers_and_threads() {
    let dir = tempfile::Builder::new().prefix("cst-columnsort-").tempdir().unwrap();
    for version in [Version::Io, Version::Compute] {
        for sorters in [1, 3] {
            for (columns, kind) in [(1, Kind::Worker), (5, Kind::Worker), (5, Kind::Thread)] {
                let wish = Wish {
                    version,
                    sorters,
                    sorters_max: sorters + 1,
                    threads: sorters,
                    ..wish(9_000, Format::default(), columns, 1)
                };
                let input = records(&wish, Keys::Few, 3);
                std::fs::write(dir.path().join("input"), &input).unwrap();
                let outcome = run(&Job { kind, ..job(dir.path(), &wish, Engine::Direct) }).unwrap();
                assert_same_sorted(wish.format, &input, &std::fs::read(dir.path().join("output")).unwrap());
                assert_eq!(outcome.passes.len(), if columns == 1 { 1 } else { 3 });
                let sorts = outcome
                    .passes
                    .iter()
                    .map(|pass| pass.stages.iter().find(|stage| stage.name == "sort").unwrap().rounds);
                assert!(sorts.into_iter().all(|rounds| rounds == columns));
            }
        }
    }
}

#[test]
fn several_machines_share_the_output_by_its_name() {
    let dir = tempfile::Builder::new().prefix("cst-columnsort-").tempdir().unwrap();
    let wish = wish(5_000, Format::default(), 6, 3);
    let input = records(&wish, Keys::Random, 9);
    std::fs::write(dir.path().join("input"), &input).unwrap();
    run_apart(&job(dir.path(), &wish, Engine::Direct), true).unwrap();
    assert_same_sorted(wish.format, &input, &std::fs::read(dir.path().join("output")).unwrap());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
}

#[test]
fn a_temporary_directory_of_its_own() {
    let dir = tempfile::Builder::new().prefix("cst-columnsort-").tempdir().unwrap();
    let temp = tempfile::Builder::new().prefix("cst-columnsort-").tempdir().unwrap();
    let wish = wish(5_000, Format::default(), 3, 1);
    let input = records(&wish, Keys::Random, 9);
    std::fs::write(dir.path().join("input"), &input).unwrap();
    run(&Job { temp: Some(temp.path().into()), sync: true, ..job(dir.path(), &wish, Engine::Uring) }).unwrap();
    assert_same_sorted(wish.format, &input, &std::fs::read(dir.path().join("output")).unwrap());
    assert_eq!(std::fs::read_dir(temp.path()).unwrap().count(), 0);
}

#[test]
fn the_least_number_of_buffers_is_enough() {
    for columns in [2, 5] {
        let wish = Wish { buffers: Some(2), sorters: 2, sorters_max: 2, ..wish(4_000, Format::default(), columns, 1) };
        check(&wish, Engine::Uring, Keys::Random, 1);
        let several = Wish { processes: columns, ..wish };
        check(&several, Engine::Direct, Keys::Random, 1);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Any record size, key, number of records, matrix and number of processes.
    #[test]
    fn any_sort(record_bytes in 1usize..300, key in 0usize..299, key_bytes in 1usize..30, records in 0u64..2_000, each in 1u64..5,
                processes in 1u64..4, joined: bool, compute: bool, which in 0usize..4, engine in 0usize..3, seed: u64) {
        let key = key % record_bytes;
        let format = Format::new(record_bytes, key, key_bytes.min(record_bytes - key)).unwrap();
        let version = if compute { Version::Compute } else { Version::Io };
        let wish = Wish { version, joined, sorters: 1 + (seed % 2) as usize, sorters_max: 2, ..wish(records, format, each * processes, processes) };
        check(&wish, Engine::ALL[engine], ALL_KEYS[which], seed);
    }
}
