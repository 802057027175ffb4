//! Several processes, started by Open MPI and by MPICH.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::harness::{PROGRAM, Place, done, finish, finish_child, has, has_unnamed_file, refused, skipped};

struct Implementation {
    compiler: &'static str,
    launcher: &'static [&'static str],
}

const OPEN_MPI: Implementation =
    Implementation { compiler: "mpicc.openmpi", launcher: &["mpirun.openmpi", "--oversubscribe", "-n", "2"] };
const MPICH: Implementation = Implementation { compiler: "mpicc.mpich", launcher: &["mpiexec.mpich", "-n", "2"] };

impl Implementation {
    /// The library for this implementation, built for this test.
    fn library(&self, place: &Place) -> Option<PathBuf> {
        if !has(self.compiler) || !has(self.launcher[0]) {
            skipped(&format!("no {} or no {}", self.compiler, self.launcher[0]));
            return None;
        }
        let source = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../programs/columnsort_mpi.c");
        let library = place.path("lib.so");
        let mut compiler = Command::new(self.compiler);
        compiler.args(["-O2", "-shared", "-fPIC", "-o"]).arg(&library).arg(source);
        done(finish(place.here(compiler)));
        Some(library)
    }

    fn command(&self, place: &Place, args: &[&str]) -> Command {
        let mut command = Command::new(self.launcher[0]);
        command.args(&self.launcher[1..]).arg(PROGRAM).args(args);
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        place.here(command)
    }
}

fn sorts(implementation: &Implementation) {
    let place = Place::new();
    let Some(library) = implementation.library(&place) else { return };
    let library = library.to_str().unwrap();
    place.json(&["generate", "in", "--records", "30011", "--keys", "few"]);
    for passes in ["3", "4"] {
        let args =
            ["sort", "in", "-o", "out", "--force", "--memory", "2M", "--passes", passes, "--mpi", library, "--json"];
        let report: serde_json::Value =
            serde_json::from_str(&done(finish(implementation.command(&place, &args)))).unwrap();
        assert_eq!(report["plan"]["shape"]["processes"], 2);
        let stages = report["passes"][0]["stages"].as_array().unwrap();
        assert!(stages.iter().any(|stage| stage["resource"] == "communicate" && stage["rounds"].as_u64() > Some(0)));
        let checked = place.json(&["check", "out", "--against", "in"]);
        assert_eq!((&checked["in_order"], &checked["same"]), (&true.into(), &true.into()));
        assert_eq!(place.names(), ["in", "lib.so", "out"]);
    }
}

/// One of the processes finds that it cannot work: all end, and one reports why.
fn refuses(implementation: &Implementation) {
    let place = Place::new();
    let Some(library) = implementation.library(&place) else { return };
    place.json(&["generate", "in", "--records", "1000"]);
    let args = ["sort", "in", "-o", "out", "--rows", "100", "--columns", "50", "--mpi", library.to_str().unwrap()];
    let output = finish(implementation.command(&place, &args));
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("rows >= 2 (columns - 1)^2"), "{said}");
    assert_eq!(place.names(), ["in", "lib.so"]);
}

/// The process of a launcher with this rank, found by its directory and its environment.
fn process(place: &Place, rank: u32) -> Option<Pid> {
    let here = std::fs::canonicalize(place.path(".")).unwrap();
    let ranks = [format!("OMPI_COMM_WORLD_RANK={rank}"), format!("PMI_RANK={rank}")];
    let is_it = |pid: i32| {
        let of = |what: &str| format!("/proc/{pid}/{what}");
        let there = std::fs::read_link(of("cwd")).is_ok_and(|cwd| cwd == here);
        let program = std::fs::read_link(of("exe")).is_ok_and(|exe| exe.ends_with("cosched-columnsort"));
        let environment = std::fs::read(of("environ")).unwrap_or_default();
        there
            && program
            && environment.split(|byte| *byte == 0).any(|word| ranks.iter().any(|rank| word == rank.as_bytes()))
    };
    let pids =
        std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    pids.into_iter().find(|pid| is_it(*pid)).map(Pid::from_raw)
}

/// The launcher is told to end, or its first process is killed: no process is left. The second process is stopped meanwhile, so
/// that the first one waits for it and cannot end before.
fn stops(implementation: &Implementation, killed: bool) {
    let place = Place::new();
    let Some(library) = implementation.library(&place) else { return };
    place.json(&["generate", "in", "--bytes", "40M", "--record-size", "10"]);
    let library = library.to_str().unwrap();
    let args =
        ["sort", "in", "-o", "out", "--record-size", "10", "--version", "compute", "--memory", "20M", "--mpi", library];
    let launcher = implementation.command(&place, &args).spawn().unwrap();
    let begin = Instant::now();
    let second = loop {
        assert!(begin.elapsed() < Duration::from_secs(20), "it never began");
        std::thread::sleep(Duration::from_millis(5));
        if let Some(second) = process(&place, 1).filter(|second| has_unnamed_file(second.as_raw() as u32)) {
            break second;
        }
    };
    kill(second, Signal::SIGSTOP).unwrap();
    let first = process(&place, 0).expect("it waits for the second one");
    match killed {
        true => kill(first, Signal::SIGKILL).unwrap(),
        false => kill(Pid::from_raw(launcher.id() as i32), Signal::SIGINT).unwrap(),
    }
    let patience = Instant::now();
    while process(&place, 0).is_some() && patience.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(20));
    }
    // A launcher that first sends a catchable signal would wait for the stopped process.
    if process(&place, 1) == Some(second) {
        let _ = kill(second, Signal::SIGCONT);
    }
    // The exit status is the launcher's own business: MPICH's has reported success.
    finish_child(launcher);
    while process(&place, 1).is_some() {
        assert!(patience.elapsed() < Duration::from_secs(50), "a process is left");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(place.names(), ["in", "lib.so"]);
}

#[test]
fn open_mpi_sorts() {
    sorts(&OPEN_MPI);
}

#[test]
fn mpich_sorts() {
    sorts(&MPICH);
}

#[test]
fn open_mpi_refuses() {
    refuses(&OPEN_MPI);
}

#[test]
fn mpich_refuses() {
    refuses(&MPICH);
}

#[test]
fn open_mpi_stops() {
    stops(&OPEN_MPI, false);
    stops(&OPEN_MPI, true);
}

#[test]
fn mpich_stops() {
    stops(&MPICH, false);
    stops(&MPICH, true);
}

#[test]
fn a_launcher_without_its_library_is_named() {
    let place = Place::new();
    place.json(&["generate", "in", "--records", "10"]);
    // A copy of the program in a directory without the library.
    let copy = place.path("columnsort");
    std::fs::copy(PROGRAM, &copy).unwrap();
    let mut command = Command::new(&copy);
    command.args(["sort", "in", "-o", "out"]).env("OMPI_COMM_WORLD_SIZE", "2");
    let message = refused(finish(place.here(command)), 1);
    assert!(message.contains("Open MPI started 2 processes, but libcosched_mpi_openmpi.so is not in:"), "{message}");
    let mut alone = Command::new(&copy);
    alone.args(["sort", "in", "-o", "out", "--mpi", "none", "--json"]).env("OMPI_COMM_WORLD_SIZE", "2");
    done(finish(place.here(alone)));
}
