//! The results of `cosched sim`: files of a run, comparisons, sweeps that are killed, and failures.

use crate::fake::{Place, bounded, text, until};
use serde_json::Value;
use std::fs;
use std::process::Stdio;

/// Twenty-four small jobs in a file.
pub(crate) fn jobs(place: &Place) -> String {
    let mut list = "arrival_s,tasks,exec_s,type\n".to_owned();
    for k in 0..24 {
        let exec_ms = 20 + 7 * (k % 5);
        list += &format!("0.{:03},{},0.0{exec_ms},J{}\n", k * 12, [4, 2, 3, 1][k % 4], k % 6 + 1);
    }
    let path = place.path("jobs.csv");
    fs::write(&path, list).unwrap();
    path.to_str().unwrap().to_owned()
}

fn path(place: &Place, name: &str) -> String {
    place.path(name).to_str().unwrap().to_owned()
}

const MACHINE: [&str; 4] = ["--nodes", "4", "--mpl", "3"];

#[test]
fn a_run_has_the_fields_that_comparisons_use() {
    let place = Place::new();
    let jobs = jobs(&place);
    let output = place.output(&[&["sim", "run", "--strategy", "PB", "--jobs", &jobs, "--json"][..], &MACHINE].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    for field in ["sim_end_ns", "events", "task_iterations", "wall_s", "context_switches", "messages"] {
        assert!(json[field].is_number(), "{field}");
    }
    assert_eq!(json["strategy"], "PB");
    let cpu = json["cpu_ns"].as_object().unwrap();
    let sum: u64 =
        ["compute", "spin", "switch", "interrupt", "sched", "idle"].map(|k| cpu[k].as_u64().unwrap()).iter().sum();
    assert_eq!((cpu.len(), sum), (6, 4 * json["sim_end_ns"].as_u64().unwrap()));
    let list = json["jobs"].as_array().unwrap();
    let mut keys: Vec<&String> = list[0].as_object().unwrap().keys().collect();
    keys.sort();
    assert_eq!(keys, ["arrival_ns", "finish_ns", "id", "start_ns", "tasks", "type"]);
    assert!(list.iter().enumerate().all(|(id, job)| job["id"] == id as u64 && job["finish_ns"].is_u64()));
    let responses =
        list.iter().map(|job| (job["finish_ns"].as_u64().unwrap() - job["arrival_ns"].as_u64().unwrap()) as f64);
    let mean_s = responses.sum::<f64>() / 24.0 / 1e9;
    assert!((json["mean_response_s"].as_f64().unwrap() - mean_s).abs() < 1e-12);
    assert!((json["metrics"]["response_s"]["mean"].as_f64().unwrap() - mean_s).abs() < 1e-12);
}

#[test]
fn jobs_that_did_not_end_are_null_and_told() {
    let place = Place::new();
    let jobs = jobs(&place);
    let words = [&["sim", "run", "--strategy", "GS", "--jobs", &jobs, "--max-sim-s", "0.1"][..], &MACHINE].concat();
    let json: Value = serde_json::from_slice(&place.output(&[&words[..], &["--json"]].concat()).stdout).unwrap();
    let list = json["jobs"].as_array().unwrap();
    assert!(list[0]["finish_ns"].is_u64() && list[23]["start_ns"].is_null() && list[23]["finish_ns"].is_null());
    let output = place.output(&words);
    assert!(text(&output.stdout).contains(" of 24 jobs ended (means are over those)"), "{}", text(&output.stdout));
}

#[test]
fn a_run_writes_all_its_files() {
    let place = Place::new();
    let jobs = jobs(&place);
    let names = ["csv", "batsim", "parquet", "html", "trace", "trace-text"];
    let files: Vec<(String, String)> = names.iter().map(|name| (format!("--{name}"), path(&place, name))).collect();
    let mut words =
        [&["sim", "run", "--strategy", "SB", "--jobs", &jobs, "--trace-from", "50ms"][..], &MACHINE].concat();
    words.extend(files.iter().flat_map(|(option, file)| [option.as_str(), file.as_str()]));
    let output = place.output(&words);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let read = |name: &str| fs::read(place.path(name)).unwrap();
    assert_eq!(text(&read("csv")).lines().count(), 25);
    assert_eq!(text(&read("batsim")).lines().count(), 25);
    assert!(read("parquet").starts_with(b"PAR1") && read("parquet").ends_with(b"PAR1"));
    assert!(text(&read("html")).ends_with("</html>\n"));
    let trace: Value = serde_json::from_slice(&read("trace")).unwrap();
    let first =
        trace["traceEvents"].as_array().unwrap().iter().filter_map(|e| e["ts"].as_f64()).fold(f64::MAX, f64::min);
    assert_eq!(first, 50_000.0, "the window begins at 50 ms");
    assert!(text(&read("trace-text")).lines().count() > 100);
    // A file on standard output must be the only one there.
    let words = [&["sim", "run", "--strategy", "SB", "--jobs", &jobs, "--csv", "-"][..], &MACHINE].concat();
    assert_eq!(place.output(&words).stdout, read("csv"));
}

#[test]
fn what_cannot_be_written_is_told_with_a_code() {
    let place = Place::new();
    let jobs = jobs(&place);
    let run = [&["sim", "run", "--strategy", "PB", "--jobs", &jobs][..], &MACHINE].concat();
    for option in ["--csv", "--batsim", "--parquet", "--html", "--trace", "--trace-text"] {
        for (file, why) in [("/dev/full", "No space left on device"), ("/nonexistent/file", "No such file")] {
            let output = place.output(&[&run[..], &[option, file]].concat());
            assert_eq!(output.status.code(), Some(1), "{option} {file}");
            let message = text(&output.stderr);
            assert!(message.contains(file) && message.contains(why) && message.contains("hint:"), "{message}");
            assert!(output.stdout.is_empty(), "{option} {file}");
        }
    }
    let compare = ["sim", "compare", "-s", "GS", "--jobs", &jobs, "--nodes", "4", "--seeds", "1"];
    for option in ["--csv", "--html", "--out", "--journal"] {
        let output = place.output(&[&compare[..], &[option, "/dev/full"]].concat());
        assert_eq!(output.status.code(), Some(1), "{option}: {}", text(&output.stderr));
    }
}

#[test]
fn bad_sweeps_are_refused() {
    let place = Place::new();
    let jobs = jobs(&place);
    let cases: [(&[&str], i32, &str); 11] = [
        (&["compare", "-s", "GS,XB", "--jobs", &jobs], 2, "'XB' is not a strategy"),
        (&["compare", "-s", "GS", "--jobs", "/nonexistent.csv"], 1, "cannot open /nonexistent.csv"),
        (&["compare", "-s", "GS", "--jobs", &jobs, "--mpl", "0"], 2, "at least 1"),
        (&["compare", "-s", "GS", "--jobs", &jobs, "--nodes", "2"], 1, "has 4 tasks"),
        (
            &["compare", "-s", "GS", "--jobs", &jobs, "--seed", "18446744073709551615", "--seeds", "3"],
            2,
            "no 3 seeds from",
        ),
        (&["compare", "-s", "GS", "--jobs", &jobs, "--precision", "0%"], 2, "as 5%"),
        (&["compare", "-s", "GS", "--jobs", &jobs, "--seeds-max", "50"], 2, "--precision"),
        (&["sweep", "-w", "WL3", "--cpus-per-node", "0"], 2, "0 is not in 1..=1024"),
        (&["sweep", "/nonexistent.toml"], 1, "cannot read /nonexistent.toml"),
        (&["sweep", "-w", "WL3", "--mpl", "0"], 2, "(MPL) is 0"),
        (&["sweep", "-w", "WL3", "--cs-us=-1"], 2, "cs_us is -1"),
    ];
    for (words, code, part) in cases {
        let output = place.output(&[&["sim"], words].concat());
        assert_eq!(output.status.code(), Some(code), "{words:?}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains(part), "{words:?}: {}", text(&output.stderr));
    }
}

#[test]
fn a_killed_sweep_goes_on() {
    let place = Place::new();
    let description = path(&place, "d.toml");
    fs::write(
        &description,
        "strategies = [\"GS\", \"SB\", \"PB\"]\nworkloads = [\"WL3\", \"WL7\"]\nload = [0.5, 0.8]\nseeds = 3\njobs = 30\n\
         mean_exec_s = 0.4\nnodes = [8]\n",
    )
    .unwrap();
    let journal = place.path("d.cells.jsonl");
    let lines = || fs::read(&journal).map_or(0, |bytes| bytes.iter().filter(|byte| **byte == b'\n').count());
    let words = ["sim", "sweep", &description, "--threads", "1"];
    let mut child = place.cosched(&words).stdout(Stdio::null()).spawn().unwrap();
    until("some cells are done", || lines() >= 3);
    child.kill().unwrap();
    child.wait().unwrap();
    let kept = lines();
    assert!(kept < 36, "it was killed before its end");
    let list = place.output(&["sim", "sweep", &description, "--dry-run"]);
    assert!(text(&list.stdout).ends_with(&format!("36 cells, {kept} of them in {}\n", journal.display())));
    let (first, second) = (path(&place, "1.csv"), path(&place, "2.csv"));
    let resumed = place.output(&["sim", "sweep", &description, "--csv", &first, "--threads", "2"]);
    assert!(resumed.status.success(), "{}", text(&resumed.stderr));
    assert_eq!(lines(), 36);
    let html = path(&place, "r.html");
    assert!(place.output(&["sim", "report", &description, "--html", &html]).status.success());
    assert!(fs::read_to_string(&html).unwrap().contains("Response against utilisation"));
    fs::remove_file(&journal).unwrap();
    let whole = place.output(&["sim", "sweep", &description, "--csv", &second, "--threads", "3"]);
    assert_eq!(text(&resumed.stdout), text(&whole.stdout));
    assert_eq!(fs::read(&first).unwrap(), fs::read(&second).unwrap());
}

#[test]
fn tables_of_comparisons() {
    let place = Place::new();
    let jobs = jobs(&place);
    let words = [&["sim", "compare", "-s", "GS,SB,PB", "--jobs", &jobs, "--seeds", "2"][..], &MACHINE].concat();
    let output = place.output(&words);
    assert!(output.status.success(), "{}", text(&output.stderr));
    insta::assert_snapshot!("compare", text(&output.stdout));
    let json = place.output(&[&words[..], &["--json"]].concat());
    let rows: Vec<Value> = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(rows.iter().map(|row| row["strategy"].as_str().unwrap()).collect::<Vec<_>>(), ["GS", "SB", "PB"]);
    assert!(rows[0]["response_ratio"].is_null() && rows[1]["response_ratio"].is_number());
    // The number of threads and the terminal make no difference.
    assert_eq!(place.output(&[&words[..], &["--threads", "1"]].concat()).stdout, output.stdout);
}

#[test]
fn comparisons_take_every_option_of_a_run() {
    let place = Place::new();
    let jobs = jobs(&place);
    let responses = |words: &[&str], more: &[&str]| -> Vec<f64> {
        let output = place.output(&[&["--json", "sim"], words, &MACHINE, more].concat());
        assert!(output.status.success(), "{more:?}: {}", text(&output.stderr));
        let rows: Value = serde_json::from_slice(&output.stdout).unwrap();
        rows.as_array()
            .map_or(std::slice::from_ref(&rows), Vec::as_slice)
            .iter()
            .map(|row| row.pointer("/metrics/response_s/mean").unwrap_or(&row["mean_response_s"]).as_f64().unwrap())
            .collect()
    };
    let cases: [&[&str]; 6] = [
        &["--finer", "tick-in-switch,boost-time-last"],
        &["--model", "linux", "--slice-ms", "1"],
        &["--cpus-per-node", "2"],
        &["--pb-lag", "1"],
        &["--cd-scale", "3"],
        &["--check-us", "20"],
    ];
    let plain = responses(&["run", "-s", "PB-SY", "--jobs", &jobs], &[]);
    for more in cases {
        let one = responses(&["run", "-s", "PB-SY", "--jobs", &jobs], more);
        assert_ne!(one, plain, "{more:?} changes something");
        let compared = responses(&["compare", "-s", "PB-SY", "--jobs", &jobs, "--seeds", "1"], more);
        let swept =
            responses(&["sweep", "-s", "PB-SY", "-w", &jobs, "--seeds", "1", "--journal", &path(&place, "j")], more);
        assert_eq!((&one, &one), (&compared, &swept), "{more:?}");
    }
}

#[test]
fn runs_are_as_many_as_a_precision_needs() {
    let place = Place::new();
    let compare =
        ["sim", "compare", "-s", "GS,SB", "--jobs", "WL3", "--count", "6", "--mean-exec-s", "0.1", "--nodes", "4"];
    let output = place.output(&[&["--json"], &compare[..], &["--precision", "30%"]].concat());
    let rows: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let number = |row: &Value, name: &str| row[name].as_f64().unwrap();
    for row in &rows {
        assert!(number(row, "mean_response_s_ci95") <= 0.3 * number(row, "mean_response_s"), "{row}");
        assert!(
            number(row, "seeds") >= 20.0 && row["seeds"] == row["job_lists"],
            "each seed has a list of its own: {row}"
        );
    }
    let output = place.output(&[&compare[..], &["--precision", "0.5%", "--seeds-max", "21"]].concat());
    assert!(
        text(&output.stderr).contains("2 of 2 mean response times are less precise than 0.5%"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn it_is_said_what_intervals_are_not() {
    let place = Place::new();
    let jobs = jobs(&place);
    let told = |more: &[&str]| {
        let output = place.output(&[&["sim", "compare", "-s", "GS,SB", "--jobs", &jobs][..], &MACHINE, more].concat());
        text(&output.stdout).to_owned()
    };
    let one = told(&["--seeds", "1"]);
    assert!(
        one.contains("There are no intervals") && one.contains("hint: several seeds") && !one.contains('±'),
        "{one}"
    );
    let several = told(&["--seeds", "12"]);
    assert!(several.contains("is one list of jobs for all seeds") && several.contains("over 12 seeds"), "{several}");
}

#[test]
fn an_estimate_says_that_it_is_one() {
    let place = Place::new();
    let long = path(&place, "long.csv");
    fs::write(&long, "arrival_s,tasks,exec_s,type\n0,4,60,J3\n1,2,50,J1\n").unwrap();
    let words = ["sim", "run", "-s", "GS", "--nodes", "4", "--sampled", "--jobs", &long];
    let output = place.output(&words);
    let page = text(&output.stdout);
    assert!(page.contains("ESTIMATE by sampling: mean response") && page.contains("from 8 copies"), "{page}");
    let json = place.output(&[&["--json"], &words[..], &["--threads", "3"]].concat());
    let sampled = serde_json::from_slice::<Value>(&json.stdout).unwrap()["sampled"].clone();
    assert!(sampled["jumps"].as_u64() > Some(0) && sampled["mean_response_ci95_s"].is_number(), "{sampled}");
}

#[test]
fn help_of_results() {
    let place = Place::new();
    let mut all = String::new();
    for name in ["compare", "sweep", "report"] {
        let output = bounded(place.cosched(&["sim", name, "--help"]).stdout(Stdio::piped()));
        assert!(output.status.success());
        all += &format!("$ cosched sim {name} --help\n{}\n", text(&output.stdout));
    }
    insta::assert_snapshot!("sim_results_help", all);
}
