//! The other commands against a fake daemon: exit codes, messages, help.

use crate::fake::{Fake, Place, text};

#[test]
fn without_a_daemon_it_says_how_one_is_started() {
    let place = Place::new();
    for words in [vec!["ps"], vec!["status"], vec!["show", "1"], vec!["kill", "1"], vec!["policy", "gang"]] {
        let output = place.output(&words);
        assert_eq!(output.status.code(), Some(3), "{words:?}");
        let message = text(&output.stderr);
        assert!(message.starts_with("cosched: no cosched daemon answers on "), "{message}");
        assert!(message.contains("`cosched run -- COMMAND` starts one for you"), "{message}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn refusals_have_their_exit_codes_and_the_other_jobs_are_done() {
    let place = Place::new();
    let fake = Fake::start(&place.socket);
    assert!(place.output(&["run", "--name", "night", "true"]).status.success());
    let code = |words: &[&str]| place.output(words).status.code();
    assert_eq!(code(&["show", "99"]), Some(4));
    assert_eq!(code(&["show", "nihgt"]), Some(4));
    assert_eq!(code(&["suspend", "1"]), Some(5));
    assert_eq!(code(&["resume", "night"]), Some(6));
    assert_eq!(code(&["policy", "default"]), Some(2));
    let output = place.output(&["kill", "99", "night"]);
    assert_eq!(output.status.code(), Some(4));
    assert_eq!(text(&output.stderr), "cosched: what: not-found\n  why: because\n  hint: do else\n");
    let kill = "POST /v1/jobs/1/kill {\"signal\":15,\"grace_ms\":5000}";
    assert!(fake.state().seen.iter().any(|seen| seen == kill), "both were asked for, in any order");
}

/// Several requests are sent at a time.
#[test]
fn many_jobs_are_answered_in_the_order_of_the_words() {
    let place = Place::new();
    let fake = Fake::start(&place.socket);
    assert!(place.output(&["run", "--name", "night", "true"]).status.success());
    let words: Vec<&str> =
        ["class", "--json"].into_iter().chain(["1"; 20]).chain(["99", "night", "98", "batch"]).collect();
    let output = place.output(&words);
    assert_eq!(output.status.code(), Some(4));
    assert_eq!(text(&output.stdout).lines().count(), 21);
    assert_eq!(text(&output.stderr).matches("not-found").count(), 2);
    assert_eq!(fake.state().seen.iter().filter(|seen| seen.starts_with("POST /v1/jobs/1/class")).count(), 21);
}

#[test]
fn json_is_one_object_a_line() {
    let place = Place::new();
    let _fake = Fake::start(&place.socket);
    assert!(place.output(&["run", "true"]).status.success());
    assert!(place.output(&["run", "true"]).status.success());
    let output = place.output(&["show", "--json", "1", "2"]);
    let ids: Vec<u64> =
        text(&output.stdout).lines().map(|line| serde_json::from_str::<cosched_api::Job>(line).unwrap().id).collect();
    assert_eq!(ids, [1, 2]);
    let list: cosched_api::JobList = serde_json::from_slice(&place.output(&["ps", "--json"]).stdout).unwrap();
    assert_eq!(list.jobs.len(), 2);
}

/// The help of these subcommands; the empty one is `cosched` itself.
pub(crate) fn help(place: &Place, subcommands: &[&str]) -> String {
    let mut all = String::new();
    for name in subcommands {
        let words: Vec<&str> = name.split_whitespace().chain(["--help"]).collect();
        let output = place.output(&words);
        assert!(output.status.success(), "{words:?}");
        all.push_str(&format!("$ cosched {}\n{}\n", words.join(" "), text(&output.stdout)));
    }
    all
}

#[test]
fn help_texts() {
    let place = Place::new();
    let subcommands = [
        "run",
        "join",
        "ps",
        "history",
        "show",
        "status",
        "top",
        "limits",
        "metrics",
        "suspend",
        "resume",
        "kill",
        "class",
        "resources",
        "policy",
        "nodes",
        "queues",
        "queues set",
        "wait",
        "log",
        "attach",
        "setup",
        "demo",
        "man",
        "completions",
        "version",
    ];
    insta::assert_snapshot!("help", help(&place, &[&[""], &subcommands[..]].concat()));
}

#[test]
fn man_pages_and_completions_cover_every_subcommand() {
    let place = Place::new();
    let pages = place.path("man");
    assert!(place.output(&["man", "--dir", pages.to_str().unwrap()]).status.success());
    let run = std::fs::read_to_string(pages.join("cosched-run.1")).unwrap();
    assert!(run.contains("cosched run \\-\\- mpirun \\-n 2 ./a.out") || run.contains("mpirun"), "{run}");
    for name in ["cosched.1", "cosched-ps.1", "cosched-policy.1", "cosched-demo.1"] {
        assert!(pages.join(name).exists(), "{name}");
    }
    for shell in ["bash", "zsh", "fish"] {
        let output = place.output(&["completions", shell]);
        assert!(output.status.success() && text(&output.stdout).contains("_COSCHED_COMPLETE"), "{shell}");
    }
}

/// The completions that a shell gets for the last of these words.
fn offered(place: &Place, shell: &str, words: &[&str]) -> String {
    let mut command = place.cosched(&[&["--", "cosched"], words].concat());
    command.env("_COSCHED_COMPLETE", shell).env("_CLAP_COMPLETE_INDEX", words.len().to_string()).env("_CLAP_IFS", "\n");
    let output =
        crate::fake::bounded(command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()));
    assert!(output.status.success() && output.stderr.is_empty(), "{words:?}: {}", text(&output.stderr));
    text(&output.stdout).to_owned()
}

#[test]
fn shells_are_offered_jobs_and_programs_and_nothing_is_started_for_that() {
    let place = Place::new();
    assert_eq!(offered(&place, "bash", &["kill", "4"]), "", "no daemon runs, and none is started");
    assert!(!place.socket.exists());
    let fake = Fake::start(&place.socket);
    assert!(place.output(&["run", "--name", "night", "true"]).status.success());
    assert!(place.output(&["run", "--name", "other", "true"]).status.success());
    fake.state().jobs[0].state = cosched_api::JobState::Running;
    let jobs = offered(&place, "bash", &["kill", ""]);
    assert!(jobs.lines().any(|line| line == "1") && jobs.lines().any(|line| line == "night"), "{jobs}");
    assert!(offered(&place, "fish", &["log", "nig"]).starts_with("night\t"), "with a word about it");
    assert!(offered(&place, "zsh", &["run", "--", "tru"]).contains("true"));
    assert!(offered(&place, "bash", &["sus"]).lines().eq(["suspend"]));
    assert!(!offered(&place, "bash", &[""]).contains("__gate"));
    // A hanging daemon is not waited for.
    let hangs = Place::new();
    let _listener = std::os::unix::net::UnixListener::bind(&hangs.socket).unwrap();
    assert_eq!(offered(&hangs, "bash", &["kill", "4"]), "");
}

#[test]
fn failures_are_json_where_that_is_asked_for() {
    let place = Place::new();
    for command in ["ps", "events", "metrics", "trace"] {
        let output = place.output(&["--json", command]);
        let error: serde_json::Value = serde_json::from_slice(&output.stderr).unwrap();
        assert_eq!((output.status.code(), &error["error"]["code"]), (Some(3), &serde_json::json!(3)));
        assert!(error["error"]["hint"].as_str().unwrap().contains("starts one"), "{error}");
    }
    let _fake = Fake::start(&place.socket);
    let output = place.output(&["--json", "kill", "98", "99"]);
    let lines: Vec<serde_json::Value> =
        text(&output.stderr).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((lines.len(), &lines[0]["error"]["what"]), (2, &serde_json::json!("what: not-found")));
}

#[test]
fn what_cannot_be_listed_or_selected_is_told() {
    let place = Place::new();
    let columns = place.output(&["ps", "--format", "help"]);
    assert!(columns.status.success() && text(&columns.stdout).contains("elapsed"), "no daemon is needed for that");
    for (words, told) in [
        (&["ps", "--format", "id,elapsde"][..], "did you mean `elapsed`?"),
        (&["ps", "--sort", "-colour"], "no column `colour`"),
        (&["history", "--since", "soon"], "is not a time"),
        (&["squeue"], "hint: cosched ps"),
    ] {
        let output = place.output(words);
        assert!(
            output.status.code() == Some(2) && text(&output.stderr).contains(told),
            "{words:?}: {}",
            text(&output.stderr)
        );
    }
}
