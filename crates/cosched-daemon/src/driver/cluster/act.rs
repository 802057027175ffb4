//! Carries out the node's actions.

use super::super::Driver;
use cosched_cluster::Notice;
use cosched_node::{Action, Input};

impl Driver {
    pub(super) fn act(&mut self, action: Action) {
        let cluster = &mut self.cluster;
        match action {
            Action::Store(op, what) => cluster.link.call(op, what, Some((&mut self.store, &self.state))),
            Action::Drop(watch) => cluster.link.drop_watch(watch),
            Action::Answer(request, answer) => self.answered(request, answer),
            // The driver talks to the control plane only by requests.
            Action::Reply(..) => (),
            Action::Withdraw { ask, keys: (request, reply), why } => {
                if cluster.link.withdraw(&request, &reply, &mut self.store) {
                    cluster.handle(Input::Withdrawn(ask, why));
                }
            }
            Action::Say(notice) => self.notice(notice),
            Action::Missed { generation, slots } => {
                cluster.figures.missed_slots += slots;
                tracing::warn!(generation, slots, "a plan arrived late");
            }
            Action::Behind(generations) => cluster.figures.behind = generations,
            Action::Uses(plan) => {
                tracing::debug!(generation = plan.generation, from_slot = plan.from_slot, "the cluster's plan");
                if let Some(reason) = cluster.no_slots.take() {
                    tracing::info!(generation = plan.generation, %reason, "over: gangs that span nodes have slots here again");
                }
            }
            Action::NoSlots(reason) => {
                tracing::warn!(%reason, "gangs that span nodes have no slots here; Linux schedules them");
                cluster.no_slots = Some(reason);
            }
            Action::Begin { job, part, launcher } => self.start_part(*job, part, launcher),
            Action::Enter(job, request) => self.enter_late(job.0, request),
            Action::Release(request) => drop(cluster.launchers.remove(&request)),
            Action::Exited(job, exit) => self.main_exited(job.0, exit),
            Action::Taken(job) => self.number_is_taken(job.0),
            Action::Signal { job, signal, why, asked } => self.signal_part(job.0, signal, why, asked),
            Action::KillRest(job) => self.kill_rest(job.0),
            Action::Finish(job, attempt) => self.over.push((job.0, attempt)),
            Action::Report(job, attempt) => self.report(job.0, attempt),
            Action::Keep(job) => self.keep_part(job.0),
            Action::Forgotten(job) => self.forgotten(job.0),
            Action::Sample(job) => self.take_sample(job),
            Action::CountBlocks(job) => self.count_blocks(job),
            Action::OrderWaits => self.order_waits(),
            Action::Chose { job, choice, seen } => self.chose(job, choice, &seen),
            Action::Sleeps { job, asleep, reason } => self.sleeps(job, asleep, reason),
            Action::Dropped { job, reason } => self.dropped(job, reason),
            Action::Plan => self.take_plan(),
            Action::Unsound(flaw) => super::super::flaw::tell(flaw),
            Action::Refused(job, why) => {
                tracing::error!(id = job.0, "the node cannot plan a job as requested: {why}")
            }
        }
    }

    fn notice(&mut self, notice: Notice) {
        let cluster = &mut self.cluster;
        match notice {
            Notice::Joined(id) => {
                cluster.problem = None;
                tracing::info!(cluster = cluster.name, node = cluster.own_name, number = id.0, "joined the cluster");
            }
            Notice::StoreLost(why) => {
                cluster.figures.losses += 1;
                tracing::warn!("no contact with the store: {why}. Jobs keep running; users' requests are queued");
                cluster.problem = Some(why.to_string());
            }
            Notice::StoreBack(ns) => {
                cluster.problem = None;
                tracing::info!(after_ms = ns / 1_000_000, "the store answers again");
            }
            Notice::Unusable(why) if cluster.member().alarm().is_some() => {
                tracing::error!(
                    "the data in the cluster's store cannot be used: {why}. Jobs keep running; no job is planned or \
                     ended; `cosched cluster repair` shows what can be done"
                );
                cluster.problem = Some(why);
            }
            Notice::KeyGone(key) => {
                tracing::warn!(key, "a key was deleted from the store by another program; it is written again");
                cluster.rewritten.insert(key, tokio::time::Instant::now());
            }
            Notice::Unusable(why) | Notice::Out(why) => {
                tracing::error!("this node cannot take part in the cluster: {why}");
                cluster.problem = Some(why);
            }
            Notice::NodeSilent(name) => {
                tracing::warn!(
                    node = name,
                    "a node is unreachable: its jobs keep running there, its gangs that span nodes have no slots"
                );
            }
            Notice::NodeLeft(name) => tracing::warn!(node = name, "a node left; its CPUs are free"),
            Notice::Unsound(why) => super::super::flaw::tell(why),
            Notice::Conflict => cluster.figures.conflicts += 1,
            Notice::Planned { generation, requests } => {
                cluster.figures.planned += 1;
                tracing::debug!(generation, requests, "planned");
            }
            Notice::Clock(_) => (),
            Notice::Left => tracing::info!("left the cluster"),
        }
        self.touch_status();
    }
}
