//! `cosched run --wait`: polling processes are told how to wait, and the daemon shows the results.

use cosched_api::WaitMode;
use cosched_tests::{Daemon, needs_root, stderr, stdout, wait_until};

/// Polls a pipe, without a time limit of its own, into which a child writes a byte every few milliseconds, `N` times.
const POLLER: &str = "
import os, select, sys, time
r, w = os.pipe()
if os.fork() == 0:
    for _ in range(int(sys.argv[1])):
        time.sleep(0.003)
        os.write(w, b'x')
    os._exit(0)
p = select.poll()
p.register(r, select.POLLIN)
got = 0
while got < int(sys.argv[1]):
    if p.poll(0):
        got += len(os.read(r, 1))
print(got)
";

#[test]
fn a_job_is_told_how_to_wait_and_leaves_no_page() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start("");
    let script = "echo $COSCHED_WAIT; test -r \"$COSCHED_WAIT_PAGE\" && echo page; grep -o 'libcosched_[a-z]*' /proc/$$/maps | sort -u";
    let out = d.cosched(&["run", "--wait", "spin-block:70us", "--", "sh", "-c", script]);
    assert_eq!(stdout(&out), "spin-block:70us\npage\nlibcosched_preload\n", "{}", stderr(&out));
    let script = "print('libcosched_wait.so' in open('/proc/self/maps').read())";
    let out = d.cosched(&["run", "--", "python3", "-c", script]);
    assert_eq!(stdout(&out), "True\n", "it may load what waits: {}", stderr(&out));
    let out = d.cosched(&["run", "--wait", "off", "--", "sh", "-c", "echo \"<$COSCHED_WAIT$LD_PRELOAD>\""]);
    assert_eq!(stdout(&out), "<>\n");
    let job = &d.client().jobs(true).unwrap().jobs[0];
    let waiting = job.waiting.as_ref().expect("it was told how to wait");
    assert_eq!((waiting.asked.mode, waiting.asked.spin_us), (WaitMode::SpinBlock, Some(70)));
    let left: Vec<_> = std::fs::read_dir(d.dir.path().join("wait")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn two_jobs_that_poll_block_instead_and_both_are_right() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start("");
    let args = ["--policy", "local", "--wait", "spin-block:50us", "--", "python3", "-c", POLLER, "300"];
    let runs = [d.spawn_run(&args), d.spawn_run(&args), d.spawn_run(&args)];
    for run in runs {
        let out = run.wait_with_output().unwrap();
        assert_eq!(stdout(&out), "300\n", "{}", stderr(&out));
    }
    let jobs = d.client().jobs(true).unwrap().jobs;
    for job in &jobs {
        let waiting = job.waiting.as_ref().unwrap();
        assert!(waiting.polls > 0 && waiting.waits > 0 && waiting.blocks > 0, "{waiting:?}");
    }
    let shown = stdout(&d.cosched(&["show", &jobs[0].id.to_string()]));
    assert!(shown.contains("waiting") && shown.contains("spin-block") && shown.contains("blocked"), "{shown}");
}

#[test]
fn programs_into_which_no_library_goes_run_without_and_it_is_said() {
    if !needs_root() {
        return;
    }
    if !std::path::Path::new("/bin/busybox").exists() {
        println!("SKIPPED: no /bin/busybox, a statically linked program");
        return;
    }
    let d = Daemon::start("");
    let out = d.cosched(&["run", "--wait", "spin-block", "--", "/bin/busybox", "echo", "well"]);
    assert_eq!(stdout(&out), "well\n");
    assert!(stderr(&out).contains("statically linked"), "{}", stderr(&out));
    let out = d.cosched(&["run", "--", "/bin/busybox", "echo", "well"]);
    assert_eq!((stdout(&out).as_str(), stderr(&out).as_str()), ("well\n", ""));
}

#[test]
fn counts_outlive_the_daemon_and_a_page_that_is_damaged_harms_nobody() {
    if !needs_root() {
        return;
    }
    let mut d = Daemon::start("");
    let mut run =
        d.spawn_run(&["--name", "poller", "--wait", "spin-block:20us", "--", "python3", "-c", POLLER, "1000"]);
    let polls =
        |d: &Daemon| d.client().jobs(true).ok().and_then(|l| l.jobs.first()?.waiting.clone()).map_or(0, |w| w.polls);
    assert!(wait_until(|| polls(&d) > 0));
    d.kill();
    d.launch();
    assert!(polls(&d) > 0, "the page was found again");
    let page = d.client().jobs(true).unwrap().jobs[0].waiting.clone().unwrap().page.expect("a page");
    std::fs::write(&page, "rubbish").unwrap();
    assert!(d.client().status().is_ok());
    // A process that has the page mapped may die of that; the daemon and its other jobs do not.
    run.wait().unwrap();
    assert_eq!(stdout(&d.cosched(&["run", "--", "echo", "on"])), "on\n");
    assert!(wait_until(|| !std::path::Path::new(&page).exists()));
}
