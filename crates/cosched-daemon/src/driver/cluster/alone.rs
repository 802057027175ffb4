//! One machine with queues: a cluster of this node alone, whose store is a file (`cluster/own`).
//!
//! An operator may put queues into the configuration while jobs run, and take them out again. Jobs of the time before
//! queues go on as the node's own planner has them, and users steer them as before; the cluster's planner does not know
//! them. When queues are taken out, the store's jobs become jobs of the machine: what runs goes on, what waited begins.

use super::super::Driver;
use super::{ask, view, words};
use crate::call::Op;
use crate::clock::unix_ms;
use crate::cluster::own::OwnStore;
use crate::record::Record;
use crate::store::Settings;
use cosched_cluster::wire::{Ask, Job};
use cosched_core::cluster::{Config as CoreConfig, JobRecord, Stage};
use cosched_core::{JobId, Standing};

impl Driver {
    /// The store answers at once, so nobody has to hear that this machine does not know its jobs yet.
    pub(super) fn meet_own_store(&mut self) {
        self.heed_own_store();
        if self.cluster.as_ref().is_some_and(|cluster| cluster.alone && cluster.member.is_joined()) {
            self.tell_file();
            self.heed_own_store();
        }
    }

    fn heed_own_store(&mut self) {
        if !self.cluster.as_ref().is_some_and(|cluster| cluster.alone) {
            return;
        }
        self.go_on_in_cluster();
        while let Some(told) = self.cluster.as_mut().and_then(|cluster| cluster.link.told_now()) {
            self.on_store(told);
            self.go_on_in_cluster();
        }
    }

    /// What the configuration file says anew since the last start holds from now on; what it said before may have been
    /// changed while the daemon ran, and stays so.
    fn tell_file(&mut self) {
        let Some(config) = &self.config.cluster else { return };
        let says = settings_of(&super::initial(config, &self.config, None));
        let said = self.state.settings.file.clone();
        if says == said {
            return;
        }
        // A store that is new was made with all of it.
        let news: Vec<Ask> = says.iter().filter(|ask| !said.is_empty() && !said.contains(ask)).cloned().collect();
        self.remember_file(says);
        for ask in news {
            tracing::info!(?ask, "the configuration has changed");
            self.send_ask_by(ask::DAEMON, ask.clone(), ask::Pending::File { ask });
        }
    }

    /// Jobs are in the way of what the configuration says: it is tried again at the next start.
    pub(super) fn file_refused(&mut self, ask: &Ask, what: &str, why: &str) {
        tracing::error!("the configuration does not hold yet: {what}: {why}");
        self.identity.warnings.push(cosched_api::Warning {
            what: "a part of the configuration does not hold yet".to_owned(),
            why: format!("{what}: {why}"),
            hint: "Let the jobs end that are in its way, then start the daemon again.".to_owned(),
        });
        let said = self.state.settings.file.iter().filter(|said| *said != ask).cloned().collect();
        self.remember_file(said);
    }

    fn remember_file(&mut self, file: Vec<Ask>) {
        let settings = Settings { file, ..self.state.settings.clone() };
        if let Err(e) = self.store.settings(&mut self.state, settings) {
            tracing::error!("the state could not be written: {e}");
        }
    }

    /// Whether this node alone knows a job, because it is from a time before the cluster, or the store has lost its data.
    pub(in super::super) fn is_only_here(&self, id: u64) -> bool {
        let Some(cluster) = self.cluster.as_ref().filter(|cluster| cluster.member.state().is_some()) else {
            return false;
        };
        let here = self.live.contains_key(&id) || cluster.alone && self.state.jobs.contains_key(&id);
        here && cluster.member.job(JobId(id)).is_none()
    }

    /// A job of this machine can be ended although that cannot be written now: the store hears of it when it has room.
    pub(super) fn ends_unwritten(&self, op: &Op, id: u64) -> bool {
        let unwritten = self.cluster.as_ref().is_some_and(|cluster| cluster.alone && !cluster.member.is_joined());
        unwritten && matches!(op, Op::Kill(..)) && self.live.contains_key(&id)
    }

    /// Without queues (any more): takes the jobs of the store over, and puts it away.
    pub(in super::super) fn recover_without_queues(&mut self, own: OwnStore) -> anyhow::Result<()> {
        let jobs = own.jobs();
        let numbers = jobs.iter().map(|job| job.id);
        let state = match own.state() {
            Ok(state) => state.unwrap_or_default(),
            Err(why) => {
                tracing::error!("the queues that were cannot be read, and are left as they are: {why}");
                self.store.last_id(&mut self.state, numbers.max().unwrap_or(0))?;
                return self.recover();
            }
        };
        let last = numbers.chain([state.next_order, own.last_job()]).max().unwrap_or(0);
        self.store.last_id(&mut self.state, last)?;
        self.take_settings(&state.config)?;
        let planned = || jobs.iter().filter_map(|job| Some((job, state.jobs.get(&JobId(job.id))?)));
        for (job, planned) in planned() {
            self.take_record(job, planned)?;
        }
        self.recover()?;
        for (job, planned) in planned() {
            self.take_job(job, planned);
        }
        let old = own.retire()?;
        tracing::info!(jobs = state.jobs.len(), "there are no queues any more; {} is what they were", old.display());
        Ok(())
    }

