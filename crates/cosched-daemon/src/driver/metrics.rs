//! `GET /metrics`: the daemon's present metrics.

use super::Driver;
use crate::metrics::{Snapshot, Values, jobs};
use std::collections::BTreeMap;

impl Driver {
    /// All metrics as text.
    pub(super) fn view_metrics(&self) -> String {
        let mut all = Snapshot::default();
        self.daemon_metrics(&mut all);
        self.switch_metrics(&mut all);
        self.plan_metrics(&mut all);
        self.clock.metrics(&mut all);
        all.text()
    }

    fn daemon_metrics(&self, all: &mut Snapshot) {
        let version = vec![("version", env!("CARGO_PKG_VERSION").to_owned())];
        all.add("build_info", "Version of the daemon", Values::Gauge(vec![(version, 1.0)]));
        let started_s = self.identity.started_unix_ms as f64 / 1e3;
        all.gauge("start_time_seconds", "Start time of the daemon, in seconds since the Unix epoch", started_s);
        let starts = self.state.settings.starts;
        all.count("daemon_starts", "Daemon starts with this state directory", starts);
        all.gauge("cpus", "CPUs in use", self.identity.cpus.len() as f64);
        let guarded = self.machinery.guard.pid().is_some();
        all.gauge(
            "guard_up",
            "1 while the guard process, which thaws jobs if the daemon dies, is running",
            f64::from(u8::from(guarded)),
        );
        let mut counts = BTreeMap::new();
        for of in self.classes_and_states() {
            *counts.entry(of).or_insert(0) += 1;
        }
        all.add("jobs", "Jobs by class and state, including ended jobs whose records are kept", jobs(&counts));
        let (places, budget) = &self.identity.inside;
        all.gauge("connections", "Open connections of users, without administrators", places.of_all() as f64);
        all.gauge("buffered_bytes", "Bytes of requests and long answers buffered for users", budget.of_all() as f64);
        all.count(
            "jobs_registered",
            "Jobs registered with this state directory since it was created",
            self.state.last_id,
        );
    }

    fn switch_metrics(&self, all: &mut Snapshot) {
        let stats = self.machinery.slots.stats();
        let times = self.machinery.slots.histograms();
        all.count("switches", "Row switches", stats.count);
        all.count("switches_late", "Row switches that were late by more than a tenth of a slot", stats.late);
        all.count("switches_missed", "Row switches that were skipped because the next one was due", stats.missed);
        all.count("switch_errors", "Failed writes to cgroup files", stats.errors);
        all.count("fills", "Background runs of gangs on idle CPUs of the current row", stats.fills);
        all.count("resyncs", "Full rewrites of all cgroup states", stats.resyncs);
        let wake = "Delay from the slot boundary until the slot thread ran";
        all.add("switch_wake_seconds", wake, Values::Histogram(times.wake));
        let work = "Duration of a switch: from its first to its last write";
        all.add("switch_latency_seconds", work, Values::Histogram(times.work));
        let done = "Delay from the slot boundary until the last write of the switch";
        all.add("switch_skew_seconds", done, Values::Histogram(times.done));
        let cpu = |place: &str, ns: u64| (vec![("where", place.to_owned())], ns as f64 / 1e9);
        let gangs = vec![cpu("slot", stats.inside_ns), cpu("outside", stats.outside_ns)];
        let help =
            "CPU time of gangs inside and outside their slots (outside: stray, and with soft sharing on idle CPUs)";
        all.add("gang_cpu_seconds", help, Values::Counter(gangs));
        all.gauge("reserve_ratio", "Part of the CPU time kept for processes outside jobs now", self.reserve());
        let held = Values::Counter(vec![(Vec::new(), stats.held_ns as f64 / 1e9)]);
        all.add("held_seconds", "Time during which slots were held for processes outside jobs (reserve = fair)", held);
        all.count("boosts", "Boosts: jobs raised because of a pending message (pb, dcs)", stats.boosts);
        all.count("boost_looks", "Checks for pending messages", stats.looks);
        all.count("boost_rings", "Message arrivals that woke the slot thread", stats.rings);
        let cost = Values::Counter(vec![(Vec::new(), stats.look_ns as f64 / 1e9)]);
        all.add("boost_cpu_seconds", "CPU time spent on checks for pending messages and on boosts", cost);
    }

    fn plan_metrics(&self, all: &mut Snapshot) {
        let plan = &self.plan;
        all.gauge("plan_generation", "Generation of the newest plan", plan.generation as f64);
        let waiting = self.machinery.slots.tables_waiting() as f64;
        all.gauge("plan_lag", "Plans that the slot thread has not applied yet", waiting);
        all.gauge("matrix_rows", "Rows of the matrix", plan.matrix.rows().len() as f64);
        all.gauge("cycle_slots", "Slots in a cycle", plan.turns.len() as f64);
        self.cluster_metrics(all);
        all.gauge("slot_length_seconds", "Slot length", plan.slot_length_ns as f64 / 1e9);
    }
}
