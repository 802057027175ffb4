//! `cosched run` against a fake daemon.

use crate::fake::{DIES, Fake, Place, bounded, ended, refusal, text, until};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};

#[test]
fn the_exit_code_is_the_commands_and_is_reported() {
    let place = Place::new();
    let fake = Fake::start(&place.socket);
    assert_eq!(place.output(&["run", "--", "sh", "-c", "exit 7"]).status.code(), Some(7));
    assert_eq!(place.output(&["run", "sh", "-c", "kill -9 $$"]).status.code(), Some(128 + 9));
    let state = fake.state();
    assert!(state.seen.contains(&"POST /v1/jobs/1/exit {\"exit\":{\"code\":7}}".to_owned()), "{:?}", state.seen);
    assert!(state.seen.contains(&"POST /v1/jobs/2/exit {\"exit\":{\"signal\":9}}".to_owned()), "{:?}", state.seen);
    assert_eq!(state.jobs[0].command, ["sh", "-c", "exit 7"]);
}

#[test]
fn options_reach_the_daemon() {
    let place = Place::new();
    let fake = Fake::start(&place.socket);
    let words = ["run", "-c", "batch", "-n", "2", "--mem", "1M", "--name", "x", "--policy", "local", "true"];
    assert!(place.output(&words).status.success());
    let seen = fake.state().seen.iter().find(|line| line.starts_with("POST /v1/jobs ")).unwrap().clone();
    for part in ["\"class\":\"batch\"", "\"cpus\":2", "\"mem_bytes\":1048576", "\"name\":\"x\"", "\"policy\":\"local\""]
    {
        assert!(seen.contains(part), "{seen}");
    }
}

