//! Whatever dies, no process stays stopped, no job is lost, and nothing is left over.
//!
//! The bound: a frozen job runs again at once when the daemon dies (its guard thaws it; when daemon and guard are killed at the
//! same instant, the kernel's release agent does), and after the lease (here 1 s) when the daemon hangs. The tests wait longer
//! than that, for noisy machines.

use cosched_api::{ExitReport, ExitStatus, Job, JobRequest, JobState};
use cosched_tests::{Daemon, needs_root, procs, stderr, wait_until};
use rustix::process::Signal;
use std::process::{Command, Stdio};
use std::time::Duration;

const CONFIG: &str = "slot_length = \"300ms\"\nsharing = \"strict\"\nlease = \"1s\"\n";
const SPIN_2: &str = "while :; do :; done & while :; do :; done";

fn kill9(pid: i32) {
    procs::signal(pid, Signal::KILL);
}

/// Whether every process of these jobs gets CPU time during the measurement: nothing is frozen and nothing is stopped.
fn all_run(d: &Daemon, jobs: &[u64]) -> bool {
    let pids: Vec<i32> = jobs.iter().flat_map(|id| d.job_pids(*id)).collect();
    let spinners: Vec<i32> = pids.into_iter().filter(|pid| procs::state(*pid) != Some('Z')).collect();
    if jobs.iter().any(|id| d.frozen(*id)) || spinners.iter().any(|pid| procs::state(*pid) == Some('T')) {
        return false;
    }
    let ticks = || spinners.iter().map(|pid| procs::cpu_ticks(*pid)).collect::<Vec<_>>();
    let before = ticks();
    std::thread::sleep(Duration::from_millis(500));
    let after = ticks();
    !spinners.is_empty() && before.iter().zip(&after).all(|(b, a)| a > b)
}

struct Scene {
    d: Daemon,
    jobs: Vec<u64>,
    runs: Vec<std::process::Child>,
}

/// Two gangs of two spinning processes each, started in the foreground.
fn scene() -> Scene {
    let d = Daemon::start(CONFIG);
    let runs: Vec<_> = (0..2).map(|_| d.spawn_run(&["--", "sh", "-c", SPIN_2])).collect();
    let ready = wait_until(|| {
        let jobs = d.client().jobs(false).unwrap().jobs;
        jobs.len() == 2 && jobs.iter().all(|j| j.processes == Some(2))
    });
    assert!(ready, "the jobs do not start");
    let jobs = d.client().jobs(false).unwrap().jobs.iter().map(|j| j.id).collect();
    Scene { d, jobs, runs }
}

impl Scene {
    fn guard(&self) -> i32 {
        self.d.client().status().unwrap().safety.guard_pid.expect("a guard")
    }

    /// The daemon comes back, finds the jobs, schedules them, and everything can be ended in order.
    fn comes_back(mut self, expected: &[u64]) {
        self.finds(expected);
        self.ends(expected);
    }

    fn finds(&mut self, expected: &[u64]) {
        self.d.launch();
        let mut found: Vec<u64> = self.d.client().jobs(false).unwrap().jobs.iter().map(|j| j.id).collect();
        found.sort_unstable();
        assert_eq!(found, expected, "the restarted daemon does not know the jobs that run");
        if expected.len() > 1 {
            let before = self.d.client().status().unwrap().switches.count;
            assert!(wait_until(|| self.d.client().status().unwrap().switches.count > before + 2), "no switches");
        }
    }

    fn ends(mut self, expected: &[u64]) {
        for id in expected {
            assert!(self.d.cosched(&["kill", "-s", "KILL", &id.to_string()]).status.success());
        }
        assert!(wait_until(|| self.d.client().jobs(false).unwrap().jobs.is_empty()));
        assert!(wait_until(|| self.d.job_cgroups().is_empty()), "{:?}", self.d.job_cgroups());
        for run in &mut self.runs {
            let ended = wait_until(|| run.try_wait().unwrap().is_some());
            assert!(ended, "a `cosched run` outlives its job");
        }
    }
}

#[test]
fn the_daemon_is_killed_in_any_slot() {
    if !needs_root() {
        return;
    }
    for offset_ms in [0, 110, 220, 330, 440] {
        let mut s = scene();
        std::thread::sleep(Duration::from_millis(offset_ms));
        s.d.kill();
        assert!(wait_until(|| all_run(&s.d, &s.jobs)), "something stays stopped; offset {offset_ms} ms");
        let jobs = s.jobs.clone();
        s.comes_back(&jobs);
    }
}

