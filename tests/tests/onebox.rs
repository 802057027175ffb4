//! One machine with queues, admission by memory and a ceiling, stored in a file.

use cosched_api::{Job, JobState, PolicyRequest};
use cosched_tests::{Daemon, clean_look, needs_root, procs, stderr, wait_until};
use std::time::Duration;

const QUICK: &str = "slot_length = \"50ms\"\nlease = \"1s\"\n";
const SLEEP: &[&str] = &["--", "sleep", "300"];
const SPIN_2: &str = "while :; do :; done & while :; do :; done";

fn with(config: &str) -> String {
    format!("{QUICK}{config}")
}

fn job(d: &Daemon, id: u64) -> Job {
    d.client().job(id).expect("the job is known")
}

fn state(d: &Daemon, id: u64) -> Option<JobState> {
    d.client().job(id).ok().map(|job| job.state)
}

fn becomes(d: &Daemon, id: u64, wanted: JobState) {
    assert!(wait_until(|| state(d, id) == Some(wanted)), "job {id} is {:?}, not {wanted:?}", state(d, id));
}

/// Whether it has processes that are not frozen.
fn runs(d: &Daemon, id: u64) -> bool {
    state(d, id) == Some(JobState::Running) && !d.job_pids(id).is_empty()
}

fn queues(d: &Daemon) -> Vec<String> {
    d.client().status().unwrap().cluster.unwrap().queues.into_iter().map(|queue| queue.name).collect()
}

fn until_runs(d: &Daemon, id: u64) {
    assert!(wait_until(|| runs(d, id)), "job {id} does not run: {:?}", d.client().job(id));
}

fn detach(d: &Daemon, args: &[&str]) -> u64 {
    d.detach(&[args, SLEEP].concat())
}

fn kill(d: &Daemon, id: u64) {
    let out = d.cosched(&["kill", "-s", "KILL", &id.to_string()]);
    assert!(out.status.success(), "{}", stderr(&out));
}

fn until_nothing_is_left(d: &Daemon) {
    assert!(wait_until(|| d.client().jobs(false).unwrap().jobs.is_empty()), "{:?}", d.client().jobs(false));
    assert!(wait_until(|| d.job_cgroups().is_empty()), "{:?}", d.job_cgroups());
}

#[test]
fn queues_refuse_what_exceeds_them_and_an_exclusive_one_waits_for_the_machine() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start(&with(
        "[[queue]]\nname = \"day\"\n[[queue]]\nname = \"small\"\nmemory_max = \"100M\"\ntime_max = \"2s\"\n\
         [[queue]]\nname = \"night\"\nexclusive = true\n",
    ));
    for (args, word) in [
        (&["--queue", "small", "--mem", "200M"][..], "permits"),
        (&["--queue", "noon"], "there is no queue noon"),
        (&["--cpus", "4096"], "4096 CPUs"),
        (&["--nodes", "elsewhere:1"], "no node `elsewhere`"),
    ] {
        let out = d.cosched(&[&["run"], args, SLEEP].concat());
        assert_eq!(out.status.code(), Some(125), "{args:?}");
        assert!(stderr(&out).contains(word), "{args:?}: {}", stderr(&out));
    }
    assert!(d.client().jobs(true).unwrap().jobs.is_empty(), "what is refused leaves nothing");

    let day = detach(&d, &[]);
    until_runs(&d, day);
    let night = detach(&d, &["--queue", "night"]);
    assert_eq!(state(&d, night), Some(JobState::Waiting));
    assert!(d.job_pids(night).is_empty());
    kill(&d, day);
    until_runs(&d, night);
    let late = detach(&d, &["--queue", "small"]);
    assert_eq!(state(&d, late), Some(JobState::Waiting), "nobody joins a job of an exclusive queue");
    kill(&d, night);
    until_runs(&d, late);
    // Its queue's time limit is reached soon.
    becomes(&d, late, JobState::Ended);
    until_nothing_is_left(&d);
}

#[test]
fn memory_is_never_oversubscribed_and_who_waits_is_told_why() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start(&with("memory = \"1G\"\n"));
    let first = detach(&d, &["--mem", "700M"]);
    until_runs(&d, first);
    let mut second = d.spawn_run(&["--mem", "700M", "--", "sh", "-c", "exit 7"]);
    let waits = || d.client().jobs(false).unwrap().jobs.into_iter().find(|job| job.state == JobState::Waiting);
    assert!(wait_until(|| waits().is_some()), "{:?}", d.client().jobs(false));
    let waiting = waits().unwrap();
    assert!(waiting.waits_for.as_deref().is_some_and(|why| why.contains("memory")), "{:?}", waiting.waits_for);
    // It uses nothing that the second job will need: it is backfilled past it.
    let third = detach(&d, &["--mem", "100M"]);
    until_runs(&d, third);
    // There is no room for this one beside the two running jobs.
    let fourth = detach(&d, &["--mem", "300M"]);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(state(&d, fourth), Some(JobState::Waiting));
    assert!(d.job_pids(waiting.id).is_empty() && second.try_wait().unwrap().is_none());
    kill(&d, first);
    assert!(wait_until(|| second.try_wait().unwrap().is_some()), "the second job does not run");
    let out = second.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(7));
    assert!(stderr(&out).contains("memory"), "{}", stderr(&out));
    kill(&d, third);
    until_runs(&d, fourth);
    kill(&d, fourth);
    until_nothing_is_left(&d);
}

