//! The record of a job: the part that outlives the daemon, as it is in a line of the journal. The forms of what it has of the API are in `stored.rs`.

use crate::stored::{self, As, Each, Maybe, Version};
use crate::words::{core_class, core_policy, slot_share};
use cosched_api::{Class, Event, ExitStatus, JobRequest, JobWaiting, NodeResources, OutOfMemory, Policy};
use cosched_cluster::wire::{Ask, Decided};
use cosched_core::{JobId, SlotShare};
use cosched_node::Whose;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The size of a record without its texts, in bytes.
const RECORD_BYTES: usize = 768;

/// At most this many events are kept of a job: the first ones and the newest.
const EVENTS_MAX: usize = 200;

/// A job as the store keeps it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    #[serde(default)]
    pub(crate) version: Version,
    /// Never used again in this state directory.
    pub(crate) id: u64,
    /// For display.
    pub(crate) name: String,
    /// Its owner.
    pub(crate) uid: u32,
    /// Its class.
    #[serde(with = "As::<stored::Class>")]
    pub(crate) class: Class,
    /// Its own policy, if it does not follow the machine's.
    #[serde(default, with = "Maybe::<stored::Policy>")]
    pub(crate) own_policy: Option<Policy>,
    /// The limit on its part of the slots, in thousandths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) share_permille: Option<u32>,
    /// The number of CPUs that it uses at a time.
    pub(crate) cpus: u32,
    /// It has its cores to itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) exclusive_cores: bool,
    /// Declared memory, in bytes.
    pub(crate) mem_bytes: Option<u64>,
    /// The program and its arguments.
    pub(crate) command: Vec<String>,
    /// The working directory.
    pub(crate) cwd: Option<String>,
    /// The number of its first process.
    pub(crate) pid: i32,
    /// The time of its registration.
    pub(crate) submitted_unix_ms: u64,
    /// No terminal waits for it.
    pub(crate) detached: bool,
    /// The file of its output.
    pub(crate) log_path: Option<String>,
    /// The boot in which it was started: its cgroup does not outlive the boot.
    pub(crate) boot_id: String,
    /// A user or an administrator stopped it.
    pub(crate) suspended: bool,
    /// How its main process ended.
    #[serde(default, with = "Maybe::<stored::ExitStatus>")]
    pub(crate) exit: Option<ExitStatus>,
    /// When its last process ended.
    pub(crate) ended_unix_ms: Option<u64>,
    /// It ended unobserved.
    pub(crate) lost: bool,
    /// CPU time used, at its end.
    pub(crate) cpu_time_ms: u64,
    /// The most memory it used, at its end.
    pub(crate) memory_peak_bytes: Option<u64>,
    /// How many of its processes were killed for lack of memory, at its end.
    #[serde(default, with = "Maybe::<stored::OutOfMemory>", skip_serializing_if = "Option::is_none")]
    pub(crate) out_of_memory: Option<OutOfMemory>,
    /// Its events.
    #[serde(with = "Each::<stored::Event>")]
    pub(crate) events: Vec<Event>,
    /// How its processes wait; the counts are those at its end.
    #[serde(default, with = "Maybe::<stored::JobWaiting>")]
    pub(crate) waiting: Option<JobWaiting>,
    /// How often it was boosted, at its end.
    #[serde(default)]
    pub(crate) boosts: u64,
    /// The resources that it was given on each node, when it requested them node by node.
    #[serde(default, with = "Each::<stored::NodeResources>")]
    pub(crate) nodes: Vec<NodeResources>,
    /// It was registered without a process: no launcher reports how its main process ends.
    #[serde(default)]
    pub(crate) by_api: bool,
    /// An administrator registered it.
    #[serde(default)]
    pub(crate) by_admin: bool,
    /// Administrators' decisions about it.
    #[serde(default, skip_serializing_if = "Decided::is_none")]
    pub(crate) decided: Decided,
    /// The cgroups in which its first process was before; processes that leave the job are moved there.
    #[serde(default)]
    pub(crate) origin: Option<Origin>,
    /// The CPUs of its place; empty when it may use all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) place: Vec<u32>,
    /// The processes from which it was adopted, if they existed before it was a job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) adopted: Option<Adopted>,
    /// Its part on this node, if it is a job of a cluster.
    #[serde(default)]
    pub(crate) part: Option<PartOf>,
}

