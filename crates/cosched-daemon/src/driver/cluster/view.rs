//! Jobs and nodes as the cluster knows them, with this node's own knowledge.

use super::super::Driver;
use super::super::tell::{Brief, Known};
use super::Cluster;
use super::terms::{ended_why, waits_for};
use crate::clock::unix_ms;
use crate::record::Record;
use crate::refuse::{Answer, no_such_job};
use crate::users;
use crate::words;
use cosched_api as api;
use cosched_cluster::wire::{End, Exit, Job, WantAsk};
use cosched_core::cluster::{JobRecord, NEVER, Planner, Stage};
use cosched_core::{JobId, Standing, Time};
use std::sync::PoisonError;

/// How long a warning is shown about a key that was deleted.
const REWRITTEN_SHOWN: std::time::Duration = std::time::Duration::from_secs(3600);

/// How long nodes that left or died are shown.
const GONE_SHOWN_MS: u64 = 7 * 24 * 3600 * 1000;

impl Driver {
    /// `GET /v1/jobs/{id}`, on whichever node the job is.
    pub(in super::super) fn view_job(&self, id: u64) -> Answer<api::Job> {
        if self.is_only_local(id) {
            return self.view_local(id);
        }
        let job = self.cluster.member().job(JobId(id)).ok_or_else(|| no_such_job(id))?;
        Ok(self.job_in_cluster(&self.cluster, job))
    }

    /// `GET /v1/jobs`
    pub(in super::super) fn view_list(&self, all: bool) -> api::JobList {
        let cluster = &self.cluster;
        let shown = cluster.member().jobs().filter(|job| all || job.end.is_none() && !self.has_ended_locally(job));
        let is_own = |record: &&Record| (all || !record.ended()) && self.is_only_local(record.id);
        let own = self.state.jobs.values().filter(is_own);
        let mut jobs: Vec<api::Job> = shown.map(|job| self.job_in_cluster(cluster, job)).collect();
        jobs.extend(own.map(|record| self.job(record)));
        jobs.sort_by_key(|job| job.id);
        api::JobList { jobs }
    }

    /// Class and state of every job on record: in a cluster those of all its jobs, as waiting jobs have no node.
    pub(in super::super) fn classes_and_states(&self) -> Vec<(api::Class, api::JobState)> {
        let cluster = &self.cluster;
        let local = |job: &Job| {
            let record = self.local_record(job);
            record.map_or(api::JobState::Running, |record| self.local_state(record))
        };
        let known = cluster
            .member()
            .jobs()
            .map(|job| (words::api_class(job.ask.class), self.state_of(cluster, job, local(job)).0));
        let own = self.state.jobs.values().filter(|record| self.is_only_local(record.id));
        known.chain(own.map(|record| (record.class, self.local_state(record)))).collect()
    }

    /// This node's record of the same attempt of a job that the cluster knows.
    fn local_record(&self, job: &Job) -> Option<&Record> {
        self.state.jobs.get(&job.id).filter(|record| record.part.is_some_and(|part| part.attempt == job.attempt))
    }

    /// A job's state, and the reason for which it waits; `local` is the state according to this node alone.
    fn state_of(&self, cluster: &Cluster, job: &Job, local: api::JobState) -> (api::JobState, Option<String>) {
        // A job on this node alone falls asleep by the node's own plan; of a job that spans nodes, only a part may. How a job ended that had parts
        // elsewhere, or whose end is known, is not for a single node to say.
        let local = match local {
            api::JobState::Lost if !cluster.alone || job.exit().is_some() => api::JobState::Ended,
            state if self.is_own(job.id) => state,
            _ => api::JobState::Running,
        };
        let has_ended = self.has_ended_locally(job);
        let planned = cluster.member().state().and_then(|state| state.jobs.get(&JobId(job.id)));
        match planned {
            None if job.end.is_none() && !has_ended => (self.without_plan(cluster, job.id), None),
            planned => state(planned.filter(|_| !has_ended), job, local),
        }
    }

