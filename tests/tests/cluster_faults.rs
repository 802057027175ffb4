//! What dies or is lost in a cluster: a rank, a daemon in its slot, the store's data, a disk.

use cosched_api::JobState;
use cosched_tests::cluster::jobs::{PULSE, SPIN, until_ended, without};
use cosched_tests::cluster::{Cluster, Node, needs};
use cosched_tests::{procs, program as program_of, stderr, stdout, wait_until};
use rustix::process::Signal;
use std::process::Stdio;
use std::time::Duration;

const TOOLS: [&str; 2] = ["etcd", "openssl"];

#[test]
fn a_store_that_lost_its_data_ends_no_job_and_gives_no_number_twice() {
    if !needs(&TOOLS) {
        return;
    }
    let mut cluster = Cluster::met(2, "");
    let (gang, own) = cluster.gang_and_own();
    let before = cluster.first_pids(gang, own);
    // One daemon sees the loss, one comes back after it: for both, numbers and plans belong to another life of the
    // store.
    cluster.node_mut(1).kill_daemon();
    cluster.etcd.lose_data();
    assert!(wait_until(|| cluster.node(0).log().contains("does not know this job")), "it is not said");
    cluster.node_mut(1).restart();
    cluster.until_met();
    assert!(wait_until(|| cluster.node(1).log().contains("does not know this job")), "it is not said");
    let later = cluster.gang(&[0, 1], SPIN, &[]);
    assert!(later > own, "job {later} has the number of another one that lives");
    let slots = |n: usize| cluster.node(n).client().status().unwrap().cluster.unwrap().plan_in_use.is_some();
    assert!(wait_until(|| (0..2).all(slots)), "no slots for gangs in the new cluster");
    assert!(cluster.computes(later, &[0, 1]));
    assert!(cluster.computes(gang, &[0, 1]) && cluster.computes(own, &[1]), "an old job stands still");
    assert_eq!(cluster.first_pids(gang, own), before);
    for n in 0..2 {
        let jobs = cluster.node(n).client().jobs(true).unwrap().jobs;
        // Each node shows the jobs of the old cluster that still run on it.
        let shown = if n == 0 { vec![gang, later] } else { vec![gang, own, later] };
        assert_eq!(jobs.iter().map(|job| job.id).collect::<Vec<_>>(), shown, "node {n}");
    }
    // The new cluster works, and ends only its own jobs.
    cluster.end(1, &[later]);
    assert!(wait_until(|| cluster.all_say(later, JobState::Ended)));
    assert_eq!(cluster.first_pids(gang, own), before);
    // The old ones can be ended, too, on their nodes.
    for (n, id) in [(0, gang), (1, gang), (1, own)] {
        let out = cluster.node(n).cosched(&["kill", "-9", &id.to_string()]);
        assert!(out.status.success(), "{}", stderr(&out));
        assert!(wait_until(|| !cluster.node(n).v2_job(id).exists()), "job {id} is left on node {n}");
    }
    let out = cluster.node(0).cosched(&["run", "--cpus", "2", "--", "echo", "works"]);
    assert_eq!(stdout(&out), "works\n", "{}", stderr(&out));
}