/// Settings that the machine's operator changed while the daemon ran; they outlive a restart.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Settings {
    #[serde(default)]
    pub(crate) version: Version,
    /// The machine's policy.
    #[serde(default, with = "Maybe::<stored::Policy>")]
    pub(crate) policy: Option<Policy>,
    /// Soft or strict.
    #[serde(default, with = "Maybe::<stored::Sharing>")]
    pub(crate) sharing: Option<cosched_api::Sharing>,
    /// The length of a slot.
    pub(crate) slot_length_ms: Option<u64>,
    /// The number of daemons that were started on this state.
    #[serde(default)]
    pub(crate) starts: u64,
    /// The settings of the configuration file at the last start, on one machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) file: Vec<Ask>,
}

/// The part of a cluster's job on this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PartOf {
    /// The attempt of the job, as it may be started more than once.
    pub(crate) attempt: u32,
    /// The job has other nodes, too.
    pub(crate) spans: bool,
    /// Its main process runs here.
    pub(crate) lead: bool,
    /// It is to end, or its main process has ended: it is over as soon as no process is left on this node.
    pub(crate) closing: bool,
    /// Its processes were told to end; those that are left this number of milliseconds after a start of the daemon are killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) grace_ms: Option<u64>,
    /// That time by the last plan that said how it was to end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) planned_ms: Option<u64>,
    /// The incarnation of the cluster's store in which it began; 0 if unknown.
    #[serde(default)]
    pub(crate) tree: u64,
    /// It has no main process on any node: it is over when it has no processes on any of them.
    #[serde(default)]
    pub(crate) alike: bool,
}

impl PartOf {
    pub(crate) fn kept(of: &cosched_node::PartOf, spans: bool) -> PartOf {
        let cosched_node::PartOf { attempt, tree, lead, alike, closing, grace_ms, planned_ms, decided: _ } = *of;
        PartOf { attempt, spans, lead, closing, grace_ms, planned_ms, tree, alike }
    }
}

/// The part of a job from the time before each machine was a cluster of one.
pub(crate) const ALONE: PartOf = PartOf {
    attempt: 0,
    spans: false,
    lead: true,
    closing: false,
    grace_ms: None,
    planned_ms: None,
    tree: 0,
    alike: false,
};

/// The origin of a job that existed before it became one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Adopted {
    /// Its cgroup, outside our subtree; `None` where its processes were moved.
    pub(crate) cgroup: Option<String>,
    /// The name by which users know it.
    pub(crate) from: Option<String>,
    /// The limits that its owner had set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) limits: Vec<String>,
    /// The share that its owner's quota was turned into, in thousandths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) quota_permille: Option<u32>,
    /// It is no longer a job, and its processes continue.
    #[serde(default)]
    pub(crate) released: bool,
}

impl Adopted {
    fn bytes(&self) -> usize {
        let texts = self.cgroup.iter().chain(&self.from).chain(&self.limits);
        texts.map(|text| crate::sizes::weight(text) + 3).sum::<usize>() + 64
    }

    /// The form that all users may see.
    pub(crate) fn view(&self) -> cosched_api::Adopted {
        let Adopted { cgroup, from, limits, quota_permille, released } = self.clone();
        let quota = quota_permille.map(crate::words::api_share);
        cosched_api::Adopted { cgroup, from, limits, quota, released }
    }
}

/// The cgroups of a process, each relative to its mount.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Origin {
    /// In the v2 hierarchy.
    pub(crate) v2: String,
    /// Of the v1 cpu controller.
    pub(crate) cpu: Option<String>,
    /// Of the v1 memory controller.
    pub(crate) memory: Option<String>,
    /// Of the v1 pids controller.
    #[serde(default)]
    pub(crate) pids: Option<String>,
}

impl From<&cosched_linux::Origin> for Origin {
    fn from(from: &cosched_linux::Origin) -> Origin {
        let text = |path: &PathBuf| path.to_string_lossy().into_owned();
        let part = |path: &Option<PathBuf>| path.as_ref().map(text);
        Origin { v2: text(&from.v2), cpu: part(&from.cpu), memory: part(&from.memory), pids: part(&from.pids) }
    }
}

impl From<&Origin> for cosched_linux::Origin {
    fn from(from: &Origin) -> cosched_linux::Origin {
        let path = |text: &String| PathBuf::from(text);
        let part = |text: &Option<String>| text.as_ref().map(path);
        Self { v2: path(&from.v2), cpu: part(&from.cpu), memory: part(&from.memory), pids: part(&from.pids) }
    }
}

