//! `cosched pipeline` as users run it: on pipelines of other processes, which are this test's own program started again.

use crate::commands::help;
use crate::fake::{Place, bounded, text, until};
use cosched_pipeline::live::DIRECTORY_VARIABLE;
use cosched_pipeline::{Buffer, Flow, Options, Pipeline, Priorities, Report, Resource, Stage};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// Three stages with little work, for `blocks` blocks.
fn line(name: &str, blocks: u64) -> Pipeline {
    let mut next = 0;
    let read = Stage::source("read", Resource::Io, move |buffer: &mut Buffer| {
        buffer.set_len(512);
        next += 1;
        Ok(if next == blocks { Flow::Last } else { Flow::Continue })
    });
    let sleep = |ms: u64| {
        move |_: &mut Buffer| -> Result<(), cosched_pipeline::BoxError> {
            std::thread::sleep(Duration::from_millis(ms));
            Ok(())
        }
    };
    Pipeline::new(name)
        .buffers(6, 512)
        .stage(read)
        .stage(Stage::blocking("send", Resource::Communicate, sleep(1)))
        .stage(Stage::blocking("write", Resource::Io, sleep(3)))
}

fn options() -> Options {
    let mut options = Options::default();
    options.priorities = Priorities::AdjustOnce;
    options.trace = true;
    options
}

/// Not a test: runs a pipeline that answers, until its standard input ends.
#[test]
#[ignore = "the process of other tests"]
fn serving() {
    let mut options = options();
    options.serve = true;
    options.trace = false;
    let running = line("cst-demo", u64::MAX).start(&options).unwrap();
    println!("ready");
    let _ = std::io::stdin().read(&mut [0]);
    running.stop();
    running.wait().unwrap_err();
}

struct Serving(Child);

impl Serving {
    fn start(place: &Sight) -> Serving {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "pipeline::serving", "--ignored", "--nocapture"]);
        command.env(DIRECTORY_VARIABLE, &place.directory);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        // The pipe stays open, because the child's test harness prints to it at the end.
        let lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
        lines.map_while(Result::ok).find(|line| line.contains("ready")).unwrap();
        Serving(child)
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The environment of a test, with a separate directory for sockets.
struct Sight {
    place: Place,
    directory: PathBuf,
}

impl Sight {
    fn new() -> Sight {
        let place = Place::new();
        let directory = place.path("pipelines");
        std::fs::DirBuilder::new().mode(0o700).create(&directory).unwrap();
        Sight { place, directory }
    }

    fn cosched(&self, words: &[&str]) -> Command {
        let mut command = self.place.cosched(words);
        command.env(DIRECTORY_VARIABLE, &self.directory).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn output(&self, words: &[&str]) -> Output {
        bounded(&mut self.cosched(words))
    }

    fn json(&self, words: &[&str]) -> Value {
        let output = self.output(&[words, &["--json"]].concat());
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{words:?}: {}", text(&output.stderr)))
    }
}

#[test]
fn help_of_pipeline() {
    let all = ["pipeline", "pipeline list", "pipeline show", "pipeline report"];
    insta::assert_snapshot!("pipeline_help", help(&Place::new(), &all));
}

#[test]
fn a_running_pipeline_is_listed_and_shown() {
    let sight = Sight::new();
    let serving = Serving::start(&sight);
    let listed = sight.json(&["pipeline", "list"]);
    assert_eq!(listed["pipelines"][0]["pid"].to_string(), serving.pid());
    assert_eq!(listed["pipelines"][0]["name"], "cst-demo");
    let output = sight.output(&["pipeline", "ls"]);
    let table = text(&output.stdout);
    assert!(table.contains("PID") && table.contains("cst-demo") && table.contains(&serving.pid()), "{table}");
    // The limiting resource is known once blocks have passed through all stages.
    until("the slowest stage limits", || text(&sight.output(&["pipeline", "show"]).stdout).contains("I/O limits"));
    for which in [&[][..], &["cst-demo"], &[serving.pid().as_str()]] {
        let output = sight.output(&[&["pipeline", "show"], which].concat());
        let shown = text(&output.stdout);
        assert!(output.status.success(), "{}", text(&output.stderr));
        for part in ["pipeline 'cst-demo'", "read", "communicate", "WAIT OUT", "bound: ", " limits"] {
            assert!(shown.contains(part), "{which:?}: {part}: {shown}");
        }
    }
    let live = sight.json(&["pipeline", "show", "cst-demo"]);
    assert_eq!(live["report"]["stages"][2]["name"], "write");
    assert_eq!(live["report"]["priorities"], "adjust-once");
    // The sender is faster than the writer, so it lowers its own priority.
    until("the rule acts", || {
        let live = sight.json(&["pipeline", "show", "cst-demo"]);
        live["report"]["stages"][1]["actions_count"] == 1
    });
}

#[test]
fn watching_ends_with_the_pipeline() {
    let sight = Sight::new();
    let mut serving = Serving::start(&sight);
    let watching = sight.cosched(&["pipeline", "show", "cst-demo", "--watch", "--json"]).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(700));
    drop(serving.0.stdin.take());
    serving.0.wait().unwrap();
    let output = watching.wait_with_output().unwrap();
    let lines: Vec<Value> = text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(output.status.success() && lines.len() >= 2, "{}: {}", lines.len(), text(&output.stderr));
    let rounds = |live: &Value| live["report"]["rounds"].as_u64().unwrap();
    assert!(rounds(lines.last().unwrap()) > rounds(&lines[0]));
}

