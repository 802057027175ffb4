//! The example of a k-way merge, with real files: virtual stages and intersecting paths.

mod common;
#[path = "../examples/merge.rs"]
mod example;

use std::path::{Path, PathBuf};

use common::bounded;
use cosched_pipeline::Failure;
use proptest::prelude::*;

fn write_run(directory: &Path, index: usize, keys: &[u64]) -> PathBuf {
    let path = directory.join(format!("run{index}"));
    std::fs::write(&path, keys.iter().flat_map(|key| key.to_le_bytes()).collect::<Vec<u8>>()).unwrap();
    path
}

fn read_keys(path: &Path) -> Vec<u64> {
    std::fs::read(path).unwrap().chunks(8).map(|record| u64::from_le_bytes(record.try_into().unwrap())).collect()
}

fn merged(runs: Vec<Vec<u64>>, buffer_bytes: usize) -> Vec<u64> {
    bounded(move || {
        let directory = tempfile::tempdir().unwrap();
        let files: Vec<PathBuf> =
            runs.iter().enumerate().map(|(index, keys)| write_run(directory.path(), index, keys)).collect();
        let out = directory.path().join("out");
        let report = example::merge(&files, &out, buffer_bytes).unwrap();
        let bytes: u64 = runs.iter().map(|run| run.len() as u64 * 8).sum();
        assert_eq!(report.stages[2].bytes, bytes);
        assert_eq!(report.memory_bytes, (2 * runs.len() as u64 + 3) * (buffer_bytes as u64 / 8 * 8));
        read_keys(&out)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn runs_of_all_lengths_are_merged(
        mut runs in prop::collection::vec(prop::collection::vec(any::<u64>(), 0..200), 1..8),
        buffer_bytes in 8..300usize,
    ) {
        runs.iter_mut().for_each(|run| run.sort_unstable());
        let mut all: Vec<u64> = runs.concat();
        all.sort_unstable();
        prop_assert_eq!(merged(runs, buffer_bytes), all);
    }
}

#[test]
fn one_thread_reads_many_runs() {
    let runs: Vec<Vec<u64>> = (0..300).map(|run| (0..100).map(|key| key * 300 + run).collect()).collect();
    assert_eq!(merged(runs, 64), (0..30_000).collect::<Vec<_>>());
}

#[test]
fn a_run_out_of_order_and_one_cut_short_are_named() {
    bounded(|| {
        let directory = tempfile::tempdir().unwrap();
        let good = write_run(directory.path(), 0, &[1, 2, 3]);
        let bad = write_run(directory.path(), 1, &[1, 5, 4]);
        let cut = directory.path().join("cut");
        std::fs::write(&cut, [0; 12]).unwrap();
        for (run, stage, text) in
            [(bad, "merge", "run1 is not sorted: 4 comes after 5"), (cut, "read", "4 bytes too many")]
        {
            let error = example::merge(&[good.clone(), run], &directory.path().join("out"), 64).unwrap_err();
            let failure = error.downcast::<Failure>().unwrap();
            assert_eq!(failure.stage.as_deref(), Some(stage));
            assert!(failure.to_string().contains(text), "{failure}");
        }
    });
}
