//! This node in its cluster: the orders of the control plane (`cosched_cluster::Member`) are carried out here, and users' requests are passed to it.
//!
//! Decisions are made by `cosched_node::Node`; this module carries out its actions. To the rest of the driver, a job's part on this node is what a
//! job of one machine is: a record, a cgroup, a place in the plan. The cluster's number is the job's number.

mod act;
mod admin;
mod ask;
mod fence;
mod held_calls;
mod import;
mod kept;
mod launch;
mod mains;
mod operate;
mod own;
mod parts;
mod refusal;
mod terms;
mod view;

use super::Driver;
use crate::call::Call;
use crate::clock::now;
use crate::cluster::{FromStore, Link};
use crate::config::{ClusterConfig, Config, StoreChoice};
use crate::record::Record;
use crate::store::{State, Store};
use crate::words::{self, core_policy, core_sharing};
use ask::{Asker, Launcher};
use cosched_api::ErrorBody;
use cosched_cluster::wire::{Clock, Exit, PartEnd};
use cosched_cluster::{Fenced, Found, Kept, Member, Moment, Settings};
use cosched_core::cluster::{Capacity, Config as CoreConfig, LocalConfig, Part, Period};
use cosched_core::{AgentConfig, JobId, Reason, Shares, Time};
use cosched_linux::fence::Fences;
use cosched_node::{Action, Input, Node, RequestId};
use kept::KeptFile;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;
use tokio::time::Instant;

/// How often the load of programs that are not registered, and the memory of jobs, are sampled.
const LOOK_PERIOD: Duration = Duration::from_secs(5);

/// How often the processes of launchers are checked.
const LAUNCHER_PERIOD: Duration = Duration::from_secs(1);

/// A job's memory has to grow by more than this before other nodes are told.
const MEMORY_STEP: u64 = 16 << 20;

/// The memory, and the disk, of a machine on which no job waits for them.
const NO_LIMIT: u64 = cosched_core::cluster::NUMBERS_END - 1;

/// The steady clock's value at the daemon's start: times of an earlier daemon are before it.
const STEADY_BEGIN_NS: u64 = 1 << 60;

/// Counters for the metrics.
#[derive(Debug, Default)]
pub(super) struct Figures {
    /// Slots in which this node ran an older plan than it should have.
    pub(super) missed_slots: u64,
    /// Generations that exist and have not been seen here.
    pub(super) behind: u64,
    /// Plans made by this node.
    pub(super) planned: u64,
    /// Plans that lost against another node's.
    pub(super) conflicts: u64,
    /// How often the store was lost.
    pub(super) losses: u64,
}

/// The driver's state of the cluster.
pub(super) struct Cluster {
    name: String,
    /// It is a single machine, whose store is its own file.
    alone: bool,
    own_name: String,
    /// Whether other nodes may start its jobs again.
    fences: bool,
    /// The deadlines that the guard was told last.
    fenced: Option<Vec<Fenced>>,
    /// The node, which makes this node's decisions.
    pub(super) node: Node,
    link: Link,
    begin: Instant,
    /// Why gangs that span nodes have no slots, while they have none.
    no_slots: Option<Reason>,
    /// Requests about jobs that arrived before the store was met, and when.
    held_calls: Vec<(Instant, Call)>,
    /// The receivers of the node's answers, by the number of the request.
    asked: BTreeMap<RequestId, Asker>,
    last_request: u64,
    /// Twice the number of waiting requests after the last removal of disconnected ones.
    asked_after_look: usize,
    /// Processes that wait for their jobs to start.
    launchers: BTreeMap<RequestId, Launcher>,
    launchers_look_at: Instant,
    /// Why jobs could not begin, in this turn.
    failures: BTreeMap<u64, ErrorBody>,
    /// Main processes outside their job's nodes that had ended at the last check.
    mains_gone: BTreeSet<u64>,
    /// Whether the queues of the configuration have been compared with the cluster's.
    compared: bool,
    figures: Figures,
    /// The copy of the state on this node's disk.
    kept: KeptFile,
    /// Keys that had been deleted and were written again, and when.
    rewritten: BTreeMap<String, Instant>,
    /// Why the store cannot be reached, or not be used.
    problem: Option<String>,
    look_at: Instant,
    /// When waiting jobs are expected to start, in milliseconds since the Unix epoch; computed for the state of this revision.
    starts: Mutex<(u64, BTreeMap<JobId, u64>)>,
}