#[test]
fn a_rank_that_is_killed_takes_its_job_along_and_nothing_else() {
    if !needs(&[&TOOLS[..], &["mpirun.openmpi", "mpiexec.mpich"]].concat()) {
        return;
    }
    let cluster = Cluster::met(2, "");
    let others = [cluster.gang(&[0, 1], PULSE, &[]), cluster.node(1).detach(&["--", "sh", "-c", PULSE])];
    let before = cluster.pids(&others[..1]);
    let open_mpi = without(cluster.net().openmpi(&[0, 1]), "--host");
    let mpich = without(cluster.net().mpich(&[0, 1]), "-hosts");
    let (comm, helpers) = ("barrier-mpi", ["orted", "hydra_pmi_proxy", "mpirun.openmpi", "mpiexec.mpich"]);
    // For each library, a rank on the other node, and one beside its launcher.
    for (words, program, victim) in
        [(&open_mpi, "barrier-mpi", 1), (&mpich, "mpich/barrier-mpi", 1), (&mpich, "mpich/barrier-mpi", 0)]
    {
        let Some(barrier) = program_of(program) else { continue };
        let mut all = vec!["--nodes", "n1:1,n2:1", "--", "timeout", "-k", "1", "60"];
        all.extend(words.iter().map(String::as_str));
        all.extend([barrier.as_str(), "--iterations", "1000000", "--grain-us", "500"]);
        let run = cluster.node(0).spawn_run(&all);
        let id = || {
            cluster.node(0).client().jobs(false).unwrap().jobs.iter().map(|job| job.id).find(|id| !others.contains(id))
        };
        let ranks = |n: usize| {
            let pids = id().map(|id| cluster.node(n).job_pids(id)).unwrap_or_default();
            pids.into_iter().filter(|pid| procs::comm(*pid).as_deref() == Some(comm)).collect::<Vec<_>>()
        };
        assert!(wait_until(|| (0..2).all(|n| ranks(n).len() == 1)), "the ranks do not come");
        let id = id().expect("it runs");
        assert!(wait_until(|| (0..2).all(|n| cluster.is_planned(n, id))));
        procs::signal(ranks(victim)[0], Signal::KILL);
        let what = format!("`cosched run` of a job with a dead rank ({program}, node {victim})");
        let out = until_ended(run, &what);
        assert!(!out.status.success(), "{what} says that all is well\n{}", stdout(&out));
        assert!(wait_until(|| cluster.is_clear_of(id)), "a cgroup of it is left");
        assert!(wait_until(|| cluster.all_say(id, JobState::Ended)));
        for node in cluster.nodes() {
            node.job_when(id, |job| job.exit.is_some_and(|exit| exit.code != Some(0)));
        }
        assert!(wait_until(|| (0..2).all(|n| !cluster.is_planned(n, id))), "it has a cell still");
        let left = || helpers.iter().chain([&comm]).flat_map(|name| cluster.processes_named(name)).collect::<Vec<_>>();
        assert!(wait_until(|| left().is_empty()), "{what}: {:?} are left", left());
        assert!(others.iter().all(|id| cluster.all_say(*id, JobState::Running)));
    }
    assert!(cluster.computes(others[0], &[0, 1]) && cluster.computes(others[1], &[1]));
    let first = |pids: &[Vec<i32>]| pids.iter().map(|pids| pids[0]).collect::<Vec<_>>();
    assert_eq!(first(&cluster.pids(&others[..1])), first(&before));
    cluster.end(1, &others);
}

#[test]
fn what_is_held_for_want_of_memory_needs_no_store_to_go_on() {
    if !needs(&[&TOOLS[..], &["python3"]].concat()) {
        return;
    }
    let cluster = Cluster::met(2, "memory = \"1G\"\n");
    let node = cluster.node(0);
    let first = node.detach(&["--cpus", "1", "--mem", "600M", "--", "sleep", "600"]);
    let take = "block = b'x' * (600 << 20)\nwhile True: pass";
    let greedy = node.detach(&["--cpus", "1", "--mem", "100M", "--", "python3", "-c", take]);
    assert!(wait_until(|| node.state(greedy) == Some(JobState::Waiting)), "{:?}", node.job(greedy));
    let used = || procs::cpu_usec(&node.v2_job(greedy));
    let stands_still = || {
        let before = used();
        std::thread::sleep(Duration::from_secs(2));
        used() == before
    };
    assert!(wait_until(stands_still), "it runs beside the other one, with more memory than there is");
    cluster.cut_etcd();
    let slots = || node.client().status().unwrap().cluster.unwrap().plan_in_use.is_some();
    assert!(wait_until(|| !slots()), "the lease is out, and the plan is in use");
    assert!(stands_still(), "it is let go while the other one has the memory");
    procs::signal(node.job_pids(first)[0], Signal::KILL);
    let before = used();
    assert!(wait_until(|| used() > before + 100_000), "nobody else is there, and it stands still");
    assert!(!node.client().status().unwrap().cluster.unwrap().store_answers, "the test's own premise");
    cluster.heal_etcd();
    assert!(wait_until(slots) && wait_until(|| node.state(greedy) == Some(JobState::Running)));
    assert!(cluster.computes(greedy, &[0]), "{:?}", node.job(greedy));
    node.cosched(&["kill", "-9", &greedy.to_string()]);
    assert!(wait_until(|| cluster.is_clear_of(greedy) && cluster.all_say(first, JobState::Ended)));
}

