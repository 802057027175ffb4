//! The base on which clusters are tested: namespaces, a real etcd, and both MPI libraries across them; and how ranks on
//! other nodes enter the job.

use cosched_api::JobRequest;
use cosched_tests::cluster::etcd::{Etcd, Security, USER};
use cosched_tests::cluster::jobs::stuck_in_finalize;
use cosched_tests::cluster::net::Net;
use cosched_tests::cluster::{Nodes, needs};
use cosched_tests::{procs, program, stderr, stdout, wait_until};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// Both libraries: the launcher's words for one rank on each of the nodes, and the barrier program.
fn both(net: &Net, nodes: &[usize]) -> Vec<(Vec<String>, Option<String>)> {
    vec![(net.openmpi(nodes), program("barrier-mpi")), (net.mpich(nodes), program("mpich/barrier-mpi"))]
}

/// Runs a command on the first node, within 20 s.
fn on_first(net: &Net, words: &[String], more: &[&str]) -> Output {
    let mut command = net.hosts[0].command("timeout");
    command.args(["-k", "1", "20"]).args(words).args(more);
    command.output().unwrap()
}

const MPI: [&str; 2] = ["mpirun.openmpi", "mpiexec.mpich"];

#[test]
fn both_mpi_libraries_run_across_nodes() {
    if !needs(&MPI) {
        return;
    }
    let net = Net::new(2);
    for (words, barrier) in both(&net, &[0, 1]) {
        let Some(barrier) = barrier else { continue };
        let few = [&barrier, "--iterations", "10", "--grain-us", "100", "--json"];
        let mut runs = std::iter::repeat_with(|| on_first(&net, &words, &few)).take(3);
        let out = runs.find(|out| !stuck_in_finalize(&words, out)).expect("an end within three runs");
        assert!(out.status.success(), "{words:?}\n{}{}", stdout(&out), stderr(&out));
        let result: serde_json::Value = serde_json::from_str(stdout(&out).trim()).unwrap();
        assert_eq!(result["members"], 2, "{result}");
        let names = on_first(&net, &words, &["hostname"]);
        let mut names: Vec<String> = stdout(&names).lines().map(str::to_owned).collect();
        names.sort();
        assert_eq!(names, ["n1", "n2"]);
    }
}

#[test]
fn a_node_can_be_cut_off_and_comes_back() {
    if !needs(&["ping"]) {
        return;
    }
    let net = Net::new(2);
    let reaches = || {
        let mut ping = net.hosts[0].command("ping");
        ping.args(["-c", "1", "-W", "1", "n2"]).output().unwrap().status.success()
    };
    assert!(wait_until(reaches));
    net.cut(1);
    assert!(!reaches());
    net.heal(1);
    assert!(wait_until(reaches));
}

#[test]
fn nothing_of_a_net_is_left() {
    if !needs(&[]) {
        return;
    }
    let net = Net::new(2);
    let (dir, name) = (net.dir.clone(), net.hosts[0].run(&["hostname"]));
    assert_eq!(name.trim(), "n1");
    let mut sleeper = net.hosts[1].command("sleep").arg("600").spawn().unwrap();
    let anchor = net.hosts[1].run(&["readlink", "/proc/self/ns/net"]);
    let namespace = PathBuf::from(anchor.trim());
    // It enters the namespace only after it was started.
    let entered = || procs::net_namespace(sleeper.id() as i32).as_ref() == Some(&namespace);
    assert!(wait_until(entered));
    drop(net);
    assert!(!dir.exists());
    assert!(!sleeper.wait().unwrap().success(), "it was killed");
    let inside = |pid: &i32| procs::net_namespace(*pid).as_ref() == Some(&namespace);
    assert_eq!(procs::all().iter().filter(|pid| inside(pid)).count(), 0);
}

/// Not a test of its own: the next test starts it in a separate process, and kills it.
#[test]
fn a_net_that_nobody_ends() {
    if std::env::var_os("CST_NET_UNENDED").is_none() {
        return;
    }
    let nodes = Nodes::start(1, |_, _| String::new());
    let id = nodes.node(0).cosched(&["run", "-d", "sleep", "600"]);
    println!("\nUNENDED {} {} {}", nodes.net.dir.display(), nodes.node(0).cgroup, stdout(&id).trim());
    std::thread::sleep(std::time::Duration::from_secs(60));
}

