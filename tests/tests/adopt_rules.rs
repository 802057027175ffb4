//! Rules of the configuration that adopt what appears.

use cosched_api::{Class, Job, JobState};
use cosched_tests::service::{CONFIG, Service};
use cosched_tests::users::BOB;
use cosched_tests::{Daemon, needs_root, procs, stdout, wait_until};
use std::path::PathBuf;
use std::time::Duration;

fn ended(d: &Daemon, id: u64) -> bool {
    matches!(d.client().job(id).unwrap().state, JobState::Ended | JobState::Lost)
}

fn is_refused(d: &Daemon, unit: &str) -> bool {
    d.log().lines().any(|line| line.contains("adopts nothing") && line.contains(unit))
}

#[test]
fn rules_adopt_what_appears_and_nothing_of_users() {
    if !needs_root() {
        return;
    }
    let name = format!("cst-{}-rule", std::process::id());
    let at = |name: &str| procs::v2_mount().join(name);
    let slice = at(&format!("{name}.slice"));
    std::fs::create_dir(&slice).unwrap();
    let service =
        |unit: &str, uid: u32| Service::at(slice.join(format!("{name}-{unit}.service")), uid, "exec sleep 1000");
    let before = service("a", 0);
    let rules = format!(
        "{CONFIG}[limits]\ntasks_per_job = 12\n[[adopt]]\nunit = \"{name}-x.service\"\nexecutable = \"/no/such\"\n\
         [[adopt]]\nunit = \"{name}-?.service\"\nclass = \"batch\"\nshare = \"50%\"\n"
    );
    let mut d = Daemon::start(&rules);
    let jobs = |d: &Daemon| {
        let all = d.client().jobs(false).unwrap().jobs.into_iter();
        all.filter(|job| job.adopted.is_some() && !ended(d, job.id)).collect::<Vec<Job>>()
    };
    let has = |d: &Daemon, unit: &str| jobs(d).iter().any(|job| job.name == format!("{name}-{unit}"));
    assert!(wait_until(|| has(&d, "a")), "it was there already: {}", d.log());
    let (mut fresh, of_user) = (service("b", 0), service("c", BOB));
    assert!(wait_until(|| has(&d, "b")), "{}", d.log());
    let job = jobs(&d).into_iter().find(|job| job.name.ends_with("-b")).unwrap();
    assert_eq!((job.class, job.share_max), (Class::Batch, Some(0.5)));
    let from = job.adopted.and_then(|adopted| adopted.from).unwrap();
    assert_eq!(from, format!("rule 2: {}", fresh.path()));
    assert!(stdout(&d.cosched(&["ps"])).contains("rule 2"), "{}", stdout(&d.cosched(&["ps"])));
    // Another program than the first rule names: the second one fits.
    let other = service("x", 0);
    assert!(wait_until(|| has(&d, "x")), "{}", d.log());
    // What is started again is adopted again, and what was released stays so.
    fresh.end();
    assert!(wait_until(|| !has(&d, "b")));
    let mut again = service("b", 0);
    assert!(wait_until(|| has(&d, "b")), "{}", d.log());
    // At once: before it is noticed that the job is over.
    let id_of = |d: &Daemon| jobs(d).iter().filter(|job| job.name.ends_with("-b")).map(|job| job.id).max();
    let id = id_of(&d);
    again.end();
    let again = service("b", 0);
    assert!(wait_until(|| id_of(&d) > id), "{}", d.log());
    // By its number: the job before may still have the name.
    assert!(d.cosched(&["release", &id_of(&d).unwrap().to_string()]).status.success());
    assert!(wait_until(|| !has(&d, "b")));
    // By then it would have been.
    let last = service("z", 0);
    assert!(wait_until(|| has(&d, "z")));
    assert!(!has(&d, "b") && !has(&d, "c"), "{}", stdout(&d.cosched(&["ps"])));
    d.kill();
    // Whoever has too many processes when he is looked at does not escape.
    let many = service("m", 0);
    let crowd = Service::at(
        slice.join(format!("{name}-n.service")),
        0,
        "for n in $(seq 14); do sleep 5 & done; wait; sleep 1000",
    );
    assert!(wait_until(|| procs::pids_in(&crowd.dir).len() > 12));
    d.launch();
    assert!(wait_until(|| d.log().contains("a rule adopts nothing")), "{}", d.log());
    assert!(wait_until(|| has(&d, "n") && has(&d, "z")) && has(&d, "m") && has(&d, "a"), "{}", d.log());
    // By then all that was there before the daemon has been looked at.
    let newest = service("w", 0);
    assert!(wait_until(|| has(&d, "w")), "{}", d.log());
    assert!(!has(&d, "b"), "released before the daemon was killed: {}", stdout(&d.cosched(&["ps"])));
    assert!(!is_refused(&d, &format!("{name}-a.service")), "a job before the restart is one: {}", d.log());
    drop((before, fresh, of_user, other, again, last, newest, many, crowd, d));
    assert!(wait_until(|| std::fs::remove_dir(&slice).is_ok()));
}

#[test]
fn a_flood_of_cgroups_does_not_keep_the_daemon_from_answering() {
    if !needs_root() {
        return;
    }
    let slice = procs::v2_mount().join(format!("cst-{}-flood.slice", std::process::id()));
    std::fs::create_dir(&slice).unwrap();
    let d = Daemon::start(&format!("{CONFIG}[[adopt]]\nslice = \"{}\"\n", slice.file_name().unwrap().display()));
    let dirs: Vec<PathBuf> = (0..1000).map(|n| slice.join(format!("{n}.service"))).collect();
    dirs.iter().for_each(|dir| std::fs::create_dir(dir).unwrap());
    let mut longest = Duration::ZERO;
    for _ in 0..50 {
        let start = std::time::Instant::now();
        d.client().jobs(false).unwrap();
        longest = longest.max(start.elapsed());
    }
    assert!(wait_until(|| d.log().contains("rules adopt no more than 256 cgroups")), "{}", d.log());
    assert!(d.client().jobs(false).unwrap().jobs.is_empty(), "they have no processes");
    dirs.iter().for_each(|dir| std::fs::remove_dir(dir).unwrap());
    // There is room again.
    let service = Service::at(slice.join("one.service"), 0, "exec sleep 1000");
    assert!(wait_until(|| d.client().jobs(false).unwrap().jobs.len() == 1), "{}", d.log());
    println!("the longest answer meanwhile: {longest:?}");
    drop((service, d));
    assert!(wait_until(|| std::fs::remove_dir(&slice).is_ok()));
}