impl Cluster {
    /// A node that has not met its cluster yet. `state` contains its jobs.
    ///
    /// # Errors
    /// The configuration of the store is invalid.
    pub(super) fn new(
        of: &Config,
        memory_bytes: u64,
        (identity, shares): (&super::Identity, Shares),
        (store, state, fences): (&mut Store, &mut State, &Path),
    ) -> anyhow::Result<Cluster> {
        let config = &of.cluster;
        let alone = config.is_alone();
        if !alone {
            // The lease is renewed after each third of it, by the thread that waits for the disk.
            store.wait_at_most(config.node_lease / 5);
        }
        let kept = KeptFile::new(&identity.state_dir, alone);
        let mut settings = settings(of, memory_bytes, identity, state, kept.read());
        if alone {
            import::import((store, state), config, &settings)?;
            settings.jobs_known = state.last_id;
        }
        let link = Link::new(config, Duration::from_nanos(settings.answer_ns_max()))?;
        let begin = Instant::now();
        let (moment, left) = (Moment { steady: Time(STEADY_BEGIN_NS), wall: now() }, Fences::read(fences));
        let found = |record| Some(Found { fence_at: fence::found(&left, record, moment), ..found(record)? });
        let found: Vec<Found> = state.jobs.values().filter_map(found).collect();
        let fences = settings.fences;
        let mut node = Node::new(moment, settings, local(of, identity, state, shares), memory_bytes, &found)
            .limited_to(identity.cpus_at_a_time);
        let is_all = |record: &&Record| record.ended() && !record.lost;
        for record in state.jobs.values().filter(is_all) {
            if let Some(part) = record.part.filter(|part| !part.spans) {
                node.find_over(JobId(record.id), part.attempt);
            }
        }
        Ok(Cluster {
            name: config.name.clone(),
            alone,
            own_name: config.node.clone(),
            fences,
            fenced: None,
            node,
            link,
            begin,
            no_slots: None,
            held_calls: Vec::new(),
            asked: BTreeMap::new(),
            last_request: 0,
            asked_after_look: 0,
            launchers: BTreeMap::new(),
            launchers_look_at: begin,
            failures: BTreeMap::new(),
            mains_gone: BTreeSet::new(),
            compared: false,
            figures: Figures::default(),
            kept,
            rewritten: BTreeMap::new(),
            problem: Some("it has not answered yet".to_owned()),
            look_at: begin,
            starts: Mutex::default(),
        })
    }

    /// This node's member of the control plane.
    fn member(&self) -> &Member {
        self.node.member()
    }

    /// Passes an event to the member.
    fn tell<R>(&mut self, what: impl FnOnce(&mut Member, Moment) -> R) -> R {
        self.node.tell(self.moment(), what)
    }

    /// Passes an event of this node to the node.
    pub(super) fn handle(&mut self, input: Input) {
        self.node.handle(self.moment(), input);
    }

    pub(super) fn moment(&self) -> Moment {
        Moment { steady: Time(STEADY_BEGIN_NS + self.begin.elapsed().as_nanos() as u64), wall: now() }
    }

    /// The parts of a job's place; empty while it has no place.
    fn parts(&self, id: u64) -> &[Part] {
        let planned = self.member().state().and_then(|state| state.jobs.get(&JobId(id)));
        planned.and_then(|job| job.place.as_ref()).map_or(&[], |place| &place.parts)
    }

    /// The next message from the store.
    pub(super) async fn told(&mut self) -> FromStore {
        self.link.told().await
    }

    /// When something is due.
    pub(super) fn due(&self) -> Instant {
        let node =
            self.node.poll_timeout().map(|at| self.begin + Duration::from_nanos(at.0.saturating_sub(STEADY_BEGIN_NS)));
        let held_calls = self.held_calls.iter().map(|(since, _)| *since + ask::ANSWER_TIME_MAX);
        let launchers = (!self.launchers.is_empty()).then_some(self.launchers_look_at);
        node.into_iter().chain(self.kept.due()).chain(launchers).chain(held_calls).fold(self.look_at, Instant::min)
    }
}

