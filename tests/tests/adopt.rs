//! Running processes become a job where they are, and are released again. Whatever dies meanwhile, they are not left frozen (SECURITY.md).

use cosched_api::{Adopt, Class, ErrorCode, Job, JobRequest, JobState};
use cosched_tests::service::{CONFIG, SPIN, SPIN_2, Service, ask, is_frozen};
use cosched_tests::users::{ANN, BOB, as_user, cgroups, code, process, start};
use cosched_tests::{Daemon, clean_look, needs_root, procs, stderr, stdout, wait_until};
use rustix::process::Signal;
use std::process::Command;
use std::time::Duration;

fn ended(d: &Daemon, id: u64) -> bool {
    matches!(d.client().job(id).unwrap().state, JobState::Ended | JobState::Lost)
}

/// A spinning job of `cosched run`, which takes turns with the adopted job.
fn rival(d: &Daemon) -> u64 {
    d.detach(&["--class", "interactive", "--", "sh", "-c", SPIN_2])
}

#[test]
fn one_that_grows_beyond_what_may_be_adopted_is_released() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start(CONFIG);
    let service = Service::new("exec sleep 1000");
    let id = service.adopt(&d, &[]);
    let below: Vec<_> = (0..=1024).map(|n| service.dir.join(n.to_string())).collect();
    below.iter().for_each(|dir| std::fs::create_dir(dir).unwrap());
    let is_over = wait_until(|| ended(&d, id));
    below.iter().for_each(|dir| std::fs::remove_dir(dir).unwrap());
    assert!(is_over && d.log().contains("1025 cgroups below it"), "{}", d.log());
    assert!(!is_frozen(&service.dir) && procs::state(service.child.id() as i32).is_some());
}

#[test]
fn a_cgroup_takes_turns_where_it_is_and_runs_on_when_it_is_released() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start(CONFIG);
    let service = Service::new(SPIN);
    let pid = service.child.id() as i32;
    let before = cgroups(pid);
    let id = service.adopt(&d, &["--name", "llama"]);
    let other = rival(&d);
    assert!(service.is_switched(), "{}", stdout(&d.cosched(&["status"])));
    assert_eq!(cgroups(pid), before, "it was moved");
    // Soft sharing, and the service leaves a CPU idle: the other job does not fill it, since no idle mark holds between them. Otherwise it would
    // get a third of its CPU time there.
    clean_look(|| {
        let used = || d.client().job(other).map(|job| (job.cpu_time_ms, job.outside_ms.unwrap_or(0))).unwrap();
        let before = used();
        std::thread::sleep(Duration::from_secs(2));
        let (cpu_ms, outside_ms) = (used().0 - before.0, used().1 - before.1);
        let text = format!("{outside_ms} of {cpu_ms} ms outside of its slots");
        if cpu_ms > 200 && outside_ms * 8 < cpu_ms { Ok(()) } else { Err(text) }
    });
    let shown = stdout(&d.cosched(&["show", "llama"]));
    assert!(
        shown.contains(&format!("cgroup     {}", service.path())) && shown.contains("it stays in its cgroup"),
        "{shown}"
    );
    assert!(stdout(&d.cosched(&["ps"])).contains(&format!("adopted: {}", service.path())));

    let released = d.cosched(&["release", "llama"]);
    assert!(released.status.success(), "{}", stderr(&released));
    assert!(!service.is_frozen(), "released, it is frozen");
    for _ in 0..30 {
        std::thread::sleep(Duration::from_millis(10));
        assert!(!service.is_frozen(), "released, it is frozen again");
    }
    let job = d.client().job(id).unwrap();
    assert!(job.adopted.is_some_and(|adopted| adopted.released) && job.state == JobState::Ended, "{:?}", job.state);
    assert!(!d.v2_job(id).exists() && service.dir.exists() && wait_until(|| service.runs()));
    assert!(stdout(&d.cosched(&["show", &id.to_string()])).contains("run on without cosched"));
    assert_eq!(d.cosched(&["release", &id.to_string()]).status.code(), Some(6), "it has ended");
    assert_eq!(d.cosched(&["release", &other.to_string()]).status.code(), Some(6), "it was not adopted");
    // Once more: nothing of the first time gets in the way.
    let again = service.adopt(&d, &["--share", "30%"]);
    assert!(again > id && service.is_switched());
}

