//! Bad input in a cluster gets what, why, a hint, a documented exit code, and changes nothing.

use cosched_api::{ClientError, JobRequest};
use cosched_tests::cluster::jobs::until_ended;
use cosched_tests::cluster::{Cluster, Node, needs};
use cosched_tests::{stderr, wait_until};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

const TOOLS: [&str; 2] = ["etcd", "openssl"];

fn check(out: &Output, code: i32, words: &[&str]) {
    assert_eq!(out.status.code(), Some(code), "{}", stderr(out));
    for word in words {
        assert!(stderr(out).contains(word), "`{word}` is missing in: {}", stderr(out));
    }
}

/// Another daemon on a node, with this configuration and separate files, for 20 s at most.
fn another(node: &Node, config: &str, args: &[&str]) -> Command {
    let file = |name: &str| node.host.dir.join(name);
    fs::write(file("another.toml"), config).unwrap();
    let mut command = node.command("timeout");
    command.args(["-k", "10", "20"]).arg(cosched_tests::bin_dir().join("coschedd")).arg("--config");
    command.arg(file("another.toml")).arg("--socket").arg(file("another.sock")).arg("--state-dir").arg(file("another"));
    command.args(["--cgroup", &node.another_cgroup()]).args(args);
    command
}

/// A configuration without some keys.
fn without(config: &str, keys: &[&str]) -> String {
    let lines = config.lines().filter(|line| !keys.iter().any(|key| line.starts_with(key)));
    lines.collect::<Vec<_>>().join("\n")
}

/// What `--check` finds when the configuration is correct.
fn check_tells_what_is_in_the_way(cluster: &Cluster, good: &str) {
    let node = cluster.node(0);
    let tried = |text: &str| another(node, text, &["--check"]).output().unwrap();
    let checked = |text: &str| {
        let out = tried(text);
        check(&out, 0, &[]);
        cosched_tests::stdout(&out)
    };
    let before = cluster.etcd.ctl_as_user(&["get", "--prefix", "/cosched/", "--keys-only"]).stdout;
    // Its own daemon is running, with another directory of state.
    let said = checked(good);
    for words in ["answers, and is writable", "a running daemon has the name n1", "`password_file`", "chmod 600"] {
        assert!(said.contains(words), "`{words}` is missing in: {said}");
    }
    let key = cluster.etcd.file("client.key");
    let own = [cluster.etcd.file("password"), key];
    own.iter().for_each(|file| fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap());
    let said = checked(&good.replace("\"n1\"", "\"n2\""));
    assert!(said.ends_with("configuration and machine are fine\n") && !said.contains("warning"), "{said}");
    let strict = good.replace("require_synchronised_clock = false", "require_synchronised_clock = true");
    let synchronised = node.client().status().unwrap().clock.unwrap().synchronised;
    if synchronised != Some(true) {
        assert!(checked(&strict).contains("gangs would have no slots here"));
    }
    // The configuration of a running daemon without jobs: it is left alone, and holds the name itself.
    let places = [("--config", "cosched.toml"), ("--socket", "run/coschedd.sock"), ("--state-dir", "state")];
    let places =
        places.iter().flat_map(|(key, file)| [(*key).to_owned(), node.host.dir.join(file).display().to_string()]);
    let words: Vec<String> = places.chain(["--cgroup".into(), node.cgroup.clone(), "--check".into()]).collect();
    let out = node.command("coschedd").args(words).output().unwrap();
    check(&out, 0, &[]);
    let said = cosched_tests::stdout(&out);
    assert!(said.contains("daemon     one is running, with its jobs in") && !said.contains("warning"), "{said}");
    let after = cluster.etcd.ctl_as_user(&["get", "--prefix", "/cosched/", "--keys-only"]).stdout;
    assert_eq!(String::from_utf8_lossy(&before), String::from_utf8_lossy(&after), "a check leaves nothing");
    // A user with read permission only.
    cluster.etcd.make_reader();
    let reader = good.replace("user = \"cosched\"", "user = \"reader\"");
    check(&tried(&reader), 1, &["can be read, but not written", "permission denied"]);
}

