//! What one user must not be able to do to another, each really tried: by threads that have become that user.

use cosched_api::{
    Class, ClassRequest, ClientError, ErrorCode, ExitReport, ExitStatus, JobRequest, JobState, KillRequest,
    NodeResources, PolicyRequest, ProcessRequest, ResourcesRequest,
};
use cosched_tests::users::{ANN, BOB, Sleeper, as_user, cgroups, code, empty_job, process, raw, start, successor_of};
use cosched_tests::{Daemon, needs_root, procs, wait_until};
use std::path::{Path, PathBuf};

/// A job of this user's with one process.
fn job_of(d: &Daemon, uid: u32) -> (u64, Sleeper) {
    let sleeper = Sleeper::of(uid);
    let id = as_user(d, uid, |c| {
        let id = c.register(&empty_job(Some(Class::Batch))).unwrap().id;
        c.add_process(id, &process(sleeper.pid())).unwrap();
        id
    });
    (id, sleeper)
}

#[test]
fn a_user_touches_no_job_of_another() {
    if !needs_root() {
        return;
    }
    let d = start("");
    let (id, anns) = job_of(&d, ANN);
    let bobs = Sleeper::of(BOB);
    let before = d.client().job(id).unwrap();
    let results = as_user(&d, BOB, |c| {
        let nodes = vec![NodeResources { cpus: Some(1), ..NodeResources::default() }];
        [
            c.suspend(id),
            c.resume(id),
            c.kill(id, &KillRequest { signal: 9, grace_ms: None, here: false }),
            c.kill(id, &KillRequest { signal: 0, grace_ms: None, here: false }),
            c.set_class(id, &ClassRequest { class: Class::Standby }),
            c.set_job_policy(id, &PolicyRequest::default()),
            c.set_resources(id, &ResourcesRequest { nodes, ..ResourcesRequest::default() }),
            c.add_process(id, &process(bobs.pid())),
            c.add_process(id, &process(anns.pid())),
            c.remove_process(id, &process(anns.pid())),
            c.report_exit(id, &ExitReport { exit: ExitStatus { code: Some(0), signal: None } }),
        ]
    });
    for (index, result) in results.into_iter().enumerate() {
        // Signal 0 is refused as an invalid signal before the job's owner is checked.
        let expected = if index == 3 { ErrorCode::Invalid } else { ErrorCode::Forbidden };
        assert_eq!(code(result), expected, "attempt {index}");
    }
    let after = d.client().job(id).unwrap();
    assert_eq!((after.state, after.class, after.cpus, after.exit), (before.state, before.class, before.cpus, None));
    assert_eq!(d.job_pids(id), [anns.pid()]);
    assert!(!cgroups(bobs.pid()).contains(&format!("{}/job-", d.cgroup)), "{}: {}", d.cgroup, cgroups(bobs.pid()));
}

#[test]
fn nobody_forges_the_owner_of_a_job() {
    if !needs_root() {
        return;
    }
    let d = start("");
    for forged in ["\"uid\":0", "\"user\":\"root\"", "\"owner\":0", "\"id\":1", "\"gid\":0"] {
        let body = format!("{{\"command\":[\"x\"],\"pid\":0,{forged}}}");
        let answer = as_user(&d, BOB, |_| raw(&d, "POST", "/v1/jobs", "", &body));
        assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("unknown field"), "{answer}");
    }
    // Headers as proxies write them change nothing, either.
    let header = "X-Remote-User: root\r\nAuthorization: Basic cm9vdDo=\r\nX-Uid: 0\r\n";
    let answer = as_user(&d, BOB, |_| raw(&d, "POST", "/v1/jobs", header, "{\"command\":[\"x\"],\"pid\":0}"));
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let jobs = d.client().jobs(true).unwrap().jobs;
    assert_eq!(jobs.iter().map(|job| job.uid).collect::<Vec<_>>(), [BOB]);
}

/// A job for this user.
fn job_for(uid: u32) -> JobRequest {
    JobRequest { owner_uid: Some(uid), ..empty_job(None) }
}

