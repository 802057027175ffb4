//! The driver: one task owns all state, waits for one thing at a time, applies it, and settles.
//!
//! What can arrive: a request, the end of a job's last process, a deadline, the death of the guard, the order to end. After each, `settle` lets the
//! planner and the agent decide what follows, and hands the slot thread a new table when the plan has changed. Nothing here decides about scheduling:
//! that is core's work.

mod adopt;
mod annex;
mod answer;
mod boost;
mod caps;
mod change;
mod clock;
mod cluster;
mod finish;
mod flaw;
mod limits;
mod load;
mod machine;
mod member;
mod metrics;
mod neighbours;
mod period;
mod places;
mod quota;
mod recover;
mod register;
mod samples;
mod shares;
mod signals;
mod sleep;
mod statusfile;
mod tell;
mod usage;
mod view;
mod waiting;
mod watchdog;

pub(crate) use clock::not_good_enough;

use crate::accounting::Accounting;
use crate::call::{Call, Reply};
use crate::clock::now;
use crate::config::Config;
use crate::guard::GuardKeeper;
use crate::neighbours::Neighbours;
use crate::pace;
use crate::places::Mover;
use crate::pollable::pollable;
use crate::probe::ProbeKeeper;
use crate::record::Record;
use crate::refuse::{Answer, no_such_job};
use crate::rights::Rights;
use crate::spans::Spans;
use crate::store::{Settings, State, Store};
use crate::waitpage::WaitPage;
use crate::watchdogs::Watchdogs;
use anyhow::Context;
use cluster::Cluster;
use cosched_api::{Job, Warning};
use cosched_cluster::wire::Attempt;
use cosched_core::{JobId, Plan, Table, Time};
use cosched_linux::{Blocks, EndWatch, JobCgroup, SlotThread, Subgangs, Tree};
use cosched_node::{Input, Running, Sampled};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// At most this number of requests is handled before deadlines and other events are checked again: users may send requests without a pause.
const CALLS_AT_A_TIME: usize = 64;
/// Or those that arrived in this time.
const TURN_MAX: std::time::Duration = std::time::Duration::from_millis(100);

/// Facts about the daemon itself.
#[derive(Debug)]
pub(crate) struct Identity {
    /// The present connections, and the bytes held for users.
    pub(crate) inside: (crate::door::Places, crate::budget::Budget),
    /// Where events are published.
    pub(crate) events: crate::events::EventLog,
    /// The path of the socket.
    pub(crate) socket: String,
    /// Started on demand; ends when it is no longer needed.
    pub(crate) embedded: bool,
    /// When the daemon started.
    pub(crate) started_unix_ms: u64,
    /// The cgroup layout in words.
    pub(crate) layout: String,
    /// The CPUs, by number.
    pub(crate) cpus: Vec<u32>,
    /// The number of them that jobs can use at a time: without cgroups of their own they stay under the quota of the daemon's.
    pub(crate) cpus_at_a_time: u32,
    /// The directory of jobs' wait pages.
    pub(crate) wait_dir: PathBuf,
    /// This machine and the state directory, which no other running daemon has.
    pub(crate) home: String,
    /// The state directory.
    pub(crate) state_dir: PathBuf,
    /// The size of that directory's file system, in bytes.
    pub(crate) disk_bytes: u64,
    /// The status file, if one is written.
    pub(crate) status_file: Option<PathBuf>,
    /// The problems found at start-up.
    pub(crate) warnings: Vec<Warning>,
}

/// The parts of the operating system that the driver controls.
pub(crate) struct Machinery {
    /// Our cgroups.
    pub(crate) tree: Tree,
    /// The slot thread, which switches gangs.
    pub(crate) slots: SlotThread,
    /// Keeps slots fair to processes outside jobs, where that is configured.
    pub(crate) neighbours: Option<Neighbours>,
    /// Ensures that no job stays stopped when the daemon dies or hangs.
    pub(crate) guard: GuardKeeper,
    /// Moves jobs to their places.
    pub(crate) mover: Mover,
    /// Lets the subgangs of jobs take turns, where this daemon may.
    pub(crate) subgangs: Option<Subgangs>,
    /// Gives the signs of life of suspended services.
    pub(crate) watchdogs: Watchdogs,
    /// Reports which CPUs are idle.
    pub(crate) probe: Option<ProbeKeeper>,
    /// Held for life, so that no second daemon uses the subtree.
    pub(crate) _lock: File,
}

