//! Where no daemon can run, a command still runs, and its processes wait well.

use cosched_tests::uncontrolled::Uncontrolled;
use cosched_tests::{needs_root, program, stderr, stdout};

const SAYS: &str = "cosched: the command runs, but not as a job: ";

/// Neither cgroups nor signals: only the wait library is left.
const REFUSE: &str = "without_cgroups = \"refuse\"\n";

#[test]
fn a_user_without_a_cgroup_has_ranks_that_wait_well() {
    if !needs_root() {
        return;
    }
    let Some(barrier) = program("mpich/barrier-mpi") else { return };
    let place = Uncontrolled::user(&[&barrier]);
    place.configure(REFUSE);
    let run = |words: &[&str]| place.cosched(words);
    let barrier = place.bin("barrier-mpi");
    let ranks = (std::thread::available_parallelism().map_or(2, usize::from) + 3).to_string();
    let launch = ["run", "--", "mpiexec.mpich", "-bind-to", "none", "-n", &ranks, &barrier];
    let out = run(&[&launch[..], &["--iterations", "300", "--json"]].concat());
    assert!(out.status.success() && stdout(&out).contains("\"check\":\"ok\""), "{}{}", stdout(&out), stderr(&out));
    let said = stderr(&out);
    assert!(
        said.starts_with(&format!("{SAYS}its processes wait by spin-block. ")) && said.lines().count() == 1,
        "{said}"
    );
    let stats = std::fs::read_to_string(place.home().join("stats")).unwrap();
    let gave_way = |line: &&str| !line.contains("\"blocks\":0,") || !line.contains("\"yields\":0,");
    assert_eq!(stats.lines().filter(gave_way).count().to_string(), ranks, "{stats}");

    let inside = "\"$0\" run -- sh -c 'exit 7'";
    let out = run(&["run", "--", "sh", "-c", inside, &place.bin("cosched")]);
    assert_eq!((out.status.code(), stderr(&out).lines().count()), (Some(7), 1), "said once: {}", stderr(&out));
    // The request of an inner one takes precedence, and the library is loaded only once.
    let inner = "echo $COSCHED_WAIT; \"$0\" run --wait spin-yield -- sh -c 'echo $COSCHED_WAIT $LD_PRELOAD'; \"$0\" run --wait off -- sh -c 'echo [$LD_PRELOAD]'";
    let own = place.bin("cosched");
    let out = run(&["run", "--", "sh", "-c", inner, &own]);
    let library = place.bin("libcosched_preload.so");
    assert_eq!(stdout(&out), format!("spin-block\nspin-yield {library}\n[]\n"), "{}", stderr(&out));
    // In another place the mark means nothing.
    let out = run(&["run", "--", "sh", "-c", "COSCHED_NO_DAEMON=1 \"$0\" run -- true", &own]);
    assert_eq!(stderr(&out).lines().count(), 2, "{}", stderr(&out));
    let out = run(&["run", "--policy", "gang", "--", "touch", "made"]);
    assert_eq!(out.status.code(), Some(125));
    assert!(
        stderr(&out).starts_with("cosched: this policy or strategy needs a daemon, and none can run here\n  why: ")
    );
    assert!(!place.home().join("made").exists());
}
