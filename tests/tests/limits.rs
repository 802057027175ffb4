//! Users' requests have limits: none of them stops a daemon, and no user can take what belongs to others.

use cosched_api::{Class, ErrorCode, JobRequest, JobState, KillRequest};
use cosched_tests::users::{ANN, BOB, Sleeper, as_user, cgroups, code, empty_job, raw, start, successor_of};
use cosched_tests::{Daemon, bin_dir, needs_root, procs, stderr, stdout, wait_until};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;

/// A daemon with queues: it plans and stores like a cluster with one node.
fn start_with_queues() -> Daemon {
    let d = start("memory = \"400M\"\nslot_length = \"50ms\"\n");
    assert!(wait_until(|| d.client().status().unwrap().cluster.is_some_and(|cluster| cluster.store_answers)));
    d
}

#[test]
fn nothing_that_a_user_can_ask_for_stops_a_daemon() {
    if !needs_root() {
        return;
    }
    for d in [|| start(""), start_with_queues as fn() -> Daemon] {
        let d = d();
        let (max, long) = (u64::MAX, "x".repeat(300_000));
        let more = [
            format!("\"cpus\":4294967295,\"mem_bytes\":{max}"),
            format!("\"cpus\":1,\"mem_bytes\":{max}"),
            format!(
                "\"nodes\":[{{\"name\":\"\",\"cpus\":4294967295,\"cpus_min\":1,\"memory_bytes\":{max},\"disk_bytes\":{max}}}]"
            ),
            "\"nodes\":[{\"name\":\"../../state\"}]".to_owned(),
            format!("\"nodes\":[{}]", vec!["{\"name\":\"a\",\"cpus\":4294967295}"; 20_000].join(",")),
            format!("\"name\":\"{long}\""),
            "\"name\":\"\\u001b[2J\\u0000\"".to_owned(),
            format!("\"queue\":\"{long}\""),
            format!("\"environment\":[[\"A\",\"{long}\"]],\"on_node_loss\":\"requeue\""),
            "\"environment\":[[\"\",\"=\"],[\"A=B\\u0000\",\"\\u0000\"]],\"on_node_loss\":\"requeue\"".to_owned(),
            "\"cwd\":\"\\u0000\",\"log_path\":\"\\u0000\",\"detached\":true".to_owned(),
            format!("\"pid\":{}", i32::MIN),
            format!("\"owner_uid\":{}", u32::MAX),
            format!("\"x\":{}{}", "[".repeat(100_000), "]".repeat(100_000)),
            format!("\"time_ms_max\":{max},\"grace_ms\":3600000"),
            format!("\"grace_ms\":{max}"),
            format!("\"begin_unix_ms\":{max}"),
            format!("\"mem_bytes_max\":{max}"),
            format!("\"after\":[{}]", vec!["{\"job\":1,\"ok\":true}"; 20_000].join(",")),
            format!("\"after\":[{{\"job\":{max}}}]"),
            String::from("\"name\":\"plain\""),
        ];
        let mut ids = Vec::new();
        for more in &more {
            let body = format!("{{\"command\":[\"x\"],{more}}}");
            let answer = as_user(&d, BOB, |_| raw(&d, "POST", "/v1/jobs", "", &body));
            let head = answer.lines().next().unwrap_or_default().to_owned();
            assert!(head.starts_with("HTTP/1.1 4") || head.starts_with("HTTP/1.1 200"), "{:.90}: {answer:.300}", more);
            ids.extend(answer.split_once("{\"id\":").and_then(|(_, rest)| rest.split(',').next()?.parse::<u64>().ok()));
        }
        for (path, body) in
            [("kill", format!("{{\"signal\":15,\"grace_ms\":{max}}}")), ("kill", "{\"signal\":9}".to_owned())]
        {
            for id in &ids {
                as_user(&d, BOB, |_| raw(&d, "POST", &format!("/v1/jobs/{id}/{path}"), "", &body));
            }
        }
        let huge = format!("{{\"command\":[\"{}\"]}}", "x".repeat(3 << 20));
        let answer = std::panic::catch_unwind(|| as_user(&d, BOB, |_| raw(&d, "POST", "/v1/jobs", "", &huge)));
        assert!(answer.is_err() || answer.is_ok_and(|answer| answer.starts_with("HTTP/1.1 4")), "3 MiB were taken");
        assert!(!d.log().contains("panicked"), "{}", d.log());
        let out = d.cosched(&["ps", "--all"]);
        assert!(out.status.success() && out.stdout.iter().all(|byte| *byte == b'\n' || *byte >= b' '), "{out:?}");
        let id = d.detach(&["--", "sleep", "600"]);
        assert!(wait_until(|| d.client().job(id).is_ok_and(|job| job.state == JobState::Running)));
        println!("{} of {} were taken", ids.len(), more.len());
    }
}

#[test]
fn a_job_that_waited_does_not_take_the_process_that_has_its_dead_one_s_number() {
    if !needs_root() {
        return;
    }
    let d = start_with_queues();
    let first = d.detach(&["--mem", "400M", "--", "sleep", "600"]);
    assert!(wait_until(|| d.client().job(first).is_ok_and(|job| job.state == JobState::Running)));
    let anns = Sleeper::of(ANN);
    let pid = anns.pid();
    let request = JobRequest { pid, mem_bytes: Some(400 << 20), ..empty_job(Some(Class::Batch)) };
    let second = as_user(&d, ANN, |c| c.register(&request)).unwrap();
    assert_eq!(second.state, JobState::Waiting, "{second:?}");
    // While the daemon is stopped, its process ends, its number is reused by another's, and its turn comes.
    procs::signal(d.pid(), rustix::process::Signal::STOP);
    drop(anns);
    let other = successor_of(pid, 0);
    procs::end_cgroup(&d.v2_job(first));
    procs::signal(d.pid(), rustix::process::Signal::CONT);
    let Some(other) = other else {
        println!("SKIPPED: this kernel does not give a number away again when it is asked to");
        return;
    };
    let mut root = d.client();
    assert!(
        wait_until(|| root.job(second.id).is_ok_and(|job| job.state == JobState::Lost)),
        "{:?}",
        root.job(second.id)
    );
    assert!(!cgroups(other.pid()).contains(&format!("{}/job-", d.cgroup)), "{}", cgroups(other.pid()));
    assert!(Path::new(&format!("/proc/{}", other.pid())).exists());
}

