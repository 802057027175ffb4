//! `cosched bench compare` and `cosched model predict --profile`: measured, modelled and simulated side by side.

use crate::fake::{Place, text};
use serde_json::{Value, json};
use std::fs;

/// Two tasks that compute 1 s each in 100 passes of a loop, with a barrier in each; half of the time they wait.
fn profile() -> Value {
    let task = |task: u32| {
        let barrier = json!({"call": "MPI_Barrier", "compute_ns": 1_000_000_000u64, "message_ns": 1_000_000_000u64,
            "does": [{"together": {"what": "barrier", "among": 0, "bytes": 0}}]});
        json!({"task": task, "compute_s": 1.0, "message_s": 1.0, "message_cpu_s": 0.0, "io_s": 0.0, "wait_s": 0.0, "messages": 0,
            "bytes": 0, "received": 0, "received_bytes": 0, "operations": [{"repeat": 100, "body": [barrier]}]})
    };
    json!({"format": "cosched-profile-1", "by": "mpi", "cosched": "0", "command": ["x"], "recorded": "2026-01-01T00:00:00Z",
        "host": "h", "tasks": 2, "elapsed_s": 2.0, "complete": true, "exit": 0, "groups": [[0, 1]], "each": [task(0), task(1)]})
}

fn measured() -> Value {
    let result = |policy: &str, jobs: u32, time_s: f64| json!({"policy": policy, "jobs": jobs, "time_s": time_s, "slowdown": time_s / 2.0, "slowdown_stderr": 0.1});
    json!({"format": "cosched-slowdown-1", "cpus": 2, "single": {"time_s": 2.0, "cpu_share": 0.5},
        "results": [result("linux", 1, 2.0), result("local+spin-block", 4, 4.0), result("gang-strict", 4, 8.0), result("slurm-gang", 2, 4.0),
            {"policy": "linux", "jobs": 4, "time_s": null, "slowdown": null}]})
}

/// The paths of both files, written to `place`.
fn files(place: &Place, profile: &Value, measured: &Value) -> [String; 2] {
    [("profile.json", profile), ("slowdown.json", measured)].map(|(name, content)| {
        fs::write(place.path(name), content.to_string()).unwrap();
        place.path(name).display().to_string()
    })
}

