//! The program's user interface: commands, messages, exit codes, signals, full disks, little memory, several processes.

mod harness;
mod limits;
mod processes;
mod refusals;
mod stops;

use harness::{Place, done};
use std::process::Command;

#[test]
fn generate_sort_check() {
    for keys in ["random", "sorted", "reversed", "few"] {
        let place = Place::new();
        let made = place.json(&["generate", "in", "--records", "20001", "--keys", keys]);
        let sorted = place.json(&["sort", "in", "-o", "out", "--memory", "1M"]);
        assert_eq!((sorted["records"].as_u64(), sorted["plan"]["passes"].as_array().unwrap().len()), (Some(20001), 3));
        assert_eq!(sorted["moved_bytes"], 2 * 3 * 2_000_100);
        assert!(sorted["actions"].as_array().unwrap().is_empty());
        let checked = place.json(&["check", "out", "--against", "in"]);
        assert_eq!(checked["in_order"], true);
        assert_eq!(checked["same"], true);
        assert_eq!(checked["checksum"], made["checksum"]);
        let duplicates = checked["duplicates"].as_u64().unwrap();
        assert_eq!(duplicates, if keys == "few" { 20001 - 16 } else { 0 });
        assert_eq!(place.names(), ["in", "out"]);
    }
}

#[test]
fn lines_come_out_as_from_gnu_sort() {
    let place = Place::new();
    place.json(&["generate", "in", "--records", "5000", "--lines", "--record-size", "16", "--key-size", "3"]);
    // With the whole line as the key there is only one correct result.
    place.json(&[
        "sort",
        "in",
        "-o",
        "out",
        "--record-size",
        "16",
        "--key-size",
        "16",
        "--columns",
        "7",
        "--passes",
        "4",
    ]);
    let gnu = Command::new("sort").arg(place.path("in")).env("LC_ALL", "C").output().unwrap();
    assert_eq!(std::fs::read(place.path("out")).unwrap(), gnu.stdout);
}

#[test]
fn what_is_written_beside_the_output() {
    let place = Place::new();
    place.json(&["generate", "in", "--records", "3000"]);
    place.json(&[
        "sort",
        "in",
        "-o",
        "out",
        "--columns",
        "4",
        "--report",
        "report",
        "--trace",
        "trace",
        "--priorities",
        "nice-down-io",
    ]);
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(place.path("report")).unwrap()).unwrap();
    let stages = |pass: usize| -> Vec<_> {
        report["passes"][pass]["stages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|s| s["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(stages(0), ["read", "sort", "permute", "write"]);
    assert_eq!(stages(2), ["read", "sort", "merge", "write"]);
    let trace: serde_json::Value = serde_json::from_slice(&std::fs::read(place.path("trace")).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    for pass in 1..=3 {
        assert!(events.iter().any(|event| event["pid"] == pass && event["ph"] == "X"), "rounds of pass {pass}");
    }
}

#[test]
fn plans_and_shapes_in_words() {
    let place = Place::new();
    let plan = done(place.run(&["plan", "--records", "80000000", "--memory", "1G"]));
    assert!(plan.contains("87 columns, 3 passes (steps 1-2, steps 3-4, steps 5-8)"), "{plan}");
    assert!(plan.contains("to move  48.0 GB"), "{plan}");
    let single = done(place.run(&["plan", "--records", "1000", "--memory", "64M"]));
    assert!(single.contains("1 columns, 1 pass\n"), "{single}");
    let shape = done(place.run(&["shape", "--records", "20", "--rows", "9", "--columns", "3"]));
    assert_eq!(shape, "9 rows x 3 columns sort 20 records and up to 27\n");
    let json = place.json(&["plan", "--records", "80000000", "--memory", "1G", "--processes", "3"]);
    assert_eq!(json["shape"]["columns"].as_u64().unwrap() % 3, 0);
}

#[test]
fn help_has_examples_and_exit_codes() {
    let place = Place::new();
    for command in ["sort", "plan", "shape", "generate", "check", "rate"] {
        let help = done(place.run(&[command, "--help"]));
        assert!(help.contains("Examples:") && help.contains("Exit codes:"), "{command}");
    }
    assert!(done(place.run(&["--help"])).contains("mpirun"));
}

#[test]
fn no_records_and_one() {
    for records in ["0", "1"] {
        let place = Place::new();
        place.json(&["generate", "in", "--records", records]);
        for (passes, columns) in [("3", "1"), ("3", "3"), ("4", "3")] {
            place.json(&["sort", "in", "-o", "out", "--force", "--columns", columns, "--passes", passes]);
            assert_eq!(place.json(&["check", "out", "--against", "in"])["same"], true);
        }
    }
}

#[test]
fn the_rate_is_of_the_bytes_that_are_there() {
    let place = Place::new();
    for records in ["0", "100000"] {
        place.json(&["generate", "in", "--records", records, "--force"]);
        let rate = place.json(&["rate", "in"]);
        assert_eq!(rate["bytes"], records.parse::<u64>().unwrap() * 100);
        assert_eq!(rate["moved_bytes_per_s"].as_f64().unwrap() > 0.0, records != "0");
    }
    assert_eq!(place.names(), ["in"]);
}

#[test]
fn man_pages_and_completions() {
    let place = Place::new();
    done(place.run(&["man", "--dir", "man"]));
    let pages = std::fs::read_dir(place.path("man")).unwrap().count();
    assert!(pages >= 7, "{pages}");
    assert!(done(place.run(&["completions", "bash"])).contains("--key-offset"));
}
