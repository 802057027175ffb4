//! What operators and owners change in a running cluster, and the load of its nodes: real daemons on a real etcd.

use cosched_api::{
    ClientError, ErrorCode, Job, JobRequest, JobState, NodeResources, Packing, ProcessRequest, ResourcesRequest,
};
use cosched_tests::cluster::jobs::sorted;
use cosched_tests::cluster::{Cluster, Node, needs};
use cosched_tests::{Daemon, bin_dir, needs_root, stderr, stdout, wait_until};
use std::process::{Child, Output};
use std::time::Duration;

const TOOLS: [&str; 2] = ["etcd", "openssl"];
const MIB: u64 = 1 << 20;

fn is(node: &Node, id: u64, state: JobState) -> bool {
    wait_until(|| node.client().job(id).is_ok_and(|job| job.state == state))
}

/// `cosched run --detach ARGS` on a node; the job's id.
fn detach(node: &Node, args: &[&str]) -> u64 {
    let out = node.cosched(&[&["run", "-d"], args, &["--", "sleep", "600"]].concat());
    stdout(&out).trim().parse().unwrap_or_else(|_| panic!("{args:?}: {}", stderr(&out)))
}

/// `cosched ARGS` as a user who is no administrator and owns no jobs.
fn as_nobody(node: &Node, args: &[&str]) -> Output {
    let mut command = node.command("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]).arg(bin_dir().join("cosched")).args(args);
    command.output().unwrap()
}

fn refused(out: &Output, code: i32, word: &str) {
    assert!(stderr(out).contains(word), "`{word}` is not in: {}", stderr(out));
    assert_eq!(out.status.code(), Some(code), "{}", stderr(out));
}

fn done(out: &Output) {
    assert!(out.status.success(), "{}", stderr(out));
}

fn memory(job: &Job) -> Vec<u64> {
    job.nodes.iter().map(|node| node.memory_bytes.unwrap_or(0) / MIB).collect()
}

/// Adds a process to a job on a node, whose part of it may begin a moment after the job counts as running.
fn add(node: &Node, id: u64, process: &Child) {
    let process = ProcessRequest { pid: process.id() as i32, start_ticks: None };
    let added = || node.client().add_process(id, &process);
    assert!(wait_until(|| added().is_ok()), "{:?}", added());
}

#[test]
fn resources_are_changed_from_any_node_and_give_others_room() {
    if !needs(&[&TOOLS[..], &["setpriv"]].concat()) {
        return;
    }
    let cluster = Cluster::met(2, "memory = \"400M\"\n");
    let [first, other] = [0, 1].map(|n| cluster.node(n));
    let gang = detach(first, &["--nodes", "n1:1:300M,n2:1:300M"]);
    assert!(is(other, gang, JobState::Running));
    let waits = detach(first, &["--nodes", "n1:1:200M"]);
    assert!(is(other, waits, JobState::Waiting));
    let id = gang.to_string();
    // Each node knows its own part of what a job uses, and reports it; waiting jobs are counted on every node.
    let known = |node: &Node| node.job(gang).use_of_nodes;
    assert!(wait_until(|| known(first) == Some(vec!["n1".into()]) && known(other) == Some(vec!["n2".into()])));
    assert_eq!(first.job(waits).use_of_nodes, None, "what has not begun uses nothing anywhere");
    for node in [first, other] {
        let metrics = node.client().metrics().unwrap();
        let waiting = "cosched_jobs{class=\"batch\",state=\"waiting\"} 1";
        assert!(metrics.contains(waiting), "`{waiting}` is missing in:\n{metrics}");
    }

    refused(&as_nobody(other, &["resources", &id, "--nodes", "n1:1:1M,n2:1:1M"]), 5, "not yours");
    for (args, word) in [
        (&["--nodes", "n1:1:300M,n2:1:401M"][..], "401M"),
        (&["--nodes", "n1:1:1M"], "keeps its nodes"),
        (&["--nodes", "n1:1:1M,n9:1:1M"], "there is no node n9"),
        (&["--mem", "100M"], "Give its resources on each: n1, n2"),
    ] {
        let out = other.cosched(&[&["resources", &id], args].concat());
        refused(&out, 6, if word == "401M" { "on node n2, which has" } else { word });
    }
    refused(&other.cosched(&["resources", "99", "--mem", "1M"]), 4, "no job 99");
    assert_eq!(memory(&first.job(gang)), [300, 300], "nothing has changed");

    done(&other.cosched(&["resources", &id, "--nodes", "n1:1:150M,n2:1:150M"]));
    assert!(is(first, waits, JobState::Running), "it has room now: {:?}", first.job(waits));
    first.job_when(gang, |job| memory(job) == [150, 150]);
    assert!(wait_until(|| (0..2).all(|n| cluster.node(n).job(gang).mem_bytes == Some(300 * MIB))));
    // More than the nodes have now is refused; a running job continues unchanged.
    refused(&other.cosched(&["resources", &id, "--nodes", "n1:1:250M,n2:1:150M"]), 6, "the others there leave");
    assert_eq!((memory(&first.job(gang)), first.job(gang).state), (vec![150, 150], JobState::Running));
    // The same with memory alone, of a job on one node, which keeps its CPUs.
    done(&other.cosched(&["resources", &waits.to_string(), "--mem", "100M"]));
    assert_eq!((memory(&other.job(waits)), other.job(waits).cpus), (vec![100], 1));
    done(&first.cosched(&["resources", &id, "--nodes", "n1:1:250M,n2:1:150M"]));
    let events = other.client().events(gang).unwrap().events;
    assert!(events.iter().any(|event| event.what == "resources changed"), "{events:?}");
    first.cosched(&["kill", "-9", &id, &waits.to_string()]);
    assert!(is(first, gang, JobState::Ended) && is(first, waits, JobState::Ended));
    for id in [gang, waits] {
        let ended = other.job_when(id, |job| job.state == JobState::Ended);
        assert_eq!((ended.use_of_nodes, ended.ended_why.as_deref()), (None, Some("killed by root")));
    }
}

#[test]
fn any_daemon_tells_how_busy_any_node_is() {
    if !needs(&TOOLS) {
        return;
    }
    let cluster = Cluster::met(2, "memory = \"400M\"\n");
    let [first, other] = [0, 1].map(|n| cluster.node(n));
    let id = detach(other, &["--nodes", "n2:1:100M"]);
    assert!(is(first, id, JobState::Running));
    // What a node has measured is known elsewhere a moment after it has joined.
    let names = || sorted(first.client().loads().unwrap().nodes.into_iter().map(|load| load.name));
    assert!(wait_until(|| names() == ["n1", "n2"]), "{:?}", names());
    let load = first.client().load(Some("n2")).unwrap();
    assert_eq!((load.name.as_str(), load.cpus, load.memory_bytes), ("n2", 1, 400 * MIB));
    assert_eq!((load.jobs, load.job_cpus, load.memory_declared_bytes), (1, 1, 100 * MIB));
    assert!(load.memory_available_bytes > 0 && load.load_1min >= 0.0, "{load:?}");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as u64;
    let measured = load.measured_unix_ms.expect("it is another node's");
    assert!(measured <= now && now - measured < 600_000, "{measured} is not of now, {now}");
    let own = first.client().load(Some("n1")).unwrap();
    assert_eq!((own.name.as_str(), own.jobs, own.measured_unix_ms), ("n1", 0, None));
    match first.client().load(Some("n7")) {
        Err(ClientError::Refused(e)) => {
            assert_eq!(e.code, ErrorCode::NotFound);
            assert!(e.hint.contains("n1, n2") || e.hint.contains("n2, n1"), "{e:?}");
        }
        answer => panic!("{answer:?}"),
    }
    let table = stdout(&first.cosched(&["nodes"]));
    let columns: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    let head = columns.iter().find(|line| line.contains(&"LOAD")).expect("a head");
    let at = head.iter().position(|name| *name == "LOAD").unwrap();
    for name in ["n1", "n2"] {
        let line = columns.iter().find(|line| line.first() == Some(&name)).expect("a line");
        assert!(line[at].parse::<f64>().is_ok(), "{table}");
    }
    let json: serde_json::Value = serde_json::from_slice(&first.cosched(&["nodes", "--json"]).stdout).unwrap();
    let listed = json.as_array().unwrap().iter().map(|node| (&node["name"], &node["measured"]["name"]));
    assert!(listed.clone().count() == 2 && listed.clone().all(|(name, measured)| name == measured), "{json}");
    // Without the store no outdated information is given.
    cluster.cut_etcd();
    assert!(wait_until(|| !first.client().status().unwrap().cluster.unwrap().store_answers));
    assert!(matches!(first.client().load(Some("n2")), Err(ClientError::Refused(e)) if e.what.contains("store")));
    assert!(first.client().load(None).is_ok());
    cluster.heal_etcd();
    assert!(wait_until(|| first.client().load(Some("n2")).is_ok()), "it comes back");
    other.cosched(&["kill", "-9", &id.to_string()]);
    assert!(is(first, id, JobState::Ended));
}

#[test]
fn queues_and_settings_of_a_running_cluster_are_changed_for_all() {
    if !needs(&[&TOOLS[..], &["setpriv"]].concat()) {
        return;
    }
    let mut cluster = Cluster::met(2, "[[queue]]\nname = \"alone\"\nexclusive = true\n[[queue]]\nname = \"day\"\n");
    let dir = cluster.node(1).host.dir.clone();
    let file = |text: &str| {
        let path = dir.join("queues.toml");
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let [first, other] = [0, 1].map(|n| cluster.node(n));
    let runs = detach(first, &["--nodes", "n1:1", "--queue", "alone"]);
    assert!(is(first, runs, JobState::Running));
    let waits = detach(first, &["--nodes", "n1:1", "--queue", "alone"]);
    assert!(is(other, waits, JobState::Waiting));
    let listed = stdout(&other.cosched(&["queues"]));
    assert!(listed.contains("alone  exclusive        1        1"), "{listed}");

    let toml = stdout(&other.cosched(&["queues", "--toml"]));
    let shared = file(&toml.replace("exclusive = true\n", "time_max = \"8h\"\n"));
    refused(&as_nobody(other, &["queues", "set", &shared]), 5, "the queues are not yours to change");
    refused(&as_nobody(other, &["nodes", "--drain", "n1"]), 5, "node n1 is not yours to change");
    // A waiting `cosched run` that is told to end has the signal's exit code.
    let mut person = other.spawn_run(&["--nodes", "n1:1", "--queue", "alone", "--", "true"]);
    assert!(wait_until(|| other.client().jobs(false).unwrap().jobs.len() == 3), "it waits");
    cosched_tests::procs::signal(person.id() as i32, rustix::process::Signal::TERM);
    assert!(wait_until(|| person.try_wait().unwrap().is_some()), "it goes on");
    assert_eq!(person.wait().unwrap().code(), Some(128 + 15));
    refused(&as_nobody(other, &["policy", "--rows", "9"]), 5, "administrator");
    let without = file("[[queue]]\nname = \"day\"\n");
    let named = format!("{runs} in alone, {waits} in alone");
    refused(&other.cosched(&["queues", "set", &without]), 6, &named);
    let twice = file("[[queue]]\nname = \"day\"\n[[queue]]\nname = \"day\"\n");
    refused(&other.cosched(&["queues", "set", &twice]), 6, "twice");
    refused(&other.cosched(&["queues", "set", &file("")]), 6, "no table [[queue]]");
    assert!(is(first, waits, JobState::Waiting), "nothing has changed");

    let shared = file(&toml.replace("exclusive = true\n", "time_max = \"8h\"\n"));
    done(&other.cosched(&["queues", "set", &shared]));
    assert!(is(first, waits, JobState::Running), "the queue is shared now");
    let queues = first.client().status().unwrap().cluster.unwrap().queues;
    let told: Vec<_> = queues.iter().map(|queue| (queue.name.as_str(), queue.exclusive, queue.running)).collect();
    assert_eq!(told, [("alone", false, 2), ("day", false, 0)]);
    assert_eq!(queues[0].time_ms_max, Some(8 * 3_600_000));

    done(&other.cosched(&["policy", "--packing", "best-fit", "--rows", "9", "--shares", "batch=7"]));
    let cluster_of = |node: &Node| node.client().status().unwrap().cluster.unwrap();
    assert!(wait_until(|| cluster_of(first).shares.is_some_and(|shares| shares.batch == 7)));
    let seen = cluster_of(first);
    assert_eq!((seen.packing, seen.rows_max), (Some(Packing::BestFit), Some(9)));
    assert_eq!((seen.shares.unwrap().standby, seen.off_hours.unwrap().batch), (1, 4), "what is not named stays");
    refused(&other.cosched(&["policy", "--shares", "batch=0"]), 2, "1 to 1000");

    // A daemon that starts with other queues in its file reports that, and the cluster's queues stay in effect.
    let warned = |node: &Node| node.log().contains("the queues of the configuration differ from the cluster's");
    assert!(!warned(first), "they were the same when it began");
    cluster.node_mut(0).restart();
    let first = cluster.node(0);
    assert!(wait_until(|| warned(first)), "it does not say so");
    assert!(wait_until(|| first.client().job(runs).is_ok_and(|job| job.state == JobState::Running)));
    first.cosched(&["kill", "-9", &runs.to_string(), &waits.to_string()]);
    assert!(is(first, runs, JobState::Ended) && is(first, waits, JobState::Ended));
}

/// A cluster of this machine alone, which has more CPUs than the nodes of the other tests.
#[test]
fn cpus_of_a_job_that_runs_are_changed() {
    if !needs_root() || std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return;
    }
    let d = Daemon::start("store = \"memory\"\nrequire_synchronised_clock = false\nslot_length = \"50ms\"\n");
    assert!(wait_until(|| d.client().status().unwrap().cluster.is_some_and(|cluster| cluster.plan_in_use.is_some())));
    let id = d.detach(&["--cpus", "2", "--mem", "10M", "--", "sleep", "600"]);
    let second = d.detach(&["--cpus", "1", "--", "sleep", "600"]);
    let running = |id: u64| d.client().job(id).unwrap().state == JobState::Running;
    assert!(wait_until(|| running(id) && running(second)));
    let cells = |id: u64| {
        let rows = d.client().status().unwrap().matrix.rows;
        rows.iter().flat_map(|row| &row.cells).filter(|cell| **cell == Some(id)).count()
    };
    assert!(wait_until(|| cells(id) == 2), "{:?}", d.client().status().unwrap().matrix);
    let changed = |cpus: &str| {
        let out = d.cosched(&["resources", &id.to_string(), "--cpus", cpus, "--json"]);
        assert!(out.status.success(), "{}", stderr(&out));
        serde_json::from_slice::<Job>(&out.stdout).unwrap()
    };
    let job = changed("1");
    assert_eq!((job.cpus, job.nodes[0].memory_bytes), (1, Some(10 * MIB)), "memory stays");
    assert!(wait_until(|| cells(id) == 1), "{:?}", d.client().status().unwrap().matrix);
    assert_eq!(changed("2").cpus, 2);
    assert!(wait_until(|| cells(id) == 2));
    let too_many = ResourcesRequest { cpus: Some(4096), ..ResourcesRequest::default() };
    assert!(matches!(d.client().set_resources(id, &too_many), Err(ClientError::Refused(_))));
    let twice = ResourcesRequest { nodes: vec![NodeResources::default()], ..too_many };
    assert!(matches!(d.client().set_resources(id, &twice), Err(ClientError::Refused(e)) if e.what.contains("twice")));
    assert_eq!(d.client().job(id).unwrap().cpus, 2);
    d.cosched(&["kill", "-9", &id.to_string(), &second.to_string()]);
    assert!(wait_until(|| d.client().jobs(false).unwrap().jobs.is_empty()));
}

#[test]
fn a_command_that_is_outside_of_its_job_ends_with_it() {
    if !needs(&TOOLS) {
        return;
    }
    let cluster = Cluster::met(2, "");
    let [first, other] = [0, 1].map(|n| cluster.node(n));
    // The job is on the other node; the command starts where the user is, in no cgroup of the job.
    let mut run = first.spawn_run(&["--nodes", "n2:1", "--", "sleep", "600"]);
    assert!(wait_until(|| other.client().jobs(false).unwrap().jobs.iter().any(|job| job.state == JobState::Running)));
    let id = other.client().jobs(false).unwrap().jobs[0].id;
    assert!(wait_until(|| cluster.processes_named("sleep").len() > cluster.nodes().len()), "it does not begin");
    done(&other.cosched(&["kill", &id.to_string()]));
    let ended = wait_until(|| run.try_wait().unwrap().is_some());
    let _ = run.kill();
    let out = run.wait_with_output().unwrap();
    assert!(ended, "the command goes on without its job");
    assert_eq!(out.status.code(), Some(128 + 15), "{}", stderr(&out));
    for words in ["has its CPUs on n2, not on this node", "was ended: killed by root"] {
        assert!(stderr(&out).contains(words), "`{words}` is missing in: {}", stderr(&out));
    }
    assert!(is(other, id, JobState::Ended), "{:?}", other.job(id));
    refused(&other.cosched(&["join", "--job", &id.to_string(), "--", "true"]), 6, &format!("job {id} has ended"));
}

#[test]
fn a_job_that_begins_empty_on_other_nodes_ends_when_its_processes_have() {
    if !needs(&TOOLS) {
        return;
    }
    let cluster = Cluster::met(3, "");
    let [first, second, third] = [0, 1, 2].map(|n| cluster.node(n));
    done(&first.cosched(&["nodes", "--drain", "n1"]));
    let request = JobRequest { command: vec!["later".to_owned()], cpus: Some(2), ..JobRequest::default() };
    let id = first.client().register(&request).unwrap().id;
    assert!(is(first, id, JobState::Running), "{:?}", first.job(id));
    assert_eq!(sorted(first.job(id).nodes.into_iter().map(|node| node.name)), ["n2", "n3"]);
    assert!(wait_until(|| cluster.all_say(id, JobState::Running)), "{:?} {:?}", second.job(id), third.job(id));
    for node in [second, third] {
        let mut process = node.command("sleep").arg("600").spawn().unwrap();
        add(node, id, &process);
        std::thread::sleep(Duration::from_millis(500));
        assert!(cluster.all_say(id, JobState::Running), "others may come");
        process.kill().unwrap();
        process.wait().unwrap();
    }
    assert!(wait_until(|| cluster.all_say(id, JobState::Ended) && cluster.is_clear_of(id)), "{:?}", first.job(id));
}

/// A gang whose main process has ended while another node still has one of its processes: found by the soak, seed 80001.
#[test]
fn every_node_tells_how_the_main_process_ended() {
    if !needs(&TOOLS) {
        return;
    }
    let cluster = Cluster::met(2, "");
    let [first, second] = [0, 1].map(|n| cluster.node(n));
    let dir = tempfile::tempdir().unwrap();
    let go = dir.path().join("go");
    let script = format!("until [ -e {} ]; do sleep 0.1; done; exit 6", go.display());
    let run = ["run", "-d", "--nodes", "n1:1,n2:1", "--", "sh", "-c", &script];
    let id: u64 = stdout(&first.cosched(&run)).trim().parse().unwrap();
    assert!(is(second, id, JobState::Running), "{:?}", first.job(id));
    let mut rank = second.command("sleep").arg("600").spawn().unwrap();
    add(second, id, &rank);
    std::fs::write(&go, "").unwrap();
    let tells = |node: &Node| node.job(id).exit.is_some_and(|exit| exit.code == Some(6));
    assert!(wait_until(|| tells(first) && tells(second)), "{:?} {:?}", first.job(id).exit, second.job(id).exit);
    assert!(cluster.all_say(id, JobState::Running), "{:?}", second.job(id));
    rank.kill().unwrap();
    rank.wait().unwrap();
    assert!(wait_until(|| cluster.all_say(id, JobState::Ended)), "{:?}", first.job(id));
    assert!([first, second].into_iter().all(tells));
}
