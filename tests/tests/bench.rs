//! `cosched bench slowdown` on programs with known behaviour, on programs that do not end well, and on a real MPI
//! program. Times are compared with CPU times of the same run, which noise cannot break.

use cosched_tests::{Daemon, bin_dir, needs_root, procs, stderr, stdout, wait_until};
use rustix::process::Signal;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// About a quarter of a second of CPU time in a shell.
const SPIN: &str = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";

/// A bench that needs no daemon, on one CPU.
fn bench(options: &[&str]) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", "0"]).arg(bin_dir().join("cosched")).args(["bench", "slowdown", "--policies", "linux"]);
    command.args(options).env("COSCHED_SOCKET", "/nonexistent/cosched.sock").stdin(Stdio::null());
    command
}

fn output(mut command: Command) -> Output {
    command.output().expect("taskset and cosched run")
}

fn document(output: &Output) -> Value {
    serde_json::from_str(&stdout(output)).unwrap_or_else(|e| panic!("{e}: {}\n{}", stdout(output), stderr(output)))
}

fn result<'a>(document: &'a Value, policy: &str, jobs: u64) -> &'a Value {
    let rows = document["results"].as_array().expect("results");
    rows.iter().find(|row| row["policy"] == policy && row["jobs"] == jobs).unwrap_or_else(|| panic!("{document:#}"))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// CPU time of all jobs of the runs with this number of jobs, for each run.
fn cpu_s(document: &Value, jobs: u64) -> Vec<f64> {
    let runs = document["runs"].as_array().expect("runs").iter().filter(|run| run["jobs"] == jobs);
    let of = |run: &Value| -> f64 {
        run["each"]
            .as_array()
            .expect("each")
            .iter()
            .map(|each| number(&each["user_s"]) + number(&each["system_s"]))
            .sum()
    };
    runs.map(of).collect()
}

/// Processes whose command line has this word.
fn with_word(word: &str) -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").expect("/proc").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let has = |pid: &i32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|part| part == word.as_bytes())
    };
    pids.filter(has).collect()
}

#[test]
fn spinners_on_one_cpu_take_turns_and_sleepers_do_not() {
    let spin = document(&output(bench(&["--jobs", "1,2", "--repeat", "3", "--json", "--", "sh", "-c", SPIN])));
    assert_eq!((&spin["format"], &spin["cpus"]), (&"cosched-slowdown-1".into(), &1.into()));
    let (one, two) = (cpu_s(&spin, 1), cpu_s(&spin, 2));
    // Two jobs have twice the work of one, and one CPU needs at least as long as their CPU time.
    let least = |times: &[f64]| times.iter().copied().fold(f64::MAX, f64::min);
    let ratio = least(&two) / least(&one);
    assert!(ratio > 1.4 && ratio < 3.0, "{one:?} {two:?}");
    let row = result(&spin, "linux", 2);
    assert!(number(&row["time_min_s"]) > 0.95 * least(&two), "{row}");
    assert!(number(&row["cpu_share"]) <= 1.05, "{row}");

    let sleep = document(&output(bench(&["--jobs", "1,6", "--repeat", "1", "--json", "--", "sleep", "0.5"])));
    let row = result(&sleep, "linux", 6);
    // One after the other they would take 3 s.
    assert!(number(&row["time_s"]) >= 0.5 && number(&row["slowdown"]) < 4.0, "{row}");
    assert!(number(&row["cpu_share"]) < 0.3 && number(&row["jain"]) > 0.8, "{row}");

    let half = format!("sleep 0.25; {SPIN}");
    let half = document(&output(bench(&["--jobs", "1,3", "--repeat", "1", "--json", "--", "sh", "-c", &half])));
    let row = result(&half, "linux", 3);
    // In between: at least all CPU time after the sleep, or nearly; less than one after the other unless other programs
    // disturb.
    assert!(number(&row["time_s"]) > 0.25 && number(&row["time_s"]) > 0.9 * cpu_s(&half, 3)[0], "{row}");
    let share = |document: &Value| number(&document["single"]["cpu_share"]);
    assert!(share(&sleep) < share(&half) && share(&half) < 0.9, "{} {}", share(&sleep), share(&half));
}