#[test]
fn it_obeys_like_every_job_and_is_over_when_it_is_empty_or_gone() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start(CONFIG);
    let mut service = Service::new(SPIN);
    let id = service.adopt(&d, &["--class", "batch"]);
    let words = id.to_string();
    let asked = |words: &[&str]| assert!(d.cosched(words).status.success(), "{words:?}");
    assert!(wait_until(|| service.runs()));
    asked(&["suspend", &words]);
    assert!(wait_until(|| service.is_frozen()));
    asked(&["resume", &words]);
    assert!(wait_until(|| service.runs()));
    asked(&["class", &words, "standby"]);
    asked(&["policy", "local", "--job", &words]);
    asked(&["share", &words, "50%"]);
    let job = d.client().job(id).unwrap();
    assert_eq!((job.class, job.share_max, job.processes), (Class::Standby, Some(0.5), Some(1)));
    assert_eq!(code(d.client().add_process(id, &process(std::process::id() as i32))), ErrorCode::Conflict);
    asked(&["kill", "-9", &words]);
    assert!(wait_until(|| ended(&d, id)), "its processes were killed, and it has not ended");
    assert!(!d.v2_job(id).exists() && service.dir.exists(), "its owner removes it");
    service.end();

    // A service that ends by itself while it is frozen for its rival.
    let mut service = Service::new(SPIN);
    let id = service.adopt(&d, &[]);
    rival(&d);
    assert!(service.is_switched());
    service.end();
    assert!(wait_until(|| ended(&d, id)) && wait_until(|| !d.v2_job(id).exists()));
}

/// Kills something; afterwards the service must run, and the next daemon must know it.
fn survives(kill: impl FnOnce(&mut Daemon)) {
    let mut d = Daemon::start("slot_length = \"300ms\"\nlease = \"1s\"\n");
    let service = Service::new(SPIN_2);
    let id = service.adopt(&d, &[]);
    rival(&d);
    assert!(service.is_switched());
    // In a slot of the rival: an adopted service that is frozen now must not stay so.
    assert!(wait_until(|| service.is_frozen()));
    kill(&mut d);
    assert!(wait_until(|| service.runs()), "the service stays frozen");
    d.launch();
    let job = d.client().job(id).unwrap();
    assert!(job.adopted.is_some_and(|adopted| adopted.cgroup == Some(service.path())), "it is not known any more");
    assert!(service.is_switched(), "the next daemon does not switch it");
    assert!(d.cosched(&["release", &id.to_string()]).status.success());
    assert!(wait_until(|| service.runs()) && !d.v2_job(id).exists());
}

#[test]
fn the_daemon_is_killed() {
    if needs_root() {
        survives(Daemon::kill);
    }
}

#[test]
fn daemon_and_guard_are_killed_at_one_instant() {
    if needs_root() {
        survives(Daemon::kill_with_guard);
    }
}

#[test]
fn the_daemon_ends_in_order() {
    if needs_root() {
        survives(Daemon::stop);
    }
}

#[test]
fn the_daemon_hangs() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start("slot_length = \"300ms\"\nlease = \"1s\"\n");
    let service = Service::new(SPIN_2);
    let id = service.adopt(&d, &[]);
    rival(&d);
    assert!(service.is_switched());
    procs::signal(d.pid(), Signal::STOP);
    let free = wait_until(|| service.runs());
    procs::signal(d.pid(), Signal::CONT);
    assert!(free, "the service stays frozen");
    assert!(service.is_switched(), "{:?}", d.client().job(id).unwrap().state);
}

#[test]
fn what_has_gone_without_a_daemon_is_over_and_its_path_names_nothing_else() {
    if !needs_root() {
        return;
    }
    let mut d = Daemon::start(CONFIG);
    let (mut gone, mut replaced) = (Service::new(SPIN), Service::new(SPIN));
    let ids = [&gone, &replaced].map(|service| service.adopt(&d, &[]));
    d.kill();
    gone.end();
    let path = replaced.dir.clone();
    replaced.end();
    let fresh = Service::at(path, 0, SPIN);
    d.launch();
    for id in ids {
        assert!(wait_until(|| ended(&d, id) && !d.v2_job(id).exists()), "job {id}");
    }
    assert!(wait_until(|| fresh.runs()));
}