#[test]
fn daemon_and_guard_are_killed_at_one_instant() {
    if !needs_root() {
        return;
    }
    // The launchers are stopped, so that they cannot help: this leaves only the kernel's release agent.
    let mut s = scene();
    assert!(s.d.client().status().unwrap().safety.kernel_agent, "{:?}", s.d.client().status().unwrap().warnings);
    for run in &s.runs {
        procs::signal(run.id() as i32, Signal::STOP);
    }
    let (daemon, guard) = (s.d.pid(), s.guard());
    kill9(guard);
    kill9(daemon);
    s.d.kill();
    assert!(wait_until(|| all_run(&s.d, &s.jobs)), "something stays stopped");
    for run in &s.runs {
        procs::signal(run.id() as i32, Signal::CONT);
    }
    let jobs = s.jobs.clone();
    s.comes_back(&jobs);
}

#[test]
fn where_the_kernel_does_not_help_launchers_thaw_their_jobs() {
    if !needs_root() {
        return;
    }
    let mut s = scene();
    let suspended = s.jobs[0];
    assert!(s.d.cosched(&["suspend", &suspended.to_string()]).status.success());
    assert!(wait_until(|| s.d.frozen(suspended)));
    // As in a container, the kernel does not find the program.
    std::fs::remove_file(s.d.dir.path().join("cosched-agent")).unwrap();
    let guard = s.guard();
    // A daemon that is stopped starts no other guard.
    procs::signal(s.d.pid(), Signal::STOP);
    kill9(guard);
    s.d.kill();
    assert!(wait_until(|| all_run(&s.d, &s.jobs)), "something stays stopped");
    // The next daemon stops it again, and the launchers, which find that one, let it.
    s.d.launch();
    assert!(wait_until(|| s.d.frozen(suspended)));
    std::thread::sleep(Duration::from_secs(1));
    assert!(s.d.frozen(suspended));
    let jobs = s.jobs.clone();
    s.ends(&jobs);
}

#[test]
fn a_hung_daemon_holds_nobody_longer_than_its_lease() {
    if !needs_root() {
        return;
    }
    let s = scene();
    procs::signal(s.d.pid(), Signal::STOP);
    let free = wait_until(|| all_run(&s.d, &s.jobs));
    procs::signal(s.d.pid(), Signal::CONT);
    assert!(free, "something stays stopped");
    // Once it runs again, it continues where it was.
    let before = s.d.client().status().unwrap().switches.count;
    assert!(wait_until(|| s.d.client().status().unwrap().switches.count > before + 2));
    assert!(wait_until(|| s.jobs.iter().any(|id| s.d.frozen(*id))), "gangs are not switched any more");
}

#[test]
fn a_killed_guard_is_replaced() {
    if !needs_root() {
        return;
    }
    let mut s = scene();
    let first = s.guard();
    kill9(first);
    let another = || s.d.client().status().unwrap().safety.guard_pid.is_some_and(|pid| pid != first);
    assert!(wait_until(another), "no new guard");
    s.d.kill();
    assert!(wait_until(|| all_run(&s.d, &s.jobs)));
    let jobs = s.jobs.clone();
    s.comes_back(&jobs);
}

#[test]
fn a_killed_launcher_does_not_hurt_its_job() {
    if !needs_root() {
        return;
    }
    let mut s = scene();
    s.runs[0].kill().unwrap();
    s.runs[0].wait().unwrap();
    // Both continue, by turns.
    let used = |id| procs::cpu_usec(&s.d.v2_job(id));
    let before: Vec<u64> = s.jobs.iter().map(|id| used(*id)).collect();
    assert!(wait_until(|| s.jobs.iter().zip(&before).all(|(id, b)| used(*id) > b + 400_000)));
    for id in &s.jobs {
        s.d.cosched(&["kill", "-s", "KILL", &id.to_string()]);
    }
    assert!(wait_until(|| s.d.client().jobs(false).unwrap().jobs.is_empty()));
    let all = s.d.client().jobs(true).unwrap().jobs;
    // The end of one of them was observed; that of the other was not, and that is reported.
    assert_eq!(all.iter().filter(|j| j.exit.is_some()).count(), 1);
    assert!(all.iter().all(|j| j.state == JobState::Ended));
}

