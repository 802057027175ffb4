//! What the daemon shows: jobs, events, the matrix, the machine, and its problems.

use super::{Driver, annex, usage};
use crate::clock::now;
use crate::privacy::Privacy;
use crate::record::Record;
use crate::refuse::Answer;
use crate::rights::Peer;
use crate::words;
use cosched_api as api;
use cosched_core::{JobId, Plan};
use std::collections::BTreeMap;

impl Driver {
    /// A job as this node alone knows it.
    pub(super) fn view_local(&self, id: u64) -> Answer<api::Job> {
        let record = self.record(id)?;
        Ok(self.job(record))
    }

    /// The jobs in the form that all users may see.
    pub(super) fn list_for_all(&self) -> api::JobList {
        let privacy = Privacy::new(self.config.private_data, self.rights.clone());
        privacy.list(Peer::UNKNOWN, self.view_list(false))
    }

    pub(super) fn job(&self, record: &Record) -> api::Job {
        let live = self.live.get(&record.id);
        let used = usage::job_use(record, live);
        let planned = self.plan.jobs.get(&JobId(record.id));
        let shares = live.and_then(|l| l.ledger.shares(self.identity.cpus.len()));
        let share = planned.filter(|p| p.turns > 0).and_then(|_| self.plan.share(JobId(record.id)));
        api::Job {
            id: record.id,
            name: record.name.clone(),
            uid: record.uid,
            user: crate::users::user_name(record.uid),
            class: record.class,
            policy: match record.share_permille {
                // A share is counted in slots, which only a gang has.
                Some(_) => api::Policy::Gang,
                None => record.own_policy.unwrap_or_else(|| words::wire_policy(self.plan.policy)),
            },
            own_policy: record.own_policy,
            cpus: record.cpus,
            // The CPUs of what is adopted are its owner's matter.
            places: live.filter(|l| l.cgroup.outside().is_empty()).and_then(|l| l.place.list(&self.identity.cpus)),
            mem_bytes: record.mem_bytes,
            state: self.local_state(record),
            command: record.command.clone(),
            cwd: record.cwd.clone(),
            pid: record.pid,
            submitted_unix_ms: record.submitted_unix_ms,
            started_unix_ms: record.started_unix_ms(),
            expected_start_unix_ms: None,
            stopped: live.is_some() && record.exit.is_none() && self.is_stopped(record),
            ended_unix_ms: record.ended_unix_ms,
            exit: record.exit,
            processes: used.processes,
            cpu_time_ms: used.cpu_time_us / 1000,
            cpu_percent: live.and_then(|l| l.cpu_percent),
            memory_bytes: used.memory_bytes,
            memory_peak_bytes: used.memory_peak_bytes,
            detached: record.detached,
            by_admin: record.by_admin,
            decided: crate::decided::view(record.decided),
            log_path: record.log_path.clone(),
            row: planned.and_then(|p| p.home.as_ref()).map(|(row, _)| *row),
            share: share.map(|(own, all)| f64::from(own) / f64::from(all.max(1))),
            share_max: record.share_permille.map(words::api_share),
            cgroup: live.map(|l| l.cgroup.v2_path_relative().display().to_string()).unwrap_or_default(),
            waiting: self.view_waiting(record, live),
            chosen: planned.filter(|p| p.auto && p.slot_share.is_none()).and_then(|_| self.view_choice(record.id)),
            share_due: shares.map(|(due, _)| due),
            share_received: shares.map(|(_, received)| received),
            cgroups: live.iter().flat_map(|l| l.cgroup.annexes()).map(|of| annex::shown(&of)).collect(),
            adopted: record.adopted.as_ref().map(crate::record::Adopted::view),
            outside_ms: live.map(|l| l.cgroup.switch_handle().slot_cpu_ns().1 / 1_000_000).filter(|ms| *ms > 0),
            boosts: Some(live.map_or(record.boosts, |l| l.cgroup.switch_handle().boosts())).filter(|count| *count > 0),
            nodes: record.nodes.clone(),
            queue: None,
            out_of_memory: usage::out_of_memory(record, live),
            waits_for: None,
            use_of_nodes: None,
            ended_why: None,
            restarts: 0,
            time_ms_max: None,
            suspended_ms: None,
            begin_unix_ms: None,
            mem_bytes_max: None,
            exclusive_cores: record.exclusive_cores,
            r#use: Some(used),
        }
    }

