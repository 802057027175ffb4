//! `cosched sim decide`: schedulers that are wrong, the one of docs/platforms.md, and those of pybatsim.

use crate::fake::{LIMIT, Place, ended, program, text};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Command, Stdio};
use std::thread::JoinHandle;

const JOBS: &str = r#"{"nb_res": 4, "jobs": [{"id": "a", "subtime": 1, "res": 2, "profile": "d", "walltime": 9},
    {"id": "b", "subtime": 2, "res": 1, "profile": "d"}, {"id": "c", "subtime": 2, "res": 1, "profile": "s"}],
    "profiles": {"d": {"type": "delay", "delay": 5}, "s": {"type": "smpi"}}}"#;

fn workload(place: &Place, content: &str) -> String {
    let path = place.path("w.json");
    fs::write(&path, content).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Listens in this place, and serves one connection.
fn peer(place: &Place, name: &str, serve: impl FnOnce(UnixStream) + Send + 'static) -> (String, JoinHandle<()>) {
    let path = place.path(name);
    let listener = UnixListener::bind(&path).unwrap();
    let thread = std::thread::spawn(move || serve(listener.accept().unwrap().0));
    (format!("ipc://{}", path.display()), thread)
}

fn read_frame(stream: &mut UnixStream) -> io::Result<Vec<u8>> {
    let (mut flags, mut length) = ([0; 1], [0; 8]);
    stream.read_exact(&mut flags)?;
    let from = if flags[0] & 2 == 0 { 7 } else { 0 };
    stream.read_exact(&mut length[from..])?;
    let mut body = vec![0; u64::from_be_bytes(length) as usize];
    stream.read_exact(&mut body)?;
    Ok(body)
}

/// A REP socket as libzmq has it: `answer` gets each message with its number; without an answer it closes.
fn rep(mut stream: UnixStream, mut answer: impl FnMut(usize, Value) -> Option<Vec<u8>>) -> io::Result<()> {
    let mut greeting = [0; 64];
    (greeting[0], greeting[9], greeting[10]) = (0xff, 0x7f, 3);
    greeting[12..16].copy_from_slice(b"NULL");
    stream.write_all(&greeting)?;
    stream.read_exact(&mut greeting)?;
    read_frame(&mut stream)?;
    stream.write_all(b"\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03REP")?;
    for number in 0.. {
        assert!(read_frame(&mut stream)?.is_empty(), "an envelope");
        let message = serde_json::from_slice(&read_frame(&mut stream)?)?;
        let Some(body) = answer(number, message) else { break };
        let frame = [&b"\x01\0\x02"[..], &(body.len() as u64).to_be_bytes(), &body].concat();
        stream.write_all(&frame)?;
    }
    Ok(())
}

fn events(now: &Value, events: &[(&str, Value)]) -> Vec<u8> {
    let event = |(kind, data): &(&str, Value)| json!({ "timestamp": now, "type": kind, "data": data });
    json!({ "now": now, "events": events.iter().map(event).collect::<Vec<Value>>() }).to_string().into_bytes()
}

#[test]
fn wrong_schedulers_end_the_simulation() {
    type Answer = fn(usize, Value) -> Option<Vec<u8>>;
    let cases: [(&str, Answer, u8, &str); 6] = [
        ("dies", |number, message| (number < 1).then(|| events(&message["now"], &[])), 1, "is gone"),
        ("nonsense", |_, _| Some(b"hello".to_vec()), 6, "it is not a message of Batsim's protocol: expected value"),
        ("nothing", |_, message| Some(events(&message["now"], &[])), 6, "2 jobs wait, none runs or is to come"),
        ("past", |_, _| Some(events(&json!(0), &[])), 6, "at 1 s, `now` is 0.0, and it is 1 s already"),
        (
            "unknown",
            |number, message| {
                let jobs: &[_] = &[("EXECUTE_JOB", json!({ "job_id": "w0!z", "alloc": "0" }))];
                Some(events(&message["now"], &jobs[..number.min(1)]))
            },
            6,
            "EXECUTE_JOB of `w0!z`: there is no such job",
        ),
        ("huge", |_, _| Some(vec![b' '; 17 << 20]), 6, "17825792 bytes at once, and at most 16777216 are taken"),
    ];
    for (name, answer, code, part) in cases {
        let place = Place::new();
        let workload = workload(&place, JOBS);
        // Its errors are those of a connection that the command has closed.
        let (endpoint, thread) = peer(&place, name, move |stream| drop(rep(stream, answer)));
        let output = place.output(&["sim", "decide", &workload, "-s", &endpoint]);
        let message = text(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(code.into()), 0), "{name}: {message}");
        assert!(message.contains(part) && message.contains("hint:"), "{name}: {message}");
        assert!(message.contains("left out: 1 (its profile s is of type smpi"), "{name}: {message}");
        thread.join().unwrap();
    }
}

