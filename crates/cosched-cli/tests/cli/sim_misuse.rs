//! `cosched sim` with bad input, which must be reported with its exit code, and checks that the numbers are those of
//! the interface.

use crate::fake::{Place, text};
use serde_json::Value;
use std::fs;
use std::io::Write;

const STRATEGIES: [&str; 17] = [
    "GS",
    "Local",
    "SB",
    "SY",
    "DCS",
    "PB",
    "DCS-SB",
    "PB-SB",
    "DCS-SY",
    "PB-SY",
    "paired-gang",
    "soft-gang",
    "auto",
    "FCS",
    "COOP",
    "FCFS",
    "EASY",
];

fn file(place: &Place, name: &str, content: impl AsRef<[u8]>) -> String {
    let path = place.path(name);
    fs::write(&path, content).unwrap();
    path.to_str().unwrap().to_owned()
}

/// A job list with these lines.
fn list(place: &Place, lines: &str) -> String {
    file(place, "jobs.csv", format!("arrival_s,tasks,exec_s,type\n{lines}"))
}

/// A command that must fail: checks its exit code and its message.
fn refused(place: &Place, words: &[&str], code: i32, part: &str) {
    let output = place.output(words);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{words:?}: {message}");
    assert!(message.contains(part), "{words:?}: {message}");
    assert!(!message.contains("panicked") && output.stdout.is_empty(), "{words:?}: {message}");
}