#[test]
fn daemons_die_in_their_slots_and_gangs_over_nodes_go_on() {
    if !needs(&TOOLS) {
        return;
    }
    let mut cluster = Cluster::met(2, "sharing = \"strict\"\nlease = \"1s\"\n");
    assert!(cluster.node(0).cosched(&["policy", "--slot", "300ms"]).status.success());
    let gangs = [0, 1].map(|_| cluster.gang(&[0, 1], SPIN, &[]));
    let before = cluster.pids(&gangs);
    let frozen = |cluster: &Cluster, n: usize, id: u64| procs::is_frozen(&cluster.node(n).v2_job(id));
    let turns = |cluster: &Cluster| {
        gangs
            .iter()
            .all(|id| (0..2).all(|n| wait_until(|| frozen(cluster, n, *id)) && wait_until(|| !frozen(cluster, n, *id))))
    };
    assert!(turns(&cluster), "the gangs do not take turns");
    // On the node of the launchers and on the other; if the guard is killed, too, only the kernel's last resort is
    // left.
    for (at, offset_ms, guard_too) in [(1, 0, false), (0, 150, true)] {
        std::thread::sleep(Duration::from_millis(offset_ms));
        let safety = cluster.node(at).client().status().unwrap().safety;
        assert!(safety.kernel_agent, "{:?}", cluster.node(at).client().status().unwrap().warnings);
        if guard_too {
            procs::signal(safety.guard_pid.expect("a guard"), Signal::KILL);
        }
        cluster.node_mut(at).kill_daemon();
        // Nothing waits for the dead daemon: for longer than any lease, jobs get their CPU, in slots or without.
        let free = |id: &u64| wait_until(|| !frozen(&cluster, at, *id)) && cluster.computes(*id, &[0, 1]);
        assert!(gangs.iter().all(free), "node {at}, with its guard {guard_too}: something stays stopped");
        cluster.node_mut(at).restart();
        cluster.until_met();
        assert_eq!(cluster.pids(&gangs), before, "node {at}, with its guard {guard_too}");
        assert!(gangs.iter().all(|id| wait_until(|| cluster.all_say(*id, JobState::Running))));
        assert!(turns(&cluster), "node {at}, with its guard {guard_too}: no turns again");
    }
    cluster.end(0, &gangs);
    assert!(gangs.iter().all(|id| wait_until(|| cluster.all_say(*id, JobState::Ended))));
}