#[test]
fn the_three_stand_in_one_table() {
    let place = Place::new();
    let [profile, measured] = files(&place, &profile(), &measured());
    let words = ["bench", "compare", &measured, "--profile", &profile, "--machine", "bunyip"];
    let output = place.output(&[&["--json"], &words[..]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report: Value = serde_json::from_str(text(&output.stdout)).unwrap();
    let rows = report["results"].as_array().unwrap();
    assert_eq!(rows.len(), 3, "one job is the measure, and what failed has no number: {report}");
    assert_eq!((&report["of"], &report["measured_t1_s"]), (&json!("whole job"), &json!(2.0)));
    let number = |row: usize, key: &str| rows[row][key].as_f64().unwrap();
    // Four jobs that need half of their CPUs: two t_1 by equation 6, and a little for messages and switches.
    assert_eq!((&rows[0]["policy"], &rows[0]["strategy"]), (&json!("local+spin-block"), &json!("SB")));
    assert!((2.0..2.1).contains(&number(0, "model")), "{report}");
    assert!((number(0, "model_difference") - (number(0, "model") / 2.0 - 1.0)).abs() < 1e-12);
    // Gangs take turns: no less than four t_1, switches, and the last turns of a tenth of a slot.
    assert_eq!((number(1, "model"), number(1, "measured")), (4.0, 4.0));
    assert!((3.99..4.5).contains(&number(1, "simulated")), "{report}");
    // Alone, the simulated time is what was computed, plus the machine's messages: 100 barriers.
    assert!((1.0..1.1).contains(&report["simulated_t1_s"].as_f64().unwrap()), "{report}");
    let output = place.output(&words);
    let page = text(&output.stdout);
    assert!(
        page.contains("MEASURED s_j")
            && page.contains("2.00 ±0.10")
            && page.contains("soft-gang") != page.contains("GS"),
        "{page}"
    );
}

#[test]
fn the_main_phase_is_compared_where_all_tell_it() {
    let place = Place::new();
    let mut measured = measured();
    measured["single"]["phase_s"] = json!(1.0);
    measured["results"] = json!([{"policy": "gang-strict", "jobs": 2, "time_s": 5.0, "phase_s": 2.0, "slowdown": 2.5}]);
    let [profile, measured] = files(&place, &profile(), &measured);
    let output = place.output(&["--json", "bench", "compare", &measured, "--profile", &profile, "--machine", "bunyip"]);
    let report: Value = serde_json::from_str(text(&output.stdout)).unwrap();
    assert_eq!((&report["of"], &report["results"][0]["measured"]), (&json!("main phase"), &json!(2.0)));
}

#[test]
fn what_is_loaded_again_after_others_costs_where_the_machine_has_a_cache() {
    let place = Place::new();
    let [profile, measured] = files(&place, &profile(), &measured());
    let machine = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments/machines/bunyip.toml"));
    fs::write(
        place.path("cached.toml"),
        machine.unwrap() + "\n[cache]\nsize_bytes = 1048576\nrefill_us_per_kib = 1.0\n",
    )
    .unwrap();
    let cached = place.path("cached.toml").display().to_string();
    let words = ["--json", "bench", "compare", &measured, "--profile", &profile, "--machine", &cached];
    // Four jobs, and 100 barriers of 10 ms of computing.
    let simulated = |more: &[&str]| {
        let output = place.output(&[&words[..], more].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        let report: Value = serde_json::from_str(text(&output.stdout)).unwrap();
        [0, 1].map(|row| report["results"][row]["simulated"].as_f64().unwrap())
    };
    let ([block, gang], [loading, loading_gang]) = (simulated(&[]), simulated(&["--working-set", "1MiB"]));
    // About a millisecond each time; strict gangs change once in a slot of 100.
    assert!(loading > block * 1.05, "{loading} {block}");
    assert!(loading_gang < gang * 1.05, "{loading_gang} {gang}");
}

#[test]
fn a_profile_is_predicted() {
    let place = Place::new();
    let [profile, _] = files(&place, &profile(), &measured());
    let words = ["model", "predict", "--machine", "bunyip", "--profile", &profile, "--jobs", "1,4"];
    let output = place.output(&[&["--json"], &words[..]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report: Value = serde_json::from_str(text(&output.stdout)).unwrap();
    assert_eq!(report["time_s"], 2.0, "the recorded time");
    assert!((1.99..2.1).contains(&report["results"][1]["slowdown"].as_f64().unwrap()), "{report}");
    assert!(text(&place.output(&words).stdout).contains("the mean of 2 tasks"));
}

#[test]
fn a_profile_of_nothing_is_refused_and_half_a_profile_is_said() {
    let place = Place::new();
    let mut recorded = profile();
    recorded["complete"] = json!(false);
    let predict = |profile: &Value| {
        let [profile, _] = files(&place, profile, &measured());
        place.output(&["model", "predict", "--machine", "bunyip", "--profile", &profile])
    };
    let output = predict(&recorded);
    assert!(output.status.success() && text(&output.stderr).contains("is not complete"), "{}", text(&output.stderr));
    recorded["each"] = json!([{"task": 0, "compute_s": 0.0, "message_s": 0.0, "message_cpu_s": 0.0, "io_s": 0.0,
        "wait_s": 0.0, "messages": 0, "bytes": 0, "received": 0, "received_bytes": 0}]);
    (recorded["tasks"], recorded["groups"]) = (json!(1), json!([[0]]));
    let output = predict(&recorded);
    assert_eq!(output.status.code(), Some(6), "{}", text(&output.stdout));
    assert!(text(&output.stderr).contains("the profile is empty"), "{}", text(&output.stderr));
}

#[test]
fn a_profile_of_another_command_is_said() {
    let place = Place::new();
    let mut other = measured();
    for (command, is_same) in [(json!(["x"]), true), (json!(["y", "2"]), false)] {
        other["command"] = command;
        let [profile, measured] = files(&place, &profile(), &other);
        let output = place.output(&["bench", "compare", &measured, "--profile", &profile, "--machine", "bunyip"]);
        let told = text(&output.stderr);
        assert!(output.status.success() && told.contains("measured was `y 2`, recorded `x`") != is_same, "{told}");
    }
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let place = Place::new();
    let refused = |profile: &Value, measured: &Value, more: &[&str], code: i32, part: &str| {
        let [profile, measured] = files(&place, profile, measured);
        let words = ["bench", "compare", &measured, "--profile", &profile, "--machine", "bunyip"];
        let output = place.output(&[&words[..], more].concat());
        let message = text(&output.stderr);
        assert!(output.status.code() == Some(code) && message.contains(part) && output.stdout.is_empty(), "{message}");
    };
    let without = |key: &str| {
        let mut measured = measured();
        measured.as_object_mut().unwrap().remove(key);
        measured
    };
    refused(&profile(), &without("single"), &[], 6, "no time of a single job");
    refused(&profile(), &without("results"), &[], 6, "no complete result of several jobs");
    refused(&profile(), &without("format"), &[], 6, "cannot be analysed");
    refused(&json!({"format": "cosched-profile-2"}), &measured(), &[], 1, "cosched-profile-2");
    refused(&profile(), &measured(), &["--slot-ms", "0"], 2, "--slot-ms must be above 0");
    refused(&profile(), &measured(), &["--working-set", "1MiB"], 2, "bunyip has no [cache]");
    let output = place.output(&["bench", "compare", "/nowhere", "--profile", "x", "--machine", "bunyip"]);
    assert!(text(&output.stderr).contains("cannot read /nowhere"));
}
