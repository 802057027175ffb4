//! Clusters of real daemons on a real etcd: jobs that span nodes, from `cosched run` to their end, and whatever fails
//! meanwhile.

use cosched_api::{Class, ErrorCode, JobState};
use cosched_tests::cluster::jobs::{SPIN, stuck_in_finalize, wait_for_death, without};
use cosched_tests::cluster::{Cluster, needs};
use cosched_tests::{clean_look, procs, program, stderr, stdout, wait_until};
use std::time::{Duration, Instant};

const TOOLS: [&str; 2] = ["etcd", "openssl"];

/// The CPU time of a job on each of two nodes in the next `ms` milliseconds, in microseconds.
fn used_in(cluster: &Cluster, jobs: &[u64], ms: u64) -> Vec<[u64; 2]> {
    let read = || {
        let of = |id: &u64| [0, 1].map(|n| procs::cpu_usec(&cluster.node(n).v2_job(*id)));
        jobs.iter().map(of).collect::<Vec<_>>()
    };
    let before = read();
    std::thread::sleep(Duration::from_millis(ms));
    read().iter().zip(before).map(|(now, then)| [now[0] - then[0], now[1] - then[1]]).collect()
}

/// One rank on each of two nodes, as one job from its beginning to its end. False where MPICH did not finish.
fn spans(cluster: &Cluster, words: &[String], barrier: &str) -> bool {
    let mut all = vec!["--nodes", "n1:1,n2:1", "--", "timeout", "-k", "1", "60"];
    all.extend(words.iter().map(String::as_str));
    all.extend([barrier, "--iterations", "4000", "--grain-us", "500", "--json"]);
    let run = cluster.node(0).spawn_run(&all);
    let mut id = None;
    let both = wait_until(|| {
        id = cluster.node(1).client().jobs(false).unwrap().jobs.first().map(|job| job.id);
        id.is_some_and(|id| (0..2).all(|n| !cluster.node(n).job_pids(id).is_empty()))
    });
    let out = run.wait_with_output().unwrap();
    let stuck = stuck_in_finalize(words, &out);
    assert!(stuck || out.status.success(), "{words:?}\n{}{}", stdout(&out), stderr(&out));
    assert!(both, "the ranks of the second node are not in the job\n{}", stderr(&out));
    let result: serde_json::Value = serde_json::from_str(stdout(&out).lines().next().unwrap_or_default()).unwrap();
    assert_eq!(result["members"], 2, "{result}");
    let id = id.expect("it was seen");
    assert!(wait_until(|| cluster.node(1).state(id) == Some(JobState::Ended) && cluster.is_clear_of(id)));
    if !stuck {
        cluster.node(1).job_when(id, |job| job.exit.is_some_and(|exit| exit.code == Some(0)));
    }
    !stuck
}

#[test]
fn mpi_jobs_span_nodes_without_being_told_where_they_run() {
    if !needs(&[&TOOLS[..], &["mpirun.openmpi", "mpiexec.mpich"]].concat()) {
        return;
    }
    let cluster = Cluster::met(2, "");
    let open_mpi = without(cluster.net().openmpi(&[0, 1]), "--host");
    let mpich = without(cluster.net().mpich(&[0, 1]), "-hosts");
    let open_mpi_5 = cluster.net().openmpi_5(&[0, 1]).map(|words| without(words, "--host"));
    let all =
        [(Some(open_mpi), "barrier-mpi"), (open_mpi_5, "openmpi5/barrier-mpi"), (Some(mpich), "mpich/barrier-mpi")];
    for (words, barrier) in all {
        let Some(words) = words else { continue };
        let Some(barrier) = program(barrier) else { continue };
        assert!((0..3).any(|_| spans(&cluster, &words, &barrier)), "{words:?} does not end");
    }
}