fn permutations<T: Copy>(items: &[T]) -> Vec<Vec<T>> {
    let Some((first, rest)) = items.split_first() else { return vec![Vec::new()] };
    let with_first =
        |shorter: Vec<T>| (0..=shorter.len()).map(move |at| [&shorter[..at], &[*first], &shorter[at..]].concat());
    permutations(rest).into_iter().flat_map(with_first).collect()
}

#[test]
fn everything_is_killed_in_every_order() {
    if !needs_root() {
        return;
    }
    #[derive(Clone, Copy, Debug)]
    enum Part {
        Daemon,
        Guard,
        Launcher,
        Rank,
    }
    let orders = permutations(&[Part::Daemon, Part::Guard, Part::Launcher, Part::Rank]);
    for (i, order) in orders.into_iter().enumerate() {
        let mut s = scene();
        // At the beginning, in the middle and at the end of a slot.
        std::thread::sleep(Duration::from_millis(150 * (i as u64 % 3)));
        let victim = s.jobs[i % 2];
        let daemon = s.d.pid();
        let guard = s.guard();
        let rank = *s.d.job_pids(victim).last().expect("a rank");
        for part in &order {
            match part {
                Part::Daemon => kill9(daemon),
                Part::Guard => kill9(guard),
                Part::Rank => kill9(rank),
                Part::Launcher => s.runs.iter().for_each(|run| kill9(run.id() as i32)),
            }
        }
        s.d.kill();
        assert!(wait_until(|| all_run(&s.d, &s.jobs)), "{order:?}: something stays stopped");
        let jobs = s.jobs.clone();
        s.finds(&jobs);
        // How they end does not depend on the order, and takes longer than all the rest: once for each first victim.
        if i % 6 == 5 {
            s.ends(&jobs);
        }
    }
}

#[test]
fn an_orderly_end_frees_the_jobs_and_a_new_daemon_finds_them() {
    if !needs_root() {
        return;
    }
    let mut s = scene();
    let suspended = s.jobs[0];
    assert!(s.d.cosched(&["suspend", &suspended.to_string()]).status.success());
    s.d.stop();
    assert!(wait_until(|| all_run(&s.d, &s.jobs)), "{}", s.d.log());
    s.d.launch();
    // The job that a user stopped is stopped again; the one that ran runs.
    assert!(wait_until(|| s.d.frozen(suspended)));
    assert_eq!(s.d.client().job(suspended).unwrap().state, JobState::Suspended);
    assert_eq!(s.d.client().job(s.jobs[1]).unwrap().state, JobState::Running);
}

#[test]
fn jobs_that_end_while_no_daemon_looks_are_cleared_away() {
    if !needs_root() {
        return;
    }
    let mut s = scene();
    s.d.kill();
    for run in &mut s.runs {
        run.kill().unwrap();
        run.wait().unwrap();
    }
    for id in &s.jobs {
        procs::end_cgroup(&s.d.v2_job(*id));
    }
    assert!(wait_until(|| s.jobs.iter().all(|id| s.d.job_pids(*id).is_empty())));
    s.d.launch();
    assert!(wait_until(|| s.d.client().jobs(false).unwrap().jobs.is_empty()));
    let all = s.d.client().jobs(true).unwrap().jobs;
    assert_eq!(all.iter().map(|j| j.state).collect::<Vec<_>>(), [JobState::Lost, JobState::Lost]);
    assert!(s.d.job_cgroups().is_empty(), "{:?}", s.d.job_cgroups());
}

#[test]
fn a_launcher_says_how_a_job_ended_while_no_daemon_looked() {
    if !needs_root() {
        return;
    }
    for config in ["", "[[queue]]\nname = \"day\"\n"] {
        let mut d = Daemon::start(config);
        let mut child = Command::new("sh").args(["-c", "read gate; exit 9"]).stdin(Stdio::piped()).spawn().unwrap();
        let request = JobRequest { command: vec!["sh".to_owned()], pid: child.id() as i32, ..Default::default() };
        let id = d.client().register(&request).unwrap().id;
        d.kill();
        drop(child.stdin.take());
        let code = child.wait().unwrap().code();
        assert_eq!(code, Some(9));
        d.launch();
        d.client().report_exit(id, &ExitReport { exit: ExitStatus { code, signal: None } }).unwrap();
        assert!(wait_until(|| d.client().job(id).unwrap().state == JobState::Ended), "{:?}", d.client().job(id));
        assert_eq!(d.client().job(id).unwrap().exit.and_then(|exit| exit.code), code, "{config:?}");
        assert!(wait_until(|| d.job_cgroups().is_empty()), "{:?}", d.job_cgroups());
    }
}

