//! What can be observed of a daemon without a request to it, and of gangs that use no CPU.

use cosched_api::{JobState, STATUS_FILE_FORMAT, StatusFile};
use cosched_tests::{Daemon, needs_root, procs, stdout, wait_until};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

const SPIN_2: &str = "while :; do :; done & while :; do :; done";

fn read(path: &Path) -> Option<StatusFile> {
    let text = std::fs::read(path).ok()?;
    Some(serde_json::from_slice(&text).unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&text))))
}

#[test]
fn the_status_file_follows_every_change_and_is_never_torn() {
    if !needs_root() {
        return;
    }
    let mut d = Daemon::start("slot_length = \"20ms\"\n");
    let path = d.dir.path().join("status");
    assert!(wait_until(|| read(&path).is_some()), "{}", d.log());
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o644);
    assert_eq!(read(&path).unwrap().format, STATUS_FILE_FORMAT);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // A reader that does not synchronise: it would see a torn file.
        let reader = scope.spawn(|| {
            let mut reads = 0;
            while !stop.load(Relaxed) {
                read(&path).expect("it is there all the time");
                reads += 1;
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            reads
        });
        let id = d.detach(&["--name", "seen", "--", "sh", "-c", SPIN_2]);
        let job = |state| read(&path).unwrap().jobs.iter().any(|job| job.id == id && job.state == state);
        let followed = [
            wait_until(|| job(JobState::Running)),
            d.client().suspend(id).is_ok() && wait_until(|| job(JobState::Suspended)),
            d.client().resume(id).is_ok() && wait_until(|| job(JobState::Running)),
            read(&path).unwrap().status.matrix.rows.len() == 1,
            d.cosched(&["kill", "-9", &id.to_string()]).status.success(),
            wait_until(|| read(&path).unwrap().jobs.is_empty()),
        ];
        stop.store(true, Relaxed);
        assert!(reader.join().unwrap() > 20);
        assert_eq!(followed, [true; 6]);
    });
    d.stop();
    assert!(!path.exists(), "it would be wrong from now on");
}

#[test]
fn the_status_file_can_be_elsewhere_or_nowhere_and_its_loss_stops_nothing() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start("status_file = \"\"\n");
    assert!(d.client().status().unwrap().warnings.iter().all(|w| !w.what.contains("status file")));
    assert!(!d.dir.path().join("status").exists());
    drop(d);
    let d = Daemon::start("status_file = \"/nonexistent/status\"\n");
    let warned = || d.client().status().unwrap().warnings.iter().any(|w| w.what == "the status file cannot be written");
    assert!(wait_until(warned), "{:?}", d.client().status().unwrap().warnings);
}

#[test]
fn a_gang_that_sleeps_for_very_long_is_dropped_and_its_user_is_told() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start("slot_length = \"20ms\"\nsharing = \"strict\"\nidle_after = \"1s\"\ndrop_after = \"3s\"\n");
    let fifo = d.dir.path().join("wake");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let sleeper = d.detach(&["--", "sh", "-c", &format!("cat {} > /dev/null; {SPIN_2}", fifo.display())]);
    let busy = d.detach(&["--", "sh", "-c", SPIN_2]);
    let state = || d.client().job(sleeper).unwrap().state;
    assert!(wait_until(|| state() == JobState::Asleep), "{:?}", state());
    assert!(wait_until(|| state() == JobState::Dropped), "{:?}", state());
    let row = |id: u64| {
        stdout(&d.cosched(&["ps"])).lines().find(|l| l.trim().starts_with(&id.to_string())).map(str::to_owned)
    };
    assert!(row(sleeper).unwrap().contains("dropped"), "{:?}", row(sleeper));
    assert!(stdout(&d.cosched(&["show", &sleeper.to_string()])).contains("gives it slots"));
    // It uses CPU again: it runs, scheduled by Linux, and is not waited for.
    std::fs::write(&fifo, "go").unwrap();
    let before = procs::cpu_usec(&d.v2_job(sleeper));
    assert!(wait_until(|| procs::cpu_usec(&d.v2_job(sleeper)) > before + 500_000), "it must run");
    assert_eq!(state(), JobState::Dropped);
    assert_eq!(d.client().status().unwrap().matrix.rows.len(), 1);
    d.client().resume(sleeper).unwrap();
    assert_eq!(state(), JobState::Running);
    assert_eq!(d.client().status().unwrap().matrix.rows.len(), 2, "it is a gang again");
    let events = d.client().events(sleeper).unwrap().events;
    let what: Vec<&str> = events.iter().map(|e| e.what.as_str()).collect();
    assert_eq!(what, ["registered", "asleep", "dropped", "resumed", "awake"]);
    assert!(events[2].detail.contains("3s") && events[3].detail.contains("root"), "{events:?}");
    for id in [sleeper, busy] {
        d.cosched(&["kill", "-9", &id.to_string()]);
    }
}

#[test]
fn off_hours_have_their_own_shares() {
    if !needs_root() {
        return;
    }
    let hours = |config: &str| format!("slot_length = \"20ms\"\nsharing = \"strict\"\n{config}");
    let shares = |d: &Daemon| {
        let day = d.detach(&["--class", "interactive", "--", "sh", "-c", SPIN_2]);
        let night = d.detach(&["--class", "batch", "--", "sh", "-c", SPIN_2]);
        let share = |id: u64| d.client().job(id).unwrap().share.unwrap();
        let found = (share(day), share(night));
        for id in [day, night] {
            d.cosched(&["kill", "-9", &id.to_string()]);
        }
        found
    };
    let d = Daemon::start(&hours("working_hours = [\"0:00-24:00\"]\n"));
    let (interactive, batch) = shares(&d);
    assert!(interactive > 1.5 * batch, "{interactive} {batch}");
    assert!(stdout(&d.cosched(&["status"])).contains("working hours"));
    drop(d);
    // It is not a working hour now: the hours of all days except today and its neighbours.
    let date = std::process::Command::new("date").arg("+%u").output().unwrap();
    let today: usize = stdout(&date).trim().parse().unwrap();
    let names = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
    let other = names[(today - 1 + 3) % 7];
    let d = Daemon::start(&hours(&format!("working_hours = [\"{other} 8:00-9:00\"]\n")));
    let (interactive, batch) = shares(&d);
    assert!(batch > 1.5 * interactive, "{interactive} {batch}");
    assert!(stdout(&d.cosched(&["status"])).contains("off-hours"));
}