#[test]
fn a_wrong_configuration_of_a_cluster_is_explained() {
    if !needs(&TOOLS) {
        return;
    }
    let cluster = Cluster::met(1, "");
    let node = cluster.node(0);
    let good = fs::read_to_string(node.host.dir.join("cosched.toml")).unwrap();
    fs::write(node.host.dir.join("wrong-password"), "wrong").unwrap();
    let password = cluster.etcd.file("password").display().to_string();
    let wrong_password = node.host.dir.join("wrong-password").display().to_string();
    let address = cluster.etcd.endpoint();
    let tried = |text: &str| another(node, text, &["--check"]).output().unwrap();
    check_tells_what_is_in_the_way(&cluster, &good);
    for (text, words) in [
        (format!("slot_lenght = \"1s\"\n{good}"), &["slot_lenght", "Did you mean `slot_length`"][..]),
        (format!("{good}\nendpoint = \"x\""), &["endpoint", "Did you mean `endpoints`"]),
        (good.replace("50ms", "1ms"), &["slot_length = 1ms", "10ms to 30s"]),
        (good.replace("\"6s\"", "\"1s\""), &["node_lease", "2s to 5min"]),
        (good.replace("\"cst\"", "\"c/st x\""), &["`c/st x` cannot be a name", "letters, digits"]),
        (good.replace("\"n1\"", "\"n 1\""), &["`n 1` cannot be a name"]),
        (good.replace("\"etcd\"", "\"etdc\""), &["etdc", "Did you mean `etcd`"]),
        (without(&good, &["endpoints"]), &["missing field `endpoints`", "cosched.toml"]),
        (good.replace(":2379", ":2378"), &["does not answer", "Connection refused", "Is etcd up"]),
        (good.replace("client.", "stranger."), &["`cert_file` and `key_file`"]),
        (without(&good, &["cert_file", "key_file"]), &["`cert_file` and `key_file`"]),
        (good.replace("https", "http"), &["https:// in `endpoints`"]),
        (good.replace(&password, &wrong_password), &["invalid user ID or password", "check `user` and the password"]),
        (good.replace(&password, "/no/password"), &["`password_file`", "/no/password", "cannot be read"]),
        (without(&good, &["user", "password_file"]), &["permission denied", "grant-permission"]),
    ] {
        check(&tried(&text), 1, words);
    }
    // A store that cannot be reached does not prevent a daemon from starting: it may come later. Users are told.
    let late = good.replace(&address, "https://127.0.0.1:2378").replace("\"n1\"", "\"n2\"");
    let mut daemon = another(node, &late, &[]).stderr(Stdio::piped()).spawn().unwrap();
    let there = |args: &[&str]| {
        let mut command = node.command("cosched");
        command.args(args).env("COSCHED_SOCKET", node.host.dir.join("another.sock")).output().unwrap()
    };
    let status = || cosched_tests::stdout(&there(&["status"]));
    let said = wait_until(|| status().contains("no contact with the store"));
    let run = said.then(|| there(&["run", "--", "true"]));
    cosched_tests::procs::signal(daemon.id() as i32, rustix::process::Signal::TERM);
    let ended = wait_until(|| daemon.try_wait().unwrap().is_some());
    let _ = daemon.kill();
    let out = daemon.wait_with_output().unwrap();
    assert!(said && ended, "{}", stderr(&out));
    check(&run.unwrap(), 125, &["store"]);
    assert_eq!(node.names(), ["n1"]);
}

