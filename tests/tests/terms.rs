//! When jobs run and for how long, with real processes: time limits, dependencies, later starts, memory limits, files, arrays, scripts.

use cosched_api::{Job, JobState};
use cosched_tests::{Daemon, needs_root, procs, stderr, stdout, wait_until};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

fn job(d: &Daemon, id: u64) -> Job {
    d.client().job(id).expect("the job is known")
}

fn ended(d: &Daemon, id: u64) -> Job {
    assert!(wait_until(|| job(d, id).state == JobState::Ended), "{:?}", job(d, id));
    job(d, id)
}

fn events(d: &Daemon, id: u64) -> String {
    stdout(&d.cosched(&["log", "--events", &id.to_string()]))
}

/// A directory for files, which is removed with the test.
struct Files(PathBuf);

impl Files {
    fn new(name: &str) -> Files {
        let dir = std::env::temp_dir().join(format!("cosched-terms-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a temporary directory");
        Files(dir)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_string_lossy().into_owned()
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.join(name)).unwrap_or_default()
    }

    fn script(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        std::fs::write(&path, text).expect("a script");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("its mode");
        path
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_time_limit_asks_first_and_then_forces_also_after_the_daemon_was_killed() {
    if !needs_root() {
        return;
    }
    let mut d = Daemon::start("");
    let polite =
        d.detach(&["--time", "1s", "--", "sh", "-c", "trap 'echo caught; exit 5' TERM; while :; do sleep 0.1; done"]);
    let deaf =
        d.detach(&["--time", "3s", "--grace", "1s", "--", "sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"]);
    let stopped = d.detach(&["--time", "2s", "--", "sleep", "600"]);
    assert!(wait_until(|| job(&d, stopped).state == JobState::Running));
    assert!(d.cosched(&["suspend", &stopped.to_string()]).status.success());
    let over = ended(&d, polite);
    assert_eq!((over.exit.unwrap().code, over.ended_why.as_deref()), (Some(5), Some("time limit")));
    assert!(stdout(&d.cosched(&["log", &polite.to_string()])).contains("caught"));
    assert!(events(&d, polite).contains("signal 15"), "{}", events(&d, polite));
    // Neither launcher nor daemon is needed for the limit to be remembered.
    d.kill();
    d.launch();
    let over = ended(&d, deaf);
    assert_eq!((over.exit.unwrap().signal, over.ended_why.as_deref()), (Some(9), Some("time limit")));
    assert!(stdout(&d.cosched(&["ps", "-a"])).contains("ended SIGKILL time limit"));
    // The time while it is suspended does not count.
    std::thread::sleep(std::time::Duration::from_secs(2));
    let stands = job(&d, stopped);
    assert_eq!(stands.state, JobState::Suspended);
    assert!(stands.suspended_ms.is_some_and(|ms| ms >= 2000), "{:?}", stands.suspended_ms);
    assert!(d.cosched(&["resume", &stopped.to_string()]).status.success());
    assert_eq!(ended(&d, stopped).exit.unwrap().signal, Some(15));
}

#[test]
fn the_limit_of_a_queue_is_polite_too_and_no_job_asks_for_more() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start("[[queue]]\nname = \"short\"\ntime_max = \"1s\"\n");
    let refused = d.cosched(&["run", "--time", "2s", "--", "true"]);
    assert_eq!(refused.status.code(), Some(125));
    assert!(stderr(&refused).contains("its queue permits 1 s"), "{}", stderr(&refused));
    let refused = d.cosched(&["run", "--queue", "night", "--", "true"]);
    assert!(stderr(&refused).contains("there is no queue night"), "{}", stderr(&refused));
    let out = d.cosched(&["run", "--", "sh", "-c", "trap 'exit 7' TERM; while :; do sleep 0.1; done"]);
    assert_eq!(out.status.code(), Some(7));
    assert!(stderr(&out).contains("time limit of its queue"), "{}", stderr(&out));
}

#[test]
fn jobs_wait_for_others_and_for_their_time_also_over_a_restart() {
    if !needs_root() {
        return;
    }
    let mut d = Daemon::start("");
    let first = d.detach(&["--", "sh", "-c", "sleep 600; exit 3"]);
    let (any, ok) = (format!("{first}:any"), format!("{first}:ok"));
    let later = d.detach(&["--after", &any, "--", "true"]);
    let never = d.detach(&["--after", &ok, "--", "true"]);
    let cascade = d.detach(&["--after", &format!("{never}:ok"), "--", "true"]);
    let timed = d.detach(&["--begin", "3s", "--", "true"]);
    let far = d.detach(&["--begin", "2d", "--", "true"]);
    assert_eq!(job(&d, later).waits_for.as_deref(), Some(format!("for job {first} to end").as_str()));
    assert!(job(&d, far).waits_for.is_some_and(|why| why.contains("starts at 2")), "with its date");
    d.kill();
    d.launch();
    assert!(wait_until(|| job(&d, later).state == JobState::Waiting));
    let shown = stdout(&d.cosched(&["show", &never.to_string()]));
    assert!(shown.contains(&format!("waiting: for job {first} to end with exit code 0")), "{shown}");
    assert_eq!(ended(&d, timed).exit.unwrap().code, Some(0));
    assert!(d.cosched(&["kill", "-9", &first.to_string()]).status.success());
    assert_eq!(ended(&d, later).exit.unwrap().code, Some(0));
    for id in [never, cascade] {
        let why = ended(&d, id).ended_why.unwrap_or_default();
        assert!(why.contains("did not end with exit code 0"), "{why}");
    }
    let refused = d.cosched(&["run", "--after", "9999", "--", "true"]);
    assert!(stderr(&refused).contains("you have no job 9999"), "{}", stderr(&refused));
    let gate = job(&d, far).pid;
    assert!(d.cosched(&["kill", &far.to_string()]).status.success());
    ended(&d, far);
    // Without its daemon, its supervisor would wait for it.
    assert!(wait_until(|| procs::state(gate).is_none()));
}

#[test]
fn a_memory_limit_is_kept_by_the_kernel() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start("");
    let eat = "import sys; b = bytearray(int(sys.argv[1]) << 20); print(len(b))";
    let little = d.cosched(&["run", "--mem-limit", "128M", "--", "python3", "-c", eat, "16"]);
    if stderr(&little).contains("memory cannot be limited here") {
        println!("SKIPPED: {}", stderr(&little));
        return;
    }
    assert!(little.status.success(), "{}", stderr(&little));
    let much = d.cosched(&["run", "--mem-limit", "128M", "--", "python3", "-c", eat, "400"]);
    assert_eq!(much.status.code(), Some(137), "{}", stderr(&much));
    assert!(stderr(&much).contains("out of memory") && stderr(&much).contains("128"), "{}", stderr(&much));
    assert!(
        d.cosched(&["run", "--mem", "64M", "--", "python3", "-c", eat, "100"]).status.success(),
        "--mem is no limit"
    );
    let none = d.cosched(&["run", "--mem-limit", "1K", "--", "true"]);
    assert!(stderr(&none).contains("below 1 MiB"), "{}", stderr(&none));
}