#[test]
fn standard_input_and_output_pass_through() {
    let place = Place::new();
    let _fake = Fake::start(&place.socket);
    let mut command = place.cosched(&["run", "--", "sh", "-c", "cat; echo err >&2"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"abc\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((text(&output.stdout), text(&output.stderr)), ("abc\n", "err\n"));
}

#[test]
fn the_command_inherits_what_a_shell_would_give_it() {
    let place = Place::new();
    let _fake = Fake::start(&place.socket);
    // Blocked and ignored signals, and the open files.
    let script = "grep -E 'Sig(Blk|Ign)' /proc/self/status; umask; pwd; ls /proc/self/fd | wc -l";
    let direct = Command::new("sh").args(["-c", script]).stdin(Stdio::null()).output().unwrap();
    let run = place.output(&["run", "--", "sh", "-c", script]);
    assert_eq!(text(&run.stdout), text(&direct.stdout));
}

#[test]
fn a_command_that_does_not_exist_needs_no_daemon() {
    let place = Place::new();
    let output = place.output(&["run", "--", "no-such-command-at-all"]);
    assert_eq!(output.status.code(), Some(127));
    assert!(text(&output.stderr).contains("cosched: no-such-command-at-all: command not found\n  why:"));
    assert_eq!(place.output(&["run", "/etc/passwd"]).status.code(), Some(126));
    let fake = Fake::start(&place.socket);
    assert_eq!(place.output(&["run", "./missing"]).status.code(), Some(127));
    assert!(fake.state().seen.is_empty());
}

#[test]
fn what_the_kernel_refuses_is_126() {
    let place = Place::new();
    let fake = Fake::start(&place.socket);
    let program = place.path("program");
    std::fs::write(&program, "#!/etc/passwd\n").unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let output = place.output(&["run", program.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(126), "{}", text(&output.stderr));
    assert_eq!(fake.state().jobs[0].exit.unwrap().code, Some(126));
}

#[test]
fn the_command_does_not_run_before_it_is_registered_nor_when_it_is_refused() {
    let place = Place::new();
    let mark = place.path("mark");
    let ran_early = {
        let mark = mark.clone();
        move || {
            std::thread::sleep(std::time::Duration::from_millis(100));
            mark.exists()
        }
    };
    let fake = Fake::with(&place.socket, move |job| {
        assert!(!ran_early(), "the command ran before its registration");
        if job.name == "refused" { Err(refusal("forbidden")) } else { Ok(()) }
    });
    let touch = mark.to_str().unwrap();
    let output = place.output(&["run", "--name", "refused", "--", "touch", touch]);
    assert_eq!(output.status.code(), Some(125));
    assert_eq!(text(&output.stderr), "cosched: what: forbidden\n  why: because\n  hint: do else\n");
    assert!(!mark.exists() && fake.state().jobs.is_empty());
    assert!(place.output(&["run", "--", "touch", touch]).status.success());
    assert!(mark.exists());
}

#[test]
fn wrong_usage_of_run_is_125_and_of_others_2() {
    let place = Place::new();
    for (words, code) in [(vec!["run", "--class", "bacth", "true"], 125), (vec!["run"], 125), (vec!["show"], 2)] {
        assert_eq!(place.output(&words).status.code(), Some(code), "{words:?}");
    }
}

/// Starts a job whose command says `ready`, and waits for that.
pub(crate) fn start_ready(place: &Place, words: &[&str]) -> (Child, BufReader<std::process::ChildStdout>) {
    let mut command = place.cosched(words);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    (child, stdout)
}

#[test]
fn signals_sent_to_the_launcher_reach_the_command() {
    let place = Place::new();
    let _fake = Fake::start(&place.socket);
    // It also ends by itself, because nothing else here would end it.
    let script = "trap 'exit 40' TERM; trap 'exit 41' USR1; trap 'exit 42' INT; echo ready; \
                  for i in $(seq 1200); do sleep 0.05; done";
    for (signal, code) in [(Signal::TERM, 40), (Signal::USR1, 41), (Signal::INT, 42)] {
        let (mut child, _stdout) = start_ready(&place, &["run", "--", "sh", "-c", script]);
        kill_process(Pid::from_child(&child), signal).unwrap();
        assert_eq!(ended(&mut child).code(), Some(code));
    }
}

#[test]
fn a_signal_to_the_command_itself_is_told_as_a_shell_tells_it() {
    let place = Place::new();
    let fake = Fake::start(&place.socket);
    let (mut child, _stdout) = start_ready(&place, &["run", "--", "sh", "-c", "echo ready; exec sleep 60"]);
    kill_process(Pid::from_raw(fake.state().jobs[0].pid).unwrap(), Signal::TERM).unwrap();
    let status = ended(&mut child);
    assert_eq!((status.code(), status.signal()), (Some(128 + 15), None));
}

#[test]
fn the_launcher_waits_for_processes_that_are_left() {
    let place = Place::new();
    let fake = Fake::start(&place.socket);
    fake.state().leftovers = 2;
    let mut command = place.cosched(&["run", "--", "sh", "-c", "exit 3"]);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    // The message comes after 2 s, so the launcher has not ended before.
    stderr.read_line(&mut line).unwrap();
    assert!(line.contains("waiting for 2 remaining processes (`cosched kill 1` ends them)"), "{line}");
    assert!(child.try_wait().unwrap().is_none());
    fake.end(1);
    assert_eq!(ended(&mut child).code(), Some(3));
}

#[test]
fn leftovers_can_be_ended() {
    let place = Place::new();
    let fake = Fake::start(&place.socket);
    fake.state().leftovers = 1;
    let output = place.output(&["run", "--leftovers", "kill", "--", "sh", "-c", "exit 3"]);
    assert_eq!(output.status.code(), Some(3));
    let seen = &fake.state().seen;
    assert!(seen.iter().any(|line| line.starts_with("POST /v1/jobs/1/kill {\"signal\":15")), "{seen:?}");
}

#[test]
fn signals_while_waiting_for_leftovers_go_to_them() {
    let place = Place::new();
    let fake = Fake::start(&place.socket);
    fake.state().leftovers = 1;
    let mut child = place.cosched(&["run", "--", "true"]).spawn().unwrap();
    fake.until("the report of the end", |state| state.seen.iter().any(|line| line.contains("/exit")));
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(ended(&mut child).code(), Some(0));
    assert!(fake.state().seen.contains(&"POST /v1/jobs/1/kill {\"signal\":15}".to_owned()));
}

#[test]
fn the_job_goes_on_when_the_daemon_dies_and_its_end_is_told_to_the_next_one() {
    let place = Place::new();
    let first = Fake::start(&place.socket);
    let script = format!("echo ready; until [ -e {} ]; do sleep 0.05; done; exit 9", place.path("go").display());
    let (mut child, _stdout) = start_ready(&place, &["run", "--", "sh", "-c", &script]);
    first.until("the long poll", |state| state.seen.iter().any(|line| line.contains("/wait")));
    let jobs = first.state().jobs.clone();
    drop(first);
    let second = Fake::start(&place.socket);
    second.state().jobs = jobs;
    second.until("the next long poll", |state| state.seen.iter().any(|line| line.contains("/wait")));
    std::fs::write(place.path("go"), "").unwrap();
    assert_eq!(ended(&mut child).code(), Some(9));
    assert_eq!(second.state().jobs[0].exit.unwrap().code, Some(9));
}

#[test]
fn without_any_daemon_left_the_exit_code_is_still_the_commands() {
    let place = Place::new();
    let fake = Fake::start(&place.socket);
    let script = format!("echo ready; until [ -e {} ]; do sleep 0.05; done; exit 9", place.path("go").display());
    let (mut child, _stdout) = start_ready(&place, &["run", "--", "sh", "-c", &script]);
    drop(fake);
    std::fs::write(place.path("go"), "").unwrap();
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!(ended(&mut child).code(), Some(9));
    assert!(stderr.contains("the end of job 1 could not be reported"), "{stderr}");
}

#[test]
fn only_a_daemon_that_a_command_has_started_is_replaced_when_it_dies_while_it_is_asked() {
    let place = Place::new();
    // The client itself asks twice: the daemon might already have closed the first connection before.
    for (operators, asked) in [(true, 2), (false, 4)] {
        let fake = Fake::with(&place.socket, |_| Err(DIES.into()));
        fake.state().operators = operators;
        let output = place.output(&["run", "--", "true"]);
        assert_eq!(output.status.code(), Some(125));
        let said = text(&output.stderr);
        assert!(said.contains("the connection broke: the daemon has ended"), "{said}");
        let seen = fake.state().seen.clone();
        assert_eq!(seen.iter().filter(|line| line.starts_with("POST /v1/jobs ")).count(), asked, "{seen:?}");
    }
}

#[test]
fn a_detached_job_has_an_id_and_a_file() {
    let place = Place::new();
    let fake = Fake::start(&place.socket);
    let script = "echo out; echo err >&2; cat; exit 4";
    let output = place.output(&["run", "--detach", "--", "sh", "-c", script]);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), "1\n"));
    fake.until("the end", |state| state.jobs[0].exit.is_some());
    let job = fake.state().jobs[0].clone();
    assert_eq!((job.exit.unwrap().code, job.detached), (Some(4), true));
    let log = job.log_path.unwrap();
    assert_eq!(std::fs::read_to_string(&log).unwrap(), "out\nerr\n");
    let shown = place.output(&["log", "--follow", "1"]);
    assert_eq!(text(&shown.stdout), "out\nerr\n");
    let full = std::fs::File::create("/dev/full").unwrap();
    assert_eq!(ended(&mut place.cosched(&["log", "1"]).stdout(full).spawn().unwrap()).code(), Some(1));
    assert_eq!(place.output(&["wait", "1"]).status.code(), Some(4));
    std::fs::remove_file(log).unwrap();
}