#[test]
fn what_a_killed_test_has_left_goes_before_the_next() {
    if !needs(&[]) {
        return;
    }
    let mut killed = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_net_that_nobody_ends", "--nocapture"])
        .env("CST_NET_UNENDED", "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(killed.stdout.take().unwrap()).lines().map_while(Result::ok);
    let line = lines.into_iter().find_map(|line| line.strip_prefix("UNENDED ").map(str::to_owned));
    killed.kill().unwrap();
    killed.wait().unwrap();
    let line = line.expect("the other process made its net");
    let [dir, cgroup, job] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
    assert!(PathBuf::from(dir).exists() && job == "1");
    let exists = || procs::cgroup_mounts().iter().any(|mount| mount.join(cgroup).exists());
    assert!(exists());
    let jobs = procs::pids_in(&procs::v2_mount().join(cgroup));
    assert!(!jobs.is_empty());
    drop(Net::new(1));
    assert!(!PathBuf::from(dir).exists() && !exists());
    assert!(wait_until(|| jobs.iter().all(|pid| procs::state(*pid).is_none())));
}

#[test]
fn ranks_on_other_nodes_get_the_environment_and_join_their_nodes_job() {
    if !needs(&MPI) {
        return;
    }
    // Two daemons of one machine each: a job 1 is registered at both, so that the ids are equal. Their times of
    // registration are not, so the ranks get the id alone.
    let nodes = Nodes::start(2, |_, _| "slot_length = \"20ms\"\n".to_owned());
    for words in [nodes.net.openmpi(&[0, 1]), nodes.net.mpich(&[0, 1])] {
        let there = register(&nodes.node(1).socket());
        let rank = nodes.net.dir.join("rank");
        let text = "#!/bin/sh\necho $1 $(hostname) $COSCHED_JOB $COSCHED_JOB_SUBMITTED $COSCHED_WAIT\n\
                    echo $1 $(hostname) $(grep ^0:: /proc/self/cgroup)\n";
        std::fs::write(&rank, text).unwrap();
        std::fs::set_permissions(&rank, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        // Once unchanged, and once without the time: then the job of the same id at the other node counts as the same.
        let mpirun = format!("timeout -k 1 20 {} {}", words.join(" "), rank.display());
        let script = format!(
            "{mpirun} other; unset COSCHED_JOB_SUBMITTED; \
             export OMPI_MCA_orte_launch_agent=\"$(echo \"$OMPI_MCA_orte_launch_agent\" | sed 's/COSCHED_JOB_SUBMITTED=[0-9]* //')\"; \
             {mpirun} same"
        );
        let all = ["--wait", "spin-block:50us", "--", "sh", "-c", script.as_str()];
        let run = nodes.node(0).spawn_run(&all).wait_with_output().unwrap();
        let (text, problems) = (stdout(&run), stderr(&run));
        assert!(run.status.success(), "{text}{problems}");
        let here = nodes.node(0).client().jobs(true).unwrap().jobs.last().unwrap().clone();
        assert_eq!(here.id, there, "the test's own premise");
        for name in ["n1", "n2"] {
            let line = format!("other {name} {} {} spin-block:50us\n", here.id, here.submitted_unix_ms);
            assert!(text.contains(&line), "{words:?}: no `{line}` in\n{text}{problems}");
        }
        let cgroup = |n: usize| format!("n{} 0::/{}/job-{}/gang\n", n + 1, nodes.node(n).cgroup, here.id);
        assert!(text.contains(&format!("other {}", cgroup(0))), "{text}");
        assert!(!text.contains(&format!("other {}", cgroup(1))), "another job of the same id was entered: {text}");
        assert!(text.contains(&format!("same {}", cgroup(1))), "{words:?}: the rank did not join: {text}{problems}");

        // The id alone, as a user passes it by hand, means the node's own job of this id.
        let mut by_hand = Command::new(nodes.net.agent());
        let library = cosched_tests::bin_dir().join("libcosched_preload.so");
        let words = format!("LD_PRELOAD={} COSCHED_JOB={there} cat /proc/self/cgroup", library.display());
        let out = by_hand.args(["n2", &words]).output().unwrap();
        assert!(stdout(&out).contains(&format!("/{}/job-{there}/gang", nodes.node(1).cgroup)), "{}", stdout(&out));
        let cosched = cosched_tests::bin_dir().join("cosched");
        let mut ssh = Command::new(nodes.net.agent());
        let out =
            ssh.args(["n2", &format!("{} join --job {there} -- cat /proc/self/cgroup", cosched.display())]).output();
        let out = out.unwrap();
        assert!(stdout(&out).contains(&format!("/{}/job-{there}/gang", nodes.node(1).cgroup)), "{}", stderr(&out));
    }
}

/// A job without processes.
fn register(socket: &std::path::Path) -> u64 {
    let request = JobRequest { command: vec!["ranks".into()], ..JobRequest::default() };
    cosched_api::Client::connect(socket).unwrap().register(&request).unwrap().id
}

#[test]
fn a_user_s_own_mpirun_options_work_under_cosched_run() {
    if !needs(&MPI[..1]) {
        return;
    }
    let nodes = Nodes::start(2, |_, _| String::new());
    let mut words: Vec<String> = vec!["--".into(), "timeout".into(), "20".into()];
    words.extend(nodes.net.openmpi(&[0, 1]));
    words.extend(["-x", "MINE=1", "sh", "-c", "echo $(hostname) $MINE $COSCHED_JOB"].map(str::to_owned));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let run = nodes.node(0).spawn_run(&words).wait_with_output().unwrap();
    let mut lines: Vec<String> = stdout(&run).lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines, ["n1 1 1", "n2 1 1"], "{}", stderr(&run));
    // The same by its full path, where Open MPI sets paths on the other node first; and through a user's own agent.
    let full: Vec<&str> =
        words.iter().map(|word| if *word == "mpirun.openmpi" { "/usr/bin/mpirun.openmpi" } else { word }).collect();
    let mut run = nodes.node(0).command("cosched");
    run.arg("run").args(full).env("OMPI_MCA_orte_launch_agent", "env THEIRS=2 orted");
    let run = run.output().unwrap();
    let mut lines: Vec<String> = stdout(&run).lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines, ["n1 1 2", "n2 1 2"], "{}", stderr(&run));
}