impl Machinery {
    /// For an end without a driver: disarms the guard and the kernel agent, and removes the subtree, unless jobs of an earlier daemon are in it.
    pub(crate) fn stand_down(self) {
        let Machinery { tree, slots, guard, .. } = self;
        slots.stop();
        guard.disarm();
        // A subtree with running jobs cannot be removed.
        if tree.jobs().is_ok_and(|jobs| jobs.is_empty()) {
            let _ = tree.remove();
        }
    }

    fn revive_probe(&mut self) {
        if let Some(probe) = &mut self.probe {
            probe.revive(&self.tree, &self.slots, &self.guard);
        }
    }

    async fn probe_died(&self) {
        match &self.probe {
            Some(probe) => probe.died().await,
            None => std::future::pending().await,
        }
    }
}

/// A job that has not ended, with the state that is not kept over a restart.
struct Live {
    cgroup: JobCgroup,
    /// An earlier reading of the CPU time, for the present use in percent.
    sampled: (Instant, u64),
    /// The CPU use between the last two readings, in percent of one CPU.
    cpu_percent: Option<f64>,
    /// It slept for the time after which a gang is dropped: Linux schedules it.
    dropped: bool,
    /// The share due to it and the share received.
    ledger: shares::Ledger,
    /// The CPUs that it may use.
    place: places::Place,
    /// The page shared by its processes and the daemon, when they have the wait library.
    page: Option<WaitPage>,
    /// How often its threads have blocked.
    blocks: Blocks,
    /// The number of processes that were registered into it since this daemon has known it.
    registered: u32,
    /// Its last process ended while no daemon ran.
    unseen: bool,
    /// Its owner's quota, which is lifted while its share holds instead.
    quota: Option<cosched_linux::Quota>,
}

/// The owner of all state.
pub(crate) struct Driver {
    config: Config,
    identity: Identity,
    rights: Rights,
    store: Store,
    state: State,
    machinery: Machinery,
    watch: EndWatch,
    watch_ready: AsyncFd<OwnedFd>,
    /// The plan in force on this node.
    plan: Arc<Plan>,
    /// Its sums.
    running: Running,
    /// The plan is not in the slot thread's table yet.
    plan_is_new: bool,
    /// Jobs that are over on this node, and still have their cgroups.
    over: Vec<(u64, Attempt)>,
    /// The mechanism of the switch may have to be changed.
    mechanism_is_stale: bool,
    cluster: Cluster,
    /// The driver's own request channel, for tasks that report back.
    calls: mpsc::Sender<Call>,
    live: BTreeMap<u64, Live>,
    /// Cgroups with processes that were unknown to the state at start, or that could not be moved back.
    orphans: Vec<(u64, JobCgroup)>,
    /// Adopted cgroups of jobs that are over, which a late slot thread may still freeze.
    letting_go: Vec<JobCgroup>,
    adopted_look_at: Instant,
    /// Jobs that may be over; whether they have a process could not be read.
    unread: BTreeSet<u64>,
    move_times: adopt::MoveTimes,
    boot_id: String,
    memory_bytes: u64,
    /// Every mechanism and why it can or cannot be used here; trying them creates cgroups, so it is done once.
    mechanisms: BTreeMap<String, String>,
    /// The name of the mechanism in force.
    mechanism: &'static str,
    boosts: boost::Boosts,
    clock: clock::ClockState,
    load: load::LoadMeter,
    period: period::PeriodState,
    status_file: statusfile::StatusKeeper,
    teller: tell::Teller,
    past: samples::Past,
    watchdog: watchdog::Watchdog,
    /// Since when there has been no job here; for the end of an embedded daemon.
    empty_since: Instant,
    /// The accounting log of ended jobs.
    accounting: Accounting,
    spans: Spans,
}