#[test]
fn files_directory_and_environment_are_the_user_s() {
    if !needs_root() {
        return;
    }
    let (d, files) = (Daemon::start(""), Files::new("files"));
    std::fs::write(files.path("in"), "from the file\n").unwrap();
    std::fs::write(files.path("out-x"), "old\n").unwrap();
    let dir = files.path("");
    let script = "cat; pwd; echo $WORD; echo wrong >&2";
    let args = ["--chdir", &dir, "-o", "out-%n", "-e", "err-%j", "--input", "in", "--env", "WORD=a b", "--name", "x"];
    let out = d.cosched(&[&["run"], &args[..], &["--", "sh", "-c", script]].concat());
    assert!(out.status.success() && out.stdout.is_empty(), "{out:?}");
    let pwd = Path::new(&dir).canonicalize().unwrap();
    assert_eq!(files.read("out-x"), format!("from the file\n{}\na b\n", pwd.display()));
    assert_eq!(files.read("err-1"), "wrong\n");
    let id = d.detach(&["-o", &files.path("job-%j-%%.txt"), "--", "sh", "-c", "echo one; echo two >&2"]);
    ended(&d, id);
    assert_eq!(files.read(&format!("job-{id}-%.txt")), "one\ntwo\n");
    assert_eq!(stdout(&d.cosched(&["log", &id.to_string()])), "one\ntwo\n");
    for bad in [["-o", "/nowhere/x"], ["--input", "/nowhere/x"], ["--chdir", "/nowhere"]] {
        for detach in [&[][..], &["-d"]] {
            let out = d.cosched(&[&["run"], detach, &bad, &["--", "true"]].concat());
            assert_eq!(out.status.code(), Some(125));
            assert!(stderr(&out).contains("/nowhere") && stderr(&out).contains("hint:"), "{}", stderr(&out));
        }
    }
}

#[test]
fn arrays_and_scripts() {
    if !needs_root() {
        return;
    }
    let (d, files) = (Daemon::start(""), Files::new("arrays"));
    let script = files.script(
        "job.sh",
        "#!/bin/sh\n# what it does\n#COSCHED --cpus 1 --name 'a sweep' --time 1h\n#COSCHED --env KEPT=yes\n\
         echo $COSCHED_ARRAY_INDEX $COSCHED_ARRAY_COUNT $COSCHED_ARRAY_ID $KEPT\n\
         until test -e $(dirname $0)/go; do sleep 0.1; done\n",
    );
    let out = d.cosched(&["run", "-d", "--array", "3-6%2", "-o", &files.path("%a"), "--name", "sweep", &script]);
    let ids: Vec<u64> = stdout(&out).lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(ids.len(), 4, "{out:?}");
    assert_eq!(job(&d, ids[3]).waits_for.as_deref(), Some(format!("for job {} to end", ids[1]).as_str()));
    std::fs::write(files.path("go"), "").unwrap();
    let jobs: Vec<Job> = ids.iter().map(|id| ended(&d, *id)).collect();
    let names: Vec<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["sweep[3]", "sweep[4]", "sweep[5]", "sweep[6]"], "the command line wins");
    assert!(jobs.iter().all(|job| (job.cpus, job.time_ms_max) == (1, Some(3_600_000))));
    for index in 3..=6 {
        assert_eq!(files.read(&index.to_string()), format!("{index} 4 {} yes\n", ids[0]));
    }
    let shared = d.cosched(&["run", "-d", "--array", "1-2", "-o", &files.path("x"), "true"]);
    assert!(stderr(&shared).contains("put %a or %j into it"), "{}", stderr(&shared));
    let wrong = files.script("wrong.sh", "#!/bin/sh\n#COSCHED --cpus 1\n#COSCHED --tiem 1h\n");
    let out = d.cosched(&["run", &wrong]);
    assert_eq!(out.status.code(), Some(125));
    assert!(stderr(&out).contains("wrong.sh:3:") && stderr(&out).contains("--tiem"), "{}", stderr(&out));
}
