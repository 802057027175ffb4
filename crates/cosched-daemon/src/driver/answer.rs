//! Requests and their answers. Those that the node answers later are in `cluster/ask.rs`.

use super::{Driver, change::check_signal, job_reply};
use crate::call::{Call, Op, Reply};
use crate::refuse::Answer;
use crate::rights::Peer;
use crate::words::{core_class, slot_share};
use cosched_api::{Job, ProcessRequest};
use cosched_cluster::wire::Exit;
use cosched_core::JobId;
use cosched_node::Request;

impl Driver {
    pub(super) fn answer(&mut self, call: Call) {
        if let Err(e) = self.check(&call) {
            let _ = call.reply.send(Err(e));
            return;
        }
        let Some(Call { peer, op, reply }) = self.hold_call(call) else { return };
        // Ends that are reported at the same time are handled together; before any other request the node settles.
        if !matches!(op, Op::Exit(..)) && self.cluster.node.has_news() {
            self.settle(false);
        }
        let answer = match op {
            Op::Status => Ok(Reply::Status(Box::new(self.view_status()))),
            Op::Version => Ok(Reply::Version(self.view_version())),
            Op::Load { node: Some(name) } if !name.is_empty() && name != self.node_name() => {
                return self.ask(peer, Request::Loads(Some(name)), reply);
            }
            Op::Load { .. } => self.view_load().map(Reply::Load),
            Op::Loads => return self.ask(peer, Request::Loads(None), reply),
            Op::Samples => Ok(Reply::Samples(self.view_samples())),
            Op::Limits => Ok(Reply::Limits(self.view_limits(peer))),
            Op::Metrics => Ok(Reply::Metrics(self.view_metrics())),
            Op::List { all } => Ok(Reply::Jobs(self.view_list(all))),
            Op::Register(request) => return self.submit(peer, *request, reply),
            Op::Show(id) => self.view_job(id).map(job_reply),
            Op::Wait(id) => return self.ask(peer, Request::Wait(JobId(id)), reply),
            Op::Events(id) => self.view_events(id).map(Reply::Events),
            Op::Exit(id, report) => {
                let exit = Exit { code: report.exit.code, signal: report.exit.signal };
                return self.ask(peer, Request::Exited(JobId(id), exit), reply);
            }
            Op::Suspend(id) => return self.ask(peer, Request::Suspend(JobId(id)), reply),
            Op::Resume(id) => return self.ask(peer, Request::Resume(JobId(id)), reply),
            Op::Kill(id, request) => return self.kill_job(peer, id, request, reply),
            Op::Class(id, request) => {
                return self.ask(peer, Request::Class(JobId(id), core_class(request.class).into()), reply);
            }
            Op::Share(id, request) => match request.share_max.map(slot_share).transpose() {
                Ok(share) => return self.ask(peer, Request::Share(JobId(id), share), reply),
                Err(e) => Err(e),
            },
            Op::Policy(id, request) => return self.job_policy(peer, id, request, reply),
            Op::Resources(id, request) => return self.change_resources(peer, id, request, reply),
            Op::AddProcess(id, request) => self.add_counted(peer, id, request).map(job_reply),
            Op::RemoveProcess(id, request) => {
                self.remove_process(peer, id, request).inspect(|_| self.count_process(id, false)).map(job_reply)
            }
            Op::AddCgroup(id, request) => self.add_cgroup(peer, id, &request).map(job_reply),
            Op::RemoveCgroup(id, request) => self.remove_cgroup(peer, id, &request).map(job_reply),
            Op::Release(id) => self.release(peer, id).map(job_reply),
            Op::Node(name, request) => return self.change_node(peer, name, request, reply),
            Op::Queues(request) => return self.change_queues(peer, request, reply),
            Op::MachinePolicy(request) => return self.set_policy(peer, request, reply),
            op @ (Op::Repair(_) | Op::Export | Op::Import(_)) => return self.administer(peer, op, reply),
        };
        // If the requester has disconnected, the answer is dropped.
        let _ = reply.send(answer);
    }

    /// Checks that need no job.
    fn check(&self, call: &Call) -> Answer<()> {
        match &call.op {
            Op::Kill(_, request) => check_signal(request.signal),
            op => self.check_limits(call.peer, op),
        }
    }

    fn add_counted(&mut self, peer: Peer, id: u64, request: ProcessRequest) -> Answer<Job> {
        if !self.live.contains_key(&id) {
            return Err(self.cannot_enter(id, &format!("process {}", request.pid)));
        }
        self.add_process(peer, id, request).inspect(|_| self.count_process(id, true))
    }
}