#[test]
fn gangs_over_two_nodes_take_turns_and_obey_from_anywhere() {
    if !needs(&TOOLS) {
        return;
    }
    let cluster = Cluster::met(2, "sharing = \"strict\"\n");
    let [first, second] = [cluster.gang(&[0, 1], SPIN, &[]), cluster.gang(&[0, 1], SPIN, &[])];
    // Each has its turns on both nodes, and in a turn the other one does not run: together they use no more than one CPU.
    clean_look(|| {
        let used = used_in(&cluster, &[first, second], 3000);
        let fair = (0..2).all(|n| used[0][n] * 3 > used[1][n] && used[1][n] * 3 > used[0][n] && used[0][n] > 100_000);
        if fair { Ok(()) } else { Err(format!("{used:?}")) }
    });
    // In the same slots on both nodes: a job that is frozen on one node is frozen on the other, too, except during a switch.
    let frozen = |n: usize| [first, second].map(|id| procs::is_frozen(&cluster.node(n).v2_job(id)));
    let (mut same, mut differ) = (0, 0);
    while same + differ < 200 {
        let (before, there, after) = (frozen(0), frozen(1), frozen(0));
        // If a switch happened between the two checks, they tell nothing.
        if before == after {
            if there == before { same += 1 } else { differ += 1 }
        }
        std::thread::sleep(Duration::from_millis(7));
    }
    assert!(differ * 10 < same, "{same} looks the same, {differ} differ");
    // Stopped, resumed, lowered and killed from the other node.
    let (from, name) = (cluster.node(1), first.to_string());
    assert!(from.cosched(&["suspend", &name]).status.success());
    cluster.node(0).job_when(first, |job| job.state == JobState::Suspended);
    assert!(wait_until(|| (0..2).all(|n| procs::is_frozen(&cluster.node(n).v2_job(first)))));
    assert!(from.cosched(&["resume", &name]).status.success());
    assert!(wait_until(|| used_in(&cluster, &[first], 200)[0].iter().all(|used| *used > 20_000)));
    assert!(from.cosched(&["class", &name, "standby"]).status.success());
    cluster.node(0).job_when(first, |job| job.class == Class::Standby);
    assert!(from.cosched(&["kill", &name, &second.to_string()]).status.success());
    assert!(wait_until(|| [first, second].iter().all(|id| cluster.is_clear_of(*id))));
    assert!(wait_until(|| from.state(second) == Some(JobState::Ended)));
}

#[test]
fn the_store_may_go_and_come_back() {
    if !needs(&TOOLS) {
        return;
    }
    let mut cluster = Cluster::met(2, "");
    let id = cluster.gang(&[0, 1], SPIN, &[]);
    let runs = |cluster: &Cluster| wait_until(|| used_in(cluster, &[id], 300)[0].iter().all(|used| *used > 20_000));
    let contact = |cluster: &Cluster, there: bool| {
        let answers = |n: usize| cluster.node(n).client().status().unwrap().cluster.unwrap().store_answers;
        assert!(wait_until(|| (0..2).all(|n| answers(n) == there)), "contact with the store: not {there}");
    };
    for way in ["killed", "hangs", "cut off"] {
        match way {
            "killed" => cluster.etcd.kill(),
            "hangs" => cluster.etcd.freeze(),
            _ => cluster.cut_etcd(),
        }
        contact(&cluster, false);
        // Longer than the lease.
        std::thread::sleep(Duration::from_secs(7));
        assert!(runs(&cluster), "{way}: the job stands still");
        let status = cluster.node(0).client().status().unwrap();
        assert!(status.warnings.iter().any(|warning| warning.what.contains("store")), "{:?}", status.warnings);
        match way {
            "killed" => cluster.etcd.restart(),
            "hangs" => cluster.etcd.thaw(),
            _ => cluster.heal_etcd(),
        }
        contact(&cluster, true);
        assert!(runs(&cluster), "{way}");
        assert_eq!(cluster.node(1).state(id), Some(JobState::Running), "{way}");
        let slots = |n: usize| cluster.node(n).client().status().unwrap().cluster.unwrap().plan_in_use.is_some();
        assert!(wait_until(|| (0..2).all(slots)), "{way}: no slots again");
    }
    // Earlier requests are still known, and new ones are carried out.
    let other = cluster.gang(&[0, 1], SPIN, &[]);
    assert!(other > id);
    for id in [id, other] {
        let out = cluster.node(0).cosched(&["kill", "-9", &id.to_string()]);
        assert!(out.status.success(), "{}", stderr(&out));
        assert!(wait_until(|| cluster.is_clear_of(id)));
    }
}