#[test]
fn what_does_not_end_well_is_reported_and_not_averaged() {
    let dir = tempfile::Builder::new().prefix("cst-").tempdir().unwrap();
    // It fails when it does not run alone: the second finds the directory of the first.
    let lock = dir.path().join("lock");
    let script = format!("mkdir {0} || {{ echo I am not alone; exit 3; }}; sleep 0.3; rmdir {0}", lock.display());
    let out = output(bench(&["--jobs", "1,2", "--repeat", "1", "--json", "--", "sh", "-c", &script]));
    assert_eq!(out.status.code(), Some(1), "{}", stderr(&out));
    let failing = document(&out);
    let row = result(&failing, "linux", 2);
    assert_eq!(
        (row["runs"].as_u64(), &row["time_s"], &row["not_done_outcome"]),
        (Some(0), &Value::Null, &"failed".into())
    );
    let why = row["not_done_why"].as_str().unwrap();
    assert!(why.contains("exit code 3") && why.contains("I am not alone"), "{why}");
    assert_eq!(number(&result(&failing, "linux", 1)["slowdown"]), 1.0);

    // Alone it is fast, with others it never ends. The time limit ends it, and nothing is left.
    let marks = dir.path().join("marks");
    std::fs::create_dir(&marks).unwrap();
    let script = format!("cd {}; : >$$; sleep 0.2; [ $(ls | wc -l) = 1 ] || sleep 7654.3; rm $$", marks.display());
    let out =
        output(bench(&["--jobs", "1,2", "--repeat", "2", "--limit", "1.5s", "--json", "--", "sh", "-c", &script]));
    let hanging = document(&out);
    let row = result(&hanging, "linux", 2);
    assert_eq!((&row["not_done_outcome"], &row["slowdown"]), (&"limit".into(), &Value::Null));
    assert_eq!(row["not_done"], 1, "it is not tried again");
    assert_eq!(with_word("7654.3"), Vec::<i32>::new());

    // 512 of these need far more memory than the machine has; they are not started.
    let dd = ["dd", "if=/dev/zero", "of=/dev/null", "bs=300M", "count=1", "status=none"];
    let out = output(bench(&[&["--jobs", "1,512", "--repeat", "1", "--json", "--"], &dd[..]].concat()));
    let large = document(&out);
    let has_less = std::fs::read_to_string("/proc/meminfo").unwrap().lines().any(|line| {
        let kib =
            line.strip_prefix("MemAvailable:").and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
        kib.is_some_and(|kib| kib < 512 * 300 * 1024)
    });
    if has_less {
        let row = result(&large, "linux", 512);
        assert_eq!((&row["not_done_outcome"], &row["time_s"]), (&"memory".into(), &Value::Null));
        assert!(row["not_done_why"].as_str().unwrap().starts_with("512 jobs need"), "{row}");
    }

    let out = output(bench(&["--", "sh", "-c", "echo no luck; exit 9"]));
    assert_eq!(out.status.code(), Some(1));
    assert!(stderr(&out).contains("one job alone") && stderr(&out).contains("no luck"), "{}", stderr(&out));
}

#[test]
fn bad_input_is_refused_before_anything_runs() {
    let dir = tempfile::Builder::new().prefix("cst-").tempdir().unwrap();
    let mark = dir.path().join("ran");
    let touch = ["--", "touch", mark.to_str().unwrap()];
    let list = dir.path().join("mix.toml");
    std::fs::write(&list, "[[job]]\nname = 'a'\ncommand = ['cst-no-such-program']\n").unwrap();
    let list = list.to_str().unwrap();
    let cases: [(&[&str], i32, &str); 11] = [
        (&["--jobs", "0"], 2, "0"),
        (&["--jobs", ""], 2, "--jobs"),
        (&["--repeat", "0"], 2, "--repeat"),
        (&["--limit", "0s"], 2, "a time above 0"),
        (&["--limit=-1s"], 2, "is no duration"),
        (&["--limit", "90"], 2, "write 90ms, 90s or 90m"),
        (&["--policies", "gangs"], 2, "did you mean gang?"),
        (&["--policies", "slurm-gang"], 6, "scontrol"),
        (&["--phase-regex", "("], 2, "--phase-regex"),
        (&["--policies", "gang"], 3, ""),
        (&["--out", "/proc/cst-none"], 1, "/proc/cst-none"),
    ];
    for (options, code, word) in cases {
        let mut command = Command::new(bin_dir().join("cosched"));
        command.args(["bench", "slowdown", "--policies", "linux"]);
        if options[0] == "--policies" {
            command = Command::new(bin_dir().join("cosched"));
            command.args(["bench", "slowdown"]);
        }
        command.env("COSCHED_SOCKET", "/proc/cst-none/sock").env("COSCHED_DAEMON", "/nonexistent");
        let out = output({
            command.args(options).args(touch);
            command
        });
        assert_eq!(out.status.code(), Some(code), "{options:?}: {}", stderr(&out));
        assert!(stderr(&out).contains(word), "{options:?}: {}", stderr(&out));
    }
    let out = output(bench(&["--", "cst-no-such-program"]));
    assert_eq!(out.status.code(), Some(127), "{}", stderr(&out));
    let out = output(bench(&["--mix", list]));
    assert_eq!(out.status.code(), Some(127), "{}", stderr(&out));
    let out = output(bench(&["--resume", list]));
    assert_eq!(out.status.code(), Some(2), "it goes with nothing else: {}", stderr(&out));
    assert!(!mark.exists(), "a command was run");
}

