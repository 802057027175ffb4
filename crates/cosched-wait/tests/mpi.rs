//! MPI's results are the same with the library, for each MPI on this machine, each transport and each way to wait.

use std::path::{Path, PathBuf};
use std::process::Command;

struct Mpi {
    compiler: &'static str,
    launcher: &'static [&'static str],
    /// The setting that makes it use TCP.
    tcp: (&'static str, &'static str),
}

const OPEN_MPI: Mpi = Mpi {
    compiler: "mpicc.openmpi",
    launcher: &["mpirun.openmpi", "--oversubscribe", "--bind-to", "none"],
    tcp: ("OMPI_MCA_btl", "self,tcp"),
};
const MPICH: Mpi =
    Mpi { compiler: "mpicc.mpich", launcher: &["mpiexec.mpich", "-bind-to", "none"], tcp: ("UCX_TLS", "tcp,self") };

fn library() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let front =
        own.ancestors().map(|directory| directory.join("libcosched_preload.so")).find(|path| path.is_file()).unwrap();
    // Without the library nothing is loaded, and all results would be the same.
    assert!(
        front.with_file_name("libcosched_wait.so").is_file(),
        "cargo build -p cosched-wait puts it beside {front:?}"
    );
    front
}

fn command(mpi: &Mpi, program: &Path, ranks: &str, tcp: bool, wait: Option<&str>) -> Command {
    let mut command = Command::new("timeout");
    command.args(["-k", "1", "30"]).args(mpi.launcher).args(["-n", ranks]).arg("env");
    if let Some(wait) = wait {
        // Only for the ranks: the case that the launcher has it, too, is tested with `cosched run`.
        command.arg(format!("LD_PRELOAD={}", library().display())).arg(format!("COSCHED_WAIT={wait}"));
        // Simulates a crowd, whatever the number of CPUs.
        command.arg("OMPI_COMM_WORLD_LOCAL_SIZE=4096").arg("MPI_LOCALNRANKS=4096");
    }
    command.arg(program).envs(tcp.then_some(mpi.tcp));
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command
}

fn output(mpi: &Mpi, program: &Path, ranks: &str, tcp: bool, wait: Option<&str>) -> String {
    let mut command = command(mpi, program, ranks, tcp, wait);
    let done = command.output().unwrap();
    let said = String::from_utf8(done.stdout).unwrap();
    // MPICH 4.0.2 over TCP does not always return from MPI_Finalize, with or without the library: docs/waiting.md.
    let stuck_at_the_end = tcp && mpi.compiler == MPICH.compiler && said.contains(" ranks: ");
    assert!(done.status.success() || stuck_at_the_end, "{wait:?} tcp {tcp}: {}", String::from_utf8_lossy(&done.stderr));
    said.lines().next().unwrap_or_default().to_owned()
}

/// Compiles a program of tests/programs into the directory; `None` where there is no such MPI.
fn built(mpi: &Mpi, directory: &Path, source: &str) -> Option<PathBuf> {
    let program = directory.join("program");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(source);
    let Ok(status) = Command::new(mpi.compiler).arg("-O2").arg("-o").arg(&program).arg(source).status() else {
        eprintln!("left out: no {}", mpi.compiler);
        return None;
    };
    assert!(status.success());
    Some(program)
}

fn directory() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("cst-wait").tempdir().unwrap()
}

fn same_results(mpi: &Mpi) {
    let directory = directory();
    let Some(program) = built(mpi, directory.path(), "mpi_words.c") else { return };
    // Two ranks: with more, an MPI that only spins would take minutes on a machine with two CPUs.
    let plain = output(mpi, &program, "2", false, None);
    assert!(plain.starts_with("2 ranks: "), "{plain}");
    for wait in ["busy", "spin-block", "spin-block:0us", "spin-yield:20us"] {
        for tcp in [false, true] {
            assert_eq!(output(mpi, &program, "2", tcp, Some(wait)), plain, "{wait}, tcp {tcp}");
        }
    }
    let five = output(mpi, &program, "5", false, Some("spin-block"));
    assert!(five.starts_with("5 ranks: "), "{five}");
    assert_eq!(output(mpi, &program, "5", false, Some("spin-block:0us")), five);
    assert_eq!(output(mpi, &program, "5", false, Some("spin-yield:0us")), five);
}

#[test]
fn tests_of_open_mpi_between_which_a_rank_computes_do_not_each_yield() {
    let directory = directory();
    let Some(program) = built(&OPEN_MPI, directory.path(), "mpi_tests.c") else { return };
    let stats = directory.path().join("stats");
    let mut command = command(&OPEN_MPI, &program, "2", false, Some("spin-block"));
    let done = command.env("COSCHED_WAIT_STATS", &stats).env("OMPI_MCA_mpi_yield_when_idle", "0").output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success() && said.starts_with("1000000 tests: 1, "), "{said}");
    let counted = std::fs::read_to_string(&stats).unwrap();
    let yields =
        counted.lines().filter_map(|line| line.split("\"yields\":").nth(1)?.split(',').next()?.parse::<u64>().ok());
    let yields: Vec<u64> = yields.collect();
    assert!(yields.len() == 2 && yields.iter().all(|&yields| yields < 20_000), "{counted}");
}

#[test]
fn open_mpi() {
    same_results(&OPEN_MPI);
}

#[test]
fn mpich() {
    same_results(&MPICH);
}