#[test]
fn a_ceiling_leaves_slots_to_nobody_and_can_be_changed() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start(&with("sharing = \"strict\"\nceiling = 0.5\n"));
    let gang = d.detach(&["--", "sh", "-c", SPIN_2]);
    assert!(wait_until(|| job(&d, gang).share == Some(0.5)), "{:?}", job(&d, gang).share);
    let part = |seconds: f64| {
        let before = procs::cpu_usec(&d.v2_job(gang));
        std::thread::sleep(Duration::from_secs_f64(seconds));
        let cpus = d.client().status().unwrap().cpus.len() as f64;
        (procs::cpu_usec(&d.v2_job(gang)) - before) as f64 / 1e6 / seconds / cpus.min(2.0)
    };
    clean_look(|| match part(1.0) {
        0.2..0.65 => Ok(()),
        other => Err(format!("{other:.2} of the CPUs instead of a half")),
    });
    let said = |part: &str| stderr(&d.cosched(&["share", &gang.to_string(), part]));
    assert_eq!(said("40%"), "");
    assert!(said("60%").contains("the ceiling of all gangs is 50%, and the smaller one holds"), "{}", said("60%"));
    assert_eq!(said("none"), "");
    let ceiling = |part| PolicyRequest { ceiling: Some(part), ..PolicyRequest::default() };
    let status = d.client().set_policy(&ceiling(1.0)).unwrap();
    assert_eq!(status.cluster.unwrap().ceiling, 1.0);
    assert!(wait_until(|| job(&d, gang).share == Some(1.0)), "{:?}", job(&d, gang).share);
    clean_look(|| match part(1.0) {
        0.7.. => Ok(()),
        other => Err(format!("{other:.2} of the CPUs without a ceiling")),
    });
    kill(&d, gang);
    until_nothing_is_left(&d);
}

#[test]
fn a_killed_daemon_comes_back_with_jobs_and_queues_as_they_were() {
    if !needs_root() {
        return;
    }
    let mut d = Daemon::start(&with("memory = \"1G\"\n[[queue]]\nname = \"day\"\n[[queue]]\nname = \"night\"\n"));
    let running = detach(&d, &["--mem", "900M"]);
    until_runs(&d, running);
    let suspended = detach(&d, &["--mem", "10M", "--class", "standby"]);
    until_runs(&d, suspended);
    assert!(d.cosched(&["suspend", &suspended.to_string()]).status.success());
    // The later jobs of the first queue come before the earlier one of the second.
    let waiting = ["night", "day", "day"].map(|queue| detach(&d, &["--mem", "800M", "--queue", queue]));
    let order = [waiting[1], waiting[2], waiting[0]];
    let pids = d.job_pids(running);
    for _ in 0..2 {
        d.kill();
        std::thread::sleep(Duration::from_millis(700));
        d.launch();
        let jobs = d.client().jobs(false).unwrap().jobs;
        let known: Vec<u64> = jobs.iter().map(|job| job.id).collect();
        assert_eq!(known, [&[running, suspended][..], &waiting].concat());
        assert_eq!(d.job_pids(running), pids, "the same processes");
        assert_eq!(state(&d, running), Some(JobState::Running));
        assert_eq!(state(&d, suspended), Some(JobState::Suspended));
        assert!(wait_until(|| d.frozen(suspended)));
        assert!(waiting.iter().all(|id| state(&d, *id) == Some(JobState::Waiting)), "{jobs:?}");
        assert!(job(&d, waiting[0]).queue.as_deref() == Some("night"));
    }
    let mut before = running;
    for next in order {
        kill(&d, before);
        until_runs(&d, next);
        assert_eq!(d.client().jobs(false).unwrap().jobs.iter().filter(|job| job.state == JobState::Running).count(), 1);
        before = next;
    }
    kill(&d, before);
    kill(&d, suspended);
    until_nothing_is_left(&d);
    let last = detach(&d, &[]);
    assert!(last > waiting[2], "numbers are not given twice");
    kill(&d, last);
}

