//! `cosched record` with real MPI programs: the recording matches what the program did, and the simulator does the same.

use cosched_tests::{PATIENCE, bin_dir, procs, stderr, stdout, wait_until};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// An MPI: its name in a profile, its compiler and its launcher, and the directory of its test programs.
const MPIS: [(&str, &str, &str, &str); 2] = [
    ("Open MPI", "mpicc.openmpi", "mpirun.openmpi", "build/programs"),
    ("MPICH", "mpicc.mpich", "mpiexec.mpich", "build/programs/mpich"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_owned()
}

fn scratch() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("cst-").tempdir().expect("temporary directory")
}

fn has(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|out| out.status.success())
}

fn cosched(dir: &Path) -> Command {
    let mut command = Command::new(bin_dir().join("cosched"));
    command
        .current_dir(dir)
        .env("TMPDIR", dir)
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
        .stdin(Stdio::null());
    command
}

fn run(dir: &Path, args: &[&str]) -> Output {
    cosched(dir).args(args).output().expect("cosched runs")
}

fn profile(dir: &Path, name: &str) -> Value {
    let text = std::fs::read_to_string(dir.join(name)).expect("a profile");
    serde_json::from_str(&text).expect("JSON")
}

/// The program of this test for each installed MPI: (name, launcher, program).
fn known(dir: &Path) -> Vec<(&'static str, &'static str, String)> {
    let mut found = Vec::new();
    for (name, compiler, launcher, _) in MPIS {
        if !has(compiler) || !has(launcher) {
            println!("SKIPPED: no {compiler} or no {launcher}");
            continue;
        }
        let program = dir.join(format!("known-{compiler}"));
        let source = root().join("tests/tests/record/known.c");
        let built =
            Command::new(compiler).args(["-O1", "-w", "-o"]).arg(&program).arg(source).status().expect("a compiler");
        assert!(built.success(), "{compiler}");
        found.push((name, launcher, program.to_str().expect("UTF-8").to_owned()));
    }
    found
}

/// Sends and receives of a task, and its computation in ns, from the program's text as the simulator reads it.
fn sum(operations: &Value, times: u64, to: &mut impl FnMut(&Value, u64)) {
    for step in operations.as_array().expect("a list") {
        match step["repeat"].as_u64() {
            Some(repeat) => sum(&step["body"], times * repeat, to),
            None => to(step, times),
        }
    }
}

/// How often each event occurs in a task's operations, by a text that names it.
fn events(task: &Value) -> std::collections::BTreeMap<String, u64> {
    let mut found = std::collections::BTreeMap::new();
    sum(&task["operations"], 1, &mut |step, times| {
        for event in step["does"].as_array().map_or(&[][..], Vec::as_slice) {
            *found.entry(event.to_string()).or_default() += times;
        }
    });
    found
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}

#[test]
fn what_was_recorded_is_what_the_program_did() {
    let dir = scratch();
    for (name, launcher, program) in known(dir.path()) {
        for ranks in [2_u64, 4] {
            let args = ["record", "-o", "p.json", "--", launcher, "-n", &ranks.to_string(), &program];
            let out = run(dir.path(), &args);
            assert!(out.status.success(), "{name}: {}", stderr(&out));
            let profile = profile(dir.path(), "p.json");
            assert_eq!((&profile["library"], &profile["complete"]), (&name.into(), &true.into()), "{profile}");
            assert_eq!(
                profile["warnings"]
                    .as_array()
                    .map(|list| list.iter().filter(|w| !w.to_string().contains("CPU")).count()),
                Some(0),
                "{profile}"
            );
            for rank in 0..ranks {
                check_task(&profile["each"][rank as usize], rank, ranks, number(&profile["elapsed_s"]));
            }
            replay(dir.path(), &profile);
        }
        let left = std::fs::read_dir(dir.path())
            .unwrap()
            .flatten()
            .any(|e| e.file_name().to_string_lossy().contains("cosched-record"));
        assert!(!left, "the files of the ranks are gone");
    }
}

