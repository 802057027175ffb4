//! Detection of waiting messages: real processes with real sockets, here and in a network namespace of their own.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use cosched_linux::{ArrivalBell, Arrivals, BpfArrivals};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::support::{Scene, helper, within};

/// A program with sockets.
pub(crate) struct Talker {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Talker {
    /// `None` (with the reason printed) where it cannot be in a namespace of its own.
    pub(crate) fn start(apart: bool) -> Option<Talker> {
        let mut command = Command::new(helper());
        command.arg("talk").args(apart.then_some("apart")).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("spawn");
        let (input, output) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        let mut talker = Talker { child, input, output: BufReader::new(output) };
        if talker.line() != "ready" {
            println!("SKIPPED: no network namespace");
            return None;
        }
        Some(talker)
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("read");
        line.trim().into()
    }

    pub(crate) fn tell(&mut self, words: &str) -> String {
        writeln!(self.input, "{words}").expect("write");
        self.line()
    }

    pub(crate) fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    fn inodes(&self) -> HashSet<String> {
        sockets_of(self.pid())
    }
}

impl Drop for Talker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn sockets_of(pid: i32) -> HashSet<String> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd")).expect("a process of ours");
    let links = entries.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    links.map(|link| link.to_string_lossy().into_owned()).filter(|link| link.starts_with("socket:")).collect()
}

fn unread(arrivals: &Arrivals) -> Vec<u64> {
    let mut jobs = Vec::new();
    arrivals.unread(&mut |job| jobs.push(job));
    jobs
}

#[test]
fn a_message_counts_from_its_arrival_until_it_is_read() {
    for apart in [false, true] {
        if apart && !rustix::process::geteuid().is_root() {
            println!("SKIPPED: needs root");
            return;
        }
        let (Some(mut one), Some(mut two)) = (Talker::start(apart), Talker::start(apart)) else { return };
        let mut arrivals = Arrivals::new().unwrap();
        let sockets = arrivals.watch(1, false).unwrap();
        arrivals.watch(2, false).unwrap();
        for kind in ["tcp", "unix", "datagram", "udp"] {
            assert_eq!([one.tell(&format!("pair {kind}")), two.tell(&format!("pair {kind}"))], ["ok", "ok"]);
            let scan = arrivals.rescan(1, &[one.pid()]).unwrap();
            assert_eq!((scan.added, scan.refused), (2, 0), "{kind}: {scan:?}");
            arrivals.rescan(2, &[two.pid()]).unwrap();
            assert_eq!(unread(&arrivals), [], "{kind}");
            assert_eq!(two.tell("send"), "one");
            assert!(within(|| unread(&arrivals) == [2]), "{kind}");
            assert_eq!(one.tell("send"), "one");
            assert!(within(|| unread(&arrivals) == [1, 2]) && sockets.has_message(), "{kind}");
            assert_eq!([one.tell("recv"), two.tell("recv")], ["one", "one"]);
            assert_eq!(unread(&arrivals), [], "{kind}, apart: {apart}");
        }
        assert_eq!(arrivals.rescan(1, &[one.pid()]).unwrap().added, 0, "nothing twice");
        assert_eq!(arrivals.sockets(), 4);
    }
}

#[test]
fn listening_sockets_and_ends_do_not_count_for_ever() {
    let Some(mut talker) = Talker::start(false) else { return };
    let mut arrivals = Arrivals::new().unwrap();
    let sockets = arrivals.watch(1, false).unwrap();
    talker.tell("pair listener");
    let scan = arrivals.rescan(1, &[talker.pid()]).unwrap();
    assert_eq!(scan.added, 1, "only the caller");
    assert!(!sockets.has_message(), "a connection to accept is no message");
    for kind in ["tcp", "unix"] {
        talker.tell(&format!("pair {kind}"));
        arrivals.rescan(1, &[talker.pid()]).unwrap();
        talker.tell("send");
        talker.tell("shut");
        assert!(within(|| sockets.has_message()));
        let scan = arrivals.rescan(1, &[talker.pid()]).unwrap();
        assert!(sockets.has_message() && scan.ended == 0, "{kind}: what came before the end is still unread");
        talker.tell("recv");
        assert!(within(|| arrivals.rescan(1, &[talker.pid()]).unwrap().ended == 1), "{kind}");
        assert!(!sockets.has_message(), "{kind}: the bare end is no message");
    }
}

#[test]
fn watching_holds_nothing_open_and_leaves_nothing() {
    let Some(mut talker) = Talker::start(false) else { return };
    let mut arrivals = Arrivals::new().unwrap();
    let sockets = arrivals.watch(1, true).unwrap();
    for _ in 0..20 {
        talker.tell("pair tcp");
        assert_eq!(arrivals.rescan(1, &[talker.pid()]).unwrap().added, 2);
        assert!(sockets_of(std::process::id() as i32).is_disjoint(&talker.inodes()), "no duplicate is kept");
        assert_eq!(talker.tell("half"), "end", "the other side sees the close at once");
    }
    arrivals.rescan(1, &[talker.pid()]).unwrap();
    assert_eq!(arrivals.sockets(), 0, "closed ones are forgotten");
    talker.tell("pair unix");
    arrivals.rescan(1, &[talker.pid()]).unwrap();
    talker.tell("send");
    assert!(within(|| sockets.has_message()));
    arrivals.forget(1);
    assert!(!sockets.has_message() && unread(&arrivals).is_empty(), "a job that is forgotten has no message");
    assert_eq!(arrivals.rescan(1, &[talker.pid()]).unwrap().added, 0);
}