    fn has_ended_locally(&self, job: &Job) -> bool {
        self.cluster.node.has_ended_locally(job)
    }

    /// Visits every job on record, with only the fields whose changes are published; leaves out those for which `is_over` holds.
    pub(in super::super) fn for_each_job(
        &self,
        is_over: impl Fn(u64) -> bool,
        mut show: impl FnMut(u64, Option<Known<'_>>),
    ) {
        let cluster = &self.cluster;
        for job in cluster.member().jobs() {
            if is_over(job.id) {
                show(job.id, None);
                continue;
            }
            let local = self.local_record(job);
            let local_state = local.map_or(api::JobState::Running, |record| self.local_state(record));
            let planned = cluster.member().state().and_then(|state| state.jobs.get(&JobId(job.id)));
            let (state, waits_for) = self.state_of(cluster, job, local_state);
            let brief = Brief {
                state,
                waits_for,
                class: words::api_class(job.ask.class),
                own_policy: job.ask.policy.map(words::api_policy),
                share_permille: job.ask.share_permille,
                cpus: cluster.resources(planned, job).1,
            };
            let exit = job.end.and_then(|end| end.exit).or(job.exit());
            let exit = exit.map(|exit| api::ExitStatus { code: exit.code, signal: exit.signal });
            let exit = exit.or(local.and_then(|record| record.exit));
            let (uid, name, ended_why) = (job.owner.uid, job.ask.name.as_str(), ended_why(planned, job));
            show(job.id, Some(Known { uid, name, brief, exit, ended_why }));
        }
        for record in self.state.jobs.values().filter(|record| self.is_only_local(record.id)) {
            let brief = || Brief {
                state: self.local_state(record),
                waits_for: None,
                class: record.class,
                own_policy: record.own_policy,
                share_permille: record.share_permille,
                cpus: record.cpus,
            };
            let known =
                || Known { uid: record.uid, name: &record.name, brief: brief(), exit: record.exit, ended_why: None };
            show(record.id, (!is_over(record.id)).then(known));
        }
    }

    /// Whether a job has all its parts on this node.
    pub(in super::super) fn is_own(&self, id: u64) -> bool {
        self.state.jobs.get(&id).is_some_and(|record| record.part.is_none_or(|part| !part.spans))
    }

    /// Whether only this node knows a job. A single machine keeps ended jobs of each user that its store has forgotten.
    fn is_only_local(&self, id: u64) -> bool {
        self.cluster.node.is_forgotten(JobId(id))
            || self.cluster.alone && self.cluster.member().job(JobId(id)).is_none() && self.state.jobs.contains_key(&id)
    }

    /// A user's jobs of the cluster that have not ended, and those being requested now: number, whether it waits, declared memory.
    pub(in super::super) fn jobs_of(&self, uid: u32) -> Vec<(u64, bool, u64)> {
        let cluster = &self.cluster;
        let state = cluster.member().state();
        let own = cluster.member().jobs().filter(|job| job.owner.uid == uid && job.end.is_none());
        let known = own.map(|job| {
            let planned = state.and_then(|state| state.jobs.get(&JobId(job.id)));
            let waits = planned.is_none_or(|planned| matches!(planned.stage, Stage::Waiting(_)));
            (job.id, waits, job.ask.want.memory_bytes())
        });
        let asked = cluster.node.asked_by(uid).into_iter().map(|memory_bytes| (0, true, memory_bytes));
        known.chain(asked).collect()
    }

    /// `GET /v1/jobs/{id}/events`: those of this node and of the cluster.
    pub(in super::super) fn view_events(&self, id: u64) -> Answer<api::EventList> {
        if self.is_only_local(id) {
            return Ok(api::EventList { events: self.record(id)?.events.clone() });
        }
        let job = self.cluster.member().job(JobId(id)).ok_or_else(|| no_such_job(id))?;
        let event = |event: &cosched_cluster::wire::Event| api::Event {
            unix_ms: event.at_ns / 1_000_000,
            what: event.what.clone(),
            detail: event.uid.map(|uid| format!("by {}", crate::users::user_name(uid))).unwrap_or_default(),
        };
        let local = self.state.jobs.get(&id).map(|record| record.events.clone()).unwrap_or_default();
        // For a job on this node alone, its begin, its end and its being dropped are in this node's events, with more details.
        let is_told = |of: &&cosched_cluster::wire::Event| {
            let local = || local.iter().any(|event| event.what == "registered" || event.what == "ended");
            let word = of.what.split(':').next().unwrap_or_default();
            ["submitted", "ended", "dropped"].contains(&word) && self.is_own(id) && local()
        };
        let history: Vec<api::Event> = job.history.iter().filter(|of| !is_told(of)).map(event).collect();
        let mut events: Vec<api::Event> = history.into_iter().chain(local).collect();
        events.sort_by_key(|event| event.unix_ms);
        Ok(api::EventList { events })
    }

    fn job_in_cluster(&self, cluster: &Cluster, job: &Job) -> api::Job {
        let local = self.local_record(job);
        let mut view = match local {
            Some(record) => self.job(record),
            None => self.job(&record_of(job, &self.boot_id)),
        };
        let planned = cluster.member().state().and_then(|state| state.jobs.get(&JobId(job.id)));
        view.class = words::api_class(job.ask.class);
        view.own_policy = job.ask.policy.map(words::api_policy);
        view.share_max = job.ask.share_permille.map(words::api_share);
        view.policy = match view.share_max {
            Some(_) => api::Policy::Gang,
            None => view.own_policy.unwrap_or(view.policy),
        };
        view.decided = crate::decided::view(job.decided);
        view.restarts = job.attempt;
        let terms = &job.ask.terms;
        (view.time_ms_max, view.begin_unix_ms) = (terms.time_ms_max, terms.begin_ms);
        (view.mem_bytes_max, view.exclusive_cores) = (terms.memory_bytes_max, terms.exclusive_cores);
        view.suspended_ms = planned.map(suspended_ms).filter(|ms| *ms > 0);
        view.queue = cluster.queue(planned, job);
        (view.state, view.waits_for) = self.state_of(cluster, job, view.state);
        let started = planned.filter(|planned| !matches!(planned.stage, Stage::Waiting(_)) && planned.place.is_some());
        view.started_unix_ms = match view.state {
            api::JobState::Waiting => None,
            _ => view.started_unix_ms.or_else(|| started.map(|planned| planned.ready_since.0 / 1_000_000)),
        };
        if view.state == api::JobState::Waiting {
            view.expected_start_unix_ms = cluster.expected_start(JobId(job.id));
        }
        (view.nodes, view.cpus) = cluster.resources(planned, job);
        view.use_of_nodes = cluster.use_of_nodes(planned, job);
        view.ended_why = ended_why(planned, job);
        // The total over all nodes, like the CPUs, whichever node answers.
        let memory = view.nodes.iter().filter_map(|node| node.memory_bytes).reduce(u64::saturating_add);
        view.mem_bytes =
            memory.or_else(|| Some(job.ask.want.memory_bytes()).filter(|bytes| *bytes > 0 && view.nodes.is_empty()));
        view.ended_unix_ms = job.end.map(|end| end.at_ns / 1_000_000).or(view.ended_unix_ms);
        let status = |exit: Exit| api::ExitStatus { code: exit.code, signal: exit.signal };
        // While a job is not over, this node may know more than the others, until it has told them.
        view.exit = match job.end {
            Some(end) => end.exit.map(status),
            None => job.exit().map(status).or(view.exit),
        };
        if let Some(End { cpu_time_ns, memory_peak_bytes, out_of_memory, .. }) = job.end {
            view.out_of_memory = out_of_memory.map(words::api_out_of_memory);
            view.cpu_time_ms = cpu_time_ns / 1_000_000;
            view.memory_peak_bytes = Some(memory_peak_bytes).filter(|bytes| *bytes > 0);
            view.r#use = Some(api::JobUse {
                cpu_time_us: cpu_time_ns / 1000,
                memory_peak_bytes: view.memory_peak_bytes,
                ..api::JobUse::default()
            });
        }
        view
    }

    /// The state of a job that has not ended and is in no known plan.
    fn without_plan(&self, cluster: &Cluster, id: u64) -> api::JobState {
        match cluster.member().state() {
            _ if self.live.contains_key(&id) => api::JobState::Running,
            // For a moment, its record is older than the state.
            Some(_) => api::JobState::Ended,
            None => api::JobState::Unknown,
        }
    }

    /// `Status.nodes`
    pub(in super::super) fn view_nodes(&self) -> Vec<api::NodeStatus> {
        let cluster = &self.cluster;
        let state = cluster.member().state();
        let mut nodes: Vec<api::NodeStatus> = cluster
            .member()
            .nodes()
            .map(|(name, node)| {
                let planned = state.and_then(|state| state.nodes.get(&cosched_core::NodeId(node.id)));
                let own = name == cluster.own_name;
                api::NodeStatus {
                    name: name.to_owned(),
                    cpus: node.cpus,
                    memory_bytes: Some(self.memory_of(node.memory_bytes)),
                    load: planned.map(|node| f64::from(node.other_threads_seen)),
                    clock: Some(api::Clock {
                        synchronised: Some(node.clock.synchronised),
                        error_us_max: Some(node.clock.error_ns / 1000),
                        ..api::Clock::default()
                    }),
                    plan_generation: own.then(|| cluster.member().in_use()).flatten(),
                    alive: true,
                    gone_since_unix_ms: None,
                    silent_since_unix_ms: None,
                    drains: planned.is_some_and(|node| node.drains),
                    version: Some(node.version.clone()),
                }
            })
            .collect();
        nodes.extend(self.gone_nodes());
        nodes.sort_by(|a, b| a.name.cmp(&b.name));
        nodes
    }

    /// Nodes that left or died, for a week: an operator can find one that died at night, and one that was taken out is forgotten.
    fn gone_nodes(&self) -> impl Iterator<Item = api::NodeStatus> {
        let now = unix_ms();
        // On a single machine these are only its earlier names.
        let cluster = Some(&self.cluster).into_iter().filter(|cluster| !cluster.alone);
        let gone =
            cluster.flat_map(|cluster| cluster.member().gone().map(move |(name, left_ns)| (cluster, name, left_ns)));
        let gone = gone.map(|(cluster, name, left_ns)| {
            let silent_ms = cluster.member().silent_since(name).map(|since| since.0 / 1_000_000);
            (name, left_ns.map(|ns| ns / 1_000_000), silent_ms)
        });
        let is_recent = move |since: Option<u64>| since.is_none_or(|since| now.saturating_sub(since) < GONE_SHOWN_MS);
        let recent = gone.filter(move |(_, since, silent)| silent.is_some() || is_recent(*since));
        recent.map(|(name, since, silent)| api::NodeStatus {
            name: name.to_owned(),
            cpus: 0,
            memory_bytes: None,
            load: None,
            clock: None,
            plan_generation: None,
            alive: false,
            gone_since_unix_ms: since,
            silent_since_unix_ms: silent,
            drains: false,
            version: None,
        })
    }

    /// `Status.cluster`
    pub(in super::super) fn view_cluster(&self) -> api::ClusterStatus {
        let cluster = &self.cluster;
        let state = cluster.member().state();
        // A job on hold counts as waiting: it must not run.
        let count = |queue: usize, waits: bool| {
            let jobs = state.into_iter().flat_map(|state| state.jobs.values());
            let is =
                |job: &&JobRecord| job.spec.queue as usize == queue && matches!(job.stage, Stage::Waiting(_)) == waits;
            jobs.filter(is).count() as u32
        };
        let config = state.map(|state| &state.config);
        let queues = state.map(|state| state.config.queues.as_slice()).unwrap_or_default();
        let queue = |(at, queue): (usize, &cosched_core::cluster::Queue)| api::QueueStatus {
            name: queue.name.clone(),
            exclusive: queue.exclusive,
            memory_bytes_max: queue.memory_bytes_max,
            disk_bytes_max: queue.disk_bytes_max,
            time_ms_max: queue.time_ns_max.map(|ns| ns / 1_000_000),
            users: queue.rights.users.iter().map(|uid| users::user_name(*uid)).collect(),
            groups: queue.rights.groups.iter().map(|gid| users::group_name(*gid)).collect(),
            memory_bytes_max_per_user: queue.rights.memory_bytes_max,
            jobs_max_per_user: queue.rights.jobs_max,
            waiting: count(at, true),
            running: count(at, false),
        };
        api::ClusterStatus {
            name: cluster.name.clone(),
            alone: cluster.alone,
            store_answers: cluster.member().is_joined(),
            plan_generation: state.map_or(0, |state| state.generation),
            plan_in_use: cluster.member().in_use(),
            ceiling: state.map_or(1.0, |state| f64::from(state.config.ceiling_permille) / 1000.0),
            node_dead_after_ms: config
                .map(|config| config.node_dead_after_ns)
                .filter(|after| *after != NEVER)
                .map(|ns| ns / 1_000_000),
            queues: queues.iter().enumerate().map(queue).collect(),
            packing: config.map(|config| words::api_packing(config.packing)),
            rows_max: config.map(|config| config.rows_max),
            fair_share: config.and_then(|config| config.fair_share).map(words::api_fair_share),
            shares: config.map(|config| words::api_shares(config.working)),
            off_hours: config.map(|config| words::api_shares(config.off)),
        }
    }

    /// Warnings to users about the cluster.
    pub(in super::super) fn cluster_warnings(&self) -> Vec<api::Warning> {
        let cluster = &self.cluster;
        let mut all = Vec::new();
        if let Some(why) = cluster.member().out() {
            all.push(api::Warning {
                what: format!("this node takes no part in cluster {}", cluster.name),
                why: why.to_owned(),
                hint: "Jobs on this node keep running. Fix the cause, then restart this daemon.".to_owned(),
            });
        } else if let Some(why) = cluster.member().alarm() {
            all.push(api::Warning {
                what: format!("the data in the store of cluster {} cannot be used", cluster.name),
                why: why.to_owned(),
                hint: "Jobs keep running; nothing is planned, and users' requests are queued. `cosched cluster \
                       repair` shows what can be done, and does it with --yes."
                    .to_owned(),
            });
        } else if let Some(why) = cluster.problem.as_ref().filter(|_| !cluster.alone) {
            all.push(api::Warning {
                what: format!("no contact with the store of cluster {}", cluster.name),
                why: why.clone(),
                hint: "Jobs keep running; users' requests are queued. Is etcd up, and are endpoints, certificates and \
                       password correct?"
                    .to_owned(),
            });
        }
        let rewritten = cluster.rewritten.iter().filter(|(_, at)| at.elapsed() < REWRITTEN_SHOWN);
        let rewritten: Vec<&str> = rewritten.map(|(key, _)| key.as_str()).collect();
        if !rewritten.is_empty() {
            all.push(api::Warning {
                what: "keys were deleted from the cluster's store by another program".to_owned(),
                why: rewritten.join(", "),
                hint: "They were written again; no job was affected. Only cosched should write below /cosched/."
                    .to_owned(),
            });
        }
        if let Some(reason) = cluster.no_slots {
            all.push(api::Warning {
                what: "gangs that span nodes have no slots here".to_owned(),
                why: reason.to_string(),
                hint: "Linux schedules them until the node has recovered.".to_owned(),
            });
        }
        all
    }

    /// The cluster's part of `GET /metrics`.
    pub(in super::super) fn cluster_metrics(&self, all: &mut crate::metrics::Snapshot) {
        let cluster = &self.cluster;
        let figures = &cluster.figures;
        let state = cluster.member().state();
        let nodes = cluster.member().nodes().count();
        all.gauge("cluster_nodes", "Nodes with a valid lease", nodes as f64);
        let gone = self.gone_nodes().count();
        all.gauge("cluster_nodes_gone", "Nodes without a lease that had one within the last week", gone as f64);
        let generation = state.map_or(0, |state| state.generation);
        all.gauge(
            "cluster_plan_generation",
            "Generation of the cluster's newest plan that this node knows",
            generation as f64,
        );
        let in_use = cluster.member().in_use().unwrap_or(0);
        all.gauge(
            "cluster_plan_in_use",
            "Generation of the cluster's plan that this node uses, 0 for none",
            in_use as f64,
        );
        all.gauge(
            "cluster_plans_behind",
            "Newer plans of the cluster that this node has not received",
            figures.behind as f64,
        );
        all.count(
            "cluster_slots_missed",
            "Slots in which this node ran an older plan than it should have",
            figures.missed_slots,
        );
        all.count("cluster_plans_made", "Plans of the cluster that this node made", figures.planned);
        all.count(
            "cluster_conflicts",
            "Plans discarded because another node had written the state first",
            figures.conflicts,
        );
        let up = if cluster.member().is_joined() { 1.0 } else { 0.0 };
        all.gauge("store_up", "Whether the cluster's store answers", up);
        let alarm = if cluster.member().alarm().is_some() { 1.0 } else { 0.0 };
        all.gauge("cluster_alarm", "Whether the data in the cluster's store cannot be used", alarm);
        all.count("store_losses", "Losses of contact with the store", figures.losses);
        all.gauge(
            "requests_waiting",
            "Requests of users that wait for an answer",
            cluster.member().unanswered() as f64,
        );
    }
}