#[test]
fn daemons_are_replaced_one_after_the_other_under_running_gangs() {
    if !needs(&[&TOOLS[..], &["etcdctl"]].concat()) {
        return;
    }
    let mut cluster = Cluster::met(3, "sharing = \"strict\"\n");
    let on = [0, 1, 2];
    let gangs = [0, 1].map(|_| cluster.gang(&on, PULSE, &[]));
    let own = cluster.node(2).detach(&["--", "sh", "-c", PULSE]);
    assert!(wait_until(|| !cluster.node(2).job_pids(own).is_empty()), "job {own} does not begin");
    let stopped = cluster.gang(&[1, 2], PULSE, &[]);
    assert!(cluster.node(0).cosched(&["suspend", &stopped.to_string()]).status.success());
    let frozen = |cluster: &Cluster, n: usize, id: u64| procs::is_frozen(&cluster.node(n).v2_job(id));
    assert!(wait_until(|| frozen(&cluster, 1, stopped) && frozen(&cluster, 2, stopped)));
    let first = |cluster: &Cluster| {
        let of = |id: u64| on.iter().map(|n| cluster.node(*n).job_pids(id).first().copied()).collect::<Vec<_>>();
        [gangs[0], gangs[1], own, stopped].map(of)
    };
    let before = first(&cluster);
    let mut launcher = cluster.node(1).spawn_run(&["--nodes", "n1:1,n2:1", "--", "sh", "-c", PULSE]);
    let job = |cluster: &Cluster| cluster.node(0).client().jobs(false).unwrap().jobs.last().map(|job| job.id);
    assert!(wait_until(|| job(&cluster).is_some_and(|id| id > stopped && cluster.all_say(id, JobState::Running))));
    let watched = job(&cluster).expect("it runs");
    for n in on {
        cluster.node_mut(n).stop();
        // No daemon, no slots: every job that is not suspended runs.
        assert!(wait_until(|| gangs.iter().all(|id| !frozen(&cluster, n, *id))), "node {n}: a gang stays stopped");
        assert!(cluster.computes(gangs[0], &[n]) && cluster.computes(gangs[1], &[n]));
        cluster.node_mut(n).restart();
        cluster.until_met();
    }
    assert_eq!(first(&cluster), before);
    let all = [gangs[0], gangs[1], own, watched];
    assert!(wait_until(|| all.iter().all(|id| cluster.all_say(*id, JobState::Running))));
    assert!(wait_until(|| cluster.all_say(stopped, JobState::Suspended)));
    assert!(wait_until(|| frozen(&cluster, 1, stopped) && frozen(&cluster, 2, stopped)));
    for id in gangs {
        assert!(on.iter().all(|n| wait_until(|| frozen(&cluster, *n, id)) && wait_until(|| !frozen(&cluster, *n, id))));
    }
    // A user's wait for a job ends with the job, although the daemon was restarted meanwhile.
    assert!(launcher.try_wait().unwrap().is_none(), "its `cosched run` has ended");
    cluster.end(2, &[watched]);
    assert_eq!(until_ended(launcher, "cosched run").status.code(), Some(137));

    // A daemon does not touch what a newer version wrote, and says so; jobs continue, and so does the daemon, by
    // itself.
    let tree = "/cosched/cst/format";
    let old = stdout(&cluster.etcd.ctl_as_user(&["get", "--print-value-only", tree])).trim_end().to_owned();
    let newer = old.replace("\"version\":1", "\"version\":2");
    assert_ne!(newer, old);
    assert!(cluster.etcd.ctl_as_user(&["put", tree, &newer]).status.success());
    cluster.node_mut(1).restart();
    let warns = |n: usize| {
        let warnings = cluster.node(n).client().status().unwrap().warnings;
        warnings.iter().any(|warning| warning.why.contains("run the same version of cosched on all nodes"))
    };
    assert!(wait_until(|| warns(1)), "{:?}", cluster.node(1).client().status().unwrap().warnings);
    assert_eq!(stdout(&cluster.etcd.ctl_as_user(&["get", "--print-value-only", tree])).trim_end(), newer);
    assert!(cluster.computes(gangs[0], &on));
    assert!(cluster.etcd.ctl_as_user(&["put", tree, &old]).status.success());
    assert!(wait_until(|| !warns(1)));
    assert_eq!(first(&cluster), before);
    cluster.end(1, &[gangs[0], gangs[1], own, stopped]);
}

