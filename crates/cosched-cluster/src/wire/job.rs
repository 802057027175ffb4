//! The record of a job in the store, `jobs/<id>`, kept until the job is forgotten.

use super::decided::Decided;
use super::names::{By, Class, OnNodeLoss, Policy};
use super::stored_as_is;
use super::terms::TermsAsk;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The largest number of events in a job's history: the first ones and the newest are kept.
const HISTORY_MAX: usize = 50;

/// The number of a job's attempt: 0 for its first run, one more each time that it is requeued.
pub type Attempt = u32;

/// What a user requests of one node. Source: LLNL, "Gang Scheduler Design" (program registration).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeAsk {
    /// The node's name.
    pub node: String,
    /// CPUs at the same time.
    pub cpus: u32,
    /// The CPUs that are enough on a node that has fewer than `cpus`.
    pub cpus_min: u32,
    /// Memory on the node.
    pub memory_bytes: u64,
    /// Disk space on the node.
    pub disk_bytes: u64,
}

/// The resources that a user requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum WantAsk {
    /// On these nodes; no node is listed twice.
    PerNode(Vec<NodeAsk>),
    /// A number of CPUs, on the nodes that the planner picks.
    Total {
        /// CPUs at the same time, on all nodes together.
        cpus: u32,
        /// Memory for each of these CPUs.
        memory_per_cpu_bytes: u64,
        /// Disk space on each of its nodes.
        disk_bytes: u64,
    },
}

impl WantAsk {
    /// The names of the nodes that are listed; none for `Total`.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = &str> {
        let asks = match self {
            WantAsk::PerNode(asks) => asks.as_slice(),
            WantAsk::Total { .. } => &[],
        };
        asks.iter().map(|ask| ask.node.as_str())
    }

    /// The declared memory in bytes, on all nodes together.
    pub fn memory_bytes(&self) -> u64 {
        match self {
            WantAsk::PerNode(asks) => asks.iter().map(|ask| ask.memory_bytes).fold(0, u64::saturating_add),
            WantAsk::Total { cpus, memory_per_cpu_bytes, .. } => memory_per_cpu_bytes.saturating_mul(u64::from(*cpus)),
        }
    }
}

/// How a job's processes wait for messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WaitAsk {
    /// The name of a way to wait, as users give it.
    pub mode: String,
    /// The spin time in µs; `None`: each process finds its own.
    pub spin_us: Option<u32>,
}

/// A process of a node, identified until the node's next boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MainProcess {
    /// Its process ID.
    pub pid: i32,
    /// When it started, in clock ticks since the node's boot, because process IDs are reused.
    pub start_ticks: u64,
}

/// A job as its user submitted it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobAsk {
    /// For display.
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The working directory.
    pub cwd: Option<String>,
    /// The environment, for jobs that a daemon starts.
    pub environment: Vec<(String, String)>,
    /// Where its output goes, for jobs that a daemon starts.
    pub log_path: Option<String>,
    /// The class.
    pub class: Class,
    /// Its own policy; `None` follows the cluster's.
    pub policy: Option<Policy>,
    /// The largest part of the slots that it may have, in thousandths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_permille: Option<u32>,
    /// How its processes wait; `None` when they have no library for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<WaitAsk>,
    /// CPUs, memory and disk space.
    pub want: WantAsk,
    /// The name of its queue; `None`: the first one that its owner may use.
    pub queue: Option<String>,
    /// The groups of its owner that have a right on a queue.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<u32>,
    /// What happens to it when a node is lost.
    pub on_node_loss: OnNodeLoss,
    /// The node of its main process. When its part there has ended, the other parts end as soon as they have no process. `None`: it has no
    /// main process, and is over when it has no process on any of its nodes.
    pub lead: Option<String>,
    /// The main process on that node, if it waits there already: a restarted daemon on that node can see from this whether it still runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub main: Option<MainProcess>,
    /// Several launchers submit the same job, each on its own node: there is only one job of this owner, name and nodes at a time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub once: bool,
    /// When it may start, and its limits.
    #[serde(default, skip_serializing_if = "TermsAsk::is_none")]
    pub terms: TermsAsk,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exit {
    /// Its exit code, if it exited.
    pub code: Option<i32>,
    /// The number of the signal that killed it, if one did.
    pub signal: Option<i32>,
}

