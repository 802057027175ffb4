//! Signals end the program at once and leave no files.

use std::os::unix::process::ExitStatusExt;
use std::process::Child;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::harness::{Place, finish_child, has_unnamed_file};

/// A sort that has started: it has the output open, and is stopped (SIGSTOP) then, so that it cannot end before the test is
/// ready.
fn long_sort(place: &Place) -> Child {
    // Small records: many comparisons per byte.
    place.json(&["generate", "in", "--bytes", "40M", "--record-size", "10"]);
    let args = ["sort", "in", "-o", "out", "--record-size", "10", "--version", "compute", "--memory", "20M"];
    let child = place.command(&args).spawn().unwrap();
    let begin = Instant::now();
    while !has_unnamed_file(child.id()) {
        assert!(begin.elapsed() < Duration::from_secs(20), "it never began");
        std::thread::sleep(Duration::from_millis(5));
    }
    send(&child, Signal::SIGSTOP);
    child
}

fn send(child: &Child, signal: Signal) {
    kill(Pid::from_raw(child.id() as i32), signal).unwrap();
}

#[test]
fn signals_end_it_and_leave_nothing() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let place = Place::new();
        let child = long_sort(&place);
        send(&child, signal);
        send(&child, Signal::SIGCONT);
        let output = finish_child(child);
        assert_eq!(output.status.signal(), Some(signal as i32));
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(message.contains("interrupted; the input is unchanged"), "{message}");
        assert_eq!(place.names(), ["in"]);
    }
}

#[test]
fn even_a_kill_leaves_nothing() {
    let place = Place::new();
    let child = long_sort(&place);
    send(&child, Signal::SIGKILL);
    assert_eq!(finish_child(child).status.signal(), Some(9));
    assert_eq!(place.names(), ["in"]);
}

#[test]
fn an_input_that_shrinks_is_an_error() {
    let place = Place::new();
    let child = long_sort(&place);
    std::fs::File::options().write(true).open(place.path("in")).unwrap().set_len(20_000_000).unwrap();
    send(&child, Signal::SIGCONT);
    let output = finish_child(child);
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("in") && (message.contains("shrank") || message.contains("ends at byte")), "{message}");
    assert_eq!(place.names(), ["in"]);
}