/// The member's settings.
fn settings(of: &Config, memory_bytes: u64, identity: &super::Identity, state: &State, kept: Option<Kept>) -> Settings {
    let (config, instance) = (&of.cluster, identity.started_unix_ms);
    let alone = config.is_alone();
    let boot = cosched_linux::observe::boot_id();
    let limit = |bytes: u64| if config.admits_by_memory { bytes } else { NO_LIMIT };
    let (memory_bytes, disk_bytes) = (limit(memory_bytes), limit(identity.disk_bytes));
    let capacity = Capacity { cpus: identity.cpus.len() as u32, memory_bytes, disk_bytes };
    Settings {
        home: identity.home.clone(),
        dead: (!alone).then(|| crate::lives::begin(&identity.state_dir, &boot, instance)),
        is_shared: !alone,
        kept,
        boot,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        initial: initial(config, of, alone.then_some(&state.settings)),
        jobs_known: state.last_id,
        ttl_s: config.node_lease.as_secs().max(2),
        // No other node could start the jobs of a single machine again.
        fences: matches!(config.store, StoreChoice::Etcd(_)),
        rebalance_ns: config.rebalance_period.as_nanos() as u64,
        keep_ended_max: of.keep_ended,
        keep_ended_bytes: of.limits.record_bytes,
        // The driver reports the clock in its first step.
        clock: Clock { synchronised: !of.require_synchronised_clock, error_ns: 0 },
        ..Settings::new(config.keys(), &config.node, instance, capacity)
    }
}

/// The node's configuration until it has met its cluster.
fn local(of: &Config, identity: &super::Identity, state: &State, shares: Shares) -> LocalConfig {
    let initial = initial(&of.cluster, of, Some(&state.settings));
    LocalConfig {
        slot_length_ns: initial.slot_length_ns,
        policy: initial.policy,
        sharing: initial.sharing,
        packing: of.packing,
        shares,
        is_single: of.cluster.is_alone(),
        topology: crate::places::for_planner(of.places, &identity.cpus),
        // The slot thread drives the boundaries.
        agent: AgentConfig {
            idle_after_ns: of.idle_after.as_nanos() as u64,
            drop_after_ns: of.drop_after.as_nanos() as u64,
            drive_boundaries: false,
            ..AgentConfig::default()
        },
        ..LocalConfig::new(identity.cpus.len() as u32)
    }
}

/// The initial configuration of a cluster, if this node is its first. On a single machine it includes the settings changed while it ran.
fn initial(config: &ClusterConfig, of: &Config, set: Option<&crate::store::Settings>) -> CoreConfig {
    let slot_length = set.and_then(|set| set.slot_length_ms).map(Duration::from_millis);
    CoreConfig {
        slot_length_ns: slot_length.unwrap_or(of.slot_length).as_nanos() as u64,
        policy: set.and_then(|set| set.policy).map_or(of.policy, core_policy),
        sharing: set.and_then(|set| set.sharing).map_or(of.sharing, core_sharing),
        packing: config.packing,
        rows_max: config.rows_max,
        working: of.shares,
        off: of.off_hours,
        ceiling_permille: config.ceiling_permille,
        node_dead_after_ns: config.node_dead_after_ns,
        queues: config.queues.clone(),
        fair_share: config.fair_share,
        ..CoreConfig::default()
    }
}

/// A job of the last run, in the control plane's form.
fn found(record: &Record) -> Option<Found> {
    let part = record.part?;
    let ended = record.ended().then(|| part_end(record));
    let (job, submitted_ms) = (JobId(record.id), record.submitted_unix_ms);
    Some(Found { job, attempt: part.attempt, tree: part.tree, submitted_ms, ended, fence_at: None })
}

/// The report about a part that is over.
fn part_end(record: &Record) -> PartEnd {
    PartEnd {
        exit: record.exit.map(|exit| Exit { code: exit.code, signal: exit.signal }),
        cpu_time_ns: record.cpu_time_ms.saturating_mul(1_000_000),
        memory_peak_bytes: record.memory_peak_bytes.unwrap_or(0),
        out_of_memory: record.out_of_memory.map(words::out_of_memory),
    }
}

impl Driver {
    /// Joins the cluster. On a single machine the store is met before the first request.
    pub(super) fn join_cluster(&mut self) {
        if let Some(period) = self.view_period() {
            self.tell_period(period);
        }
        if self.cluster.alone {
            self.heed_store();
            self.tell_file();
            self.heed_store();
        }
    }

    /// A node's memory, from the memory that the plan counts on.
    pub(super) fn memory_of(&self, planned_bytes: u64) -> u64 {
        if planned_bytes == NO_LIMIT { self.memory_bytes } else { planned_bytes }
    }

    /// The node's name.
    pub(super) fn node_name(&self) -> String {
        self.cluster.own_name.clone()
    }

