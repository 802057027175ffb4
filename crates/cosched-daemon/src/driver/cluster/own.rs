//! A single machine: a cluster of this node alone, whose store is a file (`cluster/own`) that answers at once.

use super::super::Driver;
use super::ask::{self, Asker};
use crate::store::Settings;
use cosched_cluster::wire::Ask;
use cosched_core::cluster::Config as CoreConfig;
use cosched_node::{ForAll, Request};

impl Driver {
    /// Carries out the control plane's operations and passes it the store's answers, until there are no more; a file answers at once.
    pub(in super::super) fn heed_store(&mut self) {
        self.do_in_cluster();
        loop {
            self.follow_cluster();
            if !self.do_in_cluster() {
                break;
            }
        }
    }

    /// Returns whether there was something to do.
    fn do_in_cluster(&mut self) -> bool {
        let mut has_done = false;
        loop {
            if let Some(action) = self.cluster.node.poll_action() {
                self.act(action);
            } else if let Some(told) = self.cluster.link.told_now() {
                self.on_store(told);
            } else {
                return has_done;
            }
            has_done = true;
        }
    }

    /// Settings in the configuration file that have changed since the last start apply from now on; unchanged ones may have been changed while the
    /// daemon ran, and keep that value.
    pub(in super::super) fn tell_file(&mut self) {
        if !self.cluster.alone || !self.cluster.member().is_joined() {
            return;
        }
        let says = settings_of(&super::initial(&self.config.cluster, &self.config, None));
        let said = self.state.settings.file.clone();
        if says == said {
            return;
        }
        // A new store was made with all of them.
        let news: Vec<Ask> = says.iter().filter(|ask| !said.is_empty() && !said.contains(ask)).cloned().collect();
        self.remember_file(says);
        for ask in news {
            tracing::info!(?ask, "the configuration has changed");
            let asked = self.with_queues_in_use(&ask);
            let id = self.cluster.next_request();
            self.ask_as(ask::DAEMON, id, Request::Change(ForAll::Policy, vec![asked]), Asker::File(ask));
        }
    }

    /// Queues that the file no longer names stay while they have jobs, behind those that it names.
    fn with_queues_in_use(&mut self, ask: &Ask) -> Ask {
        let (Ask::Queues { queues }, Some(state)) = (ask, self.cluster.member().state()) else { return ask.clone() };
        let named = |name: &str| queues.iter().any(|queue| queue.name == name);
        let in_use = |at: usize| state.jobs.values().any(|job| job.spec.queue as usize == at);
        let stay = state.config.queues.iter().enumerate().filter(|(at, queue)| !named(&queue.name) && in_use(*at));
        let stay: Vec<_> = stay.map(|(_, queue)| queue.clone().into()).collect();
        if stay.is_empty() {
            return ask.clone();
        }
        let names =
            stay.iter().map(|queue: &cosched_cluster::wire::Queue| queue.name.as_str()).collect::<Vec<_>>().join(", ");
        self.file_refused(ask, &format!("queues that it does not name are kept: {names}"), "jobs are in them");
        Ask::Queues { queues: queues.iter().cloned().chain(stay).collect() }
    }

    /// Jobs prevent a change of the configuration: it is tried again at the next start.
    pub(super) fn file_refused(&mut self, ask: &Ask, what: &str, why: &str) {
        tracing::error!("the configuration is not in force yet: {what}: {why}");
        self.identity.warnings.push(cosched_api::Warning {
            what: "a part of the configuration is not in force yet".to_owned(),
            why: format!("{what}: {why}"),
            hint: "Wait until the jobs that prevent it have ended, then restart the daemon.".to_owned(),
        });
        let said = self.state.settings.file.iter().filter(|said| *said != ask).cloned().collect();
        self.remember_file(said);
    }

    fn remember_file(&mut self, file: Vec<Ask>) {
        let settings = Settings { file, ..self.state.settings.clone() };
        if let Err(e) = self.store.settings(&mut self.state, settings) {
            tracing::error!("the state could not be written: {e}");
        }
    }

    /// Whether the store itself writes the end of a job as soon as it is told.
    pub(in super::super) fn is_told_at_once(&self, id: u64) -> bool {
        let cluster = &self.cluster;
        cluster.alone && cluster.problem.is_none() && cluster.member().job(cosched_core::JobId(id)).is_some()
    }
}

/// The settings of a cluster, one request each.
fn settings_of(config: &CoreConfig) -> Vec<Ask> {
    vec![
        Ask::Queues { queues: config.queues.iter().cloned().map(Into::into).collect() },
        Ask::ClusterPolicy { policy: config.policy.into() },
        Ask::ClusterSharing { sharing: config.sharing.into() },
        Ask::SlotLength { ns: config.slot_length_ns },
        Ask::Shares { working: config.working.into(), off: config.off.into() },
        Ask::Ceiling { permille: config.ceiling_permille },
        Ask::FairShare { fair_share: config.fair_share.map(Into::into) },
    ]
}
