//! What the control plane wants is done.

use super::super::Driver;
use cosched_cluster::{Action, Notice};
use cosched_core::{JobId, Reason};

impl Driver {
    pub(super) fn act_in_cluster(&mut self, action: Action) {
        let cluster = &mut self.cluster;
        match action {
            Action::Store(op, what) => cluster.link.call(op, what, Some((&mut self.store, &self.state))),
            Action::Drop(watch) => cluster.link.drop_watch(watch),
            Action::Use(plan) => {
                tracing::debug!(generation = plan.generation, from_slot = plan.from_slot, "the cluster's plan");
                if let Some(reason) = cluster.no_slots {
                    tracing::info!(generation = plan.generation, %reason, "over: gangs that span nodes have slots here again");
                }
                // Those that it does not have wait for a later plan, and go on until then.
                cluster.early.retain(|id| !plan.jobs.contains_key(&JobId(*id)));
                (cluster.plan, cluster.no_slots) = (Some(plan), None);
                self.plan_is_stale = true;
            }
            Action::RunNoSlots(reason) => self.run_no_slots(reason),
            Action::StartEarly(job) => {
                cluster.early.insert(job.0);
                self.plan_is_stale = true;
            }
            Action::Missed { generation, slots } => {
                cluster.figures.missed_slots += slots;
                tracing::warn!(generation, slots, "a plan came late");
            }
            Action::Behind(generations) => cluster.figures.behind = generations,
            Action::StartHere { job, part } => self.start_here(*job, part),
            Action::KillHere { job, attempt, reason } => self.kill_here(job, attempt, reason),
            Action::Forgotten(job) => self.forgotten(job),
            Action::CloseHere { job, attempt } => self.close_here(job, attempt),
            Action::Reply(ask, answer) => self.replied(ask, answer),
            Action::Loads(op, acks) => self.loads_read(op, &acks),
            Action::Say(notice) => self.notice(notice),
        }
    }

    fn run_no_slots(&mut self, reason: Reason) {
        let cluster = &mut self.cluster;
        tracing::warn!(%reason, "gangs that span nodes have no slots here; Linux schedules them");
        cluster.early.clear();
        (cluster.plan, cluster.no_slots) = (None, Some(reason));
        self.plan_is_stale = true;
    }

    fn notice(&mut self, notice: Notice) {
        let cluster = &mut self.cluster;
        match notice {
            Notice::Joined(id) => {
                cluster.problem = None;
                self.plan_is_stale = true;
                tracing::info!(cluster = cluster.name, node = cluster.node, number = id.0, "joined the cluster");
            }
            Notice::StoreLost(why) => {
                cluster.figures.losses += 1;
                tracing::warn!("the store is lost: {why}. Jobs go on; what users ask for waits");
                cluster.problem = Some(why.to_string());
                self.plan_is_stale = true;
            }
            Notice::StoreBack(ns) => {
                cluster.problem = None;
                self.plan_is_stale = true;
                tracing::info!(after_ms = ns / 1_000_000, "the store is back");
            }
            Notice::Unusable(why) if cluster.member.alarm().is_some() => {
                tracing::error!(
                    "what lies in the cluster's store cannot be used: {why}. Jobs go on, nothing is planned and nothing is ended; \
                     `cosched cluster repair` says what can be done"
                );
                cluster.problem = Some(why);
            }
            Notice::KeyGone(key) => {
                tracing::warn!(key, "somebody has deleted a key from the store; it is written again");
                cluster.rewritten.insert(key, tokio::time::Instant::now());
            }
            Notice::Unusable(why) | Notice::Out(why) => {
                tracing::error!("no part in the cluster: {why}");
                cluster.problem = Some(why);
            }
            Notice::NodeSilent(name) => {
                tracing::warn!(
                    node = name,
                    "a node is silent: its jobs go on there, its gangs that span nodes have no slots"
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