    /// The state of a job, from what this node alone knows.
    pub(super) fn local_state(&self, record: &Record) -> api::JobState {
        let live = self.live.get(&record.id);
        match live {
            _ if record.lost => api::JobState::Lost,
            _ if record.ended() => api::JobState::Ended,
            _ if record.suspended => api::JobState::Suspended,
            Some(live) if live.dropped => api::JobState::Dropped,
            Some(_) if self.cluster.node.local().is_asleep(JobId(record.id)) => api::JobState::Asleep,
            _ => api::JobState::Running,
        }
    }

    /// Whether its first process is stopped by something other than the slot thread.
    fn is_stopped(&self, record: &Record) -> bool {
        record.pid > 0 && self.mechanism != "signals" && cosched_linux::process::is_stopped(record.pid)
    }

    /// `GET /v1/status`
    pub(super) fn view_status(&mut self) -> api::Status {
        let load = self.load.view(&self.identity.cpus);
        let orphans = self.orphan_warning();
        let m = &self.machinery;
        let stats = m.slots.stats();
        let mut jobs = BTreeMap::new();
        for (_, state) in self.classes_and_states() {
            *jobs.entry(state).or_insert(0) += 1;
        }
        api::Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id() as i32,
            uid: rustix::process::getuid().as_raw(),
            started_unix_ms: self.identity.started_unix_ms,
            embedded: self.identity.embedded,
            socket: self.identity.socket.clone(),
            node: self.node_name(),
            cpus: self.identity.cpus.clone(),
            memory_bytes: self.memory_bytes,
            policy: words::wire_policy(self.plan.policy),
            sharing: words::wire_sharing(self.plan.sharing),
            slot_length_ms: self.plan.slot_length_ns / 1_000_000,
            reserve: self.reserve(),
            reserve_fair: Some(self.machinery.neighbours.is_some()),
            layout: self.identity.layout.clone(),
            mechanism: self.mechanism.to_owned(),
            mechanisms: self.mechanisms.clone(),
            keeper: m.tree.has_keepers().then(|| m.guard.exe.display().to_string()),
            realtime_priority: m.slots.realtime_priority(),
            generation: self.plan.generation,
            matrix: matrix(&self.plan, &self.identity.cpus, self.clock.holds().is_none()),
            switches: api::Switches {
                count: stats.count,
                wake: distribution(&stats.wake),
                done: distribution(&stats.done),
                late: stats.late,
                errors: stats.errors,
            },
            boosting: self.view_boosting(),
            jobs,
            safety: api::Safety {
                guard_pid: m.guard.pid(),
                lease_ms: self.config.lease.as_millis() as u64,
                kernel_agent: m.guard.kernel_agent().is_none(),
            },
            warnings: self.warnings(&stats).into_iter().chain(orphans).collect(),
            load: Some(load),
            clock: Some(self.clock.view()),
            period: self.view_period(),
            starts: Some(self.state.settings.starts),
            nodes: Some(self.view_nodes()),
            cluster: Some(self.view_cluster()),
        }
    }

    pub(super) fn warnings(&self, stats: &cosched_linux::SwitchStats) -> Vec<api::Warning> {
        let mut all = [self.identity.warnings.clone(), self.cluster_warnings()].concat();
        let m = &self.machinery;
        let mut warn = |what: &str, why: String, hint: &str| {
            all.push(api::Warning { what: what.to_owned(), why, hint: hint.to_owned() });
        };
        if let Some(why) = self.store.problem() {
            let hint = format!(
                "Make room in {}. Until then new jobs and changes are refused, and running jobs continue.",
                self.store.dir().display()
            );
            warn("the state could not be written", why.to_owned(), &hint);
        }
        if m.slots.realtime_priority().is_none() {
            warn(
                "the slot thread has no real-time priority",
                m.slots.priority_note().unwrap_or("the system did not grant it").to_owned(),
                "Switches can come late under load. Run the daemon as root, or raise LimitRTPRIO.",
            );
        }
        if m.guard.pid().is_none() {
            warn(
                "no guard is running",
                "it could not be started".to_owned(),
                "If the daemon dies, frozen jobs may stay frozen. Is cosched-guard installed beside coschedd?",
            );
        }
        if let Some(why) = m.guard.kernel_agent().filter(|_| !m.tree.has_keepers()) {
            warn(
                "the kernel agent is not armed",
                why.to_owned(),
                "Jobs are thawed if the daemon dies, but not if the daemon and its guard are killed at one instant.",
            );
        }
        if let Some(why) = m.probe.as_ref().and_then(crate::probe::ProbeKeeper::missing) {
            warn(
                "no idle probe is running",
                why.to_owned(),
                "Soft gangs are switched as strict ones: it is not known which CPUs the current gang leaves idle.",
            );
        }
        if let Some(problem) = self.boosts.problem() {
            warn("pb and dcs do not see all messages", problem.why.clone(), &problem.hint);
        }
        if let Some(why) = self.clock.holds() {
            let hint = "Let a time daemon (chrony, systemd-timesyncd) keep the clock, or set require_synchronised_clock to false.";
            warn("gangs have no slots", why.to_owned(), hint);
        }
        if let Some(why) = self.status_file.problem() {
            warn("the status file cannot be written", why.to_owned(), "Set status_file to another place, or to \"\".");
        }
        if stats.errors > 0 {
            let why = format!("{} writes to cgroup files failed", stats.errors);
            warn("some switches were incomplete", why, "Another program may be changing these cgroups; see the log.");
        }
        if stats.count > 100 && stats.late * 100 > stats.count {
            let why = format!("{} of {} switches came more than a tenth of a slot late", stats.late, stats.count);
            warn("switches come late", why, "Use longer slots (`cosched policy gang --slot 200ms`), or less load.");
        }
        let declared: u64 =
            self.live.keys().filter_map(|id| self.state.jobs.get(id)?.mem_bytes).fold(0, u64::saturating_add);
        if declared > self.memory_bytes {
            let why = format!("the jobs declare {} MiB, the machine has {}", declared >> 20, self.memory_bytes >> 20);
            warn("memory is oversubscribed", why, "Jobs may swap or be killed; suspend or kill one.");
        }
        all
    }
}

