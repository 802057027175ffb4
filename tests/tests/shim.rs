//! `cosched shim`: a launcher that is called by its name becomes a job.

use cosched_tests::{Daemon, bin_dir, needs_root, program, stderr, stdout};
use std::path::Path;
use std::process::{Command, Output};

/// The names of all jobs so far.
fn jobs(d: &Daemon) -> Vec<String> {
    d.client().jobs(true).unwrap().jobs.into_iter().map(|job| job.name).collect()
}

/// Runs a shell script with these directories first on PATH.
fn script(text: &str, first: &str) -> Output {
    let path = format!("{first}:{}", std::env::var("PATH").unwrap());
    Command::new("timeout").args(["-k", "1", "30", "sh", "-c", text]).env("PATH", path).output().unwrap()
}

fn launcher(dir: &Path, name: &str) {
    std::fs::create_dir_all(dir).unwrap();
    let path = dir.join(name);
    std::fs::write(&path, "#!/bin/sh\necho \"launched: $*\"\nexit 7\n").unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
}

#[test]
fn each_call_is_a_job_except_inside_one() {
    if !needs_root() {
        return;
    }
    let d = Daemon::start("");
    let folder = tempfile::tempdir().unwrap();
    let (real, shims) = (folder.path().join("real"), folder.path().join("it's shims"));
    launcher(&real, "mpiexec");
    let socket = d.socket().display().to_string();
    let made = ["--socket", &socket, "shim", "--dir", shims.to_str().unwrap(), "mpiexec", "cst-nowhere"];
    let made = d.cosched(&[&made[..], &["--", "--class", "batch", "--wait", "off"]].concat());
    assert!(
        made.status.success() && stdout(&made).contains("mpiexec, cst-nowhere: each call is a job"),
        "{}",
        stderr(&made)
    );

    let first = format!("{}:{}", shims.display(), real.display());
    let out = script("mpiexec -n 2 'a  b'", &first);
    assert_eq!((out.status.code(), stdout(&out).as_str()), (Some(7), "launched: -n 2 a  b\n"), "{}", stderr(&out));
    assert_eq!(jobs(&d), ["mpiexec"]);
    let class = d.cosched(&["--json", "show", "1"]);
    assert!(stdout(&class).contains("\"class\":\"batch\""), "{}", stdout(&class));

    // With another spelling in PATH, and a relative one, it still finds the real one.
    let out = script(
        &format!("cd \"{}\" && PATH=\".:$PATH\" mpiexec", shims.display()),
        &format!("{}/../it's shims/:{first}", shims.display()),
    );
    assert_eq!((out.status.code(), stdout(&out).as_str()), (Some(7), "launched: \n"), "{}", stderr(&out));
    let cosched = bin_dir().join("cosched").display().to_string();
    let inside =
        script(&format!("'{cosched}' --socket '{socket}' run --name suite -- sh -c 'mpiexec x; mpiexec y'"), &first);
    assert_eq!(stdout(&inside), "launched: x\nlaunched: y\n", "{}", stderr(&inside));
    let off = script("COSCHED_SHIM=off mpiexec z", &first);
    assert_eq!((off.status.code(), stdout(&off).as_str()), (Some(7), "launched: z\n"));
    assert_eq!(jobs(&d), ["mpiexec", "mpiexec", "suite"], "inside a job and switched off there are no others");

    let none = script("cst-nowhere", &first);
    assert!(
        none.status.code() == Some(127) && stderr(&none).contains("cst-nowhere: not found on PATH"),
        "{}",
        stderr(&none)
    );
}

/// Through Hydra and through Open MPI's launcher: each call is a job, in which all ranks are, with the wait library.
#[test]
fn ranks_of_real_launchers_are_in_the_job_with_the_library() {
    if !needs_root() {
        return;
    }
    for (launcher, built, options) in [
        ("mpiexec.mpich", "mpich/barrier-mpi", ""),
        ("mpirun.openmpi", "barrier-mpi", "--oversubscribe --allow-run-as-root"),
    ] {
        let Some(barrier) = program(built) else { continue };
        if !["/usr/bin", "/usr/local/bin"].iter().any(|dir| Path::new(dir).join(launcher).exists()) {
            println!("SKIPPED: {launcher} is not installed: `tools/setup test` installs it");
            continue;
        }
        let d = Daemon::start("");
        let folder = tempfile::tempdir().unwrap();
        let (shims, socket) = (folder.path().join("shims").display().to_string(), d.socket().display().to_string());
        let made = d.cosched(&["--socket", &socket, "shim", "--dir", &shims, launcher]);
        assert!(made.status.success(), "{}", stderr(&made));
        let rank = format!(
            "case $LD_PRELOAD in *libcosched_preload.so*) echo rank of job $COSCHED_JOB;; esac; exec {barrier} --iterations 50"
        );
        let out = script(&format!("{launcher} {options} -n 3 sh -c '{rank}'"), &shims);
        let (said, id) = (stdout(&out), d.client().jobs(true).unwrap().jobs[0].id);
        assert!(out.status.success(), "{launcher}: {said}{}", stderr(&out));
        assert_eq!(said.matches(&format!("rank of job {id}\n")).count(), 3, "{launcher}: {said}");
        assert_eq!(jobs(&d), [launcher]);
    }
}

#[test]
fn what_cannot_be_made_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let shim = |path: &str, words: &[&str]| {
        let mut command = Command::new(bin_dir().join("cosched"));
        command.arg("shim").arg("--dir").arg(folder.path()).args(words);
        if !path.is_empty() {
            command.env("PATH", path);
        }
        command.output().unwrap()
    };
    let nothing = shim("/nonexistent", &[]);
    assert!(nothing.status.code() == Some(6) && stderr(&nothing).contains("mpiexec"), "{}", stderr(&nothing));
    let option = shim("", &["mpiexec", "--", "--class", "bacth"]);
    assert!(option.status.code() == Some(6) && stderr(&option).contains("'batch'"), "{}", stderr(&option));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "and nothing is written");
    std::fs::write(folder.path().join("mpiexec"), "mine").unwrap();
    let taken = shim("", &["mpiexec"]);
    assert!(taken.status.code() == Some(6) && stderr(&taken).contains("is not replaced"), "{}", stderr(&taken));
    assert_eq!(std::fs::read_to_string(folder.path().join("mpiexec")).unwrap(), "mine");
}
