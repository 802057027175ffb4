//! `cosched sim whatif` with a real daemon and real jobs.

use cosched_tests::{Daemon, needs_root, program, stderr, stdout, wait_until};
use serde_json::Value;

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn two_gangs_go_on_as_predicted() {
    let Some(barrier) = program("barrier-threads") else { return };
    if !needs_root() {
        return;
    }
    let d = Daemon::start("policy = \"gang\"\nslot_length = \"50ms\"\n");
    let args = ["--cpus", "2", "--", &barrier, "--threads", "2", "--grain-us", "500", "--seconds", "300"];
    let ids = [d.detach(&args), d.detach(&args)];
    assert!(wait_until(|| ids.iter().all(|id| d.client().job(*id).unwrap().share_due.is_some())));
    let args = ["sim", "whatif", "--look", "6s", "--for", "12s", "--stay", "--quiet", "--json", "--policies", "linux"];
    let out = d.cosched(&args);
    let all = lines(&stdout(&out));
    assert_eq!(all.len(), 2, "{}{}", stdout(&out), stderr(&out));
    let (predicted, done) = (&all[0], &all[1]);
    for job in predicted["jobs"].as_array().unwrap() {
        let slowdown = job["predicted"]["now"]["slowdown"].as_f64().unwrap();
        // Half of the slots each, or less where others use the machine now.
        assert!(slowdown > 1.8, "{job}");
        assert!(job["predicted"]["linux"]["cpu_s"].as_f64().unwrap() > 0.0, "{job}");
    }
    assert_eq!(done["changed"], Value::Array(Vec::new()), "{done}");
    let jobs = done["jobs"].as_array().unwrap();
    assert_eq!(jobs.len(), 2, "{done}");
    let found: Vec<f64> = jobs.iter().map(|job| 1.0 + job["checked"]["difference"].as_f64().unwrap()).collect();
    // Whatever else the machine does meanwhile concerns both gangs alike; how much that is cannot be predicted.
    assert!((found[0] / found[1] - 1.0).abs() < 0.2, "{done}");
    assert!(found.iter().all(|found| (0.2..3.0).contains(found)), "{done}");
    let page = d.dir.path().join("calibration.html");
    let out = d.cosched(&["sim", "whatif", "--check", "--html", page.to_str().unwrap()]);
    assert!(out.status.success() && stdout(&out).contains("of all 2 checked so far"), "{}", stderr(&out));
    assert!(std::fs::read_to_string(page).unwrap().contains("barrier-threads"));
    assert!(d.dir.path().join("xdg/cosched/whatif.jsonl").exists());
    for id in ids {
        d.client().kill(id, &cosched_api::KillRequest { signal: 9, grace_ms: None, here: false }).unwrap();
    }
}

#[test]
fn where_there_is_nothing_to_say_it_says_so() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start("");
    let whatif = |args: &[&str]| {
        let out = d.cosched(&[&["sim", "whatif", "--quiet"], args].concat());
        (out.status.code().unwrap(), stdout(&out) + &stderr(&out))
    };
    let (code, said) = whatif(&[]);
    assert!(code == 4 && said.contains("no job"), "{code} {said}");
    let (code, said) = whatif(&["--check"]);
    assert!(code == 6 && said.contains("nothing to check"), "{code} {said}");
    let (code, said) = whatif(&["--for", "2h"]);
    assert!(code == 2 && said.contains("1 hour"), "{code} {said}");
    let (code, said) = whatif(&["--policies", "gangs"]);
    assert!(code == 2 && said.contains("did you mean gang?"), "{code} {said}");
    // It sleeps, so nothing is observed; then it ends while one looks.
    let id = d.detach(&["--", "sleep", "100"]);
    assert!(wait_until(|| d.client().job(id).unwrap().state == cosched_api::JobState::Running));
    let (code, said) = whatif(&["--look", "1s"]);
    assert!(code == 6 && said.contains("used no CPU time"), "{code} {said}");
    let short = d.detach(&["--", "sh", "-c", "end=$(($(date +%s) + 5)); while [ $(date +%s) -lt $end ]; do :; done"]);
    assert!(wait_until(|| d.client().job(short).unwrap().cpu_time_ms > 0));
    let (code, said) = whatif(&["--look", "9s"]);
    assert!(code == 6 && said.contains(&format!("job {short} ended")), "{code} {said}");
    d.client().kill(id, &cosched_api::KillRequest { signal: 9, grace_ms: None, here: false }).unwrap();
}