#[test]
fn a_daemon_that_dies_finds_its_jobs_and_one_that_stays_away_is_given_up() {
    if !needs(&TOOLS) {
        return;
    }
    let mut cluster = Cluster::met(2, "");
    let rule = |rule: &'static str| ["--on-node-loss", rule, "--nodes", "n1:1,n2:1", "--", "sleep", "600"];
    let [killed, kept] = ["kill", "keep"].map(|what| cluster.node(0).detach(&rule(what)));
    let script = "echo begun $COSCHED_NODES; cat $HYDRA_HOST_FILE $OMPI_MCA_orte_default_hostfile; echo $OMPI_MCA_orte_launch_agent; exec sleep 600";
    let again = ["--on-node-loss", "requeue", "--nodes", "n1:1,n2:1", "--", "sh", "-c", script];
    let requeued = cluster.node(0).detach(&again);
    let all = [killed, kept, requeued];
    assert!(wait_until(|| all.iter().all(|id| (0..2).all(|n| cluster.node(n).v2_job(*id).exists()))));
    assert!(wait_until(|| !cluster.node(0).job_pids(kept).is_empty()), "job {kept} does not begin");
    let pid = cluster.node(0).job_pids(kept);
    // Back soon: nothing has happened.
    for n in 0..2 {
        cluster.node_mut(n).kill_daemon();
        cluster.node_mut(n).restart();
        assert!(wait_until(|| cluster.node(n).names().len() == 2));
        assert!(all.iter().all(|id| cluster.node(n).state(*id) == Some(JobState::Running)));
    }
    assert_eq!(cluster.node(0).job_pids(kept), pid);
    // Away for longer: each job is treated by its rule.
    cluster.node_mut(1).kill_daemon();
    let first = cluster.node(0);
    assert!(wait_for_death(|| first.state(killed) == Some(JobState::Ended)), "{:?}", first.state(killed));
    assert!(wait_until(|| first.state(requeued) == Some(JobState::Waiting)), "{:?}", first.state(requeued));
    assert_eq!(first.state(kept), Some(JobState::Running));
    assert_eq!(first.job_pids(kept), pid);
    // First its processes end, then it waits.
    assert!(wait_until(|| first.job(requeued).waits_for.is_some_and(|why| why.contains("node"))));
    cluster.node_mut(1).restart();
    let first = cluster.node(0);
    assert!(wait_until(|| first.state(requeued) == Some(JobState::Running) && !first.job_pids(requeued).is_empty()));
    assert_eq!(first.job(requeued).restarts, 1);
    // Its launcher's messages about the loss come in between, or at the end.
    let log = || {
        let whole = stdout(&first.cosched(&["log", &requeued.to_string()]));
        whole.lines().filter(|line| !line.starts_with("cosched: ")).map(|line| format!("{line}\n")).collect::<String>()
    };
    // It is told its nodes as it was the first time.
    assert!(wait_until(|| log().lines().count() == 12), "{}", log());
    // Looked at earlier, the script's `cat` may just be ending.
    for pid in first.job_pids(requeued) {
        let cgroups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
        assert!(!cgroups.contains("/live-"), "it would hold the kernel agent up: {cgroups}");
    }
    let lines: Vec<String> = log().lines().map(str::to_owned).collect();
    assert_eq!(lines[..6], lines[6..]);
    let all = lines[..5].concat();
    assert!(["begun n", "n1:1", "n2:1", "n1 slots=1", "n2 slots=1"].iter().all(|words| all.contains(words)), "{all}");
    assert!(lines[5].starts_with(&format!("env COSCHED_JOB={requeued} ")), "{}", lines[5]);
    // The others plan with its node as soon as they hear from it; it ends what it still runs once it has read the cluster's
    // state.
    assert!(
        wait_until(|| !cluster.node(1).v2_job(killed).exists()),
        "job {killed} was given up, and is left on its node"
    );
    for id in [kept, requeued] {
        first.cosched(&["kill", "-9", &id.to_string()]);
        assert!(wait_until(|| cluster.is_clear_of(id) && cluster.node(1).state(id) == Some(JobState::Ended)));
    }
}

#[test]
fn a_node_that_is_cut_off_for_half_a_minute_comes_back_clean() {
    if !needs(&TOOLS) {
        return;
    }
    let cluster = Cluster::met(2, "");
    let id = cluster.gang(&[0, 1], SPIN, &[]);
    let own = cluster.node(1).detach(&["--", "sh", "-c", SPIN]);
    assert!(wait_until(|| !cluster.node(1).job_pids(own).is_empty()));
    cluster.cut(1);
    let cut = Instant::now();
    assert!(wait_until(|| cluster.node(0).names() == ["n1"]), "it is not silent");
    let gone = || cluster.node(0).client().status().unwrap().nodes.unwrap().into_iter().find(|node| !node.alive);
    let left = || gone().is_some_and(|node| node.name == "n2" && node.gone_since_unix_ms.is_some());
    assert!(wait_for_death(left), "it is not given up");
    let listed = cluster.node(0).cosched(&["nodes"]);
    assert!(
        stdout(&listed).lines().any(|line| line.starts_with("n2 ") && line.contains("gone ")),
        "{}",
        stdout(&listed)
    );
    assert!(wait_until(|| cluster.node(0).state(id) == Some(JobState::Ended)), "the job waits for a node that is gone");
    // On the node itself all jobs continue meanwhile.
    let used = |id: u64| procs::cpu_usec(&cluster.node(1).v2_job(id));
    let before = used(own) + used(id);
    assert!(wait_until(|| used(own) + used(id) > before + 200_000), "the node's jobs stand still");
    std::thread::sleep(Duration::from_secs(30).saturating_sub(cut.elapsed()));
    cluster.heal(1);
    assert!(wait_until(|| cluster.node(1).names().len() == 2), "it does not come back");
    assert!(wait_until(|| gone().is_none()), "it is there and gone");
    assert!(wait_until(|| cluster.is_clear_of(id)), "what was given up is left");
    // It was given up with its node, like every job whose only node is lost.
    assert!(
        wait_until(|| cluster.node(0).state(own) == Some(JobState::Ended) && !cluster.node(1).v2_job(own).exists())
    );
    let new = cluster.gang(&[0, 1], SPIN, &[]);
    cluster.node(1).cosched(&["kill", "-9", &new.to_string()]);
    assert!(wait_until(|| cluster.is_clear_of(new)));
}