#[test]
fn a_corrupt_state_is_set_aside_with_a_message_and_the_rest_is_kept() {
    if !needs_root() {
        return;
    }
    let mut d = Daemon::start("");
    for _ in 0..3 {
        assert!(d.cosched(&["run", "--", "true"]).status.success());
    }
    d.kill();
    let journal = d.dir.path().join("state/journal");
    let mut bytes = std::fs::read(&journal).unwrap();
    let at = bytes.len() / 2;
    // Not the case of a letter, which a checksum's digits do not have.
    bytes[at] ^= 1;
    std::fs::write(&journal, &bytes).unwrap();
    d.launch();
    let status = d.client().status().unwrap();
    let warning = status.warnings.iter().find(|w| w.what.contains("damaged")).expect("a warning");
    assert!(warning.hint.contains("corrupt"), "{warning:?}");
    assert_eq!(std::fs::read(d.dir.path().join("state/journal.corrupt-1")).unwrap(), bytes);
    assert!(d.client().jobs(true).unwrap().jobs.len() >= 2);
    assert!(d.cosched(&["run", "--", "true"]).status.success());
}

/// A job's state, as the daemon reports it.
fn job(d: &Daemon, id: u64) -> Job {
    d.client().job(id).unwrap()
}

/// Starts a daemon that has to refuse with this message; the files of its state stay unchanged.
fn refuses_to_start(d: &Daemon, before: &[&str], words: &[&str]) {
    let files = || {
        let mut all: Vec<_> = std::fs::read_dir(d.state_dir()).unwrap().flatten().map(|e| e.path()).collect();
        all.sort();
        all.into_iter().map(|path| (std::fs::read(&path).ok(), path)).collect::<Vec<_>>()
    };
    let found = files();
    let out = d.try_start(before);
    assert_eq!(out.status.code(), Some(1), "{}", stderr(&out));
    for word in words {
        assert!(stderr(&out).contains(word), "`{word}` is missing in: {}", stderr(&out));
    }
    assert!(files() == found, "a daemon that did not start has changed its state");
}

#[test]
fn a_full_disk_stops_no_job_and_loses_nothing() {
    if !needs_root() {
        return;
    }
    let mut d = Daemon::start_on_disk("", "256k");
    assert!(d.cosched(&["run", "--", "true"]).status.success());
    let [spins, ends] = [d.detach(&["--", "sh", "-c", SPIN_2]), d.detach(&["--", "sleep", "600"])];
    let stopped = d.detach(&["--", "sleep", "600"]);
    assert!(d.cosched(&["suspend", &stopped.to_string()]).status.success());
    let pids = d.job_pids(spins);
    let filler = procs::fill_disk(&d.state_dir());
    // The journal's last block still has some room.
    assert!(wait_until(|| !d.cosched(&["run", "--", "true"]).status.success()), "the disk is not full");

    // What cannot be stored is refused, with the reason, and leaves no traces.
    let known = d.client().jobs(true).unwrap().jobs.len();
    for (args, code) in [(&["run", "--", "true"][..], 125), (&["suspend", &spins.to_string()], 1)] {
        for _ in 0..2 {
            let out = d.cosched(args);
            assert_eq!(out.status.code(), Some(code), "{args:?}: {}", stderr(&out));
            for word in ["No space left", "Make room", &d.state_dir().display().to_string()] {
                assert!(stderr(&out).contains(word), "{args:?}: {}", stderr(&out));
            }
        }
    }
    assert_eq!(d.client().jobs(true).unwrap().jobs.len(), known);
    assert_eq!(job(&d, spins).state, JobState::Running);
    assert!(d.client().status().unwrap().warnings.iter().any(|w| w.why.contains("No space left")));
    // Running jobs continue, and can be ended, frozen or not.
    assert!(wait_until(|| all_run(&d, &[spins])));
    for id in [ends, stopped] {
        let out = d.cosched(&["kill", &id.to_string()]);
        assert!(out.status.success(), "{}", stderr(&out));
        assert!(wait_until(|| job(&d, id).state == JobState::Ended), "{:?}", job(&d, id));
    }

    // Making room is all that an operator has to do.
    std::fs::remove_file(&filler).unwrap();
    assert!(wait_until(|| d.client().status().unwrap().warnings.iter().all(|w| !w.why.contains("No space left"))));
    assert!(d.cosched(&["run", "--", "true"]).status.success());
    let before = d.client().jobs(true).unwrap().jobs;
    d.kill();

    // A start needs room, too; without it nothing is changed.
    let filler = procs::fill_disk(&d.state_dir());
    refuses_to_start(&d, &[], &["No space left", "Make room"]);
    assert!(wait_until(|| all_run(&d, &[spins])));
    std::fs::remove_file(&filler).unwrap();
    d.launch();
    let after = d.client().jobs(true).unwrap().jobs;
    let told = |jobs: &[Job]| jobs.iter().map(|job| (job.id, job.state, job.exit)).collect::<Vec<_>>();
    assert_eq!(told(&after), told(&before));
    assert_eq!(d.job_pids(spins), pids);
    assert!(d.client().status().unwrap().warnings.iter().all(|w| !w.what.contains("damaged")));
    assert!(d.cosched(&["kill", "-9", &spins.to_string()]).status.success());
}