#[test]
fn a_full_disk_of_a_node_stops_no_job_of_the_cluster() {
    if !needs(&TOOLS) {
        return;
    }
    let mut cluster = Cluster::met(2, "");
    // A small separate disk for the second node's records, in its own namespace.
    cluster.node_mut(1).stop();
    let state = cluster.node(1).host.dir.join("state").display().to_string();
    cluster.node(1).host.run(&["mount", "-t", "tmpfs", "-o", "size=128k", "cst", &state]);
    cluster.node_mut(1).restart();
    cluster.until_met();
    let early = cluster.gang(&[0, 1], PULSE, &[]);
    let pids =
        |cluster: &Cluster, ids: &[u64]| ids.iter().map(|id| cluster.node(1).job_pids(*id)[0]).collect::<Vec<_>>();
    let sh = |cluster: &Cluster, script: &str| cluster.node(1).host.run(&["sh", "-c", script]);
    sh(&cluster, &format!("head -c 1M /dev/zero >{state}/filler 2>/dev/null; true"));
    let full = |cluster: &Cluster| {
        let warnings = cluster.node(1).client().status().unwrap().warnings;
        warnings.iter().any(|warning| warning.why.contains("No space left"))
    };
    // Jobs continue, start and end: the cluster knows them.
    let some = || assert!(cluster.node(0).cosched(&["run", "--nodes", "n1:1,n2:1", "--", "true"]).status.success());
    assert!(wait_until(|| {
        some();
        full(&cluster)
    }));
    let late = cluster.gang(&[1, 0], PULSE, &[]);
    let before = pids(&cluster, &[early, late]);
    assert!(wait_until(|| [early, late].iter().all(|id| cluster.all_say(*id, JobState::Running))));
    // A daemon that cannot start for lack of room leaves them alone; one that can finds them, recorded or not.
    cluster.node_mut(1).kill_daemon();
    sh(&cluster, &format!("rm {state}/filler"));
    cluster.node_mut(1).restart();
    cluster.until_met();
    assert!(!full(&cluster));
    assert!(wait_until(|| [early, late].iter().all(|id| cluster.all_say(*id, JobState::Running))));
    assert_eq!(pids(&cluster, &[early, late]), before);
    assert!(cluster.computes(early, &[0, 1]) && cluster.computes(late, &[0, 1]));
    cluster.end(1, &[early, late]);
    assert!(wait_until(|| [early, late].iter().all(|id| cluster.all_say(*id, JobState::Ended))));
    cluster.node_mut(1).stop();
    cluster.node(1).host.run(&["umount", &state]);
}

#[test]
fn a_store_that_is_put_back_to_an_earlier_moment_plans_on_from_there() {
    if !needs(&[&TOOLS[..], &["etcdctl"]].concat()) {
        return;
    }
    let mut cluster = Cluster::met(2, "");
    let known = cluster.gang(&[0, 1], PULSE, &[]);
    cluster.etcd.save();
    let unknown = cluster.gang(&[0, 1], PULSE, &[]);
    let ended = cluster.gang(&[0, 1], PULSE, &[]);
    cluster.end(0, &[ended]);
    let first = |cluster: &Cluster| {
        [(0, known), (1, known), (0, unknown), (1, unknown)].map(|(n, id)| cluster.node(n).job_pids(id)[0])
    };
    let before = first(&cluster);
    cluster.etcd.put_back();
    cluster.until_met();
    // A job from after the copy continues without a plan, and its number is not given again.
    assert!(wait_until(|| (0..2).all(|n| cluster.node(n).log().contains("does not know this job"))));
    let later = cluster.gang(&[0, 1], PULSE, &[]);
    assert!(later > ended, "job {later} has the number of another one");
    let slots = |n: usize| cluster.node(n).client().status().unwrap().cluster.unwrap().plan_in_use.is_some();
    assert!(wait_until(|| (0..2).all(|n| slots(n) && cluster.is_planned(n, known) && cluster.is_planned(n, later))));
    assert_eq!(first(&cluster), before);
    assert!([known, unknown, later].iter().all(|id| cluster.computes(*id, &[0, 1])));
    cluster.end(1, &[known, later]);
    for n in 0..2 {
        assert!(cluster.node(n).cosched(&["kill", "-9", &unknown.to_string()]).status.success());
    }
    assert!(wait_until(|| cluster.is_clear_of(unknown)));
}

