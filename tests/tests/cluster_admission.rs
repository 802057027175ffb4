//! Waiting jobs and lost launchers: one job that cannot start blocks no other, and a job whose program, launcher or launching node
//! has ended does not run for ever. Real daemons on a real etcd.

use cosched_api::JobState;
use cosched_tests::cluster::jobs::wait_for_death;
use cosched_tests::cluster::{Cluster, Node, needs};
use cosched_tests::{procs, stderr, stdout, wait_until};
use rustix::process::Signal;
use std::path::PathBuf;
use std::process::{Child, Output};

const TOOLS: [&str; 2] = ["etcd", "openssl"];

fn is(node: &Node, id: u64, state: JobState) -> bool {
    wait_until(|| node.client().job(id).is_ok_and(|job| job.state == state))
}

/// `cosched run -d ARGS`: the job's id, or the error message.
fn detach(node: &Node, args: &[&str]) -> Result<u64, String> {
    let out = node.cosched(&[&["run", "-d"], args, &["--", "sleep", "600"]].concat());
    stdout(&out).trim().parse().map_err(|_| stderr(&out))
}

#[test]
fn one_job_that_cannot_start_stops_nobody() {
    if !needs(&TOOLS) {
        return;
    }
    let cluster = Cluster::met(2, "memory = \"400M\"\n");
    let [first, other] = [0, 1].map(|n| cluster.node(n));
    assert!(first.cosched(&["nodes", "--drain", "n2"]).status.success());
    // All CPUs of the cluster, including drained ones, on any nodes and by name; more than all is refused.
    let all = detach(first, &["--cpus", "2"]).unwrap();
    let named = detach(other, &["--nodes", "n1:1,n2:1"]).unwrap();
    let refused = detach(first, &["--cpus", "3"]).unwrap_err();
    assert!(refused.contains("the job wants 3 CPUs; 2 have"), "{refused}");
    let small = detach(first, &["--nodes", "n1:1:300M"]).unwrap();
    assert!(is(other, small, JobState::Running), "{:?}", first.job(small).waits_for);
    // A large job and one that waits for it: a job that fits still starts.
    let waits = detach(first, &["--nodes", "n1:1:400M"]).unwrap();
    let fits = detach(other, &["--nodes", "n1:1:100M"]).unwrap();
    assert!(is(first, fits, JobState::Running), "{:?}", first.job(fits).waits_for);
    for id in [all, named, waits] {
        assert_eq!(first.job(id).state, JobState::Waiting);
    }
    assert!(first.cosched(&["nodes", "--undrain", "n2"]).status.success());
    assert!(is(other, all, JobState::Running) && is(other, named, JobState::Running));
    let ids = [all, named, small, waits, fits].map(|id| id.to_string());
    first.cosched(&[&["kill", "-9"][..], &ids.each_ref().map(String::as_str)].concat());
    assert!([all, named, small, waits, fits].into_iter().all(|id| is(first, id, JobState::Ended)));
}

/// A program on a node whose job is elsewhere: its launcher, and the file that its process number is written to.
struct Program {
    launcher: Child,
    file: PathBuf,
}

impl Program {
    fn on(node: &Node, name: &str, want: &str) -> Program {
        let file = node.socket().with_file_name(name);
        let script = format!("echo $$ > {}; exec sleep 600", file.display());
        Program { launcher: node.spawn_run(&["--name", name, "--nodes", want, "--", "sh", "-c", &script]), file }
    }

    /// Its process number, once it runs.
    fn pid(&self) -> Option<i32> {
        std::fs::read_to_string(&self.file).ok()?.trim().parse().ok()
    }

    /// kill -9 of the launcher and of the command.
    fn is_killed(&mut self) {
        self.launcher.kill().unwrap();
        self.launcher.wait().unwrap();
        if let Some(pid) = self.pid() {
            procs::signal(pid, Signal::KILL);
        }
    }
}

/// The number of the job with this name, once it exists.
fn id_of(node: &Node, name: &str) -> u64 {
    let find = || node.client().jobs(true).unwrap().jobs.into_iter().find(|job| job.name == name);
    assert!(wait_until(|| find().is_some()), "there is no job {name}");
    find().unwrap().id
}

