//! `cosched setup --fix`: what it says is in the way, it changes, and then it is no longer in the way.

use cosched_tests::{bin_dir, needs_root, stderr, stdout};
use std::process::{Command, Output};

/// A file of ours in the place of the kernel's setting.
const INSIDE: &str = "mount --bind \"$1\" /proc/sys/kernel/sched_rt_runtime_us || exit 99; shift; exec \"$@\"";

#[test]
fn real_time_threads_without_cpu_time_get_some() {
    if !needs_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let setting = folder.path().join("setting");
    std::fs::write(&setting, "0\n").unwrap();
    let setup = |words: &[&str]| -> Output {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-c", INSIDE, "sh"]).arg(&setting);
        command.arg(bin_dir().join("cosched")).arg("setup").args(words).output().unwrap()
    };
    let line = |out: &Output| {
        let text = stdout(out);
        text.lines().find(|line| line.starts_with("real-time")).unwrap_or_default().to_owned()
    };
    let before = setup(&[]);
    if line(&before).contains("not granted") {
        println!("SKIPPED: root gets no real-time priority here");
        return;
    }
    assert_eq!(before.status.code(), Some(6), "{}{}", stdout(&before), stderr(&before));
    assert!(line(&before).contains("missing"), "{}", stdout(&before));
    let says = "`cosched setup --fix` as root writes 950000 to /proc/sys/kernel/sched_rt_runtime_us";
    assert!(stdout(&before).contains(says), "{}", stdout(&before));
    assert_eq!(std::fs::read_to_string(&setting).unwrap(), "0\n", "nothing is changed without --fix");

    let fixed = setup(&["--fix"]);
    assert!(fixed.status.success() && line(&fixed).contains("fixed"), "{}{}", stdout(&fixed), stderr(&fixed));
    assert_eq!(std::fs::read_to_string(&setting).unwrap(), "950000");
    let after = setup(&[]);
    assert!(after.status.success() && line(&after).contains("ok"), "{}{}", stdout(&after), stderr(&after));
}