impl Record {
    /// The fields that decide about rights.
    pub(crate) fn whose(&self) -> Whose {
        let (class, policy) = (core_class(self.class), self.own_policy.map(core_policy));
        let share = self.share_permille.and_then(SlotShare::new);
        Whose { job: JobId(self.id), owner: self.uid, class, policy, share, decided: self.decided }
    }

    /// A new job from a request that has been checked.
    pub(crate) fn new(id: u64, uid: u32, cpus: u32, req: JobRequest, boot_id: &str, now_unix_ms: u64) -> Record {
        let name = req.name.unwrap_or_else(|| base_name(&req.command));
        let default_class = if req.detached { Class::Batch } else { Class::Interactive };
        Record {
            version: Version,
            id,
            name,
            uid,
            class: req.class.unwrap_or(default_class),
            own_policy: req.policy,
            // The request has been checked.
            share_permille: req.share_max.and_then(|part| slot_share(part).ok()).map(SlotShare::permille),
            cpus,
            exclusive_cores: req.exclusive_cores,
            mem_bytes: req.mem_bytes,
            command: shown(req.command),
            cwd: req.cwd,
            pid: req.pid,
            submitted_unix_ms: now_unix_ms,
            detached: req.detached,
            log_path: req.log_path,
            boot_id: boot_id.to_owned(),
            suspended: false,
            exit: None,
            ended_unix_ms: None,
            lost: false,
            cpu_time_ms: 0,
            memory_peak_bytes: None,
            out_of_memory: None,
            events: Vec::new(),
            waiting: req.waiting.map(|asked| JobWaiting { asked, ..JobWaiting::default() }),
            boosts: 0,
            nodes: Vec::new(),
            by_api: req.pid == 0,
            by_admin: false,
            decided: Decided::default(),
            origin: None,
            place: Vec::new(),
            adopted: None,
            part: None,
        }
    }

    /// Its approximate size on the disk, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        let command: usize = self.command.iter().map(|word| word.len() + 3).sum();
        let events: usize = self.events.iter().map(|event| event.what.len() + event.detail.len() + 48).sum();
        let of_origin = self.origin.iter().flat_map(|from| [&from.cpu, &from.memory, &from.pids]).flatten();
        let paths =
            self.cwd.iter().chain(&self.log_path).chain(self.origin.iter().map(|from| &from.v2)).chain(of_origin);
        let paths: usize = paths.map(String::len).sum::<usize>() + self.adopted.as_ref().map_or(0, Adopted::bytes);
        (RECORD_BYTES + self.name.len() + command + events + paths + self.nodes.len() * 96 + self.place.len() * 5)
            as u64
    }

    /// Whether it is over.
    pub(crate) fn ended(&self) -> bool {
        self.ended_unix_ms.is_some()
    }

    /// When its processes were last registered on this node.
    pub(crate) fn started_unix_ms(&self) -> Option<u64> {
        self.events.iter().rev().find(|event| event.what == "registered").map(|event| event.unix_ms)
    }

    /// Adds an event; if there are too many, those in the middle are removed.
    pub(crate) fn event(&mut self, unix_ms: u64, what: &str, detail: impl Into<String>) {
        if self.events.len() >= EVENTS_MAX {
            self.events.remove(EVENTS_MAX / 2);
        }
        self.events.push(Event { unix_ms, what: what.to_owned(), detail: detail.into() });
    }
}

/// The length of the displayed command, in bytes: ended jobs are kept, too, and users may write long commands.
const COMMAND_BYTES_MAX: usize = 8 << 10;

/// A command that is kept for display and not for execution: its first words, and … for the rest.
pub(crate) fn shown(command: Vec<String>) -> Vec<String> {
    cut_to(command, COMMAND_BYTES_MAX)
}

/// The first words of a command, and … for the rest.
pub(crate) fn cut_to(mut command: Vec<String>, bytes_max: usize) -> Vec<String> {
    let mut left = bytes_max;
    for at in 0..command.len() {
        let word = &mut command[at];
        let bytes = crate::sizes::weight(word);
        if bytes < left {
            left -= bytes + 1;
            continue;
        }
        word.truncate(crate::sizes::cut(word, left).len());
        word.push('…');
        command.truncate(at + 1);
        break;
    }
    command
}

/// The name of a program without its directories.
pub(crate) fn base_name(command: &[String]) -> String {
    let program = command.first().map(String::as_str).unwrap_or("?");
    crate::sizes::cut(program.rsplit('/').next().unwrap_or(program), crate::sizes::NAME_BYTES_MAX).to_owned()
}