#[test]
fn a_reader_that_went_away_hides_no_failure() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = bench(&["--jobs", "1", "--", "false"]);
    let run = command.stdout(writer).stderr(Stdio::piped()).spawn().and_then(|child| child.wait_with_output());
    let run = run.expect("taskset and cosched run");
    assert_eq!(run.status.code(), Some(1), "{}", stderr(&run));
    assert!(stderr(&run).contains("one job alone under linux did not complete"), "{}", stderr(&run));
}

#[test]
fn results_that_cannot_be_written_are_printed() {
    let dir = tempfile::Builder::new().prefix("cst-").tempdir().unwrap();
    let out = dir.path().join("out");
    let out = out.to_str().unwrap();
    let run = output(bench(&["--jobs", "1", "--repeat", "1", "--json", "--out", out, "--", "rm", "-r", out]));
    assert_eq!(run.status.code(), Some(1), "{}", stderr(&run));
    assert!(stderr(&run).contains("cannot write"), "{}", stderr(&run));
    assert_eq!(result(&document(&run), "linux", 1)["runs"], 1);
}

/// A bench whose second set of jobs never ends by itself: it spawns, leaves its session, and ignores TERM.
fn endless(d: &Daemon, word: &str, policy: &str, out: &Path) -> std::process::Child {
    let marks = d.dir.path().join(format!("marks-{policy}"));
    std::fs::create_dir_all(&marks).unwrap();
    let script = format!(
        "cd {}; : >$$; sleep 0.3; [ $(ls | wc -l) = 1 ] || {{ trap '' TERM; setsid sleep {word} & sleep {word}; sleep {word}; }}; rm $$",
        marks.display()
    );
    let mut command = d.command("cosched");
    command.args(["bench", "slowdown", "--jobs", "1,2", "--policies", policy, "--repeat", "1", "--out"]).arg(out);
    command.args(["--", "sh", "-c", &script]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("cosched runs")
}

#[test]
fn an_interrupted_bench_ends_all_and_keeps_what_it_has() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start("");
    for (policy, word) in [("linux", "86421.1"), ("gang", "86421.2")] {
        let out = d.dir.path().join(format!("out-{policy}"));
        let bench = endless(&d, word, policy, &out);
        assert!(wait_until(|| with_word(word).len() >= 4), "{policy}: the jobs do not begin");
        procs::signal(bench.id() as i32, Signal::INT);
        let ended = bench.wait_with_output().unwrap();
        assert_eq!(ended.status.code(), Some(130), "{}", stderr(&ended));
        assert_eq!(with_word(word), Vec::<i32>::new(), "{policy}: processes are left");
        assert!(wait_until(|| d.job_cgroups().is_empty()), "{policy}: {:?}", d.job_cgroups());
        // The partial results are printed and on the disk.
        assert!(stdout(&ended).contains("(interrupted)"), "{}", stdout(&ended));
        let kept: Value = serde_json::from_str(&std::fs::read_to_string(out.join("slowdown.json")).unwrap()).unwrap();
        assert!(number(&kept["single"]["time_s"]) >= 0.3, "{kept:#}");
        assert_eq!(kept["runs"].as_array().unwrap().last().unwrap()["outcome"], "interrupted");
        assert!(std::fs::read_to_string(out.join("report.html")).unwrap().contains("\"chart\":{"));
    }
}