impl Cluster {
    fn queue(&self, planned: Option<&JobRecord>, job: &Job) -> Option<String> {
        let queues = &self.member().state()?.config.queues;
        let at = planned.and_then(|planned| queues.get(planned.spec.queue as usize));
        at.map(|queue| queue.name.clone()).or_else(|| job.ask.queue.clone())
    }

    /// The nodes of which a job's resource use is known here; `None` if all of it is known. Nodes do not report it to each other.
    fn use_of_nodes(&self, planned: Option<&JobRecord>, job: &Job) -> Option<Vec<String>> {
        let place = planned.filter(|_| job.end.is_none())?.place.as_ref()?;
        let names = place.parts.iter().filter_map(|part| self.member().name_of(part.node));
        let (own, others): (Vec<&str>, Vec<&str>) = names.partition(|name| *name == self.own_name);
        (!others.is_empty()).then(|| own.into_iter().map(str::to_owned).collect())
    }

    /// The latest start of a waiting job, if known.
    fn expected_start(&self, id: JobId) -> Option<u64> {
        let (state, revision) = (self.member().state()?, self.member().state_revision());
        let mut known = self.starts.lock().unwrap_or_else(PoisonError::into_inner);
        if known.0 != revision || revision == 0 {
            let planner = Planner::new(state.clone()).ok();
            let starts = planner.map(|planner| planner.expected_starts(crate::clock::now())).unwrap_or_default();
            *known = (revision, starts.into_iter().map(|(id, at)| (id, at.0 / 1_000_000)).collect());
        }
        known.1.get(&id).copied()
    }

