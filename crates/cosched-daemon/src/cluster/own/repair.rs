//! Repair after damage: makes the remaining keys consistent.
//!
//! A lost line may have been the record of a job that is in the planner's state, or the state with a job. Such a job is removed from the store
//! altogether: a job that is unknown to the store continues, scheduled by the node alone, while a job that is half known would be ended or would hold
//! its memory for ever. Requests are removed, too: the lost line may have recorded that they were carried out, and their clients know that the daemon
//! died.

use cosched_cluster::Keys;
use cosched_cluster::store::{Entry, Key};
use cosched_cluster::wire::{Job, decode, encode};
use cosched_core::JobId;
use cosched_core::cluster::{NUMBERS_END, State};
use std::collections::{BTreeMap, BTreeSet};

/// Removes everything that only one half of the store knows; returns the highest job number found.
pub(super) fn reconcile(entries: &mut BTreeMap<Key, Entry>, keys: &Keys) -> u64 {
    let prefix = format!("{}jobs/", keys.prefix());
    let jobs: BTreeMap<u64, Option<Job>> = entries
        .values()
        .filter_map(|entry| {
            let id = entry.key.strip_prefix(&prefix)?.parse().ok().filter(|id| *id < NUMBERS_END)?;
            Some((id, decode(&entry.value).ok().filter(|job: &Job| job.id == id)))
        })
        .collect();
    let state: Option<State> = entries.get(&keys.state()).and_then(|entry| decode(&entry.value).ok());
    let last = jobs.keys().copied().chain(state.iter().map(|state| state.next_order)).max().unwrap_or(0);
    // Without its name the node would take another number, and count as lost.
    let there = |what: &str| entries.keys().any(|key| key.starts_with(&format!("{}{what}", keys.prefix())));
    let state = state.filter(|_| ["format", "names/", "ids/"].into_iter().all(there));
    if state.is_none() {
        let of_node =
            |key: &str| ["names/", "ids/"].iter().any(|what| key.starts_with(&format!("{}{what}", keys.prefix())));
        entries.retain(|key, _| *key != keys.state() && !of_node(key));
    }
    let requests = format!("{}requests/", keys.prefix());
    entries.retain(|key, _| !key.starts_with(&requests));
    let planned: BTreeSet<u64> = state.iter().flat_map(|state| state.jobs.keys().map(|id| id.0)).collect();
    for (id, job) in &jobs {
        let Some(job) = job else {
            entries.remove(&keys.job(*id));
            continue;
        };
        if !planned.contains(id) && job.end.is_none() {
            tracing::error!(id, "the planner's state no longer contains this job");
            entries.remove(&keys.job(*id));
        }
    }
    if let Some(mut state) = state {
        let is_known = |id: &JobId| jobs.get(&id.0).is_some_and(Option::is_some);
        for id in state.jobs.keys().filter(|id| !is_known(id)) {
            tracing::error!(id = id.0, "the record of this job is lost");
        }
        state.jobs.retain(|id, _| is_known(id));
        state.early.retain(is_known);
        entries.entry(keys.state()).and_modify(|entry| entry.value = encode(&state));
    }
    last
}
