//! A request to the driver, which alone owns the daemon's state, and its answer.

use crate::refuse::Answer;
use crate::rights::Peer;
use cosched_api::{
    CgroupRequest, ClassRequest, ClusterBackup, EventList, ExitReport, ImportRequest, Job, JobList, JobRequest,
    KillRequest, LimitList, LoadList, NodeLoad, NodeRequest, PolicyRequest, ProcessRequest, QueuesRequest,
    RepairReport, RepairRequest, ResourcesRequest, Samples, ShareRequest, Status, Version,
};
use tokio::sync::oneshot;

#[derive(Debug)]
pub(crate) struct Call {
    /// The process that makes the request.
    pub(crate) peer: Peer,
    pub(crate) op: Op,
    /// The channel for the answer.
    pub(crate) reply: oneshot::Sender<Answer<Reply>>,
}

/// The requests, one for each path of the API.
#[derive(Debug)]
pub(crate) enum Op {
    /// `GET /v1/status`
    Status,
    /// `GET /v1/version`
    Version,
    /// `GET /v1/load`
    Load {
        /// The node; the daemon's own when absent.
        node: Option<String>,
    },
    /// `GET /v1/loads`
    Loads,
    /// `GET /v1/jobs`
    List {
        /// Ended jobs, too.
        all: bool,
    },
    /// `POST /v1/jobs`
    Register(Box<JobRequest>),
    /// `GET /v1/jobs/{id}`
    Show(u64),
    /// `GET /v1/jobs/{id}/wait`: answered when the job has ended.
    Wait(u64),
    /// `GET /v1/jobs/{id}/events`
    Events(u64),
    /// `POST /v1/jobs/{id}/exit`
    Exit(u64, ExitReport),
    /// `POST /v1/jobs/{id}/suspend`
    Suspend(u64),
    /// `POST /v1/jobs/{id}/resume`
    Resume(u64),
    /// `POST /v1/jobs/{id}/kill`
    Kill(u64, KillRequest),
    /// `POST /v1/jobs/{id}/share`
    Share(u64, ShareRequest),
    /// `POST /v1/jobs/{id}/class`
    Class(u64, ClassRequest),
    /// `POST /v1/jobs/{id}/resources`
    Resources(u64, ResourcesRequest),
    /// `POST /v1/jobs/{id}/processes`
    AddProcess(u64, ProcessRequest),
    /// `DELETE /v1/jobs/{id}/processes`
    RemoveProcess(u64, ProcessRequest),
    /// `POST /v1/jobs/{id}/cgroups`
    AddCgroup(u64, CgroupRequest),
    /// `DELETE /v1/jobs/{id}/cgroups`
    RemoveCgroup(u64, CgroupRequest),
    /// `POST /v1/jobs/{id}/release`
    Release(u64),
    /// `POST /v1/jobs/{id}/policy`
    Policy(u64, PolicyRequest),
    /// `PUT /v1/nodes/{name}`
    Node(String, NodeRequest),
    /// `PUT /v1/queues`
    Queues(QueuesRequest),
    /// `POST /v1/cluster/repair`
    Repair(RepairRequest),
    /// `GET /v1/cluster/export`
    Export,
    /// `POST /v1/cluster/import`
    Import(Box<ImportRequest>),
    /// `PUT /v1/policy`
    MachinePolicy(PolicyRequest),
    /// `GET /v1/samples`
    Samples,
    /// `GET /v1/limits`
    Limits,
    /// `GET /metrics`
    Metrics,
}

impl Op {
    /// The job that the request is about, if any.
    pub(crate) fn job(&self) -> Option<u64> {
        match self {
            Op::Show(id) | Op::Wait(id) | Op::Events(id) | Op::Suspend(id) | Op::Resume(id) | Op::Release(id) => {
                Some(*id)
            }
            Op::Exit(id, _) | Op::Kill(id, _) | Op::Share(id, _) | Op::Class(id, _) | Op::Resources(id, _) => Some(*id),
            Op::AddProcess(id, _) | Op::RemoveProcess(id, _) | Op::Policy(id, _) => Some(*id),
            Op::AddCgroup(id, _) | Op::RemoveCgroup(id, _) => Some(*id),
            Op::Status | Op::Version | Op::Load { .. } | Op::List { .. } | Op::Register(_) | Op::Node(..) => None,
            Op::Repair(_) | Op::Export | Op::Import(_) => None,
            Op::MachinePolicy(_) | Op::Samples | Op::Limits | Op::Metrics | Op::Loads | Op::Queues(_) => None,
        }
    }
}

/// The answers.
#[derive(Debug)]
pub(crate) enum Reply {
    Job(Box<Job>),
    Jobs(JobList),
    /// A job's events.
    Events(EventList),
    Status(Box<Status>),
    Version(Version),
    /// The load of one node.
    Load(NodeLoad),
    /// The loads of all nodes.
    Loads(LoadList),
    /// Samples of the last hour.
    Samples(Samples),
    /// The limits of the caller.
    Limits(LimitList),
    /// The changes that a repair made to the cluster's store, or would make.
    Repair(RepairReport),
    /// The content of the cluster's store.
    Backup(Box<ClusterBackup>),
    /// The metrics, as text.
    Metrics(String),
}