#[test]
fn who_is_not_there_is_told_with_the_nearest() {
    let sight = Sight::new();
    let nobody = sight.output(&["pipeline", "show"]);
    assert_eq!(nobody.status.code(), Some(4));
    assert!(text(&nobody.stderr).contains("no pipeline is running"), "{}", text(&nobody.stderr));
    let empty = sight.output(&["pipeline", "list"]);
    assert!(empty.status.success() && empty.stdout.is_empty());
    let mut serving = Serving::start(&sight);
    let wrong = sight.output(&["pipeline", "show", "cst-dmo"]);
    assert_eq!(wrong.status.code(), Some(4));
    assert!(text(&wrong.stderr).contains("did you mean cst-demo?"), "{}", text(&wrong.stderr));
    serving.0.kill().unwrap();
    serving.0.wait().unwrap();
    let killed = sight.json(&["pipeline", "list"]);
    assert_eq!(killed["pipelines"].as_array().unwrap().len(), 0);
    assert_eq!(std::fs::read_dir(&sight.directory).unwrap().count(), 0, "the socket was removed");
}

#[test]
fn a_report_becomes_text_a_page_and_a_trace() {
    let sight = Sight::new();
    let report = line("cst-saved", 40).run(&options()).unwrap();
    let file = sight.place.path("run.json");
    report.save(&file).unwrap();
    let path = |name: &str| sight.place.path(name).to_str().unwrap().to_owned();
    let (html, trace) = (path("run.html"), path("trace.json"));
    let words = ["pipeline", "report", file.to_str().unwrap(), "--html", &html, "--trace", &trace];
    let output = sight.output(&words);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), report.text());
    let page = std::fs::read_to_string(&html).unwrap();
    for part in ["Pipeline cst-saved", "Throughput against the bound", "Buffers that waited", "Changes of priority"] {
        assert!(page.contains(part), "{part}");
    }
    assert_eq!(page.matches("\"chart\":{").count(), 3);
    let trace: Value = serde_json::from_str(&std::fs::read_to_string(&trace).unwrap()).unwrap();
    let rounds = trace["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "X").count();
    assert_eq!(rounds, 120);
    let again = sight.json(&["pipeline", "report", file.to_str().unwrap()]);
    assert_eq!(again["rounds"], 40);
}

#[test]
fn what_show_prints_can_be_reported() {
    let sight = Sight::new();
    let _serving = Serving::start(&sight);
    let shown = sight.output(&["pipeline", "show", "--json"]);
    let mut command = sight.cosched(&["pipeline", "report", "-", "--json"]);
    let from = sight.place.path("shown.json");
    std::fs::write(&from, &shown.stdout).unwrap();
    let output = bounded(command.stdin(std::fs::File::open(&from).unwrap()));
    let report: Report = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report.name, "cst-demo");
}

#[test]
fn files_that_are_no_reports_are_refused() {
    let sight = Sight::new();
    let refused = |content: &str, code: i32, part: &str| {
        let file = sight.place.path("bad.json");
        std::fs::write(&file, content).unwrap();
        let output = sight.output(&["pipeline", "report", file.to_str().unwrap(), "--html", "/dev/null"]);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{message}");
        assert!(message.contains(part) && message.contains("hint: ") && output.stdout.is_empty(), "{message}");
    };
    refused("hello", 6, "it is not a report of a pipeline");
    refused(r#"{"format":"cosched-bench-1"}"#, 6, "its format is 'cosched-bench-1'");
    let missing = sight.output(&["pipeline", "report", "/no/such/file"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(text(&missing.stderr).contains("cannot read /no/such/file"));
    let file = sight.place.path("run.json");
    line("cst-saved", 3).run(&Options::default()).unwrap().save(&file).unwrap();
    let nowhere = sight.output(&["pipeline", "report", file.to_str().unwrap(), "--html", "/no/such/page.html"]);
    assert_eq!(nowhere.status.code(), Some(1));
    assert!(text(&nowhere.stderr).contains("cannot write /no/such/page.html"), "{}", text(&nowhere.stderr));
}