fn rings(arrivals: &Arrivals, wait_ms: i64) -> Vec<u64> {
    rung(&arrivals.bell(), wait_ms)
}

fn rung(bell: &ArrivalBell, wait_ms: i64) -> Vec<u64> {
    let limit = Timespec { tv_sec: 0, tv_nsec: wait_ms * 1_000_000 };
    let mut jobs = Vec::new();
    if poll(&mut [PollFd::new(&bell.as_fd(), PollFlags::IN)], Some(&limit)).unwrap() > 0 {
        bell.answer(&mut |job| jobs.push(job));
    }
    jobs
}

#[test]
fn the_bell_rings_once_for_each_message_and_only_for_jobs_that_ring() {
    let (Some(mut one), Some(mut two)) = (Talker::start(false), Talker::start(false)) else { return };
    let mut arrivals = Arrivals::new().unwrap();
    arrivals.watch(1, true).unwrap();
    arrivals.watch(2, false).unwrap();
    for (job, talker) in [(1, &mut one), (2, &mut two)] {
        talker.tell("pair tcp");
        arrivals.rescan(job, &[talker.pid()]).unwrap();
    }
    rings(&arrivals, 0);
    one.tell("send");
    assert!(within(|| rings(&arrivals, 100) == [1]));
    assert_eq!(rings(&arrivals, 50), [], "unread, but not new");
    one.tell("send");
    assert!(within(|| rings(&arrivals, 100) == [1]));
    two.tell("send");
    assert_eq!(rings(&arrivals, 50), []);
    arrivals.watch(2, true).unwrap();
    two.tell("send");
    assert!(within(|| rings(&arrivals, 100) == [2]));
    arrivals.watch(1, false).unwrap();
    one.tell("send");
    assert_eq!(rings(&arrivals, 50), [], "it rings no more");
    assert!(unread(&arrivals) == [1, 2], "but still counts");
}

#[test]
fn a_process_that_may_not_be_looked_into_is_named() {
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: needs root");
        return;
    }
    let Some(talker) = Talker::start(false) else { return };
    let output = Command::new(helper()).args(["look-into", &talker.pid().to_string()]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(text.starts_with("1 ") && text.contains(&talker.pid().to_string()) && text.contains("root"), "{text}");
    let bpf = text.lines().nth(1).unwrap_or_default();
    assert!(bpf.contains("epoll sets are used instead"), "BPF needs rights, too: {text}");
}

#[test]
fn scans_pace_themselves() {
    let Some(mut talker) = Talker::start(false) else { return };
    let mut arrivals = Arrivals::new().unwrap();
    arrivals.watch(1, false).unwrap();
    let monotonic_ns = cosched_linux::observe::monotonic_ns;
    assert!(arrivals.next_scan_ns(1).unwrap() <= monotonic_ns() && arrivals.next_scan_ns(2).is_none());
    talker.tell("pair tcp");
    let scan = arrivals.rescan(1, &[talker.pid()]).unwrap();
    let now_ns = monotonic_ns();
    assert!(scan.cost_ns > 0 && !scan.unfinished);
    assert!((now_ns..now_ns + 6_000_000_000).contains(&arrivals.next_scan_ns(1).unwrap()));
}

#[test]
fn the_bpf_program_announces_messages_of_its_jobs() {
    let mut bpf = match BpfArrivals::load() {
        Ok(bpf) => bpf,
        Err(problem) => {
            eprintln!("SKIPPED: {problem}");
            return;
        }
    };
    let Some(scene) = Scene::new() else { return };
    let (Some(mut ours), Some(mut apart), Some(mut other)) =
        (Talker::start(false), Talker::start(true), Talker::start(false))
    else {
        return;
    };
    let jobs = [(1, &ours), (2, &apart), (3, &other)].map(|(id, talker)| {
        let job = scene.tree.create_job(id).unwrap();
        job.attach(talker.pid()).unwrap();
        job
    });
    bpf.watch(&jobs[0], Duration::ZERO).unwrap();
    bpf.watch(&jobs[1], Duration::from_secs(3600)).unwrap();
    let bell = bpf.bell();
    for kind in ["tcp", "unix", "datagram", "udp"] {
        for talker in [&mut ours, &mut other] {
            talker.tell(&format!("pair {kind}"));
        }
        rung(&bell, 50);
        other.tell("send");
        assert_eq!(rung(&bell, 50), [], "{kind}: nobody asked for job 3");
        ours.tell("send");
        assert!(within(|| rung(&bell, 100).contains(&1)), "{kind}");
        assert_eq!(rung(&bell, 50), [], "{kind}: once");
    }
    apart.tell("pair tcp");
    apart.tell("send");
    assert!(within(|| rung(&bell, 100) == [2]), "in another network namespace");
    apart.tell("send");
    assert_eq!(rung(&bell, 100), [], "at most once in its pause");
    bpf.forget(1);
    ours.tell("send");
    assert_eq!(rung(&bell, 100), [], "it rings no more");
    for job in &jobs {
        job.kill().unwrap();
        assert!(within(|| !job.populated().unwrap()));
    }
}
