//! What a scheduler is told: events of Batsim's protocol.

use super::answer::seconds;
use super::job::JobEnd;
use crate::batch::intervals::Places;
use crate::metrics::words_of;
use crate::workload::batsim::{DescribedJob, DescribedWorkload, WORKLOAD};
use serde_json::{Map, Value, json};

/// What has happened since the last message.
#[derive(Debug, Default)]
pub(super) struct Told {
    events: Vec<Value>,
}

impl Told {
    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    fn push(&mut self, at_us: u64, kind: &str, data: Value) {
        self.events.push(json!({ "timestamp": seconds(at_us), "type": kind, "data": data }));
    }

    /// The message of all that was pushed.
    pub(super) fn message(&mut self, now_us: u64) -> String {
        json!({ "now": seconds(now_us), "events": std::mem::take(&mut self.events) }).to_string()
    }

    pub(super) fn begins(&mut self, workload: &DescribedWorkload, hosts: u32) {
        let host = |id: u32| json!({ "id": id, "name": format!("host{id}"), "state": "idle", "properties": {}, "zone_properties": {} });
        let data = json!({
            "nb_resources": hosts,
            "nb_compute_resources": hosts,
            "nb_storage_resources": 0,
            "allow_compute_sharing": false,
            "allow_storage_sharing": false,
            // Schedulers read all of these.
            "config": {
                "redis-enabled": false,
                "redis-hostname": "127.0.0.1",
                "redis-port": 6379,
                "redis-prefix": "default",
                "profiles-forwarded-on-submission": false,
                "dynamic-jobs-enabled": false,
                "dynamic-jobs-acknowledged": false,
                "profile-reuse-enabled": false,
                "forward-unknown-events": false,
                "sched-config": "",
            },
            "compute_resources": (0..hosts).map(host).collect::<Vec<Value>>(),
            "storage_resources": [],
            "workloads": { WORKLOAD: WORKLOAD },
            "profiles": { WORKLOAD: workload.profiles },
        });
        self.push(0, "SIMULATION_BEGINS", data);
    }

    pub(super) fn ends(&mut self, at_us: u64) {
        self.push(at_us, "SIMULATION_ENDS", json!({}));
    }

    pub(super) fn submitted(&mut self, at_us: u64, job: &DescribedJob) {
        self.push(at_us, "JOB_SUBMITTED", json!({ "job_id": job.id, "job": job.description }));
    }

    pub(super) fn no_more_jobs(&mut self, at_us: u64) {
        self.push(at_us, "NOTIFY", json!({ "type": "no_more_static_job_to_submit" }));
    }

    pub(super) fn called(&mut self, at_us: u64) {
        self.push(at_us, "REQUESTED_CALL", json!({}));
    }

    pub(super) fn completed(&mut self, at_us: u64, job: &DescribedJob, end: JobEnd, places: &Places) {
        let code = if end == JobEnd::Successful { 0 } else { -1 };
        let data = json!({ "job_id": job.id, "job_state": end.name(), "return_code": code, "alloc": words_of(places) });
        self.push(at_us, "JOB_COMPLETED", data);
    }

    /// Acknowledges an order to kill; the progress is that of the jobs that had not ended by themselves.
    pub(super) fn killed(&mut self, at_us: u64, ids: &[String], progress: Map<String, Value>) {
        self.push(at_us, "JOB_KILLED", json!({ "job_ids": ids, "job_progress": progress }));
    }
}
