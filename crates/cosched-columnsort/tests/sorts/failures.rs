//! Failures: the error says what happened, nothing is left behind, the input is unchanged.

use super::*;

fn with_input(records: u64, columns: u64) -> (tempfile::TempDir, Wish, Vec<u8>) {
    let dir = tempfile::Builder::new().prefix("cst-columnsort-").tempdir().unwrap();
    let wish = wish(records, Format::default(), columns, 1);
    let input = super::records(&wish, Keys::Random, 4);
    std::fs::write(dir.path().join("input"), &input).unwrap();
    (dir, wish, input)
}

#[test]
fn an_input_that_is_not_what_the_plan_is_for() {
    let (dir, wish, input) = with_input(1_000, 3);
    let job = job(dir.path(), &wish, Engine::Direct);
    std::fs::write(dir.path().join("input"), &input[..50_000]).unwrap();
    let error = run(&job).unwrap_err();
    assert!(matches!(error, SortError::Changed { now_bytes: 50_000, planned_bytes: 100_000 }), "{error}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn the_output_is_not_the_input() {
    let (dir, wish, input) = with_input(1_000, 3);
    let same = Job { output: dir.path().join("input"), ..job(dir.path(), &wish, Engine::Direct) };
    assert!(matches!(run(&same), Err(SortError::File(_))));
    assert_eq!(std::fs::read(dir.path().join("input")).unwrap(), input);
}

#[test]
fn an_output_that_was_there_stays_until_the_end() {
    let (dir, wish, _) = with_input(1_000, 3);
    std::fs::write(dir.path().join("output"), "old").unwrap();
    let good = job(dir.path(), &wish, Engine::Direct);
    let bad = Job { input: dir.path().join("nowhere"), ..good.clone() };
    assert!(matches!(run(&bad), Err(SortError::File(_))));
    assert_eq!(std::fs::read(dir.path().join("output")).unwrap(), b"old");
    run(&good).unwrap();
    assert_eq!(std::fs::metadata(dir.path().join("output")).unwrap().len(), 100_000);
}
