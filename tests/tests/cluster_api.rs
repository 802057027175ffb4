//! The job API in C and in Fortran against a live cluster: the paper's program, and each call from both of two nodes.

use cosched_api::JobState;
use cosched_tests::cluster::{Cluster, needs};
use cosched_tests::{bin_dir, stderr, stdout, wait_until};
use std::path::{Path, PathBuf};
use std::process::Command;

const FORTRAN: [&str; 6] = ["-std=f2008", "-Wall", "-Wextra", "-Werror", "-fcheck=all", "-g"];

fn bindings(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../bindings").join(path)
}

/// Compiles against the library that cargo has built, under the name that programs link to; returns the program.
fn compiled(mut compiler: Command, to: PathBuf) -> PathBuf {
    let (libraries, dir) = (bin_dir(), to.parent().expect("a directory"));
    let linked = std::os::unix::fs::symlink(libraries.join("libcosched.so"), dir.join("libcosched.so.0"));
    assert!(linked.is_ok() || dir.join("libcosched.so.0").exists(), "{linked:?}");
    compiler.arg("-o").arg(&to).arg("-L").arg(&libraries).args(["-lcosched", "-lpthread"]);
    let out = compiler.arg(format!("-Wl,-rpath,{}", dir.display())).output().expect("the compiler runs");
    assert!(out.status.success(), "{}", stderr(&out));
    to
}

fn c(source: &str, dir: &Path) -> PathBuf {
    let mut compiler = Command::new("gcc");
    compiler.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-g"]);
    compiler.arg("-I").arg(bindings("c/include")).arg(bindings(source));
    compiled(compiler, dir.join("c-program"))
}

fn fortran(source: &str, dir: &Path) -> PathBuf {
    let mut compiler = Command::new("gfortran");
    compiler.args(FORTRAN).arg("-J").arg(dir).arg(bindings("fortran/cosched.f90")).arg(bindings(source));
    compiled(compiler, dir.join("fortran-program"))
}

/// Runs the paper's program on a node of the cluster, then the program that talks to both nodes.
fn works(compile: fn(&str, &Path) -> PathBuf, appendix: &str, both: &str) {
    let cluster = Cluster::met(2, "");
    let [first, other] = [0, 1].map(|n| cluster.node(n));
    let program = compile(appendix, &cluster.net().dir);
    let out = first.command("timeout").arg("60").arg(program).arg("50").output().unwrap();
    assert!(out.status.success(), "{}{}", stdout(&out), stderr(&out));
    let said = stdout(&out);
    let line = said.lines().find(|line| line.contains(" s of CPU time")).unwrap_or_else(|| panic!("{said}"));
    let id: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert_eq!(other.job(id).nodes[0].name, "n1", "the other node knows it");
    // Without processes it ends a moment later, and is counted until then.
    assert!(wait_until(|| cluster.all_say(id, JobState::Ended)), "{:?}", other.job(id));

    let program = compile(both, &cluster.net().dir);
    let mut command = first.command("timeout");
    let out = command.arg("120").arg(program).arg(first.socket()).arg(other.socket()).output().unwrap();
    assert!(out.status.success() && stdout(&out).contains(" 0 failed"), "{}{}", stdout(&out), stderr(&out));
}

#[test]
fn programs_in_c_use_a_cluster_from_both_of_its_nodes() {
    if needs(&["etcd", "openssl", "gcc"]) {
        works(c, "c/examples/gang.c", "c/tests/cluster.c");
    }
}

#[test]
fn programs_in_fortran_use_a_cluster_from_both_of_its_nodes() {
    if needs(&["etcd", "openssl", "gfortran"]) {
        works(fortran, "fortran/examples/gang.f90", "fortran/tests/cluster.f90");
    }
}
