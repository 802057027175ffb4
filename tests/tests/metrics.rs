//! The metrics, read by an independent parser, follow what happened.

use cosched_tests::{Daemon, needs_root, stdout, wait_until};
use prometheus_parse::{Scrape, Value};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

const SPIN_2: &str = "while :; do :; done & while :; do :; done";

struct Metrics(Scrape);

impl Metrics {
    fn parse(text: &str) -> Metrics {
        Metrics(Scrape::parse(text.lines().map(|line| Ok(line.to_owned()))).expect("the text format"))
    }

    /// The value of the series that has these labels.
    fn value(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let has = |sample: &&prometheus_parse::Sample| labels.iter().all(|(key, v)| sample.labels.get(key) == Some(*v));
        let found = self.0.samples.iter().filter(|s| s.metric == name).find(has);
        match found.map(|sample| &sample.value) {
            Some(Value::Counter(v) | Value::Gauge(v) | Value::Untyped(v)) => *v,
            other => panic!("{name} {labels:?}: {other:?}"),
        }
    }

    /// The cumulative counts of a histogram; the last one is the total.
    fn histogram(&self, name: &str) -> Vec<f64> {
        let found = self.0.samples.iter().find(|s| s.metric == name).map(|sample| &sample.value);
        let Some(Value::Histogram(buckets)) = found else { panic!("{name}: {found:?}") };
        assert!(buckets.last().unwrap().less_than.is_infinite(), "{name}");
        buckets.iter().map(|bucket| bucket.count).collect()
    }
}

fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("the port is open");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn metrics_follow_what_happened() {
    if !needs_root() {
        return;
    }
    // A port that was free a moment ago.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let config = format!("slot_length = \"20ms\"\nsharing = \"strict\"\nmetrics_listen = \"{address}\"\n");
    let mut d = Daemon::start(&config);
    let read = |d: &Daemon| Metrics::parse(&stdout(&d.cosched(&["metrics"])));
    let before = read(&d);
    assert_eq!(before.value("cosched_switches_total", &[]), 0.0);
    assert_eq!(before.value("cosched_jobs", &[("class", "batch"), ("state", "running")]), 0.0);
    assert_eq!(before.value("cosched_daemon_starts_total", &[]), 1.0);

    let jobs: Vec<u64> = (0..2).map(|_| d.detach(&["--", "sh", "-c", SPIN_2])).collect();
    assert!(wait_until(|| read(&d).value("cosched_switches_total", &[]) > 50.0));
    let now = read(&d);
    assert_eq!(now.value("cosched_jobs", &[("class", "batch"), ("state", "running")]), 2.0);
    assert_eq!(now.value("cosched_jobs_registered_total", &[]), 2.0);
    assert!(now.value("cosched_plan_generation", &[]) >= 2.0);
    assert_eq!((now.value("cosched_plan_lag", &[]), now.value("cosched_matrix_rows", &[])), (0.0, 2.0));
    let switches = now.value("cosched_switches_total", &[]);
    for name in ["wake", "latency", "skew"] {
        let counts = now.histogram(&format!("cosched_switch_{name}_seconds"));
        assert!(counts.is_sorted(), "{name}: {counts:?}");
        // The snapshot is taken while the slot thread continues.
        assert!((counts.last().unwrap() - switches).abs() <= 2.0, "{name}: {counts:?}, {switches} switches");
    }
    let cpu = |m: &Metrics, place| m.value("cosched_gang_cpu_seconds_total", &[("where", place)]);
    assert!(cpu(&now, "slot") > 0.1, "{}", cpu(&now, "slot"));
    assert!(cpu(&now, "outside") * 5.0 < cpu(&now, "slot"), "frozen gangs hardly stray: {}", cpu(&now, "outside"));

    d.client().suspend(jobs[0]).unwrap();
    let suspended = read(&d);
    assert_eq!(suspended.value("cosched_jobs", &[("class", "batch"), ("state", "suspended")]), 1.0);

    let answer = get(&address, "/metrics");
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.contains("content-type: application/openmetrics-text"),
        "{answer}"
    );
    assert!(answer.contains("cosched_start_time_seconds"), "{answer}");
    assert!(!answer.contains("while :"), "no job is named");
    for path in ["/v1/status", "/v1/jobs", "/"] {
        assert!(get(&address, path).starts_with("HTTP/1.1 404"), "only the metrics are open: {path}");
    }

    d.stop();
    d.launch();
    let after = read(&d);
    assert_eq!(after.value("cosched_daemon_starts_total", &[]), 2.0);
    assert_eq!(after.value("cosched_jobs", &[("class", "batch"), ("state", "suspended")]), 1.0);
    for id in jobs {
        d.cosched(&["kill", "-9", &id.to_string()]);
    }
}

#[test]
fn a_port_that_is_taken_is_explained_before_anything_runs() {
    if !needs_root() {
        return;
    }
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let dir = tempfile::Builder::new().prefix("cst-").tempdir().unwrap();
    let config = dir.path().join("c.toml");
    std::fs::write(&config, format!("metrics_listen = \"{}\"\n", taken.local_addr().unwrap())).unwrap();
    let output = std::process::Command::new(cosched_tests::bin_dir().join("coschedd"))
        .args(["--cgroup", &format!("cst-{}-taken", std::process::id()), "--config"])
        .arg(&config)
        .arg("--socket")
        .arg(dir.path().join("s"))
        .arg("--state-dir")
        .arg(dir.path().join("state"))
        .output()
        .unwrap();
    cosched_tests::procs::remove_tree_everywhere(&format!("cst-{}-taken", std::process::id()));
    cosched_tests::procs::unmount(&dir.path().join("agent"));
    assert_eq!(output.status.code(), Some(1));
    let message = cosched_tests::stderr(&output);
    assert!(message.contains("for metrics. Choose another metrics_listen"), "{message}");
}