#[test]
fn an_owner_is_named_by_administrators_only() {
    if !needs_root() {
        return;
    }
    let d = start("");
    as_user(&d, BOB, |c| {
        for uid in [0, ANN, 1, u32::MAX - 1] {
            assert_eq!(code(c.register(&job_for(uid))), ErrorCode::Forbidden, "uid {uid}");
            let pid = std::process::id() as i32;
            assert_eq!(code(c.register(&JobRequest { pid, ..job_for(uid) })), ErrorCode::Forbidden, "uid {uid}");
        }
        assert_eq!(c.register(&job_for(BOB)).unwrap().uid, BOB);
    });
    let mut root = d.client();
    assert_eq!(code(root.register(&job_for(u32::MAX))), ErrorCode::Invalid);
    // No process comes with it; otherwise root's could end in a user's hands.
    let of_root = Sleeper::of(0);
    for pid in [std::process::id() as i32, of_root.pid()] {
        assert_eq!(code(root.register(&JobRequest { pid, ..job_for(ANN) })), ErrorCode::Invalid, "pid {pid}");
    }
    let express = JobRequest { class: Some(Class::Express), ..job_for(ANN) };
    let job = root.register(&express).unwrap();
    assert_eq!((job.uid, job.class), (ANN, Class::Express));
    // It belongs to Ann as if she had registered it: she may use it, root's processes are refused, and Bob may do
    // nothing.
    let (hers, bobs) = (Sleeper::of(ANN), Sleeper::of(BOB));
    assert_eq!(code(root.add_process(job.id, &process(of_root.pid()))), ErrorCode::Forbidden);
    assert_eq!(as_user(&d, BOB, |c| code(c.add_process(job.id, &process(bobs.pid())))), ErrorCode::Forbidden);
    as_user(&d, ANN, |c| c.add_process(job.id, &process(hers.pid())).map(drop)).unwrap();
    assert_eq!(d.job_pids(job.id), [hers.pid()]);
    let events = root.events(job.id).unwrap().events;
    assert!(events.iter().any(|event| event.detail.ends_with(", by root")), "{events:?}");
    // A queueing system may start more jobs at once than a user may leave empty.
    for _ in 0..17 {
        root.register(&job_for(BOB)).unwrap();
    }
}

#[test]
fn no_process_of_another_user_enters_a_job() {
    if !needs_root() {
        return;
    }
    let d = start("");
    let (anns, _first) = job_of(&d, ANN);
    let (of_bob, of_root, of_ann) = (Sleeper::of(BOB), Sleeper::of(0), Sleeper::of(ANN));
    let me = std::process::id() as i32;
    as_user(&d, ANN, |c| {
        // Another user's, root's, init, and the requesting process itself: its thread is Ann's, the process is root's.
        for pid in [of_bob.pid(), of_root.pid(), 1, d.pid(), me] {
            assert_eq!(code(c.add_process(anns, &process(pid))), ErrorCode::Forbidden, "pid {pid}");
            assert_eq!(code(c.register(&JobRequest { pid, ..empty_job(None) })), ErrorCode::Forbidden, "pid {pid}");
        }
    });
    // An administrator may help, but not put root's own processes into a user's hands: the user could kill what is in
    // the job.
    let mut root = d.client();
    assert_eq!(code(root.add_process(anns, &process(of_root.pid()))), ErrorCode::Forbidden);
    root.add_process(anns, &process(of_ann.pid())).unwrap();
    for pid in [of_bob.pid(), of_root.pid(), me, d.pid()] {
        assert!(!cgroups(pid).contains(&format!("{}/job-", d.cgroup)), "{pid}: {}", cgroups(pid));
    }
    assert!(cgroups(of_ann.pid()).contains(&format!("{}/job-{anns}", d.cgroup)));
    // Into root's own job, root may put any user's process.
    let own = root.register(&empty_job(None)).unwrap().id;
    root.add_process(own, &process(of_bob.pid())).unwrap();
    assert_eq!(as_user(&d, BOB, |c| code(c.remove_process(own, &process(of_bob.pid())))), ErrorCode::Forbidden);
    root.remove_process(own, &process(of_bob.pid())).unwrap();
}