#[test]
fn what_may_not_be_adopted_is_refused() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start(CONFIG);
    let service = Service::new("exec sleep 1000");
    let inner = service.dir.join("inner");
    std::fs::create_dir(&inner).unwrap();
    let refused =
        |path: &str| code(d.client().register(&ask(Adopt { cgroup: Some(path.to_owned()), ..Adopt::default() })));
    let job = rival(&d);
    for path in
        ["/", "", "..", "/no-such", "/../..", &format!("/{}", d.cgroup), &format!("/{}/job-{job}", d.cgroup), "/etc"]
    {
        assert_eq!(refused(path), ErrorCode::Conflict, "{path}");
    }
    let inner_path = format!("{}/inner", service.path());
    assert_eq!(refused(&inner_path), ErrorCode::Conflict, "it is empty");
    let mut inside = Service::spawn(&inner, 0, "exec sleep 1000");
    std::fs::write(inner.join("cgroup.freeze"), "1").unwrap();
    assert_eq!(refused(&inner_path), ErrorCode::Conflict, "it is frozen by another program");
    std::fs::write(inner.join("cgroup.freeze"), "0").unwrap();
    let many = || (0..1024).map(|at| inner.join(at.to_string()));
    many().for_each(|dir| std::fs::create_dir(dir).unwrap());
    let with_many = refused(&inner_path);
    many().for_each(|dir| std::fs::remove_dir(dir).unwrap());
    assert_eq!(with_many, ErrorCode::Conflict, "it has too many cgroups");

    let of_inner = Adopt { cgroup: Some(inner_path.clone()), ..Adopt::default() };
    let below = d.client().register(&ask(of_inner)).unwrap().id;
    assert_eq!(refused(&service.path()), ErrorCode::Conflict, "it contains job {below}");
    assert!(d.cosched(&["release", &below.to_string()]).status.success());
    assert!(wait_until(|| !is_frozen(&inner)) && !is_frozen(&service.dir), "nothing stays stopped");

    let id = service.adopt(&d, &[]);
    for path in [service.path(), inner_path] {
        assert_eq!(refused(&path), ErrorCode::Conflict, "{path} is in job {id}");
    }
    let of_pid = |pid: i32| ask(Adopt { pid: Some(pid), ..Adopt::default() });
    assert_eq!(
        code(d.client().register(&of_pid(inside.id() as i32))),
        ErrorCode::Conflict,
        "its cgroup is in job {id}"
    );
    assert_eq!(code(d.client().register(&of_pid(d.job_pids(job)[0]))), ErrorCode::Conflict, "it is in job {job}");
    for pid in [1, d.pid()] {
        assert_eq!(code(d.client().register(&of_pid(pid))), ErrorCode::Forbidden, "process {pid}");
    }
    assert_eq!(code(d.client().register(&of_pid(i32::MAX))), ErrorCode::NotFound);
    assert_eq!(code(d.client().register(&ask(Adopt::default()))), ErrorCode::Invalid);
    assert_eq!(code(d.client().register(&JobRequest { owner_uid: Some(ANN), ..service.ask() })), ErrorCode::Invalid);
    assert!(d.cosched(&["release", &id.to_string()]).status.success());
    inside.kill().unwrap();
    inside.wait().unwrap();
    assert!(wait_until(|| std::fs::remove_dir(&inner).is_ok()));
}

