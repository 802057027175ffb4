//! Real parallel programs run unchanged: Open MPI, MPICH, OpenMP, PyTorch.

use cosched_tests::{Daemon, needs_root, program, stderr, stdout};
use std::process::Command;

fn installed(command: &str) -> bool {
    let found =
        Command::new("sh").args(["-c", &format!("command -v {command}")]).output().is_ok_and(|o| o.status.success());
    if !found {
        println!("SKIPPED: {command} is not installed: `tools/setup test` installs it");
    }
    found
}

/// Two copies at once under gang scheduling; both must succeed.
fn two_at_once(args: &[&str], check: impl Fn(&str)) {
    if !needs_root() {
        return;
    }
    let d = Daemon::start("slot_length = \"20ms\"\n");
    let mut all = vec!["--"];
    all.extend(args);
    let runs: Vec<_> = (0..2).map(|_| d.spawn_run(&all)).collect();
    for run in runs {
        let out = run.wait_with_output().unwrap();
        assert!(out.status.success(), "{}\n{}", stdout(&out), stderr(&out));
        check(&stdout(&out));
    }
    assert!(d.job_cgroups().is_empty());
    assert_eq!(d.client().status().unwrap().switches.errors, 0);
}

#[test]
fn open_mpi() {
    if let Some(program) = program("barrier-mpi").filter(|_| installed("mpirun.openmpi")) {
        let args = ["mpirun.openmpi", "-n", "2", "--oversubscribe", "--bind-to", "none", &program, "--grain-us", "100"];
        two_at_once(&[&args[..], &["--iterations", "2000", "--json"]].concat(), |out| {
            assert!(out.contains("\"iterations\""), "{out}");
        });
    }
}

#[test]
fn open_mpi_multiplies_matrices_and_checks_the_result() {
    if let Some(program) = program("matmul").filter(|_| installed("mpirun.openmpi")) {
        let args = ["mpirun.openmpi", "-n", "2", "--oversubscribe", "--bind-to", "none", &program];
        two_at_once(&args, |out| assert!(out.contains("GFLOP/s"), "{out}"));
    }
}

#[test]
fn mpich() {
    if let Some(program) = program("mpich/barrier-mpi").filter(|_| installed("mpirun.mpich")) {
        let args = ["mpirun.mpich", "-n", "2", &program, "--grain-us", "100", "--iterations", "2000", "--json"];
        two_at_once(&args, |out| assert!(out.contains("\"iterations\""), "{out}"));
    }
}

#[test]
fn open_mp() {
    if let Some(program) = program("barrier-omp") {
        two_at_once(
            &["env", "OMP_NUM_THREADS=2", &program, "--grain-us", "100", "--iterations", "2000", "--json"],
            |out| {
                assert!(out.contains("\"iterations\""), "{out}");
            },
        );
    }
}

#[test]
fn py_torch() {
    let has = Command::new("/usr/bin/python3").args(["-c", "import torch"]).output().is_ok_and(|o| o.status.success());
    if !has {
        println!("SKIPPED: /usr/bin/python3 has no torch: `tools/setup test` installs it");
        return;
    }
    let script = "import torch; torch.set_num_threads(2); a = torch.ones(300, 300, dtype=torch.float64)\n\
                  for i in range(50): b = a @ a\nassert bool((b == 300).all()); print('right')";
    two_at_once(&["/usr/bin/python3", "-c", script], |out| assert_eq!(out.trim(), "right"));
}