#[test]
fn queues_come_and_go_under_jobs_that_run() {
    if !needs_root() {
        return;
    }
    let mut d = Daemon::start(&with("sharing = \"strict\"\n"));
    let old = detach(&d, &["--mem", "10M"]);
    until_runs(&d, old);
    let pids = d.job_pids(old);
    d.stop();
    d.configure(&with("sharing = \"strict\"\nmemory = \"1G\"\n[[queue]]\nname = \"day\"\n"));
    d.launch();
    assert_eq!((state(&d, old), d.job_pids(old)), (Some(JobState::Running), pids.clone()), "it goes on");
    assert_eq!(
        (queues(&d), job(&d, old).queue.as_deref()),
        (vec!["day".to_owned(), "default".to_owned()], Some("default"))
    );
    for (verb, then) in [("suspend", JobState::Suspended), ("resume", JobState::Running)] {
        let out = d.cosched(&[verb, &old.to_string()]);
        assert!(out.status.success(), "{}", stderr(&out));
        becomes(&d, old, then);
    }
    let new = detach(&d, &["--mem", "900M"]);
    assert!(new > old);
    until_runs(&d, new);
    assert!(d.cosched(&["class", &new.to_string(), "standby"]).status.success());
    let waiting = detach(&d, &["--mem", "900M", "--name", "patient"]);
    assert_eq!(state(&d, waiting), Some(JobState::Waiting));
    assert_eq!(d.client().jobs(false).unwrap().jobs.iter().map(|job| job.id).collect::<Vec<_>>(), [old, new, waiting]);

    // Other queues: the waiting job moves with the queue's name.
    d.stop();
    d.configure(&with(
        "memory = \"1G\"\n[[queue]]\nname = \"express\"\n[[queue]]\nname = \"day\"\nmemory_max = \"950M\"\n",
    ));
    d.launch();
    assert_eq!(queues(&d), ["express", "day", "default"], "the last one has a job");
    assert_eq!((state(&d, waiting), job(&d, waiting).queue.as_deref()), (Some(JobState::Waiting), Some("day")));

    d.kill();
    d.configure(QUICK);
    d.launch();
    assert_eq!(queues(&d), ["default", "day"], "a queue with jobs stays");
    let warnings = d.client().status().unwrap().warnings;
    assert!(warnings.iter().any(|warning| warning.why.contains("day")), "{warnings:?}");
    assert_eq!((state(&d, old), d.job_pids(old)), (Some(JobState::Running), pids));
    assert_eq!((state(&d, new), job(&d, new).class), (Some(JobState::Running), cosched_api::Class::Standby));
    until_runs(&d, waiting);
    assert_eq!(job(&d, waiting).name, "patient");
    let last = detach(&d, &[]);
    assert!(last > waiting, "{last}");
    for id in [old, new, waiting, last] {
        kill(&d, id);
    }
    until_nothing_is_left(&d);
    d.kill();
    d.launch();
    assert_eq!(queues(&d), ["default"]);
    assert!(d.client().status().unwrap().warnings.iter().all(|warning| !warning.why.contains("day")));
}

#[test]
fn jobs_that_a_lost_store_does_not_know_are_planned_and_steered_as_before() {
    if !needs_root() {
        return;
    }
    let mut d = Daemon::start(QUICK);
    let [runs, stopped] = [detach(&d, &["--class", "standby"]), detach(&d, &[])];
    until_runs(&d, runs);
    assert!(d.cosched(&["suspend", &stopped.to_string()]).status.success());
    assert_eq!(d.cosched(&["run", "--", "sh", "-c", "exit 4"]).status.code(), Some(4));
    let pids = d.job_pids(runs);
    d.kill();
    let journal = d.state_dir().join("journal");
    let lines = std::fs::read_to_string(&journal).unwrap();
    let records = lines.split_inclusive('\n').filter(|line| !line.contains(" {\"keys\":"));
    std::fs::write(&journal, records.collect::<String>()).unwrap();
    d.launch();
    assert_eq!((job(&d, runs).class, d.job_pids(runs)), (cosched_api::Class::Standby, pids));
    assert_eq!((state(&d, runs), state(&d, stopped)), (Some(JobState::Running), Some(JobState::Suspended)));
    assert!(wait_until(|| d.frozen(stopped)));
    let ended = d.client().jobs(true).unwrap().jobs.into_iter().find(|job| job.state == JobState::Ended).unwrap();
    assert_eq!(ended.exit.and_then(|exit| exit.code), Some(4));
    for (verb, id, then) in [("resume", stopped, JobState::Running), ("suspend", runs, JobState::Suspended)] {
        assert!(d.cosched(&[verb, &id.to_string()]).status.success());
        becomes(&d, id, then);
    }
    assert!(detach(&d, &[]) > ended.id, "numbers are not given twice");
    for job in d.client().jobs(false).unwrap().jobs {
        kill(&d, job.id);
    }
    until_nothing_is_left(&d);
}