#[test]
fn memory_is_never_oversubscribed_and_queues_have_their_limits() {
    if !needs(&TOOLS) {
        return;
    }
    let queues = "memory = \"1G\"\n[[queue]]\nname = \"day\"\n[[queue]]\nname = \"small\"\nmemory_max = \"100M\"\n\
                  time_max = \"2s\"\n[[queue]]\nname = \"alone\"\nexclusive = true\n";
    let cluster = Cluster::met(2, queues);
    let node = cluster.node(0);
    let wants = |size: &'static str| ["--cpus", "1", "--mem", size, "--", "sleep", "600"];
    let first = node.detach(&wants("700M"));
    let mut second = node.spawn_run(&wants("400M"));
    let jobs = || node.client().jobs(false).unwrap().jobs;
    assert!(wait_until(|| jobs().len() == 2));
    let waiting = jobs()[1].clone();
    assert_eq!(waiting.state, JobState::Waiting);
    assert!(waiting.waits_for.as_ref().is_some_and(|why| why.contains("memory")), "{waiting:?}");
    // A small one that came later does not overtake it for ever, and one that can never fit is refused.
    let never = node.cosched(&["run", "--cpus", "1", "--mem", "2G", "--", "true"]);
    assert!(!never.status.success());
    assert!(stderr(&never).contains("memory"), "{}", stderr(&never));
    node.cosched(&["kill", "-9", &first.to_string()]);
    assert!(wait_until(|| node.state(waiting.id) == Some(JobState::Running) && !node.job_pids(waiting.id).is_empty()));
    node.cosched(&["kill", "-9", &waiting.id.to_string()]);
    let said = second.wait().unwrap();
    assert_eq!(said.code(), Some(137));

    // A job that uses more than it declared: later jobs wait for its memory, although its declaration is small.
    let take = "import time; block = b\"x\" * (900 << 20); time.sleep(600)";
    let greedy = node.detach(&["--cpus", "1", "--", "python3", "-c", take]);
    let seen = || node.job(greedy).nodes[0].memory_bytes.is_some_and(|bytes| bytes > 800 << 20);
    assert!(wait_until(seen), "{:?}", node.job(greedy));
    let modest = node.detach(&wants("300M"));
    assert_eq!(node.state(modest), Some(JobState::Waiting));
    node.cosched(&["kill", "-9", &greedy.to_string()]);
    assert!(wait_until(|| node.state(modest) == Some(JobState::Running)));

    // Limits of queues.
    let refused = |args: &[&str], word: &str| {
        let out = node.cosched(&[&["run"], args].concat());
        assert!(!out.status.success() && stderr(&out).contains(word), "{args:?}: {}", stderr(&out));
    };
    refused(&["--queue", "small", "--cpus", "1", "--mem", "200M", "--", "true"], "queue");
    refused(&["--queue", "nigth", "--", "true"], "day, small, alone");
    let over = node.spawn_run(&["--queue", "small", "--cpus", "1", "--mem", "10M", "--", "sleep", "600"]);
    let over = over.wait_with_output().unwrap();
    assert_eq!(over.status.code(), Some(143), "the time limit, politely at first");
    assert!(stderr(&over).contains("was ended: time limit of its queue"), "{}", stderr(&over));
    let alone = node.detach(&["--queue", "alone", "--cpus", "1", "--", "sleep", "600"]);
    assert_eq!(node.state(alone), Some(JobState::Waiting), "others are there");
    node.cosched(&["kill", "-9", &modest.to_string()]);
    assert!(wait_until(|| node.state(alone) == Some(JobState::Running)));
    let late = node.detach(&wants("10M"));
    assert_eq!(node.state(late), Some(JobState::Waiting), "the node is another's alone");
    node.cosched(&["kill", "-9", &alone.to_string(), &late.to_string()]);
    assert!(wait_until(|| cluster.is_clear_of(alone) && node.state(late) == Some(JobState::Ended)));
}

