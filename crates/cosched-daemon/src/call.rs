//! A request to the driver, which alone owns the daemon's state, and its answer.

use crate::refuse::Answer;
use crate::rights::Peer;
use cosched_api::{
    ClassRequest, EventList, ExitReport, Job, JobList, JobRequest, KillRequest, NodeLoad, NodeRequest, PolicyRequest,
    ProcessRequest, ResourcesRequest, Status, Version,
};
use tokio::sync::oneshot;

/// One request.
#[derive(Debug)]
pub(crate) struct Call {
    /// Who asks.
    pub(crate) peer: Peer,
    /// For what.
    pub(crate) op: Op,
    /// Where the answer goes.
    pub(crate) reply: oneshot::Sender<Answer<Reply>>,
}

/// What can be asked; a path of the API each.
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
    /// `GET /v1/jobs`
    List {
        /// With the ended ones.
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
    /// `POST /v1/jobs/{id}/class`
    Class(u64, ClassRequest),
    /// `POST /v1/jobs/{id}/resources`
    Resources(u64, ResourcesRequest),
    /// `POST /v1/jobs/{id}/processes`
    AddProcess(u64, ProcessRequest),
    /// `DELETE /v1/jobs/{id}/processes`
    RemoveProcess(u64, ProcessRequest),
    /// `POST /v1/jobs/{id}/policy`
    Policy(u64, PolicyRequest),
    /// `PUT /v1/nodes/{name}`
    Node(String, NodeRequest),
    /// `PUT /v1/policy`
    MachinePolicy(PolicyRequest),
    /// `GET /metrics`
    Metrics,
}

/// What can be answered.
#[derive(Debug)]
pub(crate) enum Reply {
    /// One job.
    Job(Box<Job>),
    /// Several.
    Jobs(JobList),
    /// What happened to one.
    Events(EventList),
    /// The machine.
    Status(Box<Status>),
    /// Who answers.
    Version(Version),
    /// A node.
    Load(NodeLoad),
    /// The metrics, as text.
    Metrics(String),
}