#[test]
fn a_full_disk_stops_no_job_and_loses_none() {
    if !needs_root() {
        return;
    }
    let mut d = Daemon::start_on_disk(&with("memory = \"1G\"\n"), "512k");
    let running = detach(&d, &["--mem", "900M"]);
    until_runs(&d, running);
    let waiting = detach(&d, &["--mem", "900M"]);
    assert_eq!(state(&d, waiting), Some(JobState::Waiting));
    let filler = procs::fill_disk(&d.state_dir());
    // The rest of the last page of a file has room for some more.
    let code = |_| d.cosched(&["run", "--", "true"]).status.code();
    let refused = (0..20).map(code).find(|code| *code != Some(0)).flatten();
    assert_eq!(refused, Some(125), "who asks is not answered");
    let is_told = || d.client().status().unwrap().warnings.iter().any(|warning| warning.why.contains("space"));
    assert!(wait_until(is_told), "{:?}", d.client().status().unwrap().warnings);
    assert!(runs(&d, running));
    // Even without room a job can be ended.
    kill(&d, running);
    assert!(wait_until(|| d.job_pids(running).is_empty()));
    std::fs::remove_file(filler).unwrap();
    until_runs(&d, waiting);
    becomes(&d, running, JobState::Ended);
    d.kill();
    d.launch();
    assert_eq!(state(&d, waiting), Some(JobState::Running));
    assert_eq!(state(&d, running), Some(JobState::Ended));
    kill(&d, waiting);
    assert!(wait_until(|| !d.client().jobs(false).unwrap().jobs.iter().any(|job| job.id == waiting)));
}

#[test]
fn damaged_keys_are_set_aside_with_the_journal_and_what_runs_goes_on() {
    if !needs_root() {
        return;
    }
    let mut d = Daemon::start(&with("memory = \"1G\"\n"));
    let running = detach(&d, &["--mem", "900M"]);
    until_runs(&d, running);
    let pids = d.job_pids(running);
    d.kill();
    let journal = d.state_dir().join("journal");
    let lines = std::fs::read_to_string(&journal).unwrap();
    let lines: Vec<&str> = lines.split_inclusive('\n').collect();
    // Every second line with keys.
    let keys: Vec<usize> = (0..lines.len()).filter(|at| lines[*at].contains(" {\"keys\":")).collect();
    assert!(keys.len() > 3, "{lines:?}");
    let is_damaged = |at: usize| keys.iter().skip(1).step_by(2).any(|damaged| *damaged == at);
    let damage =
        |(at, line): (usize, &&str)| if is_damaged(at) { line.replacen('{', "[", 1) } else { (*line).to_owned() };
    let bytes: String = lines.iter().enumerate().map(damage).collect();
    std::fs::write(&journal, &bytes).unwrap();
    d.launch();
    let warnings = d.client().status().unwrap().warnings;
    assert!(warnings.iter().any(|warning| warning.hint.contains("journal.corrupt-1")), "{warnings:?}");
    assert_eq!(std::fs::read_to_string(journal.with_extension("corrupt-1")).unwrap(), bytes);
    assert_eq!((state(&d, running), d.job_pids(running)), (Some(JobState::Running), pids));
    let next = detach(&d, &[]);
    assert!(next > running);
    until_runs(&d, next);
    kill(&d, next);
    kill(&d, running);
    until_nothing_is_left(&d);
}

#[test]
fn a_signal_does_the_same_with_queues_and_without() {
    if !needs_root() {
        return;
    }
    let [simple, queues] = ["", "[[queue]]\nname = \"day\"\n"].map(|more| {
        let d = Daemon::start(&with(more));
        let ready = d.dir.path().join("ready");
        let script = format!("trap '' TERM; : >{}; while :; do sleep 0.1; done", ready.display());
        let id = d.detach(&["--", "sh", "-c", &script]);
        assert!(wait_until(|| ready.exists()));
        let kill = |args: &[&str]| {
            let out = d.cosched(&[&["kill"], args, &[&id.to_string()]].concat());
            assert!(out.status.success(), "{}", stderr(&out));
        };
        let signals = || -> Vec<String> {
            let events = d.client().events(id).expect("its events").events;
            events.into_iter().filter(|event| event.what == "signal").map(|event| event.detail).collect()
        };
        kill(&["-s", "TERM"]);
        assert!(wait_until(|| signals().len() == 1), "{:?}", signals());
        kill(&["--grace", "1h"]);
        assert!(wait_until(|| signals().len() == 2), "{:?}", signals());
        assert!(!d.job_pids(id).is_empty(), "it takes no notice of TERM");
        // The test does not wait for the hour to pass.
        kill(&["-9"]);
        until_nothing_is_left(&d);
        signals()
    });
    assert_eq!(simple, queues);
}