#[test]
fn a_user_s_connections_leave_room_for_others() {
    if !needs_root() {
        return;
    }
    let d = start("");
    // Connections held open without requests: 512 of one user's are accepted.
    let held = as_user(&d, BOB, |_| (0..700).map(|_| UnixStream::connect(d.socket()).unwrap()).collect::<Vec<_>>());
    let told = as_user(&d, BOB, |_| {
        let mut more = UnixStream::connect(d.socket()).unwrap();
        let mut answer = String::new();
        more.read_to_string(&mut answer).map(|_| answer)
    });
    let told = told.unwrap();
    assert!(told.starts_with("HTTP/1.1 429 ") && told.contains("no more connections from you"), "{told}");
    as_user(&d, ANN, |c| assert_eq!(c.register(&empty_job(None)).unwrap().uid, ANN));
    let id = d.detach(&["--", "sleep", "600"]);
    assert!(wait_until(|| d.client().job(id).is_ok_and(|job| job.state == JobState::Running)));
    drop(held);
    assert!(wait_until(|| as_user(&d, BOB, |c| c.jobs(true).is_ok())), "who has closed his is let in again");
}

#[test]
fn jobs_without_a_process_are_counted_where_jobs_are_kept_in_a_store() {
    if !needs_root() {
        return;
    }
    let d = start_with_queues();
    as_user(&d, ANN, |c| {
        let ids: Vec<u64> = (0..16).map(|_| c.register(&empty_job(None)).unwrap().id).collect();
        assert_eq!(code(c.register(&empty_job(None))), ErrorCode::Conflict);
        c.kill(ids[0], &KillRequest { signal: 9, grace_ms: None, here: false }).unwrap();
        assert!(wait_until(|| c.register(&empty_job(None)).is_ok()), "one that has ended makes room");
    });
    as_user(&d, BOB, |c| c.register(&empty_job(None)).map(drop)).unwrap();
    // Jobs that wait for room count, too.
    let of_all = JobRequest { mem_bytes: Some(400 << 20), ..empty_job(None) };
    as_user(&d, BOB, |c| {
        let ids: Vec<u64> = (0..15).map(|_| c.register(&of_all).unwrap().id).collect();
        assert!(ids.iter().any(|id| c.job(*id).unwrap().state == JobState::Waiting));
        assert_eq!(code(c.register(&of_all)), ErrorCode::Conflict);
    });
}

#[test]
fn root_in_a_limited_cgroup_needs_no_configuration() {
    let mount = procs::cgroup_mounts().into_iter().find(|mount| mount.ends_with("cpu"));
    let (true, Some(mount)) = (needs_root(), mount) else {
        println!("SKIPPED: there is no v1 cpu controller; tests/v2 sees how limits are kept in v2");
        return;
    };
    let place = tempfile::tempdir().unwrap();
    let name = format!("cst-own-{}", std::process::id());
    let limited = mount.join(format!("{name}-limited"));
    std::fs::create_dir(&limited).unwrap();
    std::fs::write(limited.join("cpu.cfs_quota_us"), "50000").unwrap();
    // What `cosched run` starts gets a cgroup name of its own.
    let daemon = place.path().join("coschedd");
    let coschedd = bin_dir().join("coschedd");
    std::fs::write(&daemon, format!("#!/bin/sh\nexec {} --cgroup {name} \"$@\"\n", coschedd.display())).unwrap();
    std::fs::set_permissions(&daemon, std::fs::Permissions::from_mode(0o755)).unwrap();
    let cosched = |words: &[&str]| {
        let script = format!("echo $$ > {}/cgroup.procs && exec \"$@\"", limited.display());
        let mut command = Command::new("sh");
        command.args(["-c", &script, "sh"]).arg(bin_dir().join("cosched")).args(words);
        let own = [("COSCHED_SOCKET", "socket"), ("XDG_CONFIG_HOME", "config"), ("XDG_STATE_HOME", "state")];
        command.envs(own.map(|(name, file)| (name, place.path().join(file)))).env("COSCHED_DAEMON", &daemon);
        command.output().unwrap()
    };
    let own_quota =
        format!("cat {}$(sed -n 's/.*:cpu:\\(.*\\)/\\1/p' /proc/self/cgroup)/cpu.cfs_quota_us", mount.display());
    let out = cosched(&["run", "--", "sh", "-c", &own_quota]);
    let status = cosched(&["--json", "status"]);
    if let Ok(status) = serde_json::from_slice::<cosched_api::Status>(&status.stdout) {
        procs::signal(status.pid, rustix::process::Signal::TERM);
        assert!(wait_until(|| procs::state(status.pid).is_none_or(|state| state == 'Z')));
    }
    [format!("{name}-limited"), name].iter().for_each(|name| procs::remove_tree_everywhere(name));
    assert_eq!((out.status.code(), stdout(&out).as_str()), (Some(0), "50000\n"), "{}", stderr(&out));
}