#[test]
fn a_killed_bench_leaves_nothing_and_goes_on_where_it_was() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start("");
    for (policy, word) in [("linux", "86422.1"), ("gang", "86422.2")] {
        let out = d.dir.path().join(format!("out-{policy}"));
        let mut bench = endless(&d, word, policy, &out);
        assert!(wait_until(|| with_word(word).len() >= 4), "{policy}: the jobs do not begin");
        bench.kill().unwrap();
        bench.wait().unwrap();
        assert!(wait_until(|| with_word(word).is_empty()), "{policy}: processes are left");
        assert!(wait_until(|| d.job_cgroups().is_empty()), "{policy}: {:?}", d.job_cgroups());
        let journal = std::fs::read_to_string(out.join("runs.jsonl")).unwrap();
        let before = journal.lines().count() - 1;
        assert!(before >= 1, "{journal}");
        // The marks of the killed jobs would make the next ones endless again.
        let marks = d.dir.path().join(format!("marks-{policy}"));
        std::fs::remove_dir_all(&marks).unwrap();
        std::fs::create_dir(&marks).unwrap();
        let mut resumed = d.command("cosched");
        resumed.args(["bench", "slowdown", "--resume"]).arg(&out).stdin(Stdio::null()).stderr(Stdio::piped());
        let resumed = resumed.stdout(Stdio::piped()).spawn().unwrap();
        assert!(wait_until(|| with_word(word).len() >= 4), "{policy}: it does not go on");
        procs::signal(resumed.id() as i32, Signal::INT);
        let ended = resumed.wait_with_output().unwrap();
        assert_eq!(ended.status.code(), Some(130));
        let journal = std::fs::read_to_string(out.join("runs.jsonl")).unwrap();
        assert_eq!(journal.lines().count() - 1, before + 1, "what was done is not run again: {journal}");
    }
}

#[test]
fn sharing_is_set_for_its_runs_only() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start("sharing = \"soft\"\n");
    let script = format!("{} status --json | grep -o '\"sharing\":\"[a-z]*\"'", bin_dir().join("cosched").display());
    let out = d.dir.path().join("out");
    let options = ["bench", "slowdown", "--jobs", "1", "--policies", "gang-strict,paired,gang", "--repeat", "2"];
    let ended = d.cosched(&[&options[..], &["--out", out.to_str().unwrap(), "--", "sh", "-c", &script]].concat());
    assert!(ended.status.success(), "{}", stderr(&ended));
    for (policy, sharing) in [("gang-strict", "strict"), ("paired", "paired"), ("gang", "soft")] {
        for repetition in [1, 2] {
            let log = out.join(format!("logs/r{repetition}-{policy}-j1-1.log"));
            let text = std::fs::read_to_string(&log).unwrap_or_else(|e| panic!("{}: {e}", log.display()));
            assert!(text.contains(sharing), "{policy}: {text}");
        }
    }
    assert_eq!(d.client().status().unwrap().sharing.name(), "soft");
}

#[test]
fn different_jobs_together() {
    let dir = tempfile::Builder::new().prefix("cst-").tempdir().unwrap();
    let list = dir.path().join("mix.toml");
    let text = format!(
        "[[job]]\nname = 'spin'\ncommand = ['sh', '-c', '{SPIN}']\n[[job]]\nname = 'late'\nstart_s = 0.4\ncount = 2\n\
         command = ['sleep', '0.2']\n"
    );
    std::fs::write(&list, text).unwrap();
    let mix = document(&output(bench(&["--mix", list.to_str().unwrap(), "--repeat", "1", "--json"])));
    let late = mix["mix"].as_array().unwrap().iter().find(|row| row["name"] == "late").unwrap();
    assert!(number(&late["turnaround_s"]) >= 0.2 && number(&late["alone_s"]) >= 0.2, "{late}");
    let together = mix["runs"].as_array().unwrap().iter().find(|run| run["jobs"] == 3).unwrap();
    let starts: Vec<f64> = together["each"].as_array().unwrap().iter().map(|each| number(&each["start_s"])).collect();
    assert!(starts[0] < 0.4 && starts[1] >= 0.4 && starts[2] >= 0.4, "{starts:?}");
}

