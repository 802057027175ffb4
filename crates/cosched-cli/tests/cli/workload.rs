//! `cosched workload` and `cosched sim backfill`, as users run them: no daemon is needed.

use crate::fake::{Place, text};
use serde_json::Value;
use std::process::{Output, Stdio};

const LOG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../cosched-sim/testdata/swf/synthetic.swf");
const VALUES: &str = include_str!("../../../cosched-sim/testdata/swf/synthetic.json");

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn help_texts_of_workloads() {
    let names = ["", " show", " fit", " generate", " convert"].map(|name| format!("workload{name}"));
    let names: Vec<&str> = names.iter().map(String::as_str).chain(["sim backfill"]).collect();
    insta::assert_snapshot!("help", crate::commands::help(&Place::new(), &names));
}

#[test]
fn show_has_the_statistics_under_their_names() {
    let place = Place::new();
    let output = place.output(&["workload", "show", "--json", LOG]);
    let found = json(&output);
    let values: Value = serde_json::from_str(VALUES).unwrap();
    for (name, value) in values.as_object().unwrap() {
        match value.as_f64() {
            Some(value) => {
                let found = found[name].as_f64().unwrap_or_else(|| panic!("no {name}"));
                assert!((found - value).abs() <= 1e-9 * value.abs(), "{name}: {found}, not {value}");
            }
            None => assert!(name == "simulated" || !found[name].is_null(), "{name}"),
        }
    }
    assert_eq!(found["sha256"].as_str().unwrap().len(), 64);
    assert_eq!(found["malformed_lines"][0]["line"], 113);
    let messages = text(&output.stderr);
    assert!(messages.contains("skipped line 113: column 1 `this` is not a number, in `this is no job`"), "{messages}");
    assert!(messages.contains("1 records have more than 18 columns (first: line 43)"), "{messages}");
}

