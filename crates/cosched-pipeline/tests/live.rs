//! Inspecting pipelines of other processes. The processes are this test program, started again.

mod common;

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::{bounded, numbers};
use cosched_pipeline::live::{DIRECTORY_VARIABLE, list};
use cosched_pipeline::{Options, Pipeline, Resource, Stage};

/// Not a test: runs a pipeline that serves its report, until its standard input ends.
#[test]
#[ignore = "the process of other tests"]
fn serving() {
    let mut options = Options::default();
    options.serve = true;
    let line = Pipeline::new("cst-served").buffers(2, 64).stage(numbers("read", u64::MAX));
    let line = line.stage(Stage::blocking("write", Resource::Io, |_| {
        std::thread::sleep(Duration::from_millis(1));
        Ok(())
    }));
    let running = line.start(&options).unwrap();
    println!("ready {:?}", running.snapshot().notes);
    let _ = std::io::stdin().read(&mut [0]);
    running.stop();
    running.wait().unwrap_err();
}

/// Not a test: prints what it can see.
#[test]
#[ignore = "the process of other tests"]
fn listing() {
    for one in list() {
        match one.answer {
            Ok(live) => println!("sees {} {} {}", live.pid, live.report.name, live.report.stages[1].rounds),
            Err(silence) => println!("silent {} {silence}", one.pid),
        }
    }
}

fn again(test: &str, directory: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--ignored", "--nocapture"]).env(DIRECTORY_VARIABLE, directory);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

/// A process that serves; killed when the test ends, whatever the result.
struct Serving {
    child: Child,
    /// The line that it printed when it was ready.
    first: String,
}

impl Serving {
    fn start(directory: &Path) -> Serving {
        let mut child = again("serving", directory).spawn().unwrap();
        // The pipe stays open: the child's test harness prints to it at the end.
        let lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
        let first = lines.map_while(Result::ok).find(|line| line.contains("ready")).unwrap();
        Serving { child, first }
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn listed(directory: &Path) -> Vec<String> {
    let output = again("listing", directory).stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines().filter_map(|line| Some(&line[line.find("sees ").or_else(|| line.find("silent "))?..]));
    lines.map(str::to_owned).collect()
}

fn sockets(directory: &Path) -> usize {
    std::fs::read_dir(directory).unwrap().count()
}

fn scratch() -> tempfile::TempDir {
    let scratch = tempfile::Builder::new().prefix("cst-").tempdir().unwrap();
    std::fs::set_permissions(scratch.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
    scratch
}

#[test]
fn a_running_pipeline_is_seen_and_one_that_ended_is_not() {
    bounded(|| {
        let scratch = scratch();
        assert!(listed(scratch.path()).is_empty());
        let mut serving = Serving::start(scratch.path());
        let pid = serving.child.id();
        let rounds = |lines: &[String]| -> u64 {
            assert_eq!(lines.len(), 1, "{lines:?}");
            let words: Vec<&str> = lines[0].split(' ').collect();
            assert_eq!(words[..3], ["sees", &pid.to_string(), "cst-served"]);
            words[3].parse().unwrap()
        };
        // A round is 64 items of a millisecond: two snapshots may fall into the same one. `bounded` ends a pipeline
        // that hangs.
        let first = rounds(&listed(scratch.path()));
        while rounds(&listed(scratch.path())) <= first {}
        drop(serving.child.stdin.take());
        assert!(serving.child.wait().unwrap().success());
        assert_eq!(sockets(scratch.path()), 0, "it took its socket away");
        assert!(listed(scratch.path()).is_empty());
    });
}

#[test]
fn a_killed_one_leaves_no_listing_and_its_socket_is_removed() {
    bounded(|| {
        let scratch = scratch();
        let mut serving = Serving::start(scratch.path());
        serving.child.kill().unwrap();
        serving.child.wait().unwrap();
        assert_eq!(sockets(scratch.path()), 1, "nobody was left to remove it");
        std::fs::write(scratch.path().join("notes.txt"), "not ours").unwrap();
        assert!(listed(scratch.path()).is_empty());
        assert_eq!(sockets(scratch.path()), 1, "the socket went, the other file stays");
    });
}

#[test]
fn a_stopped_process_is_told_apart_and_keeps_its_socket() {
    bounded(|| {
        let scratch = scratch();
        let serving = Serving::start(scratch.path());
        serving.signal(rustix::process::Signal::STOP);
        let began = Instant::now();
        let lines = listed(scratch.path());
        assert!(lines.len() == 1 && lines[0].starts_with("silent") && lines[0].contains("is it stopped?"), "{lines:?}");
        assert!(began.elapsed() < Duration::from_secs(8));
        serving.signal(rustix::process::Signal::CONT);
        assert!(listed(scratch.path())[0].starts_with("sees"));
    });
}

#[test]
fn who_cannot_be_shown_runs_all_the_same() {
    bounded(|| {
        let scratch = scratch();
        std::fs::set_permissions(scratch.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let serving = Serving::start(scratch.path());
        assert!(serving.first.contains("it cannot be shown while it runs"), "{}", serving.first);
        assert!(serving.first.contains("others may enter it"), "{}", serving.first);
        assert_eq!(sockets(scratch.path()), 0);
        assert!(listed(scratch.path()).is_empty(), "nor is such a directory looked into");
    });
}