/// As `cosched run -d --array 1-4 … | head -1`.
#[test]
fn closed_output_ends_no_work() {
    let place = Place::new();
    let fake = Fake::start(&place.socket);
    let closed = |words: &[&str]| {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        ended(&mut place.cosched(words).stdout(writer).spawn().unwrap()).code()
    };
    let output = place.path("out-%a");
    assert_eq!(closed(&["run", "-d", "--array", "1-4", "--output", output.to_str().unwrap(), "true"]), Some(0));
    fake.until("all ends", |state| state.jobs.len() == 4 && state.jobs.iter().all(|job| job.exit.is_some()));
    let words: Vec<&str> = ["class", "--json"].into_iter().chain(["1"; 20]).chain(["batch"]).collect();
    assert_eq!(closed(&words), Some(0));
    assert_eq!(closed(&["resources", "--json", "--cpus", "1", "1", "2"]), Some(0));
    let seen = |begin: &str| fake.state().seen.iter().filter(|seen| seen.starts_with(begin)).count();
    assert_eq!(seen("POST /v1/jobs/1/class"), 20);
    assert_eq!((seen("POST /v1/jobs/1/resources"), seen("POST /v1/jobs/2/resources")), (1, 1));
}

#[test]
fn a_detached_job_that_cannot_start_says_so_at_once() {
    let place = Place::new();
    let _fake = Fake::with(&place.socket, |_| Err(refusal("invalid")));
    let output = place.output(&["run", "-d", "--json", "--", "true"]);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(125), ""));
    assert!(text(&output.stderr).starts_with("cosched: what: invalid\n"), "{}", text(&output.stderr));
    assert_eq!(place.output(&["run", "-d", "--", "no-such-command"]).status.code(), Some(127));
}