    /// Handles a message from the store.
    pub(super) fn on_store(&mut self, told: FromStore) {
        self.teller.touch();
        if let FromStore::Done(_, Err(why)) | FromStore::WatchLost(_, why) = &told {
            tracing::debug!("the store: {why}");
        }
        let cluster = &mut self.cluster;
        match told {
            FromStore::Done(op, done) => cluster.node.done(cluster.moment(), op, done),
            FromStore::News(watch, news) => cluster.tell(|member, now| member.handle_news(now, watch, news)),
            FromStore::WatchLost(watch, why) => cluster.tell(|member, now| member.handle_watch_lost(now, watch, why)),
        }
    }

    /// Handles the timers of the cluster that are due.
    pub(super) fn on_time_in_cluster(&mut self) {
        let cluster = &mut self.cluster;
        cluster.handle(Input::Timeout);
        if cluster.look_at <= Instant::now() {
            cluster.look_at = Instant::now() + LOOK_PERIOD;
            self.look_at_use();
            self.look_at_mains();
        }
        if self.cluster.launchers_look_at <= Instant::now() {
            self.cluster.launchers_look_at = Instant::now() + LAUNCHER_PERIOD;
            self.look_at_launchers();
        }
        self.refuse_overdue_calls();
    }

    /// Applies the member's new state; the host settles then.
    fn follow_cluster(&mut self) {
        self.keep_fences();
        let cluster = &mut self.cluster;
        cluster.kept.keep(cluster.node.member());
        self.compare_queues();
        self.answer_held_calls();
    }

    /// Tells the member the state of the clock that others have to know.
    pub(super) fn tell_clock(&mut self) {
        let synchronised = self.clock.holds().is_none();
        let error_ns = self.clock.view().error_us_max.unwrap_or(0).saturating_mul(1000);
        self.cluster.handle(Input::Clock(Clock { synchronised, error_ns }));
    }

    /// Tells the member the period of the day, by this node's calendar.
    pub(super) fn tell_period(&mut self, period: cosched_api::Period) {
        let period = match period {
            cosched_api::Period::Working => Period::Working,
            cosched_api::Period::Off => Period::Off,
        };
        self.cluster.tell(|member, now| member.calendar(now, period));
    }

    /// Reports the load beside gangs, and the memory that jobs use.
    fn look_at_use(&mut self) {
        let cluster = &mut self.cluster;
        if let Some(load) = cosched_linux::observe::load() {
            let gangs = super::neighbours::gang_cpus(&self.plan).min(self.identity.cpus.len() as u32);
            cluster.tell(|member, now| {
                member.load(now, (load.average[0].round() as u32).saturating_sub(gangs));
                member.measured(now, operate::measured(now, &load));
            });
        }
        let own = cluster.member().id();
        // On a machine without a memory limit this is not needed.
        let live = self.live.iter().filter(|_| self.config.cluster.admits_by_memory);
        for (id, live) in live {
            let Some(bytes) = live.cgroup.memory_peak().or_else(|| live.cgroup.memory_current()) else { continue };
            let part = cluster.parts(*id).iter().find(|part| Some(part.node) == own);
            let known = part.map_or(0, |part| part.memory_bytes);
            if bytes > known + (known / 16).max(MEMORY_STEP) {
                cluster.tell(|member, now| member.memory(now, JobId(*id), bytes));
            }
        }
    }

    /// Leaves the cluster, if no job is left here: with jobs the node stays a member and returns later.
    pub(super) async fn leave(&mut self) {
        let cluster = &mut self.cluster;
        let is_left = self.live.is_empty() && cluster.member().mains().next().is_none();
        if !is_left || !cluster.member().is_joined() {
            return;
        }
        cluster.tell(|member, now| member.leave(now));
        let left = async {
            loop {
                while let Some(action) = cluster.node.poll_action() {
                    match action {
                        Action::Store(op, what) => {
                            cluster.link.call(op, what, Some((&mut self.store, &self.state)));
                        }
                        Action::Say(cosched_cluster::Notice::Left) => return,
                        _ => (),
                    }
                }
                if let FromStore::Done(op, done) = cluster.link.told().await {
                    cluster.tell(|member, now| member.handle_done(now, op, done));
                }
            }
        };
        if tokio::time::timeout(Duration::from_secs(2), left).await.is_err() {
            tracing::info!("the store did not answer; the node's lease will expire");
        }
    }
}