    /// What was set while the daemon had queues still holds.
    fn take_settings(&mut self, set: &CoreConfig) -> std::io::Result<()> {
        let was = |file: &Ask| self.state.settings.file.contains(file);
        let mut settings = Settings { file: Vec::new(), ..self.state.settings.clone() };
        for ask in settings_of(set).into_iter().filter(|ask| !was(ask)) {
            match ask {
                Ask::ClusterPolicy { policy } => settings.policy = Some(words::api_policy(policy)),
                Ask::ClusterSharing { .. } => settings.sharing = Some(super::super::machine::wire_sharing(set.sharing)),
                Ask::SlotLength { ns } => settings.slot_length_ms = Some(ns / 1_000_000),
                _ => (),
            }
        }
        self.store.settings(&mut self.state, settings)
    }

    /// A job that has begun is one of the machine's.
    fn take_record(&mut self, job: &Job, planned: &JobRecord) -> std::io::Result<()> {
        let Some(mut record) = self.begun(job).cloned() else { return Ok(()) };
        record.part = None;
        steer(&mut record, job, planned);
        self.store.put(&mut self.state, &record)
    }

    /// The record of the present life of a job, if that has begun here.
    fn begun(&self, job: &Job) -> Option<&Record> {
        let is_present = |record: &&Record| record.part.is_none_or(|part| part.attempt == job.attempt);
        self.state.jobs.get(&job.id).filter(is_present)
    }

    /// What was to end ends, and what waited begins.
    fn take_job(&mut self, job: &Job, planned: &JobRecord) {
        let id = job.id;
        let ends = matches!(planned.stage, Stage::Ending(_) | Stage::Clearing);
        if let Some(live) = self.live.get(&id) {
            if ends && let Err(e) = live.cgroup.kill() {
                tracing::error!(id, "a job could not be killed: {e}");
            }
            return;
        }
        let anew = job.ask.on_node_loss == cosched_cluster::wire::OnNodeLoss::Requeue;
        let begun = self.begun(job);
        let restarts = anew && begun.is_some_and(|record| record.boot_id != self.boot_id);
        if (begun.is_some() && !restarts) || matches!(planned.stage, Stage::Ending(_)) {
            return;
        }
        let mut record = view::record_of(job, &self.boot_id);
        (record.cpus, record.mem_bytes) = wanted(job);
        record.cpus = record.cpus.clamp(1, self.identity.cpus.len() as u32);
        steer(&mut record, job, planned);
        record.event(unix_ms(), "registered", "it waited in a queue, and there are no queues any more");
        let put = self.store.put(&mut self.state, &record).map_err(|e| e.to_string());
        let begins =
            put.and_then(|()| self.enter(&record, None).and_then(|()| self.plan_job(&record)).map_err(|e| e.why));
        if let Err(why) = begins {
            tracing::error!(id, "a job that waited cannot begin: {why}");
            return self.remember(id, |record| {
                record.event(unix_ms(), "lost", why);
                (record.lost, record.ended_unix_ms) = (true, Some(unix_ms()));
            });
        }
        self.make_page(&record);
        if record.suspended {
            self.own_input(cosched_core::PlannerInput::Suspend(JobId(id)));
        }
        tracing::info!(id, "a job that waited begins");
        if restarts || job.attempt > 0 {
            self.launch_anew(job);
        }
    }
}

/// Class, policy and standing of a job, as users have set them last, and what administrators have decided.
fn steer(record: &mut Record, job: &Job, planned: &JobRecord) {
    record.decided = job.decided;
    record.class = words::api_class(planned.spec.class.into());
    record.own_policy = planned.spec.policy.map(super::super::machine::wire_policy);
    let ends = matches!(planned.stage, Stage::Ending(_) | Stage::Clearing);
    record.suspended = planned.standing == Standing::Suspended && !ends;
}

/// CPUs and memory that a job asks for.
fn wanted(job: &Job) -> (u32, Option<u64>) {
    use cosched_cluster::wire::WantAsk;
    let (cpus, bytes) = match &job.ask.want {
        WantAsk::Total { cpus, memory_per_cpu_bytes, .. } => {
            (*cpus, memory_per_cpu_bytes.saturating_mul(u64::from(*cpus)))
        }
        WantAsk::PerNode(asks) => {
            (asks.iter().map(|ask| ask.cpus).sum(), asks.iter().map(|ask| ask.memory_bytes).sum())
        }
    };
    (cpus, Some(bytes).filter(|bytes| *bytes > 0))
}

/// A cluster's settings, one request each.
fn settings_of(config: &CoreConfig) -> Vec<Ask> {
    vec![
        Ask::Queues { queues: config.queues.iter().map(Into::into).collect() },
        Ask::ClusterPolicy { policy: config.policy.into() },
        Ask::ClusterSharing { sharing: config.sharing.into() },
        Ask::SlotLength { ns: config.slot_length_ns },
        Ask::Shares { working: (&config.working).into(), off: (&config.off).into() },
        Ask::Ceiling { permille: config.ceiling_permille },
        Ask::FairShare { fair_share: config.fair_share.map(Into::into) },
    ]
}