fn check_task(task: &Value, rank: u64, ranks: u64, elapsed_s: f64) {
    let (right, left) = ((rank + 1) % ranks, (rank + ranks - 1) % ranks);
    let found = events(task);
    let count = |text: String| found.get(&text).copied().unwrap_or(0);
    let sent = |to: u64, bytes: u64| count(format!("{{\"send\":{{\"bytes\":{bytes},\"to\":{to}}}}}"));
    let received = |from: u64, bytes: u64| count(format!("{{\"receive\":{{\"bytes\":{bytes},\"from\":{from}}}}}"));
    assert_eq!((sent(right, 800), received(left, 800)), (20, 20), "rank {rank} of {ranks}: {found:?}");
    // It also sends 8 bytes to itself once.
    assert_eq!((sent(right, 8), received(left, 8)), (20, 20), "rank {rank} of {ranks}: {found:?}");
    // In the reversed communicator, the right neighbour is the left one.
    assert_eq!((sent(left, 56), received(right, 56), sent(rank, 8)), (1, 1, 1), "rank {rank} of {ranks}: {found:?}");
    let together: Vec<(&String, &u64)> = found.iter().filter(|(text, _)| text.contains("allreduce")).collect();
    assert_eq!(together.iter().map(|(_, times)| **times).sum::<u64>(), 20, "{found:?}");
    let nonblocking = found.iter().filter(|(text, _)| text.contains("\"begin\"") || text.contains("\"end\""));
    assert_eq!(nonblocking.map(|(_, times)| *times).sum::<u64>(), 2, "{found:?}");
    assert_eq!((task["messages"].as_u64(), task["received"].as_u64()), (Some(42), Some(42)));
    // 20 ms of computation by its own clock, longer where others have the CPU; 100 ms of sleep, which are not included. The
    // sleep between tests is no I/O.
    let compute_s = number(&task["compute_s"]);
    assert!(compute_s >= 0.020 && compute_s + 0.09 < elapsed_s, "{compute_s} of {elapsed_s}");
    assert!(number(&task["io_s"]) >= 0.09, "{}", task["io_s"]);
    let mut compute_ns = 0;
    sum(&task["operations"], 1, &mut |step, _| compute_ns += step["compute_ns"].as_u64().unwrap_or(0));
    assert!((compute_ns as f64 / 1e9 - compute_s).abs() < 1e-9, "nothing is lost by writing loops");
}

/// Alone in the simulator it takes at least the computation and I/O of its longest task, and at most as long as it took on
/// this machine, where others may have disturbed it (plus a tenth, because the costs of messages are estimates).
fn replay(dir: &Path, profile: &Value) {
    let out =
        run(dir, &["--json", "sim", "program", "--profile", "p.json", "--copies", "1", "--strategies", "GS", "-q"]);
    assert!(out.status.success(), "{}", stderr(&out));
    let rows: Value = serde_json::from_str(&stdout(&out)).unwrap();
    let replayed_s = number(&rows[0]["mean_execution_s"]);
    let longest = profile["each"].as_array().unwrap().iter().map(|t| number(&t["compute_s"]) + number(&t["io_s"]));
    let longest_s = longest.fold(0.0, f64::max);
    let elapsed_s = number(&profile["elapsed_s"]);
    assert!(replayed_s >= 0.999 * longest_s && replayed_s <= 1.1 * elapsed_s, "{longest_s} {replayed_s} {elapsed_s}");
}

#[test]
fn the_programs_of_the_experiments_can_be_replayed() {
    let dir = scratch();
    for (name, _, launcher, programs) in MPIS {
        let commands = [("barrier-mpi", "--grain-us 200 --iterations 200"), ("matmul", "--n 200"), ("lu", "--n 200")];
        for ranks in [2, 4] {
            for (program, options) in commands {
                let path = root().join(programs).join(program);
                if !path.exists() || !has(launcher) {
                    println!("SKIPPED: no {} or no {launcher}; `make programs` builds it", path.display());
                    continue;
                }
                let mut args = vec!["record", "-q", "-o", "p.json", "--", launcher, "-n"];
                let ranks = ranks.to_string();
                args.extend([ranks.as_str(), path.to_str().unwrap()]);
                args.extend(options.split(' '));
                let out = run(dir.path(), &args);
                assert!(out.status.success(), "{name} {program}: {}", stderr(&out));
                let profile = profile(dir.path(), "p.json");
                assert_eq!(profile["tasks"].to_string(), ranks, "{program}");
                if program == "barrier-mpi" {
                    let barriers = |task: &Value| {
                        events(task).iter().filter(|(text, _)| text.contains("barrier")).map(|(_, n)| *n).sum::<u64>()
                    };
                    assert!(profile["each"].as_array().unwrap().iter().all(|task| barriers(task) >= 200), "{profile}");
                }
                replay(dir.path(), &profile);
            }
        }
    }
}

#[test]
fn persistent_requests_are_named_and_missing_tasks_refused() {
    let dir = scratch();
    for (name, launcher, program) in known(dir.path()) {
        let out = run(dir.path(), &["record", "-o", "p.json", "--", launcher, "-n", "2", &program, "persistent"]);
        assert!(out.status.success(), "{name}: {}", stderr(&out));
        assert!(stderr(&out).contains("MPI_Send_init, MPI_Start"), "{name}: {}", stderr(&out));
        let out = run(dir.path(), &["sim", "program", "--profile", "p.json", "--tasks", "8"]);
        assert_eq!(out.status.code(), Some(1));
        assert!(
            stderr(&out).contains("has 2 tasks, not 8") && stderr(&out).contains("one recording"),
            "{}",
            stderr(&out)
        );
    }
}

