//! Several cgroups as one job, where they are, as the pods of a gang: they stop and run together, and whatever dies, none stays frozen.

use cosched_api::{CgroupRequest, ErrorCode, Job, JobRequest, JobState};
use cosched_tests::service::{CONFIG, SPIN, Service};
use cosched_tests::users::{ANN, BOB, as_user, code, start};
use cosched_tests::{Daemon, needs_root, procs, wait_until};
use std::time::Duration;

/// A job without a process, which cgroups enter. It stops for half of the time.
fn gang(name: &str) -> JobRequest {
    let (command, name) = (vec!["pods".to_owned()], Some(name.to_owned()));
    JobRequest { command, name, once: true, share_max: Some(0.5), ..JobRequest::default() }
}

fn of(service: &Service) -> CgroupRequest {
    CgroupRequest { cgroup: service.path() }
}

/// A job of these services.
fn together(d: &Daemon, services: &[&Service]) -> u64 {
    let id = d.client().register(&gang("ns/solver")).unwrap().id;
    for service in services {
        d.client().add_cgroup(id, &of(service)).unwrap();
    }
    services.iter().for_each(|service| assert!(service.is_switched(), "{}", d.log()));
    id
}

fn ended(d: &Daemon, id: u64) -> bool {
    d.client().job(id).unwrap().state == JobState::Ended
}

fn cgroups(job: &Job) -> Vec<&str> {
    job.cgroups.iter().map(String::as_str).collect()
}

#[test]
fn they_take_the_same_slots_and_come_and_go() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start(CONFIG);
    let (mut one, mut two, late) = (Service::new(SPIN), Service::new(SPIN), Service::new(SPIN));
    let id = together(&d, &[&one, &two]);
    assert_eq!(d.client().register(&gang("ns/solver")).unwrap().id, id, "it is made once");
    let job = d.client().add_cgroup(id, &of(&two)).unwrap();
    assert_eq!((cgroups(&job), job.processes), (vec![one.path().as_str(), two.path().as_str()], Some(2)));

    // Samples during a switch tell nothing.
    let (mut same, mut differ, mut frozen) = (0, 0, 0);
    while same + differ < 100 {
        let (before, other, after) = (one.is_frozen(), two.is_frozen(), one.is_frozen());
        if before == after {
            *(if other == before { &mut same } else { &mut differ }) += 1;
            frozen += u32::from(before);
        }
        std::thread::sleep(Duration::from_millis(7));
    }
    assert!(differ * 10 < same && frozen > 10 && frozen < 90, "{same} alike ({frozen} frozen), {differ} not");
    let used = d.client().job(id).unwrap().cpu_time_ms;
    assert!(used > 0, "{:?}", d.client().job(id));

    d.client().add_cgroup(id, &of(&late)).unwrap();
    assert!(late.is_switched());
    let left = d.client().remove_cgroup(id, &of(&late)).unwrap();
    assert_eq!(left.cgroups.len(), 2);
    for _ in 0..30 {
        std::thread::sleep(Duration::from_millis(10));
        assert!(!late.is_frozen(), "it has left, and is frozen");
    }
    one.end();
    assert!(wait_until(|| cgroups(&d.client().job(id).unwrap()) == [two.path()]), "{}", d.log());
    assert!(two.is_switched() && d.client().job(id).unwrap().cpu_time_ms >= used, "what one has used stays the job's");
    assert!(d.cosched(&["suspend", &id.to_string()]).status.success());
    assert!(wait_until(|| two.is_frozen()));
    d.client().add_cgroup(id, &of(&late)).unwrap();
    assert!(wait_until(|| late.is_frozen()), "the job is suspended");
    assert!(d.cosched(&["release", &id.to_string()]).status.success());
    assert!(!two.is_frozen() && !late.is_frozen());
    assert!(
        wait_until(|| ended(&d, id)) && d.client().job(id).unwrap().adopted.is_some_and(|adopted| adopted.released)
    );
    let again = together(&d, &[&two]);
    assert!(again > id);
    two.end();
    assert!(wait_until(|| ended(&d, again)), "the last one has ended");
    let names = procs::sub_directories(&procs::v2_mount().join(&d.cgroup));
    assert!(!names.iter().any(|dir| dir.display().to_string().contains("annex")), "{names:?}");
}