    /// The resources of a job on each node, or the requested ones while it has none; and its total CPUs.
    fn resources(&self, planned: Option<&JobRecord>, job: &Job) -> (Vec<api::NodeResources>, u32) {
        let bytes = |bytes: u64| Some(bytes).filter(|bytes| *bytes > 0);
        if let Some(place) = planned.and_then(|planned| planned.place.as_ref()) {
            let part = |part: &cosched_core::cluster::Part| api::NodeResources {
                name: self.member().name_of(part.node).unwrap_or_default().to_owned(),
                cpus: Some(part.cpus),
                memory_bytes: bytes(part.memory_bytes),
                disk_bytes: bytes(part.disk_bytes),
                ..api::NodeResources::default()
            };
            return (place.parts.iter().map(part).collect(), place.parts.iter().map(|part| part.cpus).sum());
        }
        match &job.ask.want {
            WantAsk::Total { cpus, .. } => (Vec::new(), *cpus),
            WantAsk::PerNode(asks) => {
                let want = |ask: &cosched_cluster::wire::NodeAsk| api::NodeResources {
                    name: ask.node.clone(),
                    cpus: Some(ask.cpus),
                    cpus_min: Some(ask.cpus_min).filter(|min| *min < ask.cpus),
                    memory_bytes: bytes(ask.memory_bytes),
                    disk_bytes: bytes(ask.disk_bytes),
                };
                (asks.iter().map(want).collect(), asks.iter().map(|ask| ask.cpus).sum())
            }
        }
    }
}