/// The matrix; no job owns CPUs now where there are no slots because of the clock.
pub(super) fn matrix(plan: &Plan, cpus: &[u32], slots: bool) -> api::Matrix {
    let slot = plan.slot_at(now());
    let turn = plan.turn(slot).filter(|_| slots);
    let rows = plan.matrix.rows().iter().enumerate().map(|(index, row)| {
        let home: Vec<JobId> = row.jobs().collect();
        let turns = || plan.turns.iter().filter(|t| t.row as usize == index);
        let mut also: Vec<u64> = turns().flat_map(|t| &t.run).filter(|id| !home.contains(id)).map(|id| id.0).collect();
        also.sort_unstable();
        also.dedup();
        api::Row {
            index: index as u32,
            cells: row.cells().iter().map(|cell| cell.map(|id| id.0)).collect(),
            also,
            slots: turns().count() as u32,
        }
    });
    api::Matrix {
        columns: cpus.iter().map(|cpu| format!("cpu{cpu}")).collect(),
        rows: rows.collect(),
        text: plan.matrix.to_string(),
        slot,
        current_row: turn.map(|t| t.row),
        current: turn.map(|t| t.run.iter().map(|id| id.0).collect()).unwrap_or_default(),
        cycle_slots: plan.turns.len() as u32,
        turns: plan.turns.iter().map(|turn| turn.row).filter(|_| slots).collect(),
    }
}

fn distribution(d: &cosched_linux::stats::Quantiles) -> api::Distribution {
    api::Distribution { count: d.count, p50_us: d.p50_us, p99_us: d.p99_us, max_us: d.max_us }
}