#[test]
fn show_is_for_people_and_for_pages() {
    let place = Place::new();
    let page = place.path("page.html");
    let output = place.output(&["workload", "show", "--html", page.to_str().unwrap(), LOG]);
    let shown = text(&output.stdout);
    for part in ["records      400 (387 usable, 2 lines skipped)", "Arrivals by hour", "33-64", "KS"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let page = std::fs::read_to_string(page).unwrap();
    assert_eq!(page.matches("\"chart\":{").count(), 4);
    assert!(page.contains("maximum likelihood (EM), KS"));
}

#[test]
fn backfill_prints_what_comparisons_need() {
    let place = Place::new();
    let csv = place.path("jobs.csv");
    let values: Value = serde_json::from_str(VALUES).unwrap();
    for policy in ["fcfs", "easy", "easy-sjbf"] {
        let words = ["sim", "backfill", "--trace", LOG, "--policy", policy, "--json"];
        let output = place.output(&[&words[..], &["--jobs-csv", csv.to_str().unwrap()]].concat());
        let found = json(&output);
        for (name, key) in [("jobs_used", "n"), ("mean_flow_s", "flow"), ("avebsld", "bsld"), ("max_bsld", "maxb")] {
            let (found, value) = (found[name].as_f64().unwrap(), values["simulated"][policy][key].as_f64().unwrap());
            assert!((found / value - 1.0).abs() < 1e-9, "{policy} {name}: {found}, not {value}");
        }
        assert_eq!((&found["dropped"]["malformed"], &found["dropped"]["larger_than_machine"]), (&2.into(), &1.into()));
        assert!(found["utilization"].as_f64().unwrap() > 0.0 && found["event_order"] == "all");
        let rows = std::fs::read_to_string(&csv).unwrap();
        assert_eq!(rows.lines().count() as u64, found["jobs_used"].as_u64().unwrap() + 1);
        assert!(rows.starts_with("job_id,workload_name,profile,") && rows.contains(",synthetic,"));
    }
    let output = place.output(&["sim", "backfill", "--trace", LOG, "--policy", "easy", "--event-order", "one"]);
    assert!(text(&output.stdout).contains("a pass after every event"));
    assert!(text(&output.stderr).contains("left out: 2 (lines that are no jobs)"), "{}", text(&output.stderr));
}

#[test]
fn policies_that_share_have_options_of_their_own() {
    let place = Place::new();
    let csv = place.path("jobs.csv");
    let backfill = |words: &[&str]| place.output(&[&["sim", "backfill", "--trace", LOG, "--policy"], words].concat());
    let flow = |words: &[&str]| {
        let found = json(&backfill(&[words, &["--json", "--jobs-csv", csv.to_str().unwrap()]].concat()));
        assert_eq!(found["policy"], words[0]);
        (found["mean_flow_s"].as_f64().unwrap(), found["sharing"].clone())
    };
    let (easy, nothing) = flow(&["easy"]);
    assert!(nothing.is_null());
    let (one_row, sharing) = flow(&["soft-gang", "--rows", "1", "--slot", "10ms"]);
    assert_eq!((one_row, &sharing["slot_us"]), (easy, &10_000.into()));
    let no_processors = || std::fs::read_to_string(&csv).unwrap().lines().any(|line| line.ends_with(",,-1,"));
    assert!(!no_processors(), "those of a row are told");
    assert_eq!(flow(&["malleable", "--malleable-part", "0"]).0, easy);
    assert!(no_processors(), "its jobs change theirs");
    for policy in ["conservative", "oversubscribe", "round-robin", "malleable", "soft-gang"] {
        assert!(flow(&[policy]).0 > 0.0, "{policy}");
    }
    for (words, part) in [
        (vec!["easy", "--rows", "2"], "--rows means nothing to --policy easy"),
        (vec!["malleable", "--slot", "1s"], "it takes --malleable-part, --sizes"),
        (vec!["soft-gang", "--slot", "1ms", "--switch", "1ms"], "no longer than its switch"),
        (vec!["malleable", "--sizes", "2"], "it is two parts"),
        (vec!["malleable", "--sizes", "0.5,0.5"], "out of range"),
        (vec!["round-robin", "--slot", "10ms"], "below a second"),
        (vec!["soft-gang", "--event-order", "one"], "--event-order conflicts"),
        (vec!["soft-gang", "--fair-share", "7d,1d"], "--fair-share conflicts"),
    ] {
        let output = backfill(&words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(text(&output.stderr).contains(part), "{words:?}: {}", text(&output.stderr));
    }
}

#[test]
fn a_size_behind_the_jobs_has_to_be_given() {
    let place = Place::new();
    let log = place.path("late.swf").to_str().unwrap().to_owned();
    let job = "1 0 0 60 1 -1 -1 1 60 -1 1 1 -1 -1 -1 -1 -1 -1\n";
    let backfill =
        |more: &[&str]| place.output(&[&["sim", "backfill", "--policy", "easy", "--trace", &log], more].concat());
    for (contents, why) in [
        (format!("{job}; MaxProcs: 8\n{job}"), "stands behind the first jobs"),
        (format!("; MaxNodes: 8\n{job}; MaxProcs: 16\n"), "stands behind the first jobs"),
        (job.to_owned(), "size is unknown"),
    ] {
        std::fs::write(&log, &contents).unwrap();
        let output = backfill(&[]);
        assert!(text(&output.stderr).contains(why), "{contents}: {}", text(&output.stderr));
        assert_eq!(output.status.code(), Some(6), "{contents}");
        assert_eq!(json(&backfill(&["--procs", "8", "--json"]))["jobs_used"], contents.matches("1 0 0 60").count());
    }
}

#[test]
fn nodes_fail_and_jobs_start_again() {
    let place = Place::new();
    let path = |name: &str| place.path(name).to_str().unwrap().to_owned();
    let (outages, beyond) = (path("outages.csv"), path("beyond.csv"));
    std::fs::write(&outages, "node,down_s,up_s\n").unwrap();
    std::fs::write(&beyond, "node,down_s,up_s\n1000000,1,2\n").unwrap();
    let backfill = |words: &[&str]| place.output(&[&["sim", "backfill", "--trace", LOG, "--policy"], words].concat());
    let run = |words: &[&str]| json(&backfill(&[words, &["--json"]].concat()));
    let (easy, without) = (run(&["easy"]), run(&["easy", "--outages", &outages]));
    assert_eq!((&easy["mean_flow_s"], &without["failures"]["restarts"]), (&without["mean_flow_s"], &0.into()));
    assert!(easy["failures"].is_null() && without["failures"]["availability"] == 1.0);
    let random = ["--mtbf", "12h", "--mttr", "10min", "--node-procs", "4", "--failure-shape", "0.7"];
    let (of, again) = (run(&[&["easy"][..], &random].concat()), run(&[&["easy"][..], &random].concat()));
    let failures = &of["failures"];
    assert_eq!((failures, &of["mean_flow_s"]), (&again["failures"], &again["mean_flow_s"]));
    let up = failures["availability"].as_f64().unwrap();
    assert!(failures["restarts"].as_u64().unwrap() > 0 && (0.9..1.0).contains(&up), "{failures}");
    let other = run(&[&["easy"][..], &random, &["--failure-seed", "2"]].concat());
    assert_ne!(&other["failures"], failures);
    let stored = run(&[&["easy"][..], &random, &["--checkpoint", "1min,1s"]].concat());
    let lost = |of: &Value| of["failures"]["lost_processor_s"].as_f64().unwrap();
    assert!(lost(&stored) < lost(&of), "{} {}", lost(&stored), lost(&of));
    let ended = run(&[&["fcfs"][..], &random, &["--restarts", "0"]].concat());
    let given_up = ended["failures"]["given_up"].as_u64().unwrap();
    assert_eq!(ended["jobs_used"].as_u64().unwrap() + given_up, easy["jobs_used"].as_u64().unwrap());
    assert!(given_up > 0 && ended["failures"]["restarts"] == 0);
    let shown = text(&backfill(&[&["easy"][..], &random].concat()).stdout).to_owned();
    assert!(shown.contains("failures") && shown.contains("processor hours lost"), "{shown}");
    for (words, code, part) in [
        (vec!["easy", "--mtbf", "1d"], 2, "--mttr"),
        (vec!["easy", "--node-procs", "4"], 2, "--node-procs means nothing without failures"),
        (vec!["easy", "--outages", &outages, "--mtbf", "1d", "--mttr", "1h"], 2, "cannot be used with"),
        (vec!["conservative", "--outages", &outages], 2, "nodes fail under --policy fcfs"),
        (vec!["easy", "--event-order", "one", "--outages", &outages], 2, "nodes fail under --policy fcfs"),
        (vec!["easy", "--mtbf", "1ms", "--mttr", "1h"], 2, "give 1s to 11000d"),
        (vec!["easy", "--mtbf", "1d", "--mttr", "1h", "--failure-shape", "0"], 2, "from 0.2 to 10"),
        (vec!["easy", "--outages", "/nowhere"], 1, "cannot open /nowhere"),
        (vec!["easy", "--outages", LOG], 6, "it is not the header"),
        (vec!["easy", "--outages", &beyond], 6, "there is no node 1000000"),
    ] {
        let output = backfill(&words);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains(part), "{words:?}: {}", text(&output.stderr));
    }
}

#[test]
fn what_cannot_be_read_is_explained() {
    let place = Place::new();
    let file = |name: &str, bytes: &[u8]| {
        std::fs::write(place.path(name), bytes).unwrap();
        place.path(name).to_str().unwrap().to_string()
    };
    let log = std::fs::read(LOG).unwrap();
    let cut = file("cut.swf", &log[..log.len() - 20]);
    let packed = file("cut.swf.gz", b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x33\x54");
    let other = file("other.swf", b"<html>\n");
    let nothing = file("nothing.swf", b"; MaxProcs: 4\n1 0 0 0 1 -1 -1 1 10\n");
    let bad_list = file("list.csv", b"arrival_s,tasks,exec_s,type\n0,0,1,J1\n");
    let directory = place.path("").to_str().unwrap().to_string();
    let cases = [
        ("/nonexistent.swf", 1, "cannot open /nonexistent.swf"),
        (&directory, 1, "it is a directory"),
        (&cut, 1, "the trace ends early"),
        (&packed, 1, "the trace ends early"),
        (&other, 6, "this is not a trace"),
        (&nothing, 6, "nothing is usable"),
        (&bad_list, 6, "line 2 of the job list is not a job"),
    ];
    for (file, code, what) in cases {
        let output = place.output(&["workload", "show", file]);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{file}: {message}");
        assert!(message.contains(what) && message.contains("\n  why: ") && message.contains("\n  hint: "), "{message}");
        assert!(output.stdout.is_empty());
    }
    let backfill = |words: &[&str]| {
        let output = place.output(&[&["sim", "backfill", "--policy", "easy", "--trace"], words].concat());
        (output.status.code(), text(&output.stderr).to_string())
    };
    let (code, message) = backfill(&[&nothing]);
    assert!(code == Some(6) && message.contains("no job can be scheduled"), "{message}");
    let (code, message) = backfill(&[LOG, "--strict"]);
    assert!(code == Some(6) && message.contains("2 invalid lines"), "{message}");
    let (code, message) = backfill(&[&file("bare.swf", b"1 0 0 5 1 -1 -1 1 10\n")]);
    assert!(code == Some(6) && message.contains("give it with --procs"), "{message}");
}

#[test]
fn a_full_disk_is_a_failure() {
    if !std::path::Path::new("/dev/full").exists() {
        eprintln!("SKIPPED: there is no /dev/full");
        return;
    }
    let place = Place::new();
    for words in [
        vec!["workload", "generate", "--model", "WL3", "--output", "/dev/full"],
        vec!["workload", "convert", LOG, "/dev/full"],
        vec!["workload", "show", "--html", "/dev/full", LOG],
        vec!["workload", "fit", "--save", "/dev/full", LOG],
        vec!["sim", "backfill", "--policy", "easy", "--trace", LOG, "--jobs-csv", "/dev/full"],
    ] {
        let output = place.output(&words);
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        assert!(text(&output.stderr).contains("cannot write /dev/full"), "{words:?}: {}", text(&output.stderr));
    }
}

#[test]
fn one_seed_gives_one_list() {
    let place = Place::new();
    let list = |words: &[&str]| {
        let output = place.output(&[&["workload", "generate", "--jobs", "4", "--model"], words].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout).to_string()
    };
    // The bytes are the same on every machine; a different value means that the generator has changed.
    insta::assert_snapshot!("generated", ["WL8", "ctc-1996-refit", "lublin"].map(|model| list(&[model])).join("\n"));
    assert_eq!(list(&["WL3"]), list(&["wl3", "--seed", "1"]));
    assert_ne!(list(&["WL3"]), list(&["WL3", "--seed", "2"]));
    assert!(
        list(&["WL3", "--together"]).lines().skip(1).all(|line| line.starts_with("0.000000,") && line.ends_with("J3"))
    );
    assert!(list(&["hyper-erlang", "--types", "WL6"]).contains("J6"));
}

#[test]
fn load_is_what_was_asked_for() {
    let place = Place::new();
    let path = place.path("list.csv");
    let path = path.to_str().unwrap();
    for model in ["WL7", "lublin-no-types", "ctc-1996-refit"] {
        let words = ["workload", "generate", "--model", model, "--jobs", "300", "--load", "0.85", "--output", path];
        let found = json(&place.output(&[&words[..], &["--mean-exec-s", "5", "--json"]].concat()));
        assert!((found["load"].as_f64().unwrap() - 0.85).abs() < 1e-6, "{model} {found}");
        assert!(found["mean_exec_s"].as_f64().unwrap() < 10.0);
    }
    let wrong: [&[&str]; 5] = [
        &["--model", "WL9"],
        &["--model", "WL3", "--load", "0"],
        &["--model", "WL3", "--mean-exec-s", "nan"],
        &["--model", "WL3", "--json"],
        &["--model", "/nonexistent.json"],
    ];
    for words in wrong {
        let output = place.output(&[&["workload", "generate"], words].concat());
        assert!(!output.status.success() && output.stdout.is_empty(), "{words:?}");
        assert!(text(&output.stderr).contains("\n  hint: "), "{words:?}: {}", text(&output.stderr));
    }
}

#[test]
fn formats_are_converted_into_each_other() {
    let place = Place::new();
    let path = |name: &str| place.path(name).to_str().unwrap().to_string();
    let convert = |words: &[&str]| {
        let output = place.output(&[&["workload", "convert"], words].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout).to_string()
    };
    let words = ["--max-tasks", "32", "--status", "1", "--limit", "100", "--lengths", "0.1", "--load", "0.8"];
    convert(&[&[LOG, &path("a.csv"), "--nodes", "32"], &words[..]].concat());
    convert(&[&path("a.csv"), &path("b.json"), "--nodes", "32"]);
    convert(&[&path("b.json"), &path("c.csv")]);
    let list = std::fs::read_to_string(path("a.csv")).unwrap();
    assert_eq!((list.lines().count(), list.clone()), (101, std::fs::read_to_string(path("c.csv")).unwrap()));
    convert(&[&path("a.csv"), &path("d.swf")]);
    let times =
        |text: &str| -> Vec<String> { text.lines().map(|line| line.rsplit_once(',').unwrap().0.to_string()).collect() };
    assert_eq!(times(&convert(&[&path("d.swf"), "-", "--format", "csv"])), times(&list), "a trace has no types");
    // From trace to trace the other columns are kept.
    convert(&[LOG, &path("e.swf"), "--limit", "1"]);
    let selected = std::fs::read_to_string(path("e.swf")).unwrap();
    assert_eq!(selected.lines().last().unwrap().split(' ').nth(11), Some("1"), "{selected}");
    let output = place.output(&["workload", "convert", LOG, &path("f.csv"), "--max-tasks", "1", "--from-s", "1e8"]);
    assert_eq!((output.status.code(), text(&output.stderr).contains("no job is left")), (Some(6), true));
}

#[test]
fn what_types_compute_and_send_is_written_for_batsim() {
    let place = Place::new();
    let (jobs, work) = (place.path("jobs.csv"), place.path("work.json"));
    let (jobs, work) = (jobs.to_str().unwrap(), work.to_str().unwrap());
    std::fs::write(jobs, "arrival_s,tasks,exec_s,type\n0,2,1,J1\n2,8,1,J3\n4,1,1,J4\n").unwrap();
    let output = place.output(&["workload", "convert", jobs, work, "--work-flops", "2e9"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let written: Value = serde_json::from_slice(&std::fs::read(work).unwrap()).unwrap();
    let profile = |job: usize, part: &str| {
        let name = written["jobs"][job]["profile"].as_str().unwrap();
        &written["profiles"][format!("{name}{part}")]
    };
    // 2,696 times 129,836 ns and 4 KiB each way.
    assert_eq!(profile(0, "_parallel")["cpu"].as_f64().map(f64::round), Some(700_075_712.0));
    assert_eq!(profile(0, "_parallel")["com"], 2_696 * 4_096);
    assert_eq!(profile(1, "_parallel")["com"].as_array().map(Vec::len), Some(64));
    assert_eq!(profile(2, "_parallel")["com"], 0);
    let found = json(&place.output(&["sim", "batsim", work, "--flops", "2e9", "-s", "FCFS", "--json"]));
    assert_eq!((found["jobs"].as_u64(), found["ended"].as_u64()), (Some(3), Some(3)), "{found}");
    assert_eq!(found["messages"].as_u64(), Some(2 + 16), "one from a task to a neighbour");
    let output = place.output(&["workload", "generate", "--model", "WL3", "--work-flops", "1e9"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("--work-flops is for Batsim's workloads"));
}

#[test]
fn a_model_is_fitted_and_drawn_from() {
    let place = Place::new();
    let model = place.path("model.json");
    let model = model.to_str().unwrap();
    let output = place.output(&["workload", "fit", "--save", model, LOG]);
    assert!(text(&output.stdout).contains("moments") && text(&output.stdout).contains("load of the model (em)"));
    let found = json(&place.output(&["workload", "fit", "--json", "--method", "moments", LOG]));
    let (all, expected): (&Value, Value) = (&found["fits"][0], serde_json::from_str(VALUES).unwrap());
    let expected = expected["hyper_erlang"]["all"]["runtime"]["lambda1"].as_f64().unwrap();
    assert!((all["runtime"]["moments"]["lambda1"].as_f64().unwrap() / expected - 1.0).abs() < 1e-9);
    let (em, moments) = (&all["runtime"]["em"]["ks"], &all["runtime"]["moments"]["ks"]);
    assert!(em.as_f64() < moments.as_f64(), "{em} {moments}");
    let output = place.output(&["workload", "generate", "--model", model, "--jobs", "50", "--nodes", "8"]);
    assert_eq!(text(&output.stdout).lines().count(), 51);
}

#[test]
fn standard_input_is_read() {
    let place = Place::new();
    let mut command = place.cosched(&["workload", "show", "-", "--json"]);
    command.stdin(std::fs::File::open(LOG).unwrap()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let found = json(&crate::fake::bounded(&mut command));
    assert_eq!((&found["records"], &found["sha256"]), (&400.into(), &Value::Null));
}