#[test]
fn a_program_that_dies_leaves_what_it_did_and_its_exit_code() {
    let dir = scratch();
    for (name, launcher, program) in known(dir.path()) {
        let out = run(dir.path(), &["record", "-o", "p.json", "--", launcher, "-n", "2", &program, "dies"]);
        assert!(!out.status.success(), "{name}");
        let profile = profile(dir.path(), "p.json");
        assert_eq!((&profile["complete"], profile["exit"].as_i64()), (&false.into(), out.status.code().map(i64::from)));
        assert!(
            stderr(&out).contains("without MPI_Finalize") && stderr(&out).contains("INCOMPLETE"),
            "{}",
            stderr(&out)
        );
        // Both ranks were at the same place, so even this can be replayed.
        assert_eq!(
            events(&profile["each"][0]).values().sum::<u64>(),
            events(&profile["each"][1]).values().sum::<u64>()
        );
    }
}

#[test]
fn an_interrupt_ends_the_job_and_keeps_the_recording() {
    let dir = scratch();
    for (name, launcher, program) in known(dir.path()) {
        let mut child = cosched(dir.path())
            .args(["record", "-o", "p.json", "--", launcher, "-n", "2", &program, "stays"])
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap());
        let mut lines = lines.lines();
        assert!(lines.by_ref().map_while(Result::ok).any(|line| line.contains("here")), "{name}");
        procs::signal(child.id() as i32, rustix::process::Signal::INT);
        let rest = std::thread::spawn(move || lines.map_while(Result::ok).collect::<Vec<_>>().join("\n"));
        assert!(wait_until(|| child.try_wait().unwrap().is_some()), "{name}: it did not end in {PATIENCE:?}");
        let said = rest.join().unwrap();
        assert!(said.contains("INCOMPLETE"), "{name}: {said}");
        assert_eq!(profile(dir.path(), "p.json")["each"][0]["messages"].as_u64(), Some(42), "{name}");
        assert!(!procs_of(&program), "{name}: processes are left");
    }
}

/// Whether a process runs this program; it may take a moment to end.
fn procs_of(program: &str) -> bool {
    let runs = || {
        std::fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .any(|entry| std::fs::read_link(entry.path().join("exe")).is_ok_and(|exe| exe == Path::new(program)))
    };
    !wait_until(|| !runs())
}

#[test]
fn operations_beyond_the_limit_are_in_the_totals() {
    let dir = scratch();
    for (name, launcher, program) in known(dir.path()) {
        let out = run(dir.path(), &["record", "--limit", "1K", "-o", "p.json", "--", launcher, "-n", "2", &program]);
        assert!(out.status.success(), "{name}: {}", stderr(&out));
        let profile = profile(dir.path(), "p.json");
        assert_eq!(profile["complete"], false);
        assert!(stderr(&out).contains("after --limit"), "{}", stderr(&out));
        assert_eq!(profile["each"][0]["messages"].as_u64(), Some(42), "{name}");
        assert!(number(&profile["each"][0]["compute_s"]) >= 0.02);
    }
}

#[test]
fn a_program_without_mpi_is_observed() {
    let dir = scratch();
    let script = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
    let both = format!("({script}) & {script}; wait; exit 3");
    let out = run(dir.path(), &["record", "-o", "p.json", "--", "sh", "-c", &both]);
    assert_eq!(out.status.code(), Some(3), "{}", stderr(&out));
    assert!(stderr(&out).contains("by observation") && stderr(&out).contains("no MPI call"), "{}", stderr(&out));
    let profile = profile(dir.path(), "p.json");
    assert_eq!((&profile["by"], profile["exit"].as_u64()), (&"observation".into(), Some(3)));
    let sum: f64 = profile["each"].as_array().unwrap().iter().map(|task| number(&task["compute_s"])).sum();
    assert!(sum > 0.05, "{profile}");
    replay(dir.path(), &profile);
}

#[test]
fn mistakes_are_found_before_anything_runs() {
    let dir = scratch();
    let fails = |args: &[&str], code: i32, what: &str| {
        let out = run(dir.path(), args);
        assert_eq!(out.status.code(), Some(code), "{args:?}: {}", stderr(&out));
        assert!(stderr(&out).contains(what), "{args:?}: {}", stderr(&out));
        assert!(!dir.path().join("ran").exists(), "{args:?}");
    };
    fails(&["record", "-o", "/nowhere/p.json", "--", "touch", "ran"], 125, "cannot write /nowhere/p.json");
    fails(&["record", "--scratch", "/nowhere", "--", "touch", "ran"], 125, "cannot make a directory in /nowhere");
    fails(&["record", "--", "no-such-program-here"], 127, "not found");
    fails(&["record", "--limit", "much", "--", "touch", "ran"], 125, "much");
    fails(&["record", "--limit", "0B", "--", "touch", "ran"], 125, "nothing would be recorded");
    std::fs::write(dir.path().join("bad.json"), "{\"format\":\"cosched-profile-7\"}").unwrap();
    fails(&["sim", "program", "--profile", "bad.json"], 1, "this cosched reads cosched-profile-1");
    fails(&["profile", "show", "none.json"], 1, "cannot read none.json");
    fails(&["sim", "program"], 2, "required arguments");
}