#[test]
fn what_cannot_be_is_refused_with_a_reason_and_nothing_changes() {
    if !needs(&TOOLS) {
        return;
    }
    let cluster = Cluster::met(2, "");
    let node = cluster.node(0);
    for (args, word, code) in [
        (&["--nodes", "n1:1,n9:1", "--", "true"][..], "there is no node n9", 125),
        (&["--nodes", "n1:1,n1:1", "--", "true"], "named twice", 125),
        (&["--nodes", "n1:9", "--", "true"], "needs 9 CPUs", 125),
        (&["--cpus", "3", "--", "true"], "3 CPUs", 125),
        (&["--nodes", "n1:x", "--", "true"], "not a number of CPUs", 125),
        (&["--nodes", "n1:1", "--cpus", "1", "--", "true"], "cannot be used with", 125),
    ] {
        let out = node.cosched(&[&["run"], args].concat());
        assert!(stderr(&out).contains(word), "{args:?}: {}", stderr(&out));
        assert_eq!(out.status.code(), Some(code), "{args:?}");
    }
    assert!(node.client().jobs(true).unwrap().jobs.is_empty());
    let ceiling = node.cosched(&["policy", "--ceiling", "1.5"]);
    assert_eq!(ceiling.status.code(), Some(6), "{}", stderr(&ceiling));
    // All or nothing, where it fits.
    let id = node.detach(&["--cpus", "2", "--", "sleep", "600"]);
    let known = || cluster.node(1).client().job(id).is_ok_and(|job| job.nodes.len() == 2);
    assert!(wait_until(known), "the other node does not hear of job {id} on both");
    // A job that another daemon has registered is known here by the same number, and only its owner can change it.
    let other = cluster.node(1);
    let setpriv = |args: &[&str]| {
        let mut command = other.command("setpriv");
        let cosched = cosched_tests::bin_dir().join("cosched");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]).arg(cosched).args(args);
        command.output().unwrap()
    };
    for args in [&["kill", "-9", "1"][..], &["suspend", "1"], &["class", "1", "express"], &["nodes", "--drain", "n1"]] {
        let out = setpriv(args);
        assert_eq!(out.status.code(), Some(5), "{args:?}: {}", stderr(&out));
    }
    assert_eq!(other.client().job(id).unwrap().state, JobState::Running);
    let e = other.client().job(99).unwrap_err();
    assert!(matches!(e, cosched_api::ClientError::Refused(body) if body.code == ErrorCode::NotFound));
    // A node that drains gets no new jobs.
    assert!(node.cosched(&["nodes", "--drain", "n2"]).status.success());
    let waits = node.detach(&["--nodes", "n2:1", "--", "sleep", "600"]);
    assert_eq!(node.state(waits), Some(JobState::Waiting));
    assert!(wait_until(|| stdout(&other.cosched(&["nodes"])).contains("drained")));
    assert!(node.cosched(&["nodes", "--undrain", "n2"]).status.success());
    assert!(wait_until(|| node.state(waits) == Some(JobState::Running)));
    node.cosched(&["kill", "-9", &id.to_string(), &waits.to_string()]);
    assert!(wait_until(|| cluster.is_clear_of(id) && cluster.is_clear_of(waits)));
}

#[test]
fn a_gang_that_sleeps_on_all_its_nodes_gives_its_slots_up() {
    if !needs(&TOOLS) {
        return;
    }
    let cluster = Cluster::met(2, "sharing = \"strict\"\nidle_after = \"1s\"\n");
    let fifo = cluster.net().dir.join("wake");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let script = format!("cat {} > /dev/null; {SPIN}", fifo.display());
    let sleeper = cluster.node(0).detach(&["--nodes", "n1:1,n2:1", "--", "sh", "-c", &script]);
    let busy = cluster.gang(&[0, 1], SPIN, &[]);
    assert!(wait_until(|| cluster.node(1).state(sleeper) == Some(JobState::Asleep)), "it does not fall asleep");
    std::fs::write(&fifo, "go").unwrap();
    assert!(wait_until(|| cluster.node(1).state(sleeper) == Some(JobState::Running)), "it does not wake");
    cluster.node(1).cosched(&["kill", "-9", &sleeper.to_string(), &busy.to_string()]);
    assert!(wait_until(|| cluster.is_clear_of(sleeper) && cluster.is_clear_of(busy)));
}