/// A job's state, and the reason for which it waits.
fn state(planned: Option<&JobRecord>, job: &Job, local: api::JobState) -> (api::JobState, Option<String>) {
    let Some(planned) = planned.filter(|_| job.end.is_none()) else {
        let over = if local == api::JobState::Lost { local } else { api::JobState::Ended };
        return (over, None);
    };
    let dropped = planned.place.as_ref().is_some_and(|place| job.dropped_on.len() == place.parts.len());
    match planned.stage {
        Stage::Waiting(reason) => (api::JobState::Waiting, Some(waits_for(reason, planned))),
        Stage::Clearing => (api::JobState::Waiting, Some("its processes end, then it is restarted".to_owned())),
        Stage::Ending(_) => (api::JobState::Running, None),
        Stage::Ready => match planned.standing {
            Standing::Suspended => (api::JobState::Suspended, None),
            Standing::Asleep if dropped => (api::JobState::Dropped, None),
            Standing::Asleep => (api::JobState::Asleep, None),
            Standing::Scheduled if matches!(local, api::JobState::Asleep | api::JobState::Dropped) => (local, None),
            Standing::Scheduled => (api::JobState::Running, None),
        },
    }
}

/// A record for this daemon of a job of the cluster.
pub(super) fn record_of(job: &Job, boot_id: &str) -> Record {
    let ask = &job.ask;
    let request = api::JobRequest {
        command: ask.command.clone(),
        name: Some(ask.name.clone()),
        class: Some(words::api_class(ask.class)),
        policy: ask.policy.map(words::api_policy),
        share_max: ask.share_permille.map(words::api_share),
        cwd: ask.cwd.clone(),
        detached: ask.log_path.is_some(),
        log_path: ask.log_path.clone(),
        waiting: ask.waiting.as_ref().map(words::api_waiting),
        exclusive_cores: ask.terms.exclusive_cores,
        ..api::JobRequest::default()
    };
    let mut record = Record::new(job.id, job.owner.uid, 0, request, boot_id, job.submitted_ns / 1_000_000);
    record.by_api = false;
    record.by_admin = job.owner.admin;
    record.decided = job.decided;
    record
}

fn suspended_ms(planned: &JobRecord) -> u64 {
    planned.suspended.ns_until(Time(unix_ms() * 1_000_000), planned.ready_since) / 1_000_000
}