#[test]
fn a_user_does_not_raise_a_class() {
    if !needs_root() {
        return;
    }
    let d = start("");
    let (id, _sleeper) = job_of(&d, ANN);
    as_user(&d, ANN, |c| {
        assert_eq!(code(c.register(&empty_job(Some(Class::Express)))), ErrorCode::Forbidden);
        for class in [Class::Express, Class::Interactive] {
            assert_eq!(code(c.set_class(id, &ClassRequest { class })), ErrorCode::Forbidden);
        }
        assert_eq!(c.set_class(id, &ClassRequest { class: Class::Standby }).unwrap().class, Class::Standby);
        assert_eq!(code(c.set_class(id, &ClassRequest { class: Class::Batch })), ErrorCode::Forbidden);
    });
    assert_eq!(d.client().job(id).unwrap().class, Class::Standby);
    assert_eq!(d.client().set_class(id, &ClassRequest { class: Class::Express }).unwrap().class, Class::Express);
}

fn start_ticks(pid: i32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat[stat.rfind(')').unwrap() + 1..].split_whitespace().nth(19).unwrap().parse().unwrap()
}

#[test]
fn a_dead_process_a_thread_and_a_number_that_is_none_are_refused() {
    if !needs_root() {
        return;
    }
    let d = start("");
    let (id, first) = job_of(&d, ANN);
    let mut dead = Sleeper::of(ANN);
    dead.kill();
    // Not yet waited for: a zombie still has a number.
    assert!(wait_until(|| std::fs::read_to_string(format!("/proc/{}/stat", dead.pid())).unwrap().contains(") Z ")));
    let refused = |pid: i32| as_user(&d, ANN, |c| code(c.add_process(id, &process(pid))));
    assert_eq!(refused(dead.pid()), ErrorCode::NotFound);
    dead.wait();
    assert_eq!(refused(dead.pid()), ErrorCode::NotFound);
    assert_eq!(refused(i32::MAX), ErrorCode::NotFound);
    for pid in [0, -1, i32::MIN] {
        assert_eq!(refused(pid), ErrorCode::Invalid, "{pid}");
    }
    let thread = std::thread::scope(|scope| {
        let ask = || {
            let tid = rustix::thread::gettid().as_raw_nonzero().get();
            code(d.client().add_process(id, &process(tid)))
        };
        scope.spawn(ask).join().unwrap()
    });
    assert_eq!(thread, ErrorCode::Invalid);
    assert_eq!(d.job_pids(id), [first.pid()]);
}

#[test]
fn a_process_with_the_number_of_a_dead_one_is_not_taken_for_it() {
    if !needs_root() {
        return;
    }
    let d = start("");
    let (id, first) = job_of(&d, ANN);
    let meant = Sleeper::of(ANN);
    let request = ProcessRequest { pid: meant.pid(), start_ticks: Some(start_ticks(meant.pid())) };
    drop(meant);
    // Clock ticks are 10 ms: the successor must not have started in the same one.
    std::thread::sleep(std::time::Duration::from_millis(30));
    let Some(other) = successor_of(request.pid, ANN) else {
        println!("SKIPPED: this kernel does not give a number away again when it is asked to");
        return;
    };
    as_user(&d, ANN, |c| {
        match c.add_process(id, &request) {
            Err(ClientError::Refused(body)) => assert!(body.why.contains("another process"), "{body:?}"),
            other => panic!("{other:?}"),
        }
        assert_eq!(code(c.remove_process(id, &request)), ErrorCode::NotFound);
    });
    assert_eq!(d.job_pids(id), [first.pid()]);
    // With its own start time it may enter.
    let right = ProcessRequest { pid: other.pid(), start_ticks: Some(start_ticks(other.pid())) };
    as_user(&d, ANN, |c| c.add_process(id, &right).map(drop)).unwrap();
    assert!(d.job_pids(id).contains(&other.pid()));
}