impl Driver {
    /// Takes over the state and the jobs that an earlier daemon left.
    pub(crate) fn new(
        config: Config,
        identity: Identity,
        rights: Rights,
        (mut store, mut state): (Store, State),
        machinery: Machinery,
        calls: mpsc::Sender<Call>,
    ) -> anyhow::Result<Driver> {
        let settings = Settings { starts: state.settings.starts + 1, ..state.settings.clone() };
        let counted = store.settings(&mut state, settings);
        counted
            .with_context(|| format!("the state in {} cannot be written; make room there", store.dir().display()))?;
        let period = period::PeriodState::new(&config.working_hours);
        let memory_bytes = config.memory_bytes.unwrap_or_else(cosched_linux::observe::memory_total);
        let watch = EndWatch::new()?;
        let probes = cosched_linux::mechanism::probe(&machinery.tree);
        let mechanisms = probes.into_iter().map(|p| (p.name.to_owned(), p.why)).collect();
        let fences = machinery.guard.fences.clone();
        let accounting = Accounting::start(&identity.state_dir)?;
        let spans = Spans::start(config.traces.as_ref(), &config.cluster.name, &config.cluster.node)?;
        let shares = period::shares(&config, &period);
        let cluster = Cluster::new(&config, memory_bytes, (&identity, shares), (&mut store, &mut state, &fences))?;
        let plan = Arc::clone(cluster.node.local().plan());
        let mut driver = Driver {
            clock: clock::ClockState::new(config.require_synchronised_clock),
            load: load::LoadMeter::new(),
            period,
            status_file: statusfile::StatusKeeper::new(identity.status_file.clone()),
            teller: tell::Teller::new(identity.events.clone()),
            past: samples::Past::new(),
            watchdog: watchdog::Watchdog::new(config.watchdog),
            config,
            identity,
            rights,
            store,
            state,
            machinery,
            watch_ready: pollable(&watch)?,
            watch,
            plan,
            running: *cluster.node.running(),
            plan_is_new: false,
            over: Vec::new(),
            mechanism_is_stale: false,
            cluster,
            calls,
            live: BTreeMap::new(),
            orphans: Vec::new(),
            letting_go: Vec::new(),
            adopted_look_at: Instant::now(),
            unread: BTreeSet::new(),
            move_times: adopt::MoveTimes::default(),
            boot_id: cosched_linux::observe::boot_id(),
            memory_bytes,
            mechanisms,
            mechanism: "",
            boosts: boost::Boosts::default(),
            empty_since: Instant::now(),
            accounting,
            spans,
        };
        driver.take_up()?;
        Ok(driver)
    }

    /// Takes over what exists, and starts to schedule.
    fn take_up(&mut self) -> anyhow::Result<()> {
        self.machinery.guard.revive();
        self.machinery.revive_probe();
        self.recover()?;
        self.join_cluster();
        self.on_clock();
        self.apply_mechanism()?;
        self.settle(true);
        Ok(())
    }