#[test]
fn a_job_whose_program_is_gone_ends_on_every_path() {
    if !needs(&TOOLS) {
        return;
    }
    let mut cluster = Cluster::met(2, "memory = \"400M\"\n");
    let start = |cluster: &Cluster, name: &str, want: &str| {
        let program = Program::on(cluster.node(0), name, want);
        let id = id_of(cluster.node(1), name);
        (program, id)
    };
    let runs = |cluster: &Cluster, (program, id): &(Program, u64)| {
        is(cluster.node(1), *id, JobState::Running) && wait_until(|| program.pid().is_some())
    };
    // Launcher and command are killed, once while the daemon of their node is running, and once while it is away.
    let mut killed = start(&cluster, "killed", "n2:1:100M");
    let mut unseen = start(&cluster, "unseen", "n2:1:100M");
    let lives = start(&cluster, "lives", "n2:1:50M");
    assert!([&killed, &unseen, &lives].into_iter().all(|job| runs(&cluster, job)));
    let mut waits = start(&cluster, "waits", "n2:1:400M");
    assert!(is(cluster.node(1), waits.1, JobState::Waiting));
    killed.0.is_killed();
    assert!(is(cluster.node(1), killed.1, JobState::Ended), "{:?}", cluster.node(1).client().job(killed.1));
    cluster.node_mut(0).kill_daemon();
    unseen.0.is_killed();
    waits.0.is_killed();
    cluster.node_mut(0).restart();
    for id in [unseen.1, waits.1] {
        assert!(is(cluster.node(1), id, JobState::Ended), "{:?}", cluster.node(1).client().job(id));
    }
    assert_eq!(cluster.node(1).client().job(lives.1).unwrap().state, JobState::Running, "its program lives");

    // The node is dead for good: a job that ran, and a job that waited and must not start later.
    let mut lives = lives;
    let mut waits = start(&cluster, "waits for a dead node", "n2:1:400M");
    assert!(is(cluster.node(1), waits.1, JobState::Waiting));
    cluster.node_mut(0).kill_daemon();
    lives.0.is_killed();
    waits.0.is_killed();
    for id in [lives.1, waits.1] {
        assert!(wait_for_death(|| cluster.node(1).state(id) == Some(JobState::Ended)), "job {id}");
    }
    let held = || cluster.node(1).client().load(None).map(|load| (load.jobs, load.memory_declared_bytes)).unwrap();
    assert!(wait_until(|| held() == (0, 0)), "jobs and memory that are held for them: {:?}", held());
}

/// Requests to a store that did not answer are carried out when it does; the users who requested the jobs have been told that
/// nothing is run.
#[test]
fn a_run_that_failed_while_the_store_was_away_leaves_no_job() {
    if !needs(&TOOLS) {
        return;
    }
    let mut cluster = Cluster::met(2, "");
    let ran = cluster.node(0).socket().with_file_name("ran");
    let script = format!("echo > {}; exec sleep 600", ran.display());
    // The requests have their places on this node and on the other, and etcd has them in its socket, or never received them.
    for (names, frozen) in [(["a", "b"], true), (["c", "d"], false)] {
        match frozen {
            true => cluster.etcd.freeze(),
            false => cluster.etcd.kill(),
        }
        let asked = names.iter().zip(["n1:1", "n2:1"]).map(|(name, want)| {
            cluster.node(0).spawn_run(&["-d", "--name", name, "--nodes", want, "--", "sh", "-c", &script])
        });
        let asked: Vec<Child> = asked.collect();
        let said: Vec<Output> = asked.into_iter().map(|run| run.wait_with_output().unwrap()).collect();
        match frozen {
            true => cluster.etcd.thaw(),
            false => cluster.etcd.restart(),
        }
        for run in said {
            assert_eq!(run.status.code(), Some(125), "{names:?}: {}", stderr(&run));
            assert!(stderr(&run).contains("Nothing was started"), "{names:?}: {}", stderr(&run));
        }
        cluster.until_met();
        // When this job has its number, the earlier requests have theirs.
        let next = cluster.node(0).detach(&["--nodes", "n1:1", "--", "sleep", "600"]);
        let ghosts = |n: usize| {
            let jobs = cluster.node(n).client().jobs(true).unwrap().jobs;
            jobs.into_iter().filter(|job| names.contains(&&*job.name) && job.state != JobState::Ended).count()
        };
        assert!(wait_until(|| (0..2).all(|n| ghosts(n) == 0)), "{names:?}: a job without a process goes on");
        assert!(!ran.exists(), "{names:?}: the program was run");
        cluster.end(0, &[next]);
    }
}