#[test]
fn a_process_leaves_to_where_it_came_from() {
    if !needs_root() {
        return;
    }
    let d = start("");
    let sleeper = Sleeper::of(ANN);
    let before = cgroups(sleeper.pid());
    as_user(&d, ANN, |c| {
        let id = c.register(&empty_job(None)).unwrap().id;
        assert_eq!(code(c.remove_process(id, &process(sleeper.pid()))), ErrorCode::NotFound);
        let job = c.add_process(id, &process(sleeper.pid())).unwrap();
        assert_eq!((job.pid, job.r#use.unwrap().processes), (sleeper.pid(), Some(1)));
        // Again: it is already in the job, which is accepted. Into a second job: not before it has left the first.
        c.add_process(id, &process(sleeper.pid())).unwrap();
        let second = c.register(&empty_job(None)).unwrap().id;
        assert_eq!(code(c.add_process(second, &process(sleeper.pid()))), ErrorCode::Conflict);
        assert_ne!(cgroups(sleeper.pid()), before);
        // A suspended job's process is stopped; one that leaves the job continues.
        c.suspend(id).unwrap();
        assert!(wait_until(|| d.frozen(id)));
        c.remove_process(id, &process(sleeper.pid())).unwrap();
        assert_eq!(cgroups(sleeper.pid()), before);
        c.add_process(second, &process(sleeper.pid())).unwrap();
        // Without processes a job ends.
        assert_eq!(c.wait(id, std::time::Duration::from_secs(15)).unwrap().state, JobState::Ended);
    });
}

#[test]
fn a_job_without_a_process_outlives_the_daemon_and_their_number_is_limited() {
    if !needs_root() {
        return;
    }
    let mut d = start("");
    let ids = as_user(&d, ANN, |c| (0..16).map(|_| c.register(&empty_job(None)).unwrap().id).collect::<Vec<u64>>());
    assert_eq!(as_user(&d, ANN, |c| code(c.register(&empty_job(None)))), ErrorCode::Conflict);
    as_user(&d, BOB, |c| c.register(&empty_job(None)).map(drop)).unwrap();
    // A job that is killed makes room: it has no process whose end would end it.
    as_user(&d, ANN, |c| {
        assert_eq!(
            c.kill(ids[0], &KillRequest { signal: 15, grace_ms: None, here: false }).unwrap().state,
            JobState::Ended
        );
        c.register(&empty_job(None)).unwrap();
    });
    d.kill();
    d.launch();
    let sleeper = Sleeper::of(ANN);
    as_user(&d, ANN, |c| {
        assert_eq!(c.job(ids[3]).unwrap().state, JobState::Running);
        c.add_process(ids[3], &process(sleeper.pid())).unwrap();
        c.register(&empty_job(None)).unwrap();
    });
    assert_eq!(d.job_pids(ids[3]), [sleeper.pid()]);
}

#[test]
fn resources_are_checked_given_and_changed() {
    if !needs_root() {
        return;
    }
    let d = start("");
    let have = d.client().status().unwrap().cpus.len() as u32;
    let node = d.client().version().unwrap().node;
    let of = |cpus, cpus_min| NodeResources {
        name: node.clone(),
        cpus,
        cpus_min,
        memory_bytes: Some(5 << 20),
        disk_bytes: Some(1 << 30),
    };
    let ask = |nodes: &[NodeResources]| JobRequest { nodes: nodes.to_vec(), ..empty_job(None) };
    let mut c = d.client();
    // Requests more than the node has, and is content with less.
    let job = c.register(&ask(&[of(Some(have + 3), Some(1))])).unwrap();
    assert_eq!((job.cpus, job.mem_bytes, job.nodes[0].cpus), (have, Some(5 << 20), Some(have)));
    assert_eq!((job.nodes[0].name.as_str(), job.nodes[0].disk_bytes), (node.as_str(), Some(1 << 30)));
    assert_eq!(code(c.register(&ask(&[of(Some(have + 3), None)]))), ErrorCode::Invalid);
    let elsewhere = NodeResources { name: "elsewhere".to_owned(), ..NodeResources::default() };
    for nodes in [&[elsewhere.clone()][..], &[of(None, None), elsewhere][..]] {
        match c.register(&ask(nodes)) {
            Err(ClientError::Refused(body)) => {
                assert_eq!(body.code, ErrorCode::Unsupported);
                assert!(body.why.contains(&node), "{body:?}");
            }
            other => panic!("{other:?}"),
        }
    }
    let changed = c
        .set_resources(job.id, &ResourcesRequest { nodes: vec![of(Some(1), None)], ..ResourcesRequest::default() })
        .unwrap();
    assert_eq!((changed.cpus, changed.nodes[0].cpus), (1, Some(1)));
    assert_eq!(
        code(c.set_resources(job.id, &ResourcesRequest { nodes: Vec::new(), ..ResourcesRequest::default() })),
        ErrorCode::Invalid
    );
    assert_eq!(
        code(c.set_resources(
            job.id,
            &ResourcesRequest { nodes: vec![of(Some(have + 1), None)], ..ResourcesRequest::default() }
        )),
        ErrorCode::Invalid
    );
    let memory = ResourcesRequest { mem_bytes: Some(7 << 20), ..ResourcesRequest::default() };
    let changed = c.set_resources(job.id, &memory).unwrap();
    assert_eq!((changed.cpus, changed.mem_bytes), (1, Some(7 << 20)), "CPUs stay");
    let twice = ResourcesRequest { nodes: vec![of(Some(1), None)], ..memory };
    assert_eq!(code(c.set_resources(job.id, &twice)), ErrorCode::Invalid);
    assert_eq!(c.job(job.id).unwrap().cpus, 1);
    let load = c.load(None).unwrap();
    assert_eq!((load.name.as_str(), load.cpus, load.jobs, load.job_cpus), (node.as_str(), have, 1, 1));
    assert!(load.runnable >= 1 && load.memory_available_bytes < load.memory_bytes);
    assert_eq!(load.memory_declared_bytes, 7 << 20);
    assert!(matches!(c.load(Some("else where")), Err(ClientError::Refused(_))));
}

#[test]
fn use_is_what_the_kernel_counts() {
    if !needs_root() {
        return;
    }
    let d = start("");
    let id = d.detach(&["--", "sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; sleep 1000"]);
    assert!(wait_until(|| d.client().job(id).unwrap().r#use.unwrap().cpu_time_us > 20_000));
    let job = d.client().job(id).unwrap();
    let used = job.r#use.unwrap();
    assert!(used.processes.unwrap() >= 1 && used.memory_bytes.unwrap() > 0);
    assert_eq!(job.cpu_time_ms, used.cpu_time_us / 1000);
    let kernel: PathBuf = d.v2_job(id).join("cpu.stat");
    let usage = |path: &Path| -> u64 {
        let text = std::fs::read_to_string(path).unwrap();
        text.lines().find_map(|line| line.strip_prefix("usage_usec ")).unwrap().parse().unwrap()
    };
    assert!(used.cpu_time_us <= usage(&kernel));
    d.client().kill(id, &KillRequest { signal: 9, grace_ms: None, here: false }).unwrap();
    let ended = d.client().wait(id, std::time::Duration::from_secs(15)).unwrap();
    assert_eq!(ended.state, JobState::Ended);
    assert!(ended.r#use.unwrap().cpu_time_us >= used.cpu_time_us / 1000 * 1000);
    assert!(procs::pids_in(&d.v2_job(id)).is_empty());
}

#[test]
fn a_client_of_another_version_is_told_so() {
    if !needs_root() {
        return;
    }
    let d = start("");
    let refused = raw(&d, "GET", "/v1/jobs", "Cosched-Api: 2.0\r\n", "");
    assert!(refused.starts_with("HTTP/1.1 422 ") && refused.contains("version 2.0 of the API"), "{refused}");
    assert!(raw(&d, "GET", "/v1/jobs", "Cosched-Api: new\r\n", "").starts_with("HTTP/1.1 400 "));
    // A later MINOR, and a client from before the header existed, are served.
    for header in ["Cosched-Api: 1.99\r\n", ""] {
        let answer = raw(&d, "GET", "/v1/version", header, "").to_ascii_lowercase();
        assert!(answer.starts_with("http/1.1 200 ") && answer.contains("\r\ncosched-api: 1."), "{answer}");
    }
    assert_eq!(d.client().version().unwrap().version, env!("CARGO_PKG_VERSION"));
}