    /// Runs until `stop` is received, or until an embedded daemon is no longer needed. The thread's priority is without a limit until the jobs
    /// that it has found have slots.
    pub(crate) async fn run(mut self, mut calls: mpsc::Receiver<Call>, mut stop: mpsc::Receiver<()>) {
        loop {
            if self.machinery.slots.tables_waiting() == 0 {
                pace::limit();
            }
            pace::heed();
            self.went_round();
            let deadline = self.deadline();
            tokio::select! {
                call = calls.recv() => match call {
                    Some(call) => {
                        self.answer(call);
                        // Requests that arrived meanwhile are planned and written together.
                        let begun = Instant::now();
                        for _ in 1..CALLS_AT_A_TIME {
                            // Timers are not kept waiting by calls that take long.
                            if begun.elapsed() > TURN_MAX {
                                break;
                            }
                            let Ok(call) = calls.try_recv() else { break };
                            self.went_round();
                            self.answer(call);
                        }
                    }
                    None => break,
                },
                ready = self.watch_ready.readable() => if let Ok(mut ready) = ready {
                    ready.clear_ready();
                    let changed = self.watch.drain();
                    self.emptied(&changed);
                },
                () = tokio::time::sleep_until(deadline) => self.on_time(),
                () = self.machinery.guard.died() => self.machinery.guard.revive(),
                () = self.machinery.probe_died() => self.machinery.revive_probe(),
                () = self.clock.told() => self.on_clock(),
                told = self.cluster.told() => self.on_store(told),
                _ = stop.recv() => break,
            }
            self.settle(false);
            if std::mem::take(&mut self.mechanism_is_stale)
                && let Err(e) = self.apply_mechanism()
            {
                tracing::error!("the mechanism of the switch could not be changed: {e:#}");
            }
            self.write_status();
            self.tell_changes();
            self.take_history();
            if self.not_needed() {
                break;
            }
        }
        self.goes_round_no_more();
        self.leave().await;
        self.shut_down();
    }

    /// Thaws everything and lets the jobs continue without the daemon.
    fn shut_down(self) {
        self.status_file.remove();
        // It stays while jobs have their pages in it.
        let _ = std::fs::remove_dir(&self.identity.wait_dir);
        let Machinery { tree, slots, guard, mover, subgangs, .. } = self.machinery;
        // While the guard would still do it.
        subgangs.into_iter().for_each(Subgangs::end);
        slots.stop();
        guard.disarm();
        mover.end();
        Driver::free_places(&self.identity.cpus, self.live.values());
        self.live.values().filter_map(|live| live.quota.as_ref()).for_each(quota::put_back);
        // The subtree stays while jobs run in it; a later daemon finds them there.
        if self.live.is_empty()
            && let Err(e) = tree.remove()
        {
            tracing::warn!("the cgroup subtree could not be removed: {e}");
        }
        tracing::info!(jobs_left = self.live.len(), "ended; jobs keep running without a daemon");
    }

    /// Lets the node decide what follows, until there is nothing left, and carries it out.
    fn settle(&mut self, force: bool) {
        self.let_go();
        self.look_at_adopted();
        self.heed_store();
        while !self.over.is_empty() {
            self.finish_over();
            self.heed_store();
        }
        self.answer_late();
        if std::mem::take(&mut self.plan_is_new) || force {
            self.install();
        }
    }

    /// Takes the node's new plan.
    fn take_plan(&mut self) {
        self.count_dues();
        let plan = Arc::clone(self.cluster.node.local().plan());
        self.mechanism_is_stale |= plan.sharing != self.plan.sharing;
        self.running = *self.cluster.node.running();
        (self.plan, self.plan_is_new) = (plan, true);
    }

    /// Hands the slot thread a table of the plan and the jobs on this node.
    fn install(&mut self) {
        self.order_waits();
        let here = self.live.iter().map(|(id, live)| (JobId(*id), live.cgroup.switch_handle())).collect();
        let local = self.cluster.node.local();
        let (mut table, flaw) = Table::compile(&self.plan, here, local.has_slots(), |id| local.unplanned(id));
        flaw.into_iter().for_each(flaw::tell);
        table.jobs.iter_mut().for_each(adopt::fills_nothing);
        self.machinery.slots.install(table);
        self.move_to_places();
        self.tell_subgangs();
        self.heed_quotas();
        self.heed_watchdogs();
        self.tell_neighbours();
        self.install_boost();
        self.touch_status();
    }

    /// The node requests a sample of a job's CPU time.
    fn take_sample(&mut self, job: JobId) {
        if let Some(cpu_time_ns) = self.sample(job.0) {
            let held = self.held_part();
            self.count_share(job.0, cpu_time_ns, held);
            let waits = self.live.get(&job.0).map(Live::waits).unwrap_or_default();
            let sampled = Sampled { cpu_ns: cpu_time_ns, waits, held };
            self.cluster.handle(Input::Sampled(job, sampled));
        }
    }