/// How a job's processes are ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KillHow {
    /// The signal that they get first; 9 (SIGKILL) cannot be caught.
    pub signal: i32,
    /// The time after which they are killed by force; `None`: never.
    pub grace_ms: Option<u64>,
}

impl KillHow {
    /// The time between a polite signal and force where no other was chosen; also the longest possible one where an administrator has suspended
    /// the job, or its queue has a time limit.
    pub const GRACE_MS: u64 = 10_000;

    /// At once and by force.
    pub const FORCE: KillHow = KillHow { signal: 9, grace_ms: Some(0) };
}

/// The processes of a job that the kernel killed because it was out of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutOfMemory {
    /// The number of processes.
    pub killed: u64,
    /// The memory limit that they exceeded; `None` if it was not a limit.
    pub limit_bytes: Option<u64>,
}

impl OutOfMemory {
    fn with(self, other: OutOfMemory) -> OutOfMemory {
        let limits = self.limit_bytes.into_iter().chain(other.limit_bytes);
        OutOfMemory { killed: self.killed.saturating_add(other.killed), limit_bytes: limits.min() }
    }
}

/// What a node reports when the last process of a job has ended there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartEnd {
    /// Of the main process, if it ran there.
    pub exit: Option<Exit>,
    /// CPU time used on the node.
    pub cpu_time_ns: u64,
    /// Peak memory use on the node.
    pub memory_peak_bytes: u64,
    /// The processes killed there because of a lack of memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out_of_memory: Option<OutOfMemory>,
}

/// Why a job is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// Its last process ended.
    Finished,
    /// This user killed it.
    Killed {
        /// The user.
        uid: u32,
    },
    /// It exceeded the time limit of its queue.
    TimeLimit,
    /// A node was lost.
    NodeLost,
    /// It ran for the time that it had requested.
    RunTime,
    /// It was to follow the success of a job that has failed.
    JobFailed,
}

/// The end of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct End {
    /// When, since the Unix epoch.
    pub at_ns: u64,
    /// Why.
    pub why: Why,
    /// Of its main process, if that is known.
    pub exit: Option<Exit>,
    /// CPU time used on all nodes that reported it.
    pub cpu_time_ns: u64,
    /// The largest of the nodes' peak memory use.
    pub memory_peak_bytes: u64,
    /// The processes killed because of a lack of memory on all nodes, with the smallest of their limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out_of_memory: Option<OutOfMemory>,
}

/// Something that happened to a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// When, since the Unix epoch.
    pub at_ns: u64,
    /// The user who requested it; `None` when no user did.
    pub uid: Option<u32>,
    /// What happened, in a word or two.
    pub what: String,
}

/// The record of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// Its number, never reused in this cluster.
    pub id: u64,
    /// Its owner.
    pub owner: By,
    /// The user's request, with the present class and policy.
    pub ask: JobAsk,
    /// When it was submitted, since the Unix epoch.
    pub submitted_ns: u64,
    /// Its present attempt.
    pub attempt: Attempt,
    /// The nodes on which its last process has ended in this attempt.
    pub ended_on: BTreeMap<String, PartEnd>,
    /// The nodes on which it uses no CPU.
    pub asleep_on: BTreeSet<String>,
    /// The nodes on which it used no CPU for so long that gangs no longer wait for it there. When these are all its nodes, it is left to the
    /// operating system until a user resumes it.
    pub dropped_on: BTreeSet<String>,
    /// The nodes on which it has no process at present. A job without a main process is over when these are all its nodes.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub empty_on: BTreeSet<String>,
    /// Its main process has ended: parts without processes are over.
    pub closing: bool,
    /// What administrators have decided about it.
    #[serde(default, skip_serializing_if = "Decided::is_none")]
    pub decided: Decided,
    /// The user who killed it.
    pub killed_by: Option<u32>,
    /// How it was to be killed.
    pub kill_how: Option<KillHow>,
    /// How the main process ended, if that was on a node without a part of the job.
    pub main_exit: Option<Exit>,
    /// Set when it is over.
    pub end: Option<End>,
    /// Its events, at most `HISTORY_MAX`.
    pub history: Vec<Event>,
}
stored_as_is!(Job, "cosched-job", 1);

