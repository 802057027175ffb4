//! Jobs of a cluster, as tests start and inspect them.

use super::{Cluster, Node};
use crate::{procs, stderr, stdout, wait_until};
use cosched_api::{Job, JobState};
use std::process::{Child, Output};

/// Computes for ever.
pub const SPIN: &str = "while :; do :; done";

/// Computes now and then, as one process, and leaves the CPUs to others: for jobs that must be seen to continue without
/// disturbing others. Names itself `pulse` once it runs: `python3` may be a script that starts others first.
pub const PULSE: &str = "exec python3 -c 'import time
open(\"/proc/self/comm\", \"w\").write(\"pulse\")
while True:
    sum(range(20000))
    time.sleep(0.05)'";

/// Short leases and slots, because tests wait for both. The clocks of one machine agree.
pub const QUICK: &str =
    "require_synchronised_clock = false\nslot_length = \"50ms\"\nnode_lease = \"6s\"\nnode_dead_after = \"12s\"\n";

/// Whether MPICH did not return from `MPI_Finalize` after a correct result: over TCP, a rank of 4.0.2 that is already in
/// the launcher's barrier leaves the other's last messages unanswered, with and without cosched (docs/waiting.md;
/// pmodels/mpich#6596). Prints a message if so.
pub fn stuck_in_finalize(words: &[String], out: &Output) -> bool {
    let mpich = words.iter().any(|word| word == "mpiexec.mpich");
    let stuck = mpich && !out.status.success() && stdout(out).contains("\"check\":\"ok\"");
    if stuck {
        eprintln!("once more: MPICH did not come back from MPI_Finalize\n{}", stderr(out));
    }
    stuck
}

/// Nodes are listed in the order in which they joined, which differs from run to run.
pub fn sorted(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// Waits longer than a lease, the time after which a node is dead, and the other nodes' margin together.
pub fn wait_for_death(mut ready: impl FnMut() -> bool) -> bool {
    wait_until(&mut ready) || wait_until(&mut ready) || wait_until(ready)
}

impl Cluster {
    /// A cluster with short leases and slots, whose nodes have all met.
    ///
    /// # Panics
    /// When they do not meet.
    pub fn met(nodes: usize, config: &str) -> Cluster {
        Cluster::on(nodes, 1, config)
    }

    /// The same on a store of `members` members.
    ///
    /// # Panics
    /// When they do not meet.
    pub fn on(nodes: usize, members: usize, config: &str) -> Cluster {
        let cluster = Cluster::start(nodes, members, &format!("{QUICK}{config}"));
        cluster.until_met();
        cluster
    }

    /// Waits until every node knows all nodes.
    ///
    /// # Panics
    /// When that does not happen.
    pub fn until_met(&self) {
        let all = self.nodes();
        assert!(wait_until(|| all.iter().all(|node| node.names().len() == all.len())), "the nodes do not meet");
    }

    /// All nodes.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes.nodes
    }

    /// Whether nothing of a job is left on any node: no cgroup, so no process.
    pub fn is_clear_of(&self, id: u64) -> bool {
        self.nodes().iter().all(|node| !node.v2_job(id).exists())
    }

    /// Whether all nodes report this state of a job.
    pub fn all_say(&self, id: u64, state: JobState) -> bool {
        self.nodes().iter().all(|node| node.state(id) == Some(state))
    }

    /// A gang with one CPU on each of these nodes that runs this script on all of them: its other parts join as ranks do.
    ///
    /// # Panics
    /// When it does not begin.
    pub fn gang(&self, on: &[usize], script: &str, more: &[&str]) -> u64 {
        let nodes: Vec<String> = on.iter().map(|n| format!("{}:1", self.node(*n).host.name)).collect();
        let id = self.node(on[0]).detach(&[more, &["--nodes", &nodes.join(","), "--", "sh", "-c", script]].concat());
        for n in &on[1..] {
            let node = self.node(*n);
            assert!(wait_until(|| node.v2_job(id).exists()), "job {id} has no part on {}", node.host.name);
            let words = ["join", "--job", &id.to_string(), "--", "sh", "-c", script];
            let mut rank = node.command("cosched").args(words).spawn().expect("cosched join");
            // It has to be waited for: an ended process that is not would look alive.
            std::thread::spawn(move || rank.wait());
        }
        assert!(wait_until(|| on.iter().all(|n| !self.node(*n).job_pids(id).is_empty())), "nobody joined job {id}");
        id
    }

    /// A gang on the first two nodes, and a job on the second alone: both numbers.
    ///
    /// # Panics
    /// When one does not begin.
    pub fn gang_and_own(&self) -> (u64, u64) {
        let gang = self.gang(&[0, 1], PULSE, &[]);
        let own = self.node(1).detach(&["--", "sh", "-c", PULSE]);
        assert!(wait_until(|| !self.node(1).job_pids(own).is_empty()), "job {own} does not begin");
        (gang, own)
    }

    /// The first process of each part of these two jobs.
    ///
    /// # Panics
    /// When a part has none.
    pub fn first_pids(&self, gang: u64, own: u64) -> [i32; 3] {
        [(0, gang), (1, gang), (1, own)].map(|(n, id)| self.node(n).job_pids(id)[0])
    }

    /// The processes of jobs on every node.
    pub fn pids(&self, ids: &[u64]) -> Vec<Vec<i32>> {
        self.nodes().iter().flat_map(|node| ids.iter().map(|id| node.job_pids(*id))).collect()
    }

    /// The same for jobs that run one [`PULSE`] on each of their nodes, once the processes that started it have ended.
    ///
    /// # Panics
    /// When there is any other process.
    pub fn lone_pids(&self, ids: &[u64]) -> Vec<Vec<i32>> {
        let mut seen = Vec::new();
        let is_lone = |pids: &Vec<i32>| match pids[..] {
            [] => true,
            [pid] => procs::comm(pid).as_deref() == Some("pulse"),
            _ => false,
        };
        let are_lone = wait_until(|| {
            seen = self.pids(ids);
            seen.iter().all(is_lone)
        });
        assert!(are_lone, "{seen:?}");
        seen
    }

    /// Whether a job gets CPU time on all of these nodes from now on: waits for a millisecond of it, about four turns of
    /// [`PULSE`], which may be late on a busy machine.
    pub fn computes(&self, id: u64, on: &[usize]) -> bool {
        let used = || on.iter().map(|n| procs::cpu_usec(&self.node(*n).v2_job(id))).collect::<Vec<_>>();
        let before = used();
        wait_until(|| used().iter().zip(&before).all(|(now, then)| *now > then + 1000))
    }

    /// Processes of this name in the nodes' namespaces, whatever cgroup they are in.
    pub fn processes_named(&self, name: &str) -> Vec<i32> {
        let nets: Vec<_> = self.nodes().iter().filter_map(|node| procs::net_namespace(node.host.anchor())).collect();
        let inside = |pid: &i32| procs::net_namespace(*pid).is_some_and(|net| nets.contains(&net));
        let lives = |pid: &i32| procs::state(*pid) != Some('Z') && procs::comm(*pid).as_deref() == Some(name);
        procs::all().into_iter().filter(|pid| lives(pid) && inside(pid)).collect()
    }

    /// Whether a node's plan has a place for a job.
    pub fn is_planned(&self, n: usize, id: u64) -> bool {
        let matrix = self.node(n).client().status().expect("the daemon answers").matrix;
        matrix.rows.iter().any(|row| row.cells.contains(&Some(id)) || row.also.contains(&id))
    }

    /// Kills jobs, and waits until nothing is left of them.
    ///
    /// # Panics
    /// When something is left.
    pub fn end(&self, from: usize, ids: &[u64]) {
        let ids: Vec<String> = ids.iter().map(u64::to_string).collect();
        let words: Vec<&str> = ids.iter().map(String::as_str).collect();
        let out = self.node(from).cosched(&[&["kill", "-9"], &words[..]].concat());
        assert!(out.status.success(), "{}", stderr(&out));
        let id = |text: &String| text.parse().expect("an id");
        assert!(wait_until(|| ids.iter().all(|text| self.is_clear_of(id(text)))), "something is left of {ids:?}");
    }
}

impl Node {
    /// The names of the live nodes that this one knows, sorted: the API lists them in the order in which they joined.
    pub fn names(&self) -> Vec<String> {
        let nodes = self.client().status().map(|status| status.nodes.unwrap_or_default()).unwrap_or_default();
        sorted(nodes.into_iter().filter(|node| node.alive).map(|node| node.name))
    }

    /// A job, once this node knows it: nodes learn of each other's changes a moment after these were acknowledged.
    ///
    /// # Panics
    /// When it remains unknown: shows the daemon's answer.
    #[track_caller]
    pub fn job(&self, id: u64) -> Job {
        self.job_when(id, |_| true)
    }

    /// A job, once this node says of it what is wanted.
    ///
    /// # Panics
    /// When it does not say so: shows its last answer.
    #[track_caller]
    pub fn job_when(&self, id: u64, wanted: impl Fn(&Job) -> bool) -> Job {
        let mut said = None;
        let is_so = wait_until(|| said.insert(self.client().job(id)).as_ref().is_ok_and(&wanted));
        match said {
            Some(Ok(job)) if is_so => job,
            said => panic!("{} still says of job {id}: {said:?}", self.host.name),
        }
    }

    /// A job's state; `None` when the daemon does not know it.
    pub fn state(&self, id: u64) -> Option<JobState> {
        self.client().job(id).ok().map(|job| job.state)
    }

    /// `cosched run --detach ARGS`; the job's id.
    ///
    /// # Panics
    /// When it is refused.
    pub fn detach(&self, args: &[&str]) -> u64 {
        let out = self.cosched(&[&["run", "-d"], args].concat());
        stdout(&out).trim().parse().unwrap_or_else(|_| panic!("{args:?}: {}", stderr(&out)))
    }
}

/// The output of a process, which must end within the tests' time limit.
///
/// # Panics
/// When it does not end; it is killed then.
pub fn until_ended(mut child: Child, what: &str) -> std::process::Output {
    if !wait_until(|| child.try_wait().is_ok_and(|status| status.is_some())) {
        let _ = child.kill();
        let _ = child.wait();
        panic!("{what} does not end");
    }
    child.wait_with_output().expect("its output")
}

/// A launcher's words without an option and its value, which say where the ranks run: the job decides that.
pub fn without(words: Vec<String>, option: &str) -> Vec<String> {
    let at = words.iter().position(|word| word == option).expect("the option");
    words.into_iter().enumerate().filter(|(k, _)| *k != at && *k != at + 1).map(|(_, word)| word).collect()
}