#[test]
fn etcd_with_tls_and_users_lets_in_who_has_both() {
    if !needs(&["etcd", "etcdctl", "openssl"]) {
        return;
    }
    let net = Net::new(1);
    let mut etcd = Etcd::start(&net.hosts[0], Security::TlsAndUsers);
    let put = |etcd: &Etcd, key: &str| etcd.ctl_as_user(&["put", key, "1"]);
    assert!(put(&etcd, "/cosched/x").status.success());
    assert!(stderr(&put(&etcd, "/other/x")).contains("permission denied"));
    let no_user = etcd.ctl(&["get", "/cosched/x"]);
    assert!(!no_user.status.success(), "{}", stdout(&no_user));
    let wrong = etcd.ctl(&[&format!("--user={USER}:wrong"), "get", "/cosched/x"]);
    assert!(stderr(&wrong).contains("invalid user ID or password"), "{}", stderr(&wrong));
    let user = format!("--user={USER}:word");
    let stranger = etcd.ctl_with("stranger", &[&user, "get", "/cosched/x", "--command-timeout=2s"]);
    assert!(!stranger.status.success() && stdout(&stranger).is_empty(), "another signer's certificate");
    // A power failure, and a hang.
    etcd.kill();
    assert!(!etcd.ctl_as_user(&["get", "/cosched/x", "--command-timeout=1s"]).status.success());
    etcd.restart();
    assert_eq!(stdout(&etcd.ctl_as_user(&["get", "/cosched/x"])), "/cosched/x\n1\n");
    etcd.freeze();
    assert!(!etcd.ctl_as_user(&["get", "/cosched/x", "--command-timeout=1s"]).status.success());
    etcd.thaw();
    assert!(wait_until(|| etcd.ctl_as_user(&["get", "/cosched/x"]).status.success()));
    let config = etcd.config();
    for key in ["endpoints", "ca_file", "cert_file", "key_file", "user", "password_file"] {
        assert!(config.contains(&format!("{key} = ")), "{config}");
    }
}

#[test]
fn a_plain_etcd_serves_another_node_until_it_is_moved_away() {
    if !needs(&["etcd", "etcdctl"]) {
        return;
    }
    let net = Net::new(2);
    let etcd = Etcd::start(&net.hosts[1], Security::Plain);
    let get = || {
        let mut command = net.hosts[0].command("timeout");
        command.args(["5", "etcdctl", "--endpoints", &etcd.endpoint(), "--dial-timeout=1s", "--command-timeout=2s"]);
        command.args(["get", "a"]).env("ETCDCTL_API", "3").output().unwrap().status.success()
    };
    assert!(wait_until(get));
    net.cut(1);
    assert!(!get());
    net.heal(1);
    assert!(wait_until(get));
}
