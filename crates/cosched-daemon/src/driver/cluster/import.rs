//! Running jobs of a single machine that are unknown to its store become jobs of the store, once: those of a daemon from before every machine had a
//! store, and those whose part of a damaged file is lost. They continue as they are, and are planned and changed like all others.

use super::words;
use crate::clock::now;
use crate::cluster::own::{self, OwnStore};
use crate::cluster::{FromStore, Link};
use crate::config::ClusterConfig;
use crate::record::{ALONE, Record};
use crate::store::{State, Store};
use anyhow::Context;
use cosched_api::NodeResources;
use cosched_cluster::store::{Do, Op, Txn};
use cosched_cluster::wire::{By, End, Exit, Job, JobAsk, NodeAsk, OnNodeLoss, TermsAsk, WantAsk, Why, encode};
use cosched_cluster::{Action, Member, Moment, Settings};
use cosched_core::cluster::{JobRecord, JobSpec, NodeWant, Part, Place, Stage, State as Planned, Want};
use cosched_core::{JobId, NodeId, Policy, SlotShare, Standing, Time};
use std::collections::BTreeSet;
use std::time::Duration;

/// The limit on the steps of a store's start that wait for its own timeouts.
const STEPS_MAX: usize = 100;

/// Puts the jobs of the records into the store.
pub(in super::super) fn import(
    (store, state): (&mut Store, &mut State),
    config: &ClusterConfig,
    settings: &Settings,
) -> anyhow::Result<()> {
    let known: BTreeSet<u64> = store.own().jobs().iter().map(|job| job.id).collect();
    let is_strange = |record: &&Record| match record.part {
        None => true,
        Some(part) => !part.spans && !record.ended() && !known.contains(&record.id),
    };
    let strangers: Vec<Record> = state.jobs.values().filter(is_strange).cloned().collect();
    if strangers.is_empty() {
        return Ok(());
    }
    let node = match node_of(store.own())? {
        Some(node) => node,
        None => {
            begin((store, state), config, settings.clone())?;
            node_of(store.own())?.context("the store of this machine could not be created")?
        }
    };
    let new: Vec<&Record> = strangers.iter().filter(|record| !known.contains(&record.id)).collect();
    let mut planned = store.own().state().map_err(anyhow::Error::msg)?.unwrap_or_default();
    take_in(&mut planned, node, &new);
    let put = |key, value| Do::Put { key, value, lease: None };
    let jobs = new.iter().map(|record| put(own::keys().job(record.id), encode(&job_of(record, &config.node))));
    let then = [put(own::keys().state(), encode(&planned))].into_iter().chain(jobs).collect();
    store.call(state, Op::Txn(Txn { then, ..Txn::default() })).map_err(|e| anyhow::anyhow!("{e}"))?;
    let count = new.len();
    for mut record in strangers {
        // Marked only now: until a job is in the store, it is found again.
        record.part = Some(ALONE);
        store.owe(record.id);
        state.jobs.insert(record.id, record);
    }
    store.pay_all(state);
    tracing::info!(jobs = count, "jobs of an earlier daemon were taken over into the store");
    Ok(())
}

/// The machine's number as a node, if it is in the plan.
fn node_of(own: &OwnStore) -> anyhow::Result<Option<NodeId>> {
    let state = own.state().map_err(anyhow::Error::msg)?;
    Ok(state.and_then(|state| state.nodes.keys().next_back().copied()))
}

/// Puts into the store what a cluster's first member puts there. The lease is given back: the daemon's own member claims the name.
fn begin((store, state): (&mut Store, &State), config: &ClusterConfig, settings: Settings) -> anyhow::Result<()> {
    let mut link = Link::new(config, Duration::from_nanos(settings.answer_ns_max()))?;
    let mut moment = Moment { steady: Time(super::STEADY_BEGIN_NS), wall: now() };
    let mut member = Member::new(moment, settings, &[]);
    for _ in 0..STEPS_MAX {
        while let Some(action) = member.poll_action() {
            match action {
                Action::Store(op, what) => link.call(op, what, Some((store, state))),
                Action::Drop(watch) => link.drop_watch(watch),
                _ => (),
            }
        }
        match link.told_now() {
            Some(FromStore::Done(op, done)) => member.handle_done(moment, op, done),
            Some(FromStore::News(watch, news)) => member.handle_news(moment, watch, news),
            Some(FromStore::WatchLost(watch, why)) => member.handle_watch_lost(moment, watch, why),
            None if member.state().is_some_and(|state| !state.nodes.is_empty()) => break,
            None => {
                moment.steady = member.poll_timeout().unwrap_or(moment.steady).max(moment.steady);
                member.handle_timeout(moment);
            }
        }
    }
    store.end_leases();
    Ok(())
}

