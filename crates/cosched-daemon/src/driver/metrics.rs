//! `GET /metrics`: what the daemon counts, at this moment.

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
        all.add("build_info", "The version of the daemon", Values::Gauge(vec![(version, 1.0)]));
        let started_s = self.identity.started_unix_ms as f64 / 1e3;
        all.gauge("start_time_seconds", "When the daemon started, since 1970", started_s);
        let starts = self.state.settings.starts;
        all.count("daemon_starts", "How often a daemon was started on this state", starts);
        all.gauge("cpus", "CPUs in use", self.identity.cpus.len() as f64);
        let guarded = self.machinery.guard.pid().is_some();
        all.gauge("guard_up", "Whether the guard that thaws jobs lives", f64::from(u8::from(guarded)));
        let mut counts = BTreeMap::new();
        for of in self.classes_and_states() {
            *counts.entry(of).or_insert(0) += 1;
        }
        all.add("jobs", "Jobs by class and state, the ended ones that are remembered included", jobs(&counts));
        let (places, budget) = &self.identity.inside;
        all.gauge("connections", "Connections of users, administrators not counted", places.of_all() as f64);
        all.gauge(
            "buffered_bytes",
            "Bytes of requests and long answers that are held for users",
            budget.of_all() as f64,
        );
        all.count("jobs_registered", "Jobs that were ever registered on this state", self.state.last_id);
    }

    fn switch_metrics(&self, all: &mut Snapshot) {
        let stats = self.machinery.slots.stats();
        let times = self.machinery.slots.histograms();
        all.count("switches", "Slot boundaries at which the row changed", stats.count);
        all.count("switches_late", "Switches later than a tenth of a slot", stats.late);
        all.count("switches_missed", "Boundaries with a switch that were passed over", stats.missed);
        all.count("switch_errors", "Writes to cgroup files that the kernel refused", stats.errors);
        all.count("fills", "Times that a gang was let run on CPUs that the current one left idle", stats.fills);
        all.count("resyncs", "Times that all states were written anew", stats.resyncs);
        let wake = "From the slot's boundary until the slot thread ran";
        all.add("switch_wake_seconds", wake, Values::Histogram(times.wake));
        let work = "From the first to the last write of a switch";
        all.add("switch_latency_seconds", work, Values::Histogram(times.work));
        let done = "From the slot's boundary until the last write of the switch";
        all.add("switch_skew_seconds", done, Values::Histogram(times.done));
        let cpu = |place: &str, ns: u64| (vec![("where", place.to_owned())], ns as f64 / 1e9);
        let gangs = vec![cpu("slot", stats.inside_ns), cpu("outside", stats.outside_ns)];
        let help = "CPU time of gangs in their slots, and outside of them (stray; with soft sharing also on idle CPUs)";
        all.add("gang_cpu_seconds", help, Values::Counter(gangs));
        all.count("boosts", "Times that a job was raised because a message waited (pb, dcs)", stats.boosts);
        all.count("boost_looks", "Looks at who has a message waiting", stats.looks);
        all.count("boost_rings", "Arrivals of messages that woke the slot thread", stats.rings);
        let cost = Values::Counter(vec![(Vec::new(), stats.look_ns as f64 / 1e9)]);
        all.add("boost_cpu_seconds", "CPU time that looks and boosts took", cost);
    }

    fn plan_metrics(&self, all: &mut Snapshot) {
        let plan = &self.plan;
        all.gauge("plan_generation", "The generation of the newest plan", plan.generation as f64);
        let waiting = self.machinery.slots.tables_waiting() as f64;
        all.gauge("plan_lag", "Newer plans than the one that the slot thread runs", waiting);
        all.gauge("matrix_rows", "Rows of the matrix", plan.matrix.rows().len() as f64);
        all.gauge("cycle_slots", "Slots in a cycle", plan.turns.len() as f64);
        self.cluster_metrics(all);
        all.gauge("slot_length_seconds", "The length of a slot", plan.slot_length_ns as f64 / 1e9);
    }
}