#[test]
fn a_journal_of_garbage_or_of_somebody_else_is_never_overwritten() {
    if !needs_root() {
        return;
    }
    let mut d = Daemon::start("");
    let id = d.detach(&["--", "sh", "-c", SPIN_2]);
    assert!(wait_until(|| d.job_pids(id).len() == 2));
    let pids = d.job_pids(id);
    d.kill();
    let journal = d.state_dir().join("journal");
    let good = std::fs::read(&journal).unwrap();

    // An older daemon does not drop what a newer one wrote.
    let json = "{\"of-another-version\":1}";
    let line = format!("{:08x} {json}\n", crc32(json.as_bytes()));
    std::fs::write(&journal, [&good[..], line.as_bytes()].concat()).unwrap();
    refuses_to_start(&d, &[], &["this version", "Use the version that wrote it"]);
    // Root without its privilege to read everything.
    std::fs::write(&journal, &good).unwrap();
    std::os::unix::fs::chown(&journal, Some(65534), Some(65534)).unwrap();
    std::fs::set_permissions(&journal, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let unprivileged = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--"];
    refuses_to_start(&d, &unprivileged, &["belongs to another user", "the daemon's user"]);
    assert!(wait_until(|| all_run(&d, &[id])));
    std::os::unix::fs::chown(&journal, Some(0), Some(0)).unwrap();

    // Garbage, also without a newline at the end: it is kept beside the journal, the running job is not touched, and its number
    // is not given again.
    for (n, garbage) in [(1, &b"\x7fELF\0\0\0\0"[..]), (2, b"no journal\nat all")] {
        std::fs::write(&journal, garbage).unwrap();
        d.launch();
        let warnings = d.client().status().unwrap().warnings;
        assert!(warnings.iter().any(|w| w.what.contains("damaged") && w.hint.contains("corrupt")), "{warnings:?}");
        assert_eq!(std::fs::read(d.state_dir().join(format!("journal.corrupt-{n}"))).unwrap(), garbage);
        assert_eq!(d.job_pids(id), pids);
        assert!(all_run(&d, &[id]));
        let new = d.detach(&["--", "true"]);
        assert!(new > id, "{new}");
        assert!(wait_until(|| job(&d, new).state == JobState::Ended));
        d.kill();
    }
    // Restoring the good one restores everything.
    std::fs::write(&journal, &good).unwrap();
    d.launch();
    assert_eq!(job(&d, id).state, JobState::Running);
    assert!(d.cosched(&["kill", "-9", &id.to_string()]).status.success());
    assert!(wait_until(|| d.job_cgroups().is_empty()));
}

/// The checksum of a journal's line, by the definition of CRC-32 and not by our code.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |sum: u32| if sum & 1 == 1 { (sum >> 1) ^ 0xedb8_8320 } else { sum >> 1 };
    !bytes.iter().fold(!0, |sum, byte| (0..8).fold(sum ^ u32::from(*byte), |sum, _| step(sum)))
}