#[test]
fn users_adopt_what_is_theirs_alone() {
    if !needs_root() {
        return;
    }
    let d = start(CONFIG);
    let (own, others, roots) =
        (Service::of(ANN, "exec sleep 1000"), Service::of(BOB, "exec sleep 1000"), Service::new("exec sleep 1000"));
    let mixed = Service::of(ANN, "exec sleep 1000");
    let mut guest = Service::spawn(&mixed.dir, BOB, "exec sleep 1000");
    assert!(wait_until(|| procs::pids_in(&mixed.dir).len() == 2));
    let by_pid = |service: &Service| ask(Adopt { pid: Some(service.child.id() as i32), ..Adopt::default() });
    let id = as_user(&d, ANN, |c| {
        for service in [&others, &roots, &mixed] {
            assert_eq!(code(c.register(&service.ask())), ErrorCode::Forbidden);
        }
        for service in [&others, &roots] {
            assert_eq!(code(c.register(&by_pid(service))), ErrorCode::Forbidden);
        }
        c.register(&own.ask()).unwrap().id
    });
    as_user(&d, BOB, |c| assert_eq!(code(c.release(id)), ErrorCode::Forbidden));
    as_user(&d, ANN, |c| assert!(c.release(id).unwrap().adopted.is_some_and(|adopted| adopted.released)));
    guest.kill().unwrap();
    guest.wait().unwrap();
}

#[test]
fn a_process_tree_is_moved_and_moved_back() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start(CONFIG);
    let mut child = Command::new("sh").args(["-c", "sleep 1000 & (sleep 1000 & wait) & wait"]).spawn().unwrap();
    let pid = child.id() as i32;
    let tree = || {
        let mut pids = vec![pid];
        while let Some(more) = Some(children(&pids)).filter(|more| more.len() > pids.len()) {
            pids = more;
        }
        pids
    };
    assert!(wait_until(|| tree().len() == 4));
    let before: Vec<String> = tree().iter().map(|pid| cgroups(*pid)).collect();
    let output = d.cosched(&["adopt", "--pid", &pid.to_string()]);
    assert!(output.status.success(), "{}", stderr(&output));
    let id: u64 = stdout(&output).trim().parse().unwrap();
    let mut moved = d.job_pids(id);
    moved.sort_unstable();
    let mut wanted = tree();
    wanted.sort_unstable();
    assert_eq!(moved, wanted);
    // Also from a frozen cgroup.
    assert!(d.cosched(&["suspend", &id.to_string()]).status.success());
    assert!(wait_until(|| procs::is_frozen(&d.v2_job(id))));
    let job: Job = d.client().release(id).unwrap();
    assert_eq!(job.state, JobState::Ended);
    assert_eq!(tree().iter().map(|pid| cgroups(*pid)).collect::<Vec<_>>(), before);
    assert!(!d.v2_job(id).exists());
    for pid in tree() {
        procs::signal(pid, Signal::KILL);
    }
    child.wait().unwrap();

    // A service with a cgroup of its own keeps it.
    let service = Service::new(SPIN);
    let request = ask(Adopt { pid: Some(service.child.id() as i32), ..Adopt::default() });
    let job = d.client().register(&request).unwrap();
    assert_eq!(job.adopted.and_then(|adopted| adopted.cgroup), Some(service.path()));
    assert!(d.cosched(&["release", &job.id.to_string()]).status.success());
}

#[test]
fn a_process_tree_whose_cgroup_has_gone_is_not_put_into_another() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start(CONFIG);
    let mut service = Service::new("exec sleep 1000");
    let mut moved = Service::spawn(&service.dir, 0, "exec sleep 1000");
    let pid = moved.id() as i32;
    let id = d.client().register(&ask(Adopt { pid: Some(pid), ..Adopt::default() })).unwrap().id;
    assert_eq!(d.job_pids(id), [pid]);
    service.end();
    assert_eq!(code(d.client().release(id)), ErrorCode::Conflict);
    assert_eq!(d.job_pids(id), [pid], "it is where it was");
    moved.kill().unwrap();
    moved.wait().unwrap();
    assert!(wait_until(|| ended(&d, id)));
}

/// These processes and their children.
fn children(pids: &[i32]) -> Vec<i32> {
    let of = |pid: &i32| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        text.split_whitespace().map(|word| word.parse().unwrap()).collect::<Vec<i32>>()
    };
    let mut all: Vec<i32> = pids.iter().copied().chain(pids.iter().flat_map(of)).collect();
    let mut seen = std::collections::BTreeSet::new();
    all.retain(|pid| seen.insert(*pid));
    all
}