    /// Reads a job's CPU time and updates its present use.
    fn sample(&mut self, id: u64) -> Option<u64> {
        let live = self.live.get_mut(&id)?;
        let cpu_time_ns = live.cgroup.cpu_time_ns().ok()?;
        let elapsed = live.sampled.0.elapsed();
        if elapsed >= Duration::from_millis(400) {
            let used = cpu_time_ns.saturating_sub(live.sampled.1);
            live.cpu_percent = Some(100.0 * used as f64 / elapsed.as_nanos() as f64);
            live.sampled = (Instant::now(), cpu_time_ns);
        }
        Some(cpu_time_ns)
    }

    /// Changes a record in memory and on the disk. Only for facts that are true whether or not the disk takes them;
    /// what is acknowledged to a user goes through `commit`.
    fn remember(&mut self, id: u64, change: impl FnOnce(&mut Record)) {
        let Some(mut record) = self.state.jobs.get(&id).cloned() else { return };
        change(&mut record);
        self.keep(record);
    }

    /// The same for the end of a job. On a single machine, whose store is in the same file, the store is told at once.
    fn remember_end(&mut self, id: u64, change: impl FnOnce(&mut Record)) {
        let Some(mut record) = self.state.jobs.get(&id).cloned() else { return };
        change(&mut record);
        match self.is_told_at_once(id) {
            true => self.keep_soon(record),
            false => self.keep(record),
        }
    }

    /// Takes a record that holds whether or not the disk takes it.
    fn keep(&mut self, record: Record) {
        let put = self.store.put(&mut self.state, &record);
        self.kept(record, put);
    }

    /// The same for facts that the store contains or will contain: on the disk with the next write.
    fn keep_soon(&mut self, record: Record) {
        let put = self.store.put_soon(&mut self.state, &record);
        self.kept(record, put);
    }

    fn kept(&mut self, record: Record, put: std::io::Result<()>) {
        if let Err(e) = put {
            tracing::error!(id = record.id, "the state could not be written, and will be written again: {e}");
            self.store.owe(record.id);
            self.state.jobs.insert(record.id, record);
        }
        self.touch_status();
    }

    fn record(&self, id: u64) -> Answer<&Record> {
        self.state.jobs.get(&id).ok_or_else(|| no_such_job(id))
    }

    /// The next time at which something is due.
    fn deadline(&self) -> Instant {
        let agent = self.cluster.node.poll_wall_timeout().map(instant);
        let embedded =
            (self.identity.embedded && self.is_empty()).then(|| self.empty_since + self.config.embedded_exit_after);
        let status = self.status_file.due(!self.live.is_empty());
        let far = Instant::now() + Duration::from_secs(3600);
        agent
            .into_iter()
            .chain(embedded)
            .chain(status)
            .chain([self.teller.due()])
            .chain(self.past.due(!self.live.is_empty()))
            .chain(self.adopted_due())
            .chain(self.watchdog.due())
            .chain(self.period_due())
            .chain(self.store.due().map(Instant::from_std))
            .chain([self.cluster.due()])
            .chain(pace::due().map(Instant::from_std))
            .fold(far, Instant::min)
    }

    fn on_time(&mut self) {
        self.look_at_calendar(false);
        self.store.pay(&self.state);
        self.on_time_in_cluster();
    }

    /// Whether no job is on this node, and none waits.
    fn is_empty(&self) -> bool {
        self.live.is_empty() && self.cluster.node.is_idle()
    }

    fn not_needed(&self) -> bool {
        self.identity.embedded && self.is_empty() && self.empty_since.elapsed() >= self.config.embedded_exit_after
    }
}

fn job_reply(job: Job) -> Reply {
    Reply::Job(Box::new(job))
}

/// Converts a moment of the wall clock to tokio's clock.
fn instant(t: Time) -> Instant {
    Instant::now() + Duration::from_nanos(t.0.saturating_sub(now().0))
}