#[test]
fn a_scheduler_that_does_not_answer_is_not_waited_for_without_end() {
    let until_closed = |mut stream: UnixStream| while stream.read(&mut [0; 100]).is_ok_and(|count| count > 0) {};
    let (done, is_done) = std::sync::mpsc::channel::<()>();
    let silent = move |_: usize, _: Value| {
        let _ = is_done.recv_timeout(LIMIT);
        None
    };
    let place = Place::new();
    let workload = workload(&place, JOBS);
    let decide = |endpoint: &str, part: &str| {
        let output = place.output(&["sim", "decide", &workload, "-s", endpoint, "--patience", "300ms"]);
        let message = text(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{message}");
        assert!(message.contains(part) && message.contains("within 300ms") && message.contains("hint:"), "{message}");
    };
    let (endpoint, thread) = peer(&place, "mute", until_closed);
    decide(&endpoint, "cannot be reached");
    thread.join().unwrap();
    let (endpoint, thread) = peer(&place, "silent", move |stream| drop(rep(stream, silent)));
    decide(&endpoint, "does not answer");
    drop(done);
    thread.join().unwrap();
    decide("ipc:///nowhere/at/all", "cannot be reached");
    let output = place.output(&["sim", "decide", &workload, "-s", "tcp://*:28000"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("give its host"), "{}", text(&output.stderr));
    let large = JOBS.replace("\"nb_res\": 4", "\"nb_res\": 4000000000");
    fs::write(&workload, large).unwrap();
    let output = place.output(&["sim", "decide", &workload, "-s", "ipc:///nowhere"]);
    assert_eq!(output.status.code(), Some(6));
    assert!(text(&output.stderr).contains("at most 200000 are"), "{}", text(&output.stderr));
}

/// Sixty jobs of 1 to 8 hosts, with estimates up to twice as long.
fn sixty() -> String {
    let (mut state, mut jobs, mut profiles) = (7_u64, String::new(), String::new());
    let mut draw = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % below
    };
    for id in 1..=60 {
        let (subtime, res, run) = (10 * draw(100), 1 + draw(8), 1 + draw(200));
        let walltime = run + draw(run + 1);
        let comma = if id == 1 { "" } else { "," };
        write!(
            jobs,
            r#"{comma}{{"id": "{id}", "subtime": {subtime}, "res": {res}, "profile": "{run}", "walltime": {walltime}}}"#
        )
        .unwrap();
        write!(profiles, r#""{run}": {{"type": "delay", "delay": {run}}},"#).unwrap();
    }
    format!(r#"{{"nb_res": 8, "jobs": [{jobs}], "profiles": {{{profiles}"0": {{}}}}}}"#)
}

/// By job: start, end, hosts.
fn schedule(csv: &str) -> Vec<(u32, f64, f64, String)> {
    let line = |line: &str| {
        let words: Vec<&str> = line.split(',').collect();
        let number = |place: usize| words[place].parse().unwrap();
        (words[0].parse().unwrap(), number(8), number(10), words[14].to_owned())
    };
    let mut lines: Vec<(u32, f64, f64, String)> = csv.lines().skip(1).map(line).collect();
    lines.sort_by_key(|(id, ..)| *id);
    lines
}

/// Runs the scheduler beside the command; the command's standard output.
fn decided(place: &Place, workload: &str, scheduler: &mut Command, more: &[&str]) -> String {
    let endpoint = format!("ipc://{}", place.path("zmq").display());
    let mut scheduler = scheduler.arg(&endpoint).stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    let output = place.output(&[&["sim", "decide", workload, "-s", &endpoint], more].concat());
    if !output.status.success() {
        let _ = scheduler.kill();
    }
    assert!(ended(&mut scheduler).success() && output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout).to_owned()
}

#[test]
fn the_scheduler_of_the_documentation_is_as_first_come_first_served() {
    let Some(mut python) = program("python", "import zmq") else { return };
    let place = Place::new();
    let workload = workload(&place, &sixty());
    let documentation = include_str!("../../../../docs/platforms.md");
    let (_, rest) = documentation.split_once("```python\n").unwrap();
    let script = place.path("fcfs.py");
    fs::write(&script, rest.split_once("```").unwrap().0).unwrap();
    let outside = decided(&place, &workload, python.arg(&script), &["--csv", "-"]);
    let csv = place.path("own.csv").to_str().unwrap().to_owned();
    let output = place.output(&["sim", "backfill", "--trace", &workload, "--policy", "fcfs", "--jobs-csv", &csv]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let own = schedule(&fs::read_to_string(&csv).unwrap());
    assert_eq!((schedule(&outside), own.len()), (own, 60));
}

#[test]
fn schedulers_of_pybatsim_decide() {
    for name in ["fillerSched", "easyBackfill"] {
        let Some(mut pybatsim) = program("pybatsim", "import batsim, schedulers") else { return };
        let place = Place::new();
        let workload = workload(&place, &sixty());
        let scheduler = pybatsim.args([name, "--timeout=0", "--verbosity=error", "--socket-endpoint"]);
        let found: Value = serde_json::from_str(&decided(&place, &workload, scheduler, &["--json"])).unwrap();
        let of = |key: &str| found[key].as_u64().unwrap();
        assert_eq!(
            (of("jobs"), of("successful") + of("walltime_reached"), of("killed"), of("rejected")),
            (60, 60, 0, 0)
        );
        assert!(found["mean_stretch"].as_f64().unwrap() >= 1.0, "{found}");
    }
}