/// Adds jobs that run on this node to the planner's state. If their memory does not fit in total, none of it is counted: running jobs are not stopped
/// because the store has come to know them.
fn take_in(planned: &mut Planned, node: NodeId, records: &[&Record]) {
    let open = || records.iter().filter(|record| !record.ended());
    let sum = |bytes: &mut dyn Iterator<Item = u64>| bytes.fold(0, u64::saturating_add);
    let used = sum(&mut planned
        .jobs
        .values()
        .filter_map(|job| job.place.as_ref())
        .flat_map(|place| &place.parts)
        .map(|part| part.memory_bytes));
    let more = sum(&mut open().filter_map(|record| record.mem_bytes));
    let has = planned.nodes.get(&node).map_or(0, |node| node.capacity.memory_bytes);
    let counts = used.saturating_add(more) <= has;
    // Prefers a queue without a time limit, which ends no job.
    let queue = planned.config.queues.iter().position(|queue| queue.time_ns_max.is_none()).unwrap_or(0);
    for record in open() {
        let memory_bytes = record.mem_bytes.filter(|_| counts).unwrap_or(0);
        let job = planned_of(record, (node, queue as u32), memory_bytes);
        planned.next_order = planned.next_order.max(record.id);
        planned.jobs.insert(JobId(record.id), job);
    }
}

fn disk_bytes(record: &Record) -> u64 {
    record.nodes.first().and_then(|node: &NodeResources| node.disk_bytes).unwrap_or(0)
}

fn planned_of(record: &Record, (node, queue): (NodeId, u32), memory_bytes: u64) -> JobRecord {
    let (id, cpus, disk_bytes) = (JobId(record.id), record.cpus.max(1), disk_bytes(record));
    JobRecord {
        spec: JobSpec {
            id,
            owner: record.uid,
            class: words::core_class(record.class),
            policy: record.own_policy.map(words::core_policy),
            slot_share: record.share_permille.and_then(SlotShare::new),
            want: Want::PerNode(vec![NodeWant { node, cpus, cpus_min: cpus, memory_bytes, disk_bytes }]),
            queue,
            on_node_loss: cosched_core::cluster::OnNodeLoss::Kill,
            terms: Default::default(),
        },
        order: record.id,
        standing: if record.suspended { Standing::Suspended } else { Standing::Scheduled },
        choice: Policy::Gang,
        stage: Stage::Ready,
        place: Some(Place { parts: vec![Part { node, cpus, memory_bytes, disk_bytes }], home: None }),
        ready_since: now(),
        suspended: Default::default(),
    }
}