#[test]
fn a_local_slurm_runs_the_same_jobs() {
    // Fakes of the documented commands: this tests how we use Slurm, not Slurm.
    let dir = tempfile::Builder::new().prefix("cst-").tempdir().unwrap();
    let fake = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    };
    let log = dir.path().join("log").display().to_string();
    fake("scancel", &format!("echo scancel \"$@\" >>{log}"));
    fake(
        "scontrol",
        "case \"$*\" in ping) echo 'Slurmctld(primary) at n0 is UP';; 'show config') echo 'PreemptMode = GANG,SUSPEND';;\n\
         *) echo 'PartitionName=all Default=YES OverSubscribe=FORCE:2';; esac",
    );
    fake(
        "sbatch",
        &format!(
            "echo sbatch \"$@\" >>{log}; for a in \"$@\"; do case \"$a\" in --wrap=*) sh -c \"${{a#--wrap=}}\"; exit 0;; esac; done"
        ),
    );
    let path = format!("{}:{}", dir.path().display(), std::env::var("PATH").unwrap());
    let run = |jobs: &str| {
        let mut command = Command::new(bin_dir().join("cosched"));
        command.args(["bench", "slowdown", "--policies", "slurm-gang", "--repeat", "1", "--json", "--jobs", jobs]);
        output({
            command.args(["--", "sh", "-c", SPIN]).env("PATH", &path);
            command
        })
    };
    let two = document(&run("2"));
    let row = result(&two, "slurm-gang", 2);
    assert!(number(&row["slowdown"]) > 0.1 && row["not_done"] == 0, "{row}");
    // The CPU time is that of the job inside, reported by its own supervisor.
    let run_of_slurm = two["runs"].as_array().unwrap().iter().find(|run| run["policy"] == "slurm-gang").unwrap();
    assert!(number(&run_of_slurm["each"][0]["user_s"]) > 0.01, "{run_of_slurm:#}");
    let asked = std::fs::read_to_string(dir.path().join("log")).unwrap();
    assert!(asked.contains("sbatch --wait") && asked.contains("--oversubscribe"), "{asked}");
    let many = run("4");
    assert_eq!(many.status.code(), Some(6));
    assert!(stderr(&many).contains("not 4"), "{}", stderr(&many));
}

#[test]
fn advice_names_its_numbers_and_leaves_nothing() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start("");
    let out = d.cosched(&["advise", "--json", "--seconds", "3", "--policies", "local,gang", "--", "sleep", "0.2"]);
    let advice = document(&out);
    assert_eq!(
        (&advice["advice"]["kind"], &advice["facts"]["is_whole"]),
        (&"sleeps".into(), &true.into()),
        "{advice:#}"
    );
    let company = advice["facts"]["company"].as_array().unwrap();
    let names: Vec<&str> = company.iter().map(|company| company["policy"].as_str().unwrap()).collect();
    assert_eq!(names, ["linux", "local", "gang"]);
    assert!(company.iter().all(|company| number(&company["slowdown"]) > 0.0), "{advice:#}");

    let out = d.cosched(&["advise", "--", "sh", "-c", "echo no luck; exit 9"]);
    assert_eq!(out.status.code(), Some(1));
    assert!(stderr(&out).contains("no luck"), "{}", stderr(&out));
    assert_eq!(d.cosched(&["advise", "--", "cst-no-such-program"]).status.code(), Some(127));

    let mut command = d.command("cosched");
    command.args(["advise", "--", "sleep", "86423.1"]).stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn().unwrap();
    // The job's own process; those of cosched contain the word, too.
    assert!(wait_until(|| with_word("86423.1").iter().any(|pid| procs::comm(*pid).as_deref() == Some("sleep"))));
    procs::signal(child.id() as i32, Signal::INT);
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(130));
    assert_eq!(with_word("86423.1"), Vec::<i32>::new());
    assert!(wait_until(|| d.job_cgroups().is_empty()));
}

#[test]
fn a_real_parallel_program_in_short() {
    if !needs_root() {
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let program = root.join("build/programs/barrier-mpi");
    let has_mpi = Command::new("mpirun").arg("--version").output().is_ok_and(|out| out.status.success());
    if !has_mpi || !program.exists() {
        println!("SKIPPED: no mpirun or no build/programs/barrier-mpi (make programs)");
        return;
    }
    let d = Daemon::start("");
    let mut command = d.command("cosched");
    command.args(["bench", "slowdown", "--jobs", "1,2", "--policies", "linux,gang", "--repeat", "1", "--json", "--"]);
    command.args(["mpirun", "-n", "2", "--oversubscribe", "--bind-to", "none"]).arg(program);
    command.args(["--grain-us", "100", "--iterations", "1000", "--json"]).stdin(Stdio::null());
    let document = document(&command.output().unwrap());
    for (policy, jobs) in [("linux", 1), ("linux", 2), ("gang", 1), ("gang", 2)] {
        let row = result(&document, policy, jobs);
        assert_eq!(row["not_done"], 0, "{row}");
        assert!(number(&row["phase_s"]) > 0.0 && number(&row["phase_s"]) < number(&row["time_s"]), "{row}");
        // Two ranks, their launcher and what they share: more than a few MiB.
        assert!(number(&row["job_memory_bytes"]) > 2e6, "{row}");
        assert!(number(&row["voluntary"]) > 0.0, "{row}");
    }
    assert!(number(&document["single"]["cpu_share"]) > 0.0);
}