#[test]
fn a_name_that_is_taken_and_nodes_that_are_not_there_are_explained() {
    if !needs(&TOOLS) {
        return;
    }
    let mut cluster = Cluster::met(2, "");
    let node = cluster.node(0);
    for (args, code, words) in [
        (&["run", "--cpus", "0", "--", "true"][..], 125, &["--cpus", "0 is not in 1.."][..]),
        (&["run", "--nodes", "n1:0", "--", "true"], 125, &["not a number of CPUs", "n1:2"]),
        (&["run", "--nodes", "n1:99", "--", "true"], 125, &["needs 99 CPUs on node n1", "cosched nodes"]),
        (&["run", "--nodes", "n7:1", "--", "true"], 125, &["there is no node n7", "Nodes are"]),
        (&["run", "--nodes", "n1:1,n1:1", "--", "true"], 125, &["node n1 is named twice", "once"]),
        (&["run", "--nodes", "", "--", "true"], 125, &["name is missing"]),
        (&["run", "--cpus", "99", "--", "true"], 125, &["wants 99 CPUs", "cosched nodes"]),
        (&["run", "--on-node-loss", "requeu", "--", "true"], 125, &["requeue"]),
        (&["nodes", "--drain", "n9"], 6, &["there is no node n9"]),
        (&["join", "--job", "99", "--", "true"], 4, &["there is no job 99"]),
        (&["policy", "--slot", "1ms"], 6, &["10 to 30000 ms"]),
    ] {
        check(&node.cosched(args), code, words);
    }
    let mut dead = Command::new("true").spawn().unwrap();
    dead.wait().unwrap();
    let request = JobRequest { command: vec!["x".into()], pid: dead.id() as i32, ..JobRequest::default() };
    let refused = node.client().register(&request).unwrap_err();
    assert!(matches!(&refused, ClientError::Refused(body) if body.why.contains("no such process")), "{refused}");
    assert!(node.client().jobs(true).unwrap().jobs.is_empty(), "a refused job is there");

    // A second daemon of the same name: it takes no part and says why, and the first one is not affected.
    let good = fs::read_to_string(node.host.dir.join("cosched.toml")).unwrap();
    let mut second = another(node, &good.replace("\"6s\"", "\"2s\""), &[]).stderr(Stdio::null()).spawn().unwrap();
    let there = |args: &[&str]| {
        let mut command = node.command("cosched");
        command.args(args).env("COSCHED_SOCKET", node.host.dir.join("another.sock")).output().unwrap()
    };
    let status = || cosched_tests::stdout(&there(&["status"]));
    let said = wait_until(|| status().contains("takes no part in cluster cst"));
    let (run, status) = (there(&["run", "--", "true"]), status());
    cosched_tests::procs::signal(second.id() as i32, rustix::process::Signal::TERM);
    let ended = wait_until(|| second.try_wait().unwrap().is_some());
    let _ = second.kill();
    let _ = second.wait();
    assert!(said && ended, "{status}");
    assert!(status.contains("the name n1 is taken"), "{status}");
    check(&run, 125, &["the name n1 is taken", "a name of its own"]);
    assert_eq!(node.names(), ["n1", "n2"]);
    check(&node.cosched(&["run", "--nodes", "n1:1,n2:1", "--", "true"]), 0, &[]);

    // A job may wait for a silent node. Once an operator declares the node dead, no job waits for it for ever.
    cluster.node_mut(1).stop();
    let node = cluster.node(0);
    assert!(wait_until(|| node.names() == ["n1"]));
    let waiting = node.spawn_run(&["--nodes", "n1:1,n2:1", "--", "true"]);
    check(&node.cosched(&["nodes", "--dead", "n2"]), 0, &[]);
    let _ = until_ended(waiting, "a job on a node that is dead");
    let refused = || stderr(&node.cosched(&["run", "--nodes", "n2:1", "--", "true"]));
    let mut why = String::new();
    let told = wait_until(|| {
        std::thread::sleep(Duration::from_millis(200));
        why = refused();
        why.contains("node n2 is unreachable")
    });
    assert!(told, "{why}");
}