fn job_of(record: &Record, node: &str) -> Job {
    let (cpus, disk_bytes) = (record.cpus.max(1), disk_bytes(record));
    let memory_bytes = record.mem_bytes.unwrap_or(0);
    let gid = crate::users::group_of(record.uid).unwrap_or(record.uid);
    let ask = JobAsk {
        name: record.name.clone(),
        command: record.command.clone(),
        cwd: record.cwd.clone(),
        environment: Vec::new(),
        log_path: record.log_path.clone(),
        class: words::class(record.class),
        policy: record.own_policy.map(words::policy),
        share_permille: record.share_permille,
        waiting: record.waiting.as_ref().map(|waiting| words::waiting(waiting.asked)),
        want: WantAsk::PerNode(vec![NodeAsk { node: node.to_owned(), cpus, cpus_min: cpus, memory_bytes, disk_bytes }]),
        queue: None,
        groups: Vec::new(),
        on_node_loss: OnNodeLoss::Kill,
        lead: Some(node.to_owned()),
        main: None,
        once: false,
        terms: TermsAsk { exclusive_cores: record.exclusive_cores, ..TermsAsk::default() },
    };
    let by = By { uid: record.uid, gid, admin: record.by_admin };
    let mut job = Job::new(record.id, by, ask, record.submitted_unix_ms.saturating_mul(1_000_000));
    job.decided = record.decided;
    job.end = record.ended_unix_ms.map(|ms| End {
        at_ns: ms.saturating_mul(1_000_000),
        why: Why::Finished,
        exit: record.exit.map(|exit| Exit { code: exit.code, signal: exit.signal }),
        cpu_time_ns: record.cpu_time_ms.saturating_mul(1_000_000),
        memory_peak_bytes: record.memory_peak_bytes.unwrap_or(0),
        out_of_memory: record.out_of_memory.map(words::out_of_memory),
    });
    job
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::record::PartOf;
    use crate::record::example;
    use crate::store::Opened;
    use cosched_core::cluster::Capacity;
    use std::path::Path;

    const MEMORY: u64 = 1 << 30;

    fn settings() -> Settings {
        let capacity = Capacity { cpus: 4, memory_bytes: MEMORY, disk_bytes: 0 };
        Settings { is_shared: false, dead: None, ..Settings::new(own::keys(), "here", 1, capacity) }
    }

    /// Imports the records of a directory once; returns the store's content.
    fn imported(dir: &Path) -> (State, Vec<Job>, Planned) {
        let Opened { mut store, mut state, .. } = Store::open(dir).unwrap();
        let mut config = Config::parse("").unwrap().cluster;
        config.node = "here".to_owned();
        import((&mut store, &mut state), &config, &settings()).unwrap();
        let (jobs, planned) = (store.own().jobs(), store.own().state().unwrap().unwrap());
        (state, jobs, planned)
    }

    /// Records as a daemon without a store left them.
    fn left(dir: &Path, records: &[Record]) {
        let Opened { mut store, mut state, .. } = Store::open(dir).unwrap();
        records.iter().for_each(|record| store.put(&mut state, record).unwrap());
    }

    #[test]
    fn what_runs_and_what_has_ended_is_in_the_store_once() {
        let dir = tempfile::tempdir().unwrap();
        let [mut ended, mut runs, mut suspended] = [3, 5, 9].map(example);
        (ended.ended_unix_ms, ended.exit) = (Some(8), Some(cosched_api::ExitStatus { code: Some(7), signal: None }));
        (runs.class, runs.mem_bytes) = (cosched_api::Class::Standby, Some(1 << 20));
        suspended.suspended = true;
        left(dir.path(), &[ended, runs, suspended]);
        let first = imported(dir.path());
        let (state, jobs, planned) = &first;
        assert_eq!(jobs.iter().map(|job| job.id).collect::<Vec<_>>(), [3, 5, 9]);
        assert_eq!(jobs[0].end.and_then(|end| end.exit), Some(Exit { code: Some(7), signal: None }));
        assert_eq!(planned.jobs.keys().map(|id| id.0).collect::<Vec<_>>(), [5, 9], "one that has ended is not planned");
        assert_eq!(planned.jobs[&JobId(5)].spec.class, cosched_core::Class::Standby);
        assert_eq!(planned.jobs[&JobId(5)].place.as_ref().unwrap().parts[0].memory_bytes, 1 << 20);
        assert_eq!(planned.jobs[&JobId(9)].standing, Standing::Suspended);
        assert!(planned.next_order >= 9 && state.jobs.values().all(|record| record.part.is_some()));
        assert!(cosched_core::cluster::Planner::new(planned.clone()).is_ok());
        assert_eq!(imported(dir.path()), first, "a second start imports nothing");
    }

    #[test]
    fn jobs_that_exceed_the_memory_are_not_counted_rather_than_held() {
        let dir = tempfile::tempdir().unwrap();
        let records = [1, 2].map(|id| Record { mem_bytes: Some(MEMORY / 4 * 3), ..example(id) });
        left(dir.path(), &records);
        let (_, _, planned) = imported(dir.path());
        let counted = planned.jobs.values().map(|job| job.place.as_ref().unwrap().parts[0].memory_bytes);
        assert_eq!(counted.collect::<Vec<_>>(), [0, 0]);
    }

    #[test]
    fn a_job_that_a_damaged_store_has_lost_is_taken_in_beside_those_that_it_has() {
        let dir = tempfile::tempdir().unwrap();
        left(dir.path(), &[example(1)]);
        imported(dir.path());
        let part = PartOf { tree: 7, ..ALONE };
        let elsewhere = Record { part: Some(PartOf { spans: true, ..part }), ..example(3) };
        left(dir.path(), &[Record { part: Some(part), ..example(2) }, elsewhere]);
        let (_, jobs, planned) = imported(dir.path());
        assert_eq!(
            jobs.iter().map(|job| job.id).collect::<Vec<_>>(),
            [1, 2],
            "one of several nodes is not this machine's"
        );
        assert_eq!(planned.jobs.len(), 2);
    }
}