#[test]
fn a_value_that_no_daemon_can_read_is_named_and_ends_no_job() {
    if !needs(&[&TOOLS[..], &["etcdctl"]].concat()) {
        return;
    }
    let cluster = Cluster::met(2, "");
    let gang = cluster.gang(&[0, 1], PULSE, &[]);
    let first = || [0, 1].map(|n| cluster.node(n).job_pids(gang)[0]);
    let before = first();
    let key = format!("/cosched/cst/jobs/{gang}");
    let value = stdout(&cluster.etcd.ctl_as_user(&["get", "--print-value-only", &key])).trim_end().to_owned();
    let put = |value: &str| {
        let out = cluster.etcd.ctl_as_user(&["put", &key, value]);
        assert!(out.status.success(), "{}", stderr(&out));
    };
    let newer = value.replacen("\"version\":1", "\"version\":99", 1);
    assert_ne!(newer, value, "{value}");
    for (damaged, word) in [("garbage", "not a value of cosched"), (&newer, "run the same version")] {
        put(damaged);
        // Each node says which value it is, and what is wrong with it.
        let names = |n: usize| {
            let warnings = cluster.node(n).client().status().unwrap().warnings;
            warnings.iter().any(|warning| warning.why.contains(&key) && warning.why.contains(word))
        };
        assert!(wait_until(|| (0..2).all(names)), "{:?}", cluster.node(0).client().status().unwrap().warnings);
        // Longer than the lease.
        std::thread::sleep(Duration::from_secs(8));
        assert_eq!(first(), before);
        assert!(cluster.computes(gang, &[0, 1]), "the job stands still");
        // Once it is corrected, everything continues: no node was given up.
        put(&value);
        cluster.until_met();
        assert!(wait_until(|| !(0..2).any(names)), "{:?}", cluster.node(0).client().status().unwrap().warnings);
        assert!(wait_until(|| cluster.all_say(gang, JobState::Running)));
        assert_eq!(first(), before);
    }
    assert!((0..2).all(|n| !cluster.node(n).log().contains("does not know this job")));
    let later = cluster.gang(&[1, 0], PULSE, &[]);
    cluster.end(0, &[gang, later]);
}

#[test]
fn a_store_of_three_members_may_lose_any_of_them() {
    if !needs(&[&TOOLS[..], &["etcdctl"]].concat()) {
        return;
    }
    let mut cluster = Cluster::on(2, 3, "");
    let gang = cluster.gang(&[0, 1], SPIN, &[]);
    let mut jobs = vec![gang];
    for way in ["killed", "hangs", "two hang"] {
        let leader = cluster.etcd.leader();
        let other = (leader + 1) % 3;
        match way {
            "killed" => cluster.etcd.kill_member(leader),
            "hangs" => cluster.etcd.freeze_member(leader),
            _ => [leader, other].into_iter().for_each(|member| cluster.etcd.freeze_member(member)),
        }
        if way == "two hang" {
            // The third member alone is not a store: it must not be trusted.
            let answers = |n: usize| cluster.node(n).client().status().unwrap().cluster.unwrap().store_answers;
            assert!(wait_until(|| (0..2).all(|n| !answers(n))), "{way}: one member of three is believed");
            assert!(cluster.computes(gang, &[0, 1]), "{way}: the job stands still");
            cluster.etcd.thaw();
        }
        // Another member leads, and users' requests are carried out, by either node.
        for n in 0..2 {
            let id = cluster.node(n).detach(&["--nodes", "n1:1,n2:1", "--", "sh", "-c", PULSE]);
            assert!(wait_until(|| cluster.all_say(id, JobState::Running)), "{way}: a new job does not begin");
            jobs.push(id);
        }
        let slots = |n: usize| cluster.node(n).client().status().unwrap().cluster.unwrap().plan_in_use.is_some();
        assert!(wait_until(|| (0..2).all(|n| slots(n) && cluster.is_planned(n, gang))), "{way}: no slots");
        assert!(cluster.computes(gang, &[0, 1]), "{way}");
        cluster.etcd.thaw();
        cluster.etcd.launch();
    }
    assert!(jobs.iter().all(|id| cluster.all_say(*id, JobState::Running)), "nobody was given up");
    cluster.end(1, &jobs);
}