#[test]
fn a_daemon_is_started_on_demand_in_a_session_of_its_own() {
    let place = Place::new();
    let daemon = place.path("coschedd");
    let test = std::env::current_exe().unwrap();
    let script = format!(
        "#!/bin/sh\necho \"$*\" >{0}\nFAKE_DAEMON={1} exec {2} --exact run::daemon_on_demand --nocapture\n",
        place.path("words").display(),
        place.socket.display(),
        test.display()
    );
    std::fs::write(&daemon, script).unwrap();
    std::fs::set_permissions(&daemon, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut command = place.cosched(&["run", "--", "sh", "-c", "exit 5"]);
    let output = bounded(command.env("COSCHED_DAEMON", &daemon).stdout(Stdio::piped()).stderr(Stdio::piped()));
    let log = std::fs::read_to_string(place.path("coschedd.log")).unwrap_or_default();
    assert_eq!(output.status.code(), Some(5), "{}{log}", text(&output.stderr));
    let words = std::fs::read_to_string(place.path("words")).unwrap();
    assert_eq!(words, format!("--embedded --listen-stdin --socket {}\n", place.socket.display()));
    until("the daemon's own check", || place.path("session").exists());
    assert_eq!(std::fs::read_to_string(place.path("session")).unwrap(), "true");
}

/// Not a test of its own: the daemon of the test above.
#[test]
fn daemon_on_demand() {
    let Some(socket) = std::env::var_os("FAKE_DAEMON") else { return };
    let socket = std::path::PathBuf::from(socket);
    let listener = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3).unwrap();
    let fake = Fake::serve(listener.into(), &socket, Box::new(|_| Ok(())));
    fake.until("the job's end", |state| state.jobs.first().is_some_and(|job| job.exit.is_some()));
    let own_session = rustix::process::getsid(None).unwrap() == rustix::process::getpid();
    std::fs::write(socket.with_file_name("session"), own_session.to_string()).unwrap();
    // The client reads the answer before its daemon ends.
    std::thread::sleep(std::time::Duration::from_millis(300));
    // Returning would wait for the fake's threads.
    std::process::exit(0);
}

#[test]
fn where_no_daemon_can_run_the_command_is_as_it_would_be_without_cosched() {
    let place = Place::new();
    let daemon = place.path("coschedd");
    let script =
        "#!/bin/sh\nprintf 'coschedd: no daemon can run here\\n  why: no cgroups\\n  hint: ask\\n' >&2\nexit 3\n";
    std::fs::write(&daemon, script).unwrap();
    std::fs::set_permissions(&daemon, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let run = |words: &[&str]| {
        bounded(place.cosched(words).env("COSCHED_DAEMON", &daemon).stdout(Stdio::piped()).stderr(Stdio::piped()))
    };
    let script = "grep -E 'Sig(Blk|Ign)' /proc/self/status; umask; pwd; ls /proc/self/fd | wc -l; exit 7";
    let direct = Command::new("sh").args(["-c", script]).stdin(Stdio::null()).output().unwrap();
    let out = run(&["run", "--policy", "local", "--", "sh", "-c", script]);
    assert_eq!((text(&out.stdout), out.status.code()), (text(&direct.stdout), Some(7)));
    let said = text(&out.stderr);
    assert!(said.contains("not as a job") && said.contains("(no cgroups)") && said.lines().count() == 1, "{said}");
    for option in
        [&["--detach"][..], &["--share", "50%"], &["--mem", "1M"], &["--leftovers", "kill"], &["--strategy", "GS"]]
    {
        let out = run(&[&["run"], option, &["--", "touch", place.path("mark").to_str().unwrap()]].concat());
        assert!(
            text(&out.stderr).contains("needs a daemon, and none can run here\n  why: no cgroups\n  hint: ask"),
            "{option:?}"
        );
        assert_eq!((out.status.code(), place.path("mark").exists()), (Some(125), false), "{option:?}");
    }
}

#[test]
fn a_daemon_that_cannot_start_is_explained_and_nothing_runs() {
    let place = Place::new();
    let daemon = place.path("coschedd");
    std::fs::write(&daemon, "#!/bin/sh\necho 'no cgroups for you' >&2\nexit 1\n").unwrap();
    std::fs::set_permissions(&daemon, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mark = place.path("mark");
    let mut command = place.cosched(&["run", "--", "touch", mark.to_str().unwrap()]);
    let output = bounded(command.env("COSCHED_DAEMON", &daemon).stderr(Stdio::piped()));
    assert_eq!(output.status.code(), Some(125));
    let message = text(&output.stderr);
    assert!(message.starts_with("cosched: the daemon could not be started\n"), "{message}");
    assert!(message.contains("no cgroups for you") && message.contains("hint: the whole log is"), "{message}");
    assert!(!mark.exists());
}
