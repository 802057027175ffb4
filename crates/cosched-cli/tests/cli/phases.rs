//! `cosched sim phases`.

use crate::fake::{Place, text};
use serde_json::Value;

const HEADER: &str = "name,arrival_s,iterations,first_nodes,first_s,second_nodes,second_s,memory_gb,slowdown_max";

/// Writes a list with these lines.
fn list(place: &Place, lines: &str) -> String {
    let path = place.path("jobs.csv");
    std::fs::write(&path, format!("{HEADER}\n{lines}\n")).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn complementary_jobs_share_their_nodes() {
    let place = Place::new();
    let jobs = list(&place, "a,0,10,1,100,1,100,900,1.2\nb,0,10,1,100,1,100,900,1.2");
    let words = ["sim", "phases", &jobs, "--switch", "0s", "--cold", "0s", "--prices", "1,3"];
    let output = place.output(&[&words[..], &["--json"]].concat());
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let of = |name: &str| found["policies"].as_array().unwrap().iter().map(|of| of[name].clone()).collect::<Vec<_>>();
    assert_eq!(of("policy"), ["dedicated", "round-robin", "phases"]);
    assert_eq!(of("relative_cost"), [1.0, 1.0, 0.525]);
    assert_eq!(of("max_slowdown"), [1.0, 1.0, 1.05]);
    let shown = text(&place.output(&[&words[..], &["--policy", "phases"]].concat()).stdout).to_owned();
    assert!(shown.contains("phases") && shown.contains("0.525") && !shown.contains("round-robin"), "{shown}");
    let generated =
        |seed| place.output(&["sim", "phases", "--jobs", "20", "--seed", seed, "--cv", "0.2", "--json"]).stdout;
    assert!(generated("3") == generated("3") && generated("3") != generated("4"));
}

#[test]
fn bad_input_is_explained() {
    let place = Place::new();
    let jobs = list(&place, "a,0,10,1,100,1,nan,900,1.2");
    let cases: [(&[&str], i32, &str); 11] = [
        (&[], 2, "<FILE>"),
        (&[&jobs], 6, "line 2 is no job of phases\n  why: second_s `nan`"),
        (&["/nowhere"], 1, "cannot open /nowhere"),
        (&[&jobs, "--jobs", "3"], 2, "cannot be used with"),
        (&["--jobs", "0"], 2, "0 is not in 1..=10000"),
        (&["--jobs", "9", "--prices", "1,nan"], 2, "the prices are out of range"),
        (&["--jobs", "9", "--prices", "1"], 2, "it is two prices"),
        (&["--jobs", "9", "--cv", "inf"], 2, "the coefficient of variation is out of range"),
        (&["--jobs", "9", "--longest", "0.5"], 2, "the longest phase is out of range"),
        (&["--jobs", "9", "--slot", "10s"], 2, "the slot is out of range"),
        (&["--jobs", "9", "--memory-gb", "100"], 6, "a node has 100 GB"),
    ];
    for (words, code, part) in cases {
        let output = place.output(&[&["sim", "phases"], words].concat());
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {message}");
        assert!(message.contains(part) && output.stdout.is_empty(), "{words:?}: {message}");
    }
}