#[test]
fn a_daemon_that_begins_without_its_store_says_that_it_does_not_know_jobs_yet() {
    if !needs(&TOOLS) {
        return;
    }
    let mut cluster = Cluster::met(2, "");
    let elsewhere = cluster.node(1).detach(&["--nodes", "n2:1", "--", "sleep", "600"]).to_string();
    let spans = cluster.gang(&[0, 1], "exec sleep 600", &[]);
    let (here, spans) = (spans, spans.to_string());
    let late = cluster.node(1).spawn_run(&["--nodes", "n2:1", "--name", "late", "--", "sleep", "2"]);
    let find = |node: &Node| node.client().jobs(true).unwrap().jobs.into_iter().find(|job| job.name == "late");
    assert!(wait_until(|| find(cluster.node(1)).is_some_and(|job| job.processes.unwrap_or(0) > 0)));
    cluster.etcd.kill();
    cluster.node_mut(0).restart();
    let node = cluster.node(0);
    // It knows that there may be jobs that it does not know.
    let out = node.cosched(&["ps"]);
    assert!(stderr(&out).contains("may be missing"), "{}", stderr(&out));
    // A part of one job is on this node, and ends at once; the request to end the rest is kept.
    let [unknown, kept] = [["show", elsewhere.as_str()].as_slice(), &["kill", "-9", &spans]].map(|words| {
        let mut asked = node.command("cosched");
        asked.args(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    });
    let [unknown, kept] = [unknown, kept].map(|asked| asked.wait_with_output().unwrap());
    assert_eq!(unknown.status.code(), Some(1), "{}", stderr(&unknown));
    let words = format!("whether there is a job {elsewhere} is not known yet");
    for words in ["waiting for it", &words, "Nothing was changed"] {
        assert!(stderr(&unknown).contains(words), "`{words}` is missing in: {}", stderr(&unknown));
    }
    assert!(stderr(&kept).contains("The request is queued"), "{}", stderr(&kept));
    assert!(wait_until(|| node.job_pids(here).is_empty()), "what is here did not end at once");
    // A command that ends meanwhile does not keep its user waiting for ever.
    let out = late.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    assert!(stderr(&out).contains("is kept, and written when it is back"), "{}", stderr(&out));
    let asked = node.command("cosched").args(["show", "--json", &elsewhere]).stdout(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    cluster.etcd.restart();
    let out = asked.wait_with_output().unwrap();
    assert!(out.status.success(), "{}", stderr(&out));
    assert!(stdout(&out).contains("\"state\":\"running\""), "{}", stdout(&out));
    assert!(wait_until(|| cluster.is_clear_of(here)), "the kill was lost");
    let written = |n| find(cluster.node(n)).and_then(|job| job.exit?.code);
    assert!(wait_until(|| (0..2).all(|n| written(n) == Some(0))), "the end was lost");
    let out = cluster.node(0).cosched(&["show", "999"]);
    assert_eq!(out.status.code(), Some(4), "{}", stderr(&out));
    cluster.end(1, &[elsewhere.parse().unwrap()]);
}
