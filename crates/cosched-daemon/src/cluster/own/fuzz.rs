//! For the fuzz tests: the keys of a machine's journal, and their repair after damage.

use super::{Change, folded, jobs_of, keys, repair};
use cosched_cluster::store::{MemoryStore, Range};
use cosched_cluster::wire::decode;
use cosched_core::cluster::{Planner, State};

/// Checks that repaired keys are consistent, and that a second repair changes nothing.
pub(crate) fn of(changes: Vec<Change>) {
    let (promised, mut entries) = folded(changes);
    let keys = keys();
    repair::reconcile(&mut entries, &keys);
    let once = entries.clone();
    repair::reconcile(&mut entries, &keys);
    assert_eq!(entries, once);
    let store = MemoryStore::restored(promised.max(1), entries.into_values().collect());
    let jobs = jobs_of(store.read(&super::jobs_range(&keys)).iter());
    let state = store.read(&Range::one(keys.state()));
    if let Some(state) = state.first().and_then(|entry| decode::<State>(&entry.value).ok()) {
        assert!(state.jobs.keys().all(|id| jobs.iter().any(|job| job.id == id.0)), "{state:?}");
        let _ = Planner::new(state);
    }
}