/// Kills something; afterwards both must run, and the next daemon must know both.
fn survives(kill: impl FnOnce(&mut Daemon)) {
    let mut d = Daemon::start("slot_length = \"300ms\"\nlease = \"1s\"\n");
    let services = [Service::new(SPIN), Service::new(SPIN)];
    let id = together(&d, &[&services[0], &services[1]]);
    assert!(wait_until(|| services.iter().all(Service::is_frozen)));
    kill(&mut d);
    assert!(wait_until(|| services.iter().all(Service::runs)), "one stays frozen");
    d.launch();
    assert_eq!(d.client().job(id).unwrap().cgroups.len(), 2, "{}", d.log());
    assert!(services.iter().all(Service::is_switched), "the next daemon does not switch them");
    d.client().release(id).unwrap();
    assert!(wait_until(|| services.iter().all(Service::runs)));
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
fn what_a_daemon_with_another_state_finds_is_released() {
    if !needs_root() {
        return;
    }
    let mut d = Daemon::start(CONFIG);
    let service = Service::new(SPIN);
    let id = together(&d, &[&service]);
    assert!(wait_until(|| service.is_frozen()));
    d.kill_with_guard();
    std::fs::remove_dir_all(d.state_dir()).unwrap();
    d.launch();
    assert!(wait_until(|| service.runs()));
    assert!(
        !d.v2_job(id).exists()
            && !d.client().status().unwrap().warnings.iter().any(|of| of.what.contains(&format!("no job: {id}")))
    );
    let job = d.client().register(&gang("again")).unwrap();
    d.client().add_cgroup(job.id, &of(&service)).unwrap();
    d.client().release(job.id).unwrap();
}

#[test]
fn all_together_are_no_larger_than_one_may_be() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start(CONFIG);
    let services = [Service::new(SPIN), Service::new(SPIN)];
    for service in &services {
        (0..600).for_each(|n| std::fs::create_dir(service.dir.join(n.to_string())).unwrap());
    }
    let id = together(&d, &[&services[0]]);
    let refused = d.client().add_cgroup(id, &of(&services[1]));
    assert!(format!("{refused:?}").contains("1200 cgroups"), "{refused:?}");
    assert_eq!(code(refused), ErrorCode::Limit);
    (0..600).for_each(|n| std::fs::remove_dir(services[1].dir.join(n.to_string())).unwrap());
    d.client().add_cgroup(id, &of(&services[1])).unwrap();
    // What grows afterwards goes, the largest first.
    (0..600).for_each(|n| std::fs::create_dir(services[1].dir.join(n.to_string())).unwrap());
    (600..700).for_each(|n| std::fs::create_dir(services[0].dir.join(n.to_string())).unwrap());
    assert!(wait_until(|| cgroups(&d.client().job(id).unwrap()) == [services[1].path()]), "{}", d.log());
    assert!(services[1].is_switched() && wait_until(|| services[0].runs()));
    for service in &services {
        (0..700).for_each(|n| drop(std::fs::remove_dir(service.dir.join(n.to_string()))));
    }
}

#[test]
fn what_may_not_be_a_part_is_refused_and_stays_where_it_is() {
    if !needs_root() {
        return;
    }
    let d = start(CONFIG);
    let sleep = "exec sleep 1000";
    let (anns, bobs) = (Service::of(ANN, sleep), Service::of(BOB, sleep));
    let (own, other) = as_user(&d, ANN, |c| {
        let own = c.register(&gang("own")).unwrap().id;
        assert_eq!(code(c.add_cgroup(own, &of(&bobs))), ErrorCode::Forbidden);
        c.add_cgroup(own, &of(&anns)).unwrap();
        (own, c.register(&gang("other")).unwrap().id)
    });
    as_user(&d, BOB, |c| {
        let theirs = c.register(&gang("own")).unwrap().id;
        assert_ne!(theirs, own, "another user's of the same name is another one");
        for id in [own, theirs] {
            assert_eq!(code(c.add_cgroup(id, &of(&anns))), ErrorCode::Forbidden, "job {id}");
        }
        assert_eq!(code(c.add_cgroup(own, &of(&bobs))), ErrorCode::Forbidden);
        assert_eq!(code(c.remove_cgroup(own, &of(&anns))), ErrorCode::Forbidden);
    });
    // An administrator does not put what is another user's into a user's job either.
    assert_eq!(code(d.client().add_cgroup(own, &of(&bobs))), ErrorCode::Forbidden);
    assert_eq!(cgroups(&d.client().job(own).unwrap()), [anns.path()]);
    assert_eq!(code(d.client().register(&anns.ask())), ErrorCode::Conflict, "it is a part of a job");
    as_user(&d, ANN, |c| {
        assert_eq!(cgroups(&c.add_cgroup(other, &of(&anns)).unwrap()), [anns.path()]);
        assert!(c.job(own).unwrap().cgroups.is_empty(), "it has moved");
        assert_eq!(code(c.remove_cgroup(own, &of(&anns))), ErrorCode::NotFound);
        for path in ["/", "", "/no-such", "/../.."] {
            let request = CgroupRequest { cgroup: path.to_owned() };
            assert_eq!(code(c.add_cgroup(other, &request)), ErrorCode::Conflict, "{path}");
        }
        assert_eq!(code(c.add_cgroup(999, &of(&anns))), ErrorCode::NotFound);
        c.release(other).unwrap();
    });
    let adopted = d.client().register(&bobs.ask()).unwrap().id;
    assert_eq!(code(d.client().add_cgroup(adopted, &of(&anns))), ErrorCode::Conflict, "it is a cgroup itself");
    d.client().release(adopted).unwrap();
}