fn json(place: &Place, words: &[&str]) -> Value {
    let output = place.output(&[words, &["--json"]].concat());
    assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn bad_job_lists_have_their_line() {
    let place = Place::new();
    let cases: [(&[u8], &str); 12] = [
        (b"", "has no jobs"),
        (b"arrival_s,tasks,exec_s,type\n", "has no jobs"),
        (b"task,s\n1,2\n", "line 1 is not the header"),
        (b"arrival_s,tasks,exec_s,type\n0,4,0.05,J1\nbla\n", "line 3 of the job list"),
        (b"arrival_s,tasks,exec_s,type\n0,0,1,J1\n", "tasks `0`"),
        (b"arrival_s,tasks,exec_s,type\n0,4,-1,J1\n", "exec_s `-1` is negative"),
        (b"arrival_s,tasks,exec_s,type\n-1,4,1,J1\n", "arrival_s `-1` is negative"),
        (b"arrival_s,tasks,exec_s,type\n0,4,nan,J1\n", "exec_s `nan`"),
        (b"arrival_s,tasks,exec_s,type\n0,4,inf,J1\n", "exec_s `inf`"),
        (b"arrival_s,tasks,exec_s,type\n99999999999,4,1,J1\n", "more than 1000000000 s"),
        (b"arrival_s,tasks,exec_s,type\n0,4,1,J7\n", "no job type 'J7'"),
        (b"\xff\xfe\x00", "a job list begins with arrival_s,tasks,exec_s,type"),
    ];
    for (content, part) in cases {
        let jobs = file(&place, "bad.csv", content);
        refused(&place, &["sim", "run", "-s", "PB", "--jobs", &jobs, "--nodes", "4"], 6, part);
        refused(&place, &["sim", "compare", "--jobs", &jobs], 6, part);
        refused(&place, &["workload", "show", &jobs], 6, part);
    }
    let large = list(&place, "0,5,1,J1\n");
    refused(&place, &["sim", "run", "-s", "PB", "--jobs", &large, "--nodes", "4"], 1, "has 5 tasks");
    let directory = place.path("").to_str().unwrap().to_owned();
    refused(&place, &["sim", "run", "-s", "PB", "--jobs", &directory], 1, "directory");
    refused(&place, &["sim", "run", "-s", "PB", "--jobs", "/nonexistent.csv"], 1, "cannot open /nonexistent.csv");
}

#[test]
fn the_content_says_what_a_file_of_jobs_is() {
    let place = Place::new();
    let jobs = "arrival_s,tasks,exec_s,type\n3.000000001,2,1,J1\n";
    let trace = "; MaxProcs: 4\n1 7 0 1 2 -1 -1 2 9 -1 1 1 1 1 1 1 -1 -1\n2 9 0 1 5 -1 -1 5 9 -1 1 1 1 1 1 1 -1 -1\n";
    let names = [("list", pack(jobs.as_bytes())), ("other", jobs.into()), ("trace.csv", pack(trace.as_bytes()))];
    let run = ["sim", "run", "-s", "Local", "--nodes", "4", "--jobs"];
    for (name, content) in &names {
        let path = file(&place, name, content);
        let found = json(&place, &[&run[..], &[&path]].concat());
        assert_eq!(found["jobs"].as_array().unwrap().len(), 1, "{name}: {found}");
        assert_eq!(found["jobs"][0]["arrival_ns"], if *name == "trace.csv" { 0_u64 } else { 3_000_000_001 });
        for words in
            [&["workload", "show"][..], &["sim", "compare", "--strategies", "Local,PB", "--nodes", "4", "--jobs"]]
        {
            let read = place.cosched(words).arg("-").stdin(fs::File::open(&path).unwrap()).output().unwrap();
            assert!(read.status.success(), "{words:?} {name}: {}", text(&read.stderr));
        }
    }
    let trace = place.path("trace.csv").to_str().unwrap().to_owned();
    let told = place.output(&[&run[..], &[&trace]].concat());
    assert_eq!(text(&told.stderr), "cosched: left out: 1 (larger than the machine)\n");
    refused(&place, &["sim", "run", "-s", "Local", "--nodes", "1", "--jobs", &trace], 6, "no job of the trace fits");
}

fn pack(content: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(content).unwrap();
    packed.finish().unwrap()
}

#[test]
fn bad_options_are_wrong_usage() {
    let place = Place::new();
    let jobs = list(&place, "0,4,0.01,J1\n");
    let cases: [(&[&str], &str); 20] = [
        (&["--mpl", "0"], "at least 1"),
        (&["--mpl", "-1"], "--mpl"),
        (&["--nodes", "0"], "at least 1"),
        (&["--nodes", "60001"], "at most 60000"),
        (&["--cs-us", "-1"], "cannot be negative"),
        (&["--intr-us", "nan"], "nan"),
        (&["--qmove-us", "inf"], "inf"),
        (&["--check-us", "1e12"], "above an hour"),
        (&["--quantum-ms", "0"], "the quantum is 0"),
        (&["--spin-us", "0"], "the spin time is 0"),
        (&["--grain", "0"], "--grain"),
        (&["--skew", "2.1"], "the skewness is 2.1"),
        (&["--skew", "nan"], "the skewness is NaN"),
        (&["--max-sim-s", "-1"], "cannot be negative"),
        (&["--sampled", "--max-sim-s", "1"], "cannot be used with"),
        (&["--sampled", "--model", "linux"], "leave --sampled out"),
        (&["--sampled", "--threads", "0"], "1..=1024"),
        (&["--threads", "2"], "--sampled"),
        (&["--engine", "fast", "--mpl", "17"], "leave --engine out"),
        (&["--bound-s", "0"], "more than 0"),
    ];
    for (words, part) in cases {
        refused(&place, &[&["sim", "run", "-s", "PB", "--jobs", &jobs], words].concat(), 2, part);
    }
    refused(&place, &["sim", "run", "-s", "XX", "--jobs", &jobs], 2, "no strategy 'XX'; there are GS, Local");
    refused(&place, &["sim", "sweep", "-w", "WL3", "--nodes", "4000000000", "--dry-run"], 2, "can be simulated");
}

#[test]
fn no_output_overwrites_another_or_the_jobs() {
    let place = Place::new();
    let jobs = list(&place, "0,4,0.01,J1\n");
    let run = ["sim", "run", "-s", "PB", "--nodes", "4", "--jobs", &jobs];
    refused(&place, &[&run[..], &["--csv", "-", "--html", "-"]].concat(), 2, "two outputs");
    let same = place.path("x").to_str().unwrap().to_owned();
    refused(&place, &[&run[..], &["--csv", &same, "--parquet", &same]].concat(), 2, "two outputs");
    refused(&place, &[&run[..], &["--csv", &jobs]].concat(), 2, "it is also an input");
    assert_eq!(fs::read_to_string(&jobs).unwrap(), "arrival_s,tasks,exec_s,type\n0,4,0.01,J1\n");
    let compare = ["sim", "compare", "-s", "GS", "--nodes", "4", "--seeds", "1", "--jobs", &jobs];
    refused(&place, &[&compare[..], &["--csv", "-", "--html", "-"]].concat(), 2, "two outputs");
}

#[test]
fn every_strategy_has_the_interface_and_both_engines_its_bytes() {
    let place = Place::new();
    let jobs = list(&place, "0.02,4,0.03,J1\n0,2,0.05,3\n0.01,3,0.02,J6\n0,1,0,J2\n");
    for strategy in STRATEGIES {
        let run = ["sim", "run", "--strategy", strategy, "--jobs", &jobs, "--nodes", "5", "--mpl", "2", "--check"];
        let result = |more: &[&str]| {
            let mut json = json(&place, &[&run[..], more].concat());
            for field in ["sim_end_ns", "events", "task_iterations", "context_switches", "messages"] {
                assert!(json[field].is_u64(), "{strategy} {field}");
            }
            for field in ["wall_s", "mean_response_s", "mean_wait_s"] {
                assert!(json[field].is_f64(), "{strategy} {field}");
            }
            assert_eq!(json["strategy"], strategy);
            let cpu = json["cpu_ns"].as_object().unwrap();
            let parts = ["compute", "spin", "switch", "interrupt", "sched", "idle"];
            let sum: u64 = parts.iter().map(|part| cpu[*part].as_u64().unwrap()).sum();
            assert_eq!((cpu.len(), sum), (6, 5 * json["sim_end_ns"].as_u64().unwrap()), "{strategy}");
            let list = json["jobs"].as_array().unwrap();
            let arrivals: Vec<u64> = list.iter().map(|job| job["arrival_ns"].as_u64().unwrap()).collect();
            assert_eq!(arrivals, [20_000_000, 0, 10_000_000, 0], "{strategy}: the file's order");
            assert!(list.iter().all(|job| job["start_ns"].is_u64() && job["finish_ns"].is_u64()), "{strategy}");
            let types: Vec<&str> = list.iter().map(|job| job["type"].as_str().unwrap()).collect();
            assert_eq!(types, ["J1", "J3", "J6", "J2"]);
            let object = json.as_object_mut().unwrap();
            assert!(object.remove("wall_s").is_some() && object.remove("events").is_some());
            json
        };
        let first = result(&[]);
        assert_eq!(first, result(&[]), "{strategy}");
        assert_eq!(first, result(&["--engine", "general"]), "{strategy}");
    }
}

#[test]
fn one_job_alone_takes_its_ideal_time() {
    let place = Place::new();
    let jobs = list(&place, "0,8,0.1,J1\n");
    let finish = |strategy: &str| {
        let words = ["sim", "run", "-s", strategy, "--jobs", &jobs, "--nodes", "8", "--skew", "0"];
        json(&place, &words)["jobs"][0]["finish_ns"].as_u64().unwrap()
    };
    let ideal = finish("FCFS");
    assert!(ideal.abs_diff(100_000_000) < 1_000_000, "{ideal}");
    for strategy in ["GS", "Local", "SB", "SY"] {
        assert_eq!(finish(strategy), ideal, "{strategy}");
    }
}

#[test]
fn utilisation_is_over_all_cpus() {
    let place = Place::new();
    let jobs = list(&place, "0,4,0.05,J1\n0,4,0.05,J1\n");
    for machine in [["4", "1"], ["2", "2"], ["1", "4"]] {
        let [nodes, cpus] = machine;
        let words = ["sim", "run", "-s", "Local", "--jobs", &jobs, "--nodes", nodes, "--cpus-per-node", cpus];
        let json = json(&place, &words);
        let all = 4.0 * json["sim_end_ns"].as_f64().unwrap();
        let compute = json["cpu_ns"]["compute"].as_f64().unwrap() / all;
        assert!((json["util_compute"].as_f64().unwrap() - compute).abs() < 1e-12, "{machine:?}");
        assert!(json["util_nominal"].as_f64().unwrap() <= 1.0, "{machine:?}: {}", json["util_nominal"]);
    }
}

#[test]
fn programs_that_cannot_be_measured_are_refused() {
    let place = Place::new();
    let cases = [
        ("", "the program is empty"),
        ("frob 1ms\n", "line 1, column 1: found 'frob'"),
        ("compute -1ms\n", "found '-1ms'"),
        ("repeat 3 {\nbarrier\n", "every { needs its }"),
        ("recv left\n", "would wait for ever"),
        ("on 9 {\ncompute 1ms\n}\n", "takes no time with 4 tasks"),
    ];
    for (program, part) in cases {
        let program = file(&place, "p.prog", program);
        refused(&place, &["sim", "program", &program, "-n", "4", "--nodes", "4"], 1, part);
    }
}

#[test]
fn costs_of_messages_that_cannot_be_are_refused() {
    let place = Place::new();
    let program = file(&place, "p.prog", "on 0 { send 2 8000B }; on 2 { recv 0 }\n");
    let torn = file(&place, "torn.toml", "name = \"x\"\ncpus_per_node = 0\n");
    let cases: [(&[&str], i32, &str); 7] = [
        (&["--machine", "/nowhere.toml"], 1, "cannot read the machine file /nowhere.toml"),
        (&["--machine", &torn], 6, "torn.toml is not a valid machine file"),
        (&["--network", "80"], 2, "two or four numbers"),
        (&["--network", "80,0.85,81,0.1"], 2, "larger than the whole"),
        (&["--network", "80,-1"], 2, "cannot be negative"),
        (&["--network", "0,0"], 2, "messages between nodes take no time"),
        (&["--memory-poll-us", "5"], 2, "also give --machine or --network"),
    ];
    for (options, code, part) in cases {
        let words =
            [&["sim", "program", &program, "-n", "4", "--nodes", "2", "--cpus-per-node", "2"], options].concat();
        refused(&place, &words, code, part);
    }
}

/// 1000 words: 80 + 850 us between nodes, of which 168 are CPU time on 4 CPUs.
#[test]
fn a_machine_file_says_what_messages_cost() {
    let place = Place::new();
    let program = file(&place, "p.prog", "on 0 { send 2 8000B }; on 2 { recv 0 }\n");
    let words =
        ["sim", "program", &program, "-n", "4", "--nodes", "2", "--copies", "1", "--strategies", "SB", "--quiet"];
    let made = |more: &[&str]| json(&place, &[&words[..], more].concat())[0].clone();
    for by in [
        &["--machine", "bunyip"][..],
        &["--network", "80,0.85,28,0.14", "--cpus-per-node", "2", "--intr-us", "0", "--qmove-us", "0"],
    ] {
        let row = made(&[by, &["--network-poll-us", "0"]].concat());
        assert_eq!(row["makespan_s"], 0.00093, "{by:?}");
        assert!((row["messages"].as_f64().unwrap() - 168.0 / 930.0 / 4.0).abs() < 1e-9, "{by:?}: {row}");
    }
    assert_eq!(made(&["--cpus-per-node", "2"])["messages"], 0.0, "the paper's messages cost no process anything");
}

#[test]
fn help_of_single_runs() {
    insta::assert_snapshot!(
        "sim_run_help",
        crate::commands::help(
            &Place::new(),
            &["sim", "sim run", "sim program", "sim phases", "sim batsim", "sim decide"]
        )
    );
}

/// The jobs would take hours: a path that cannot be written is reported before the simulation.
#[test]
fn outputs_are_tried_before_a_long_simulation() {
    let place = Place::new();
    let jobs = list(&place, "0,8,1000000,J3\n");
    for option in ["--csv", "--html", "--out"] {
        let words = ["sim", "compare", "--strategies", "PB", "--jobs", &jobs, option, "/nowhere/file"];
        refused(&place, &words, 1, "/nowhere/file");
    }
}

#[test]
fn memory_costs_what_jobs_want_of_it() {
    let place = Place::new();
    let header = "arrival_s,tasks,exec_s,type,working_set_bytes,memory_bytes_per_s\n";
    let wants = file(&place, "wants.csv", format!("{header}0,2,1,J1,1048576,7500000000\n0,2,1,J1,1048576,0\n"));
    let nothing = list(&place, "0,2,1,J1\n0,2,1,J1\n");
    let run = |jobs: &str, more: &[&str]| {
        json(
            &place,
            &[&["sim", "run", "--strategy", "GS", "--nodes", "2", "--engine", "general", "--jobs", jobs], more]
                .concat(),
        )
    };
    let end_ns = |found: &Value| found["sim_end_ns"].as_u64().unwrap() as f64;
    let memory = ["--cache", "1MiB,1GiB/s", "--socket-bandwidth", "2,2GB/s"];
    let without = end_ns(&run(&wants, &[]));
    assert_eq!(end_ns(&run(&nothing, &memory)), without, "wants of 0 cost nothing");
    assert!(end_ns(&run(&wants, &memory[..2])) > without, "each turn loads a MiB, which takes a millisecond");
    assert!(end_ns(&run(&wants, &memory[2..])) > 1.5 * without, "the first job computes at a seventh of its speed");
    let refuses = |words: &[&str], part: &str| {
        refused(&place, &[&["sim", "run", "--strategy", "GS", "--jobs", &wants], words].concat(), 2, part);
    };
    refuses(&["--cache", "1MiB"], "has no comma");
    refuses(&["--cache", "1MiB,8GB"], "is not a bandwidth, as 20GB/s");
    refuses(&["--cache", "1MiB,1KB/s"], "surely a wrong unit");
    refuses(&["--socket-bandwidth", "0,8GB/s"], "no machine has that");
    refuses(&["--engine", "fast", "--cache", "1MiB,8GB/s"], "the fast engine cannot simulate GS");
}