#[cfg(test)]
pub(crate) fn example(id: u64) -> Record {
    let req = JobRequest { command: vec!["/bin/sleep".to_owned(), "1".to_owned()], pid: 77, ..JobRequest::default() };
    Record::new(id, 1000, 2, req, "boot", 5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_the_programs_base_name() {
        assert_eq!(example(1).name, "sleep");
    }

    #[test]
    fn a_detached_job_is_batch_unless_it_says_otherwise() {
        let mut req = JobRequest { command: vec!["x".to_owned()], pid: 1, detached: true, ..JobRequest::default() };
        assert_eq!(Record::new(1, 0, 1, req.clone(), "b", 0).class, Class::Batch);
        req.class = Some(Class::Standby);
        assert_eq!(Record::new(1, 0, 1, req, "b", 0).class, Class::Standby);
    }

    #[test]
    fn long_commands_are_cut() {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
        assert_eq!(shown(words(&["a", "b c"])), words(&["a", "b c"]));
        let long = shown(words(&["sh", "-c", &"ä".repeat(COMMAND_BYTES_MAX), "more"]));
        assert_eq!(long.len(), 3);
        assert!(long[2].ends_with("ä…") && long[2].len() <= COMMAND_BYTES_MAX);
        let many = shown(vec![String::new(); 3 * COMMAND_BYTES_MAX]);
        assert_eq!((many.len(), many.last().unwrap().as_str()), (COMMAND_BYTES_MAX + 1, "…"));
        assert!(shown(Vec::new()).is_empty());
    }

    #[test]
    fn where_a_job_came_from_counts() {
        let mut r = example(1);
        let before = r.bytes();
        r.origin = Some(Origin { v2: "d".repeat(4000), cpu: None, memory: Some("m".to_owned()), pids: None });
        assert_eq!(r.bytes(), before + 4001);
    }

    #[test]
    fn events_are_bounded_and_keep_the_first_and_the_newest() {
        let mut r = example(1);
        for i in 0..500 {
            r.event(i, "class", "");
        }
        assert_eq!(r.events.len(), EVENTS_MAX);
        assert_eq!(r.events[0].unix_ms, 0);
        assert_eq!(r.events.last().unwrap().unix_ms, 499);
    }

    #[test]
    fn a_records_size_counts_all_that_users_may_make_long() {
        let short = example(1);
        let word = "x".repeat(1000);
        let mut long = short.clone();
        long.name.clone_from(&word);
        long.command = vec![word.clone()];
        (long.cwd, long.log_path) = (Some(word.clone()), Some(word.clone()));
        long.event(0, "class", word.clone());
        assert!(long.bytes() >= short.bytes() + 5000 - 100, "{}", long.bytes());
        let mut many = short.clone();
        many.nodes = vec![NodeResources { name: "n1".to_owned(), cpus: Some(2), ..NodeResources::default() }; 100];
        many.command = vec![String::new(); 1000];
        let stored = serde_json::to_vec(&many).unwrap();
        assert!(many.bytes() >= stored.len() as u64, "{} bytes are counted, {} written", many.bytes(), stored.len());
    }

    #[test]
    fn a_job_without_a_first_process_has_no_launcher() {
        let req = |pid| JobRequest { command: vec!["x".to_owned()], pid, ..JobRequest::default() };
        assert!(Record::new(1, 0, 1, req(0), "b", 0).by_api);
        assert!(!Record::new(1, 0, 1, req(5), "b", 0).by_api);
        assert_eq!(Record::new(1, 0, 1, req(5), "b", 0).class, Class::Interactive);
    }

    #[test]
    fn a_name_is_what_can_be_shown_of_the_program() {
        let name = |program: &str| base_name(&[program.to_owned()]);
        assert_eq!((name("/usr/bin/env"), name("env"), name("/")), ("env".to_owned(), "env".to_owned(), String::new()));
        assert_eq!(base_name(&[]), "?");
        assert_eq!(name(&"n".repeat(1000)).len(), crate::sizes::NAME_BYTES_MAX);
    }

    #[test]
    fn where_a_process_came_from_is_the_same_when_it_is_read_again() {
        let full =
            Origin { v2: "/a".to_owned(), cpu: Some("/b".to_owned()), memory: None, pids: Some("/c".to_owned()) };
        assert_eq!(Origin::from(&cosched_linux::Origin::from(&full)), full);
    }
}