impl Job {
    /// A new job.
    pub fn new(id: u64, owner: By, ask: JobAsk, now_ns: u64) -> Job {
        let mut job = Job {
            id,
            owner,
            ask,
            submitted_ns: now_ns,
            attempt: 0,
            ended_on: BTreeMap::new(),
            asleep_on: BTreeSet::new(),
            dropped_on: BTreeSet::new(),
            empty_on: BTreeSet::new(),
            closing: false,
            decided: Decided::default(),
            killed_by: None,
            kill_how: None,
            main_exit: None,
            end: None,
            history: Vec::new(),
        };
        job.note(now_ns, Some(owner.uid), "submitted");
        job
    }

    /// Whether it has no main process; `parts` are the nodes of its parts. Either no lead was named, or the lead was to be on a node that no
    /// longer has a part, and did not run before.
    pub fn is_alike<'a>(&self, mut parts: impl Iterator<Item = &'a str>) -> bool {
        let Some(lead) = self.ask.lead.as_deref() else { return true };
        self.attempt == 0 && self.ask.main.is_none() && !parts.any(|part| part == lead)
    }

    /// The node of its main process in this attempt, if it has one; `parts` are the nodes of its parts, in order. The main process of the first
    /// attempt is on the node where it was submitted, with or without a part there; in later ones on the first part's node, if that node has none.
    pub fn leader<'a>(&'a self, parts: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
        let lead = self.ask.lead.as_deref();
        if self.attempt == 0 {
            return lead;
        }
        let mut first = None;
        for part in parts {
            if Some(part) == lead {
                return lead;
            }
            first.get_or_insert(part);
        }
        first
    }

    /// Records an event; at `HISTORY_MAX` the middle one is dropped.
    pub fn note(&mut self, at_ns: u64, uid: Option<u32>, what: impl Into<String>) {
        if self.history.len() >= HISTORY_MAX {
            self.history.remove(HISTORY_MAX / 2);
        }
        self.history.push(Event { at_ns, uid, what: what.into() });
    }

    /// Whether its main process is on this node, with or without a part there. In later attempts it is always on a node that has a part.
    pub(crate) fn is_led_from(&self, node: &str) -> bool {
        self.ask.lead.as_deref() == Some(node) && self.attempt == 0 && self.main_exit.is_none()
    }

    /// Its next attempt begins.
    pub(crate) fn restart(&mut self) {
        self.attempt += 1;
        self.ended_on.clear();
        self.asleep_on.clear();
        self.dropped_on.clear();
        self.empty_on.clear();
        self.closing = false;
        self.main_exit = None;
    }

    /// How its main process ended, as far as its nodes have reported it.
    pub fn exit(&self) -> Option<Exit> {
        let lead = self.ask.lead.as_ref().and_then(|lead| self.ended_on.get(lead));
        self.main_exit
            .or_else(|| lead.and_then(|end| end.exit))
            .or_else(|| self.ended_on.values().find_map(|end| end.exit))
    }

    /// Records its end, with the sums over its nodes.
    pub(crate) fn finish(&mut self, at_ns: u64, why: Why) {
        let exit = self.exit();
        let ends = self.ended_on.values();
        let memory_peak_bytes = ends.clone().map(|end| end.memory_peak_bytes).max().unwrap_or(0);
        let out_of_memory = ends.clone().filter_map(|end| end.out_of_memory).reduce(OutOfMemory::with);
        let cpu_time_ns = ends.fold(0_u64, |sum, end| sum.saturating_add(end.cpu_time_ns));
        self.end = Some(End { at_ns, why, exit, cpu_time_ns, memory_peak_bytes, out_of_memory });
        self.note(at_ns, None, "ended");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_sums_up_its_parts_and_takes_the_exit_of_the_lead() {
        let ask = JobAsk {
            name: "lu".to_owned(),
            command: vec!["lu".to_owned()],
            cwd: None,
            environment: Vec::new(),
            log_path: None,
            class: Class::Batch,
            policy: None,
            share_permille: None,
            want: WantAsk::Total { cpus: 4, memory_per_cpu_bytes: 0, disk_bytes: 0 },
            queue: None,
            groups: Vec::new(),
            on_node_loss: OnNodeLoss::Kill,
            waiting: None,
            lead: Some("b".to_owned()),
            main: None,
            once: false,
            terms: Default::default(),
        };
        let mut job = Job::new(7, By { uid: 1, gid: 1, admin: false }, ask, 5);
        let end = |code, cpu_time_ns, memory_peak_bytes| PartEnd {
            exit: Some(Exit { code: Some(code), signal: None }),
            cpu_time_ns,
            memory_peak_bytes,
            out_of_memory: Some(OutOfMemory { killed: 1, limit_bytes: Some(memory_peak_bytes) }),
        };
        assert_eq!(job.exit(), None);
        job.ended_on = [("b".to_owned(), end(2, 20, 200))].into();
        assert_eq!(job.exit(), Some(Exit { code: Some(2), signal: None }), "of one that is not over, too");
        job.ended_on.insert("a".to_owned(), end(1, 10, 300));
        assert_eq!(job.leader(["a"]), Some("b"), "with or without a part there");
        job.attempt = 1;
        assert_eq!([job.leader(["a", "c"]), job.leader(["a", "b"])], [Some("a"), Some("b")]);
        job.attempt = 0;
        job.finish(9, Why::Finished);
        let expected = End {
            at_ns: 9,
            why: Why::Finished,
            exit: Some(Exit { code: Some(2), signal: None }),
            cpu_time_ns: 30,
            memory_peak_bytes: 300,
            out_of_memory: Some(OutOfMemory { killed: 2, limit_bytes: Some(200) }),
        };
        assert_eq!(job.end, Some(expected));
    }

    #[test]
    fn of_very_many_events_the_first_and_the_newest_are_kept() {
        let by = By { uid: 1, gid: 1, admin: false };
        let ask = crate::member::tests::job("a", 1);
        let mut job = Job::new(7, by, ask, 0);
        (1..500).for_each(|at| job.note(at, None, "class changed"));
        assert_eq!(job.history.len(), HISTORY_MAX);
        assert_eq!((job.history[0].what.as_str(), job.history[HISTORY_MAX - 1].at_ns), ("submitted", 499));
    }

    #[test]
    fn a_new_life_knows_nothing_of_the_last_one() {
        let by = By { uid: 1, gid: 1, admin: false };
        let mut job = Job::new(7, by, crate::member::tests::job("a", 1), 0);
        assert!(job.is_led_from("n0") && !job.is_led_from("n1"));
        job.ended_on.insert("n0".to_owned(), PartEnd::default());
        for on in [&mut job.asleep_on, &mut job.dropped_on, &mut job.empty_on] {
            on.insert("n0".to_owned());
        }
        (job.closing, job.main_exit) = (true, Some(Exit::default()));
        assert!(!job.is_led_from("n0"), "it has ended there");
        job.restart();
        let fresh = Job { attempt: 1, ..Job::new(7, by, crate::member::tests::job("a", 1), 0) };
        assert_eq!(job, fresh);
        assert!(!job.is_led_from("n0"), "its processes are told by cgroups from now on");
    }
}
