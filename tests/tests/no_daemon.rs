//! Where no daemon can run, a command still runs, and its processes wait well.

use cosched_tests::users::ANN;
use cosched_tests::{bin_dir, needs_root, program, stderr, stdout};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};

const SAYS: &str = "cosched: the command runs, but not as a job: ";

/// The programs, in a place that every user can reach.
fn installation(more: Option<&str>) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let own = ["cosched", "coschedd", "cosched-guard", "libcosched_wait.so", "libcosched_preload.so"];
    for file in own.iter().map(|name| bin_dir().join(name)).chain(more.map(Into::into)) {
        std::fs::copy(&file, folder.path().join(file.file_name().unwrap()))
            .expect("`cargo build --workspace` makes it");
    }
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

/// `cosched WORDS` as a user who has only a directory.
fn as_ann(installed: &Path, home: &Path, words: &[&str]) -> Output {
    let mut command = Command::new("timeout");
    command.args(["-k", "1", "60"]).arg(installed.join("cosched")).args(words).uid(ANN).gid(ANN).current_dir(home);
    command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", home).env("XDG_RUNTIME_DIR", home);
    command.env("COSCHED_WAIT_STATS", home.join("stats")).output().unwrap()
}

#[test]
fn a_user_without_a_cgroup_has_ranks_that_wait_well() {
    if !needs_root() {
        return;
    }
    let Some(barrier) = program("mpich/barrier-mpi") else { return };
    let (installed, home) = (installation(Some(&barrier)), tempfile::tempdir().unwrap());
    std::os::unix::fs::chown(home.path(), Some(ANN), Some(ANN)).unwrap();
    let run = |words: &[&str]| as_ann(installed.path(), home.path(), words);
    let barrier = installed.path().join("barrier-mpi").display().to_string();
    let ranks = (std::thread::available_parallelism().map_or(2, usize::from) + 3).to_string();
    let launch = ["run", "--", "mpiexec.mpich", "-bind-to", "none", "-n", &ranks, &barrier];
    let out = run(&[&launch[..], &["--iterations", "300", "--json"]].concat());
    assert!(out.status.success() && stdout(&out).contains("\"check\":\"ok\""), "{}{}", stdout(&out), stderr(&out));
    let said = stderr(&out);
    assert!(
        said.starts_with(&format!("{SAYS}its processes wait by spin-block. ")) && said.lines().count() == 1,
        "{said}"
    );
    let stats = std::fs::read_to_string(home.path().join("stats")).unwrap();
    let gave_way = |line: &&str| !line.contains("\"blocks\":0,") || !line.contains("\"yields\":0,");
    assert_eq!(stats.lines().filter(gave_way).count().to_string(), ranks, "{stats}");

    let inside = "\"$0\" run -- sh -c 'exit 7'";
    let out = run(&["run", "--", "sh", "-c", inside, &installed.path().join("cosched").display().to_string()]);
    assert_eq!((out.status.code(), stderr(&out).lines().count()), (Some(7), 1), "said once: {}", stderr(&out));
    // The request of an inner one takes precedence, and the library is loaded only once.
    let inner = "echo $COSCHED_WAIT; \"$0\" run --wait spin-yield -- sh -c 'echo $COSCHED_WAIT $LD_PRELOAD'; \"$0\" run --wait off -- sh -c 'echo [$LD_PRELOAD]'";
    let own = installed.path().join("cosched").display().to_string();
    let out = run(&["run", "--", "sh", "-c", inner, &own]);
    let library = installed.path().join("libcosched_preload.so");
    assert_eq!(stdout(&out), format!("spin-block\nspin-yield {}\n[]\n", library.display()), "{}", stderr(&out));
    // In another place the mark means nothing.
    let out = run(&["run", "--", "sh", "-c", "COSCHED_NO_DAEMON=1 \"$0\" run -- true", &own]);
    assert_eq!(stderr(&out).lines().count(), 2, "{}", stderr(&out));
    let out = run(&["run", "--policy", "gang", "--", "touch", "made"]);
    assert_eq!(out.status.code(), Some(125));
    assert!(
        stderr(&out).starts_with("cosched: this policy or strategy needs a daemon, and none can run here\n  why: ")
    );
    assert!(!home.path().join("made").exists());
}

#[test]
fn read_only_cgroups_keep_nobody_from_a_command() {
    if !needs_root() {
        return;
    }
    let (installed, home) = (installation(None), tempfile::tempdir().unwrap());
    let read_only = "for dir in $(awk '$0 ~ / - cgroup2? / { print $5 }' /proc/self/mountinfo); do
        mount --bind $dir $dir && mount -o remount,bind,ro $dir || exit 99
    done
    exec setpriv --inh-caps=-all --bounding-set=-all \"$0\" run -- sh -c 'exit 7'";
    let mut command = Command::new("timeout");
    command.args(["-k", "1", "60", "unshare", "--mount", "--propagation", "private", "sh", "-c", read_only]);
    command.arg(installed.path().join("cosched")).env("COSCHED_SOCKET", home.path().join("run/s"));
    let out = command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").output().unwrap();
    assert_eq!(out.status.code(), Some(7), "{}", stderr(&out));
    assert!(stderr(&out).starts_with(SAYS) && stderr(&out).contains("Read-only file system"), "{}", stderr(&out));
}
