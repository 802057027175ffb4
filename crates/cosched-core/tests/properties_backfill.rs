//! Backfilling, by properties that do not depend on the implementation: with true time limits no head of the queue is delayed by
//! backfilled jobs; and without time limits no job is overtaken by an endless stream.

use cosched_core::cluster::{
    Capacity, Config, Input, JobRecord, JobSpec, NodeWant, Planner, Queue, Stage, State, Want,
};
use cosched_core::{Class, JobId, NodeId, Time};
use proptest::prelude::*;
use proptest::test_runner::Config as Cases;
use std::collections::BTreeMap;

const MEMORY: u64 = 100;
const NODES: u32 = 3;

fn queues(limits: &[Option<u64>]) -> Vec<Queue> {
    let queue =
        |(at, limit): (usize, &Option<u64>)| Queue { name: at.to_string(), time_ns_max: *limit, ..Queue::default() };
    limits.iter().enumerate().map(queue).collect()
}

fn cluster(limits: &[Option<u64>]) -> Planner {
    let config = Config { queues: queues(limits), ..Config::default() };
    let mut planner = Planner::new(State { config, ..State::default() }).unwrap();
    let capacity = Capacity { cpus: 2, memory_bytes: MEMORY, disk_bytes: 0 };
    (0..NODES).for_each(|node| tell(&mut planner, 0, Input::Join(NodeId(node), capacity)));
    planner
}

fn tell(planner: &mut Planner, now: u64, input: Input) {
    planner.handle(Time(now), Time(now), input).unwrap();
    while planner.poll_action().is_some() {}
}

/// A job with one CPU on each node of a bit mask.
fn spec(id: u64, nodes: u32, memory_bytes: u64, queue: u32) -> JobSpec {
    let want = |node| NodeWant { node: NodeId(node), cpus: 1, cpus_min: 1, memory_bytes, disk_bytes: 0 };
    let want = Want::PerNode((0..NODES).filter(|node| nodes >> node & 1 == 1).map(want).collect());
    JobSpec { queue, ..JobSpec::new(JobId(id), Class::Batch, want) }
}

fn waits(job: &JobRecord) -> bool {
    matches!(job.stage, Stage::Waiting(_))
}

fn wants(job: &JobRecord) -> &[NodeWant] {
    match &job.spec.want {
        Want::PerNode(wants) => wants,
        Want::Total { .. } => &[],
    }
}

/// The waiting job that is served first.
fn head(planner: &Planner) -> Option<(JobId, JobRecord)> {
    let waiting = planner.state().jobs.iter().filter(|(_, job)| waits(job));
    waiting.min_by_key(|(_, job)| (job.spec.queue, job.order)).map(|(id, job)| (*id, job.clone()))
}

/// When it would have its memory on all its nodes if no other job started, and all ended by their limits.
fn promised(planner: &Planner, job: &JobRecord, now: u64) -> u64 {
    let running: Vec<(u64, &JobRecord)> = planner
        .state()
        .jobs
        .values()
        .filter(|other| !waits(other))
        .map(|other| {
            let limit = planner.state().config.queues[other.spec.queue as usize].time_ns_max.unwrap();
            (other.ready_since.0 + limit, other)
        })
        .collect();
    let fits = |at: u64| {
        wants(job).iter().all(|want| {
            let here = running.iter().filter(|(end, _)| *end > at).flat_map(|(_, other)| wants(other));
            let used: u64 = here.filter(|other| other.node == want.node).map(|other| other.memory_bytes).sum();
            used + want.memory_bytes <= MEMORY
        })
    };
    let mut ends: Vec<u64> = running.iter().map(|(end, _)| *end).chain([now]).collect();
    ends.sort_unstable();
    ends.into_iter().find(|at| *at >= now && fits(*at)).unwrap()
}

proptest! {
    #![proptest_config(Cases { cases: 256, failure_persistence: None, ..Cases::default() })]

    #[test]
    fn with_true_limits_no_head_is_delayed(
        jobs in prop::collection::vec((1..8_u32, 1..=MEMORY, 0..3_u32, 0..30_u64, 1..=100_u64), 1..40),
    ) {
        // The last queue is served last and has the longest jobs; the head counts, whatever its queue.
        let limits = [20, 50, 100];
        let mut planner = cluster(&limits.map(Some));
        let (mut now, mut next) = (0, 0);
        // When jobs end: never later than their limits.
        let mut ends: BTreeMap<JobId, u64> = BTreeMap::new();
        let mut promises: BTreeMap<JobId, u64> = BTreeMap::new();
        loop {
            for (id, job) in &planner.state().jobs {
                if !waits(job) && !ends.contains_key(id) {
                    let (.., queue, _, percent) = jobs[id.0 as usize];
                    ends.insert(*id, job.ready_since.0 + (limits[queue as usize] * percent / 100).max(1));
                    let late = promises.get(id).filter(|promise| **promise < now);
                    prop_assert!(late.is_none(), "job {} starts at {}, and {:?} was promised", id, now, late);
                }
            }
            if let Some((id, job)) = head(&planner) {
                let promise = promised(&planner, &job, now);
                // A later job that is more urgent takes its place as the head, and the promise with it.
                promises.clear();
                promises.insert(id, promise);
            } else {
                promises.clear();
            }
            let end = ends.iter().map(|(id, at)| (*at, *id)).filter(|(_, id)| planner.state().jobs.contains_key(id)).min();
            let arrival: u64 = jobs[..next.min(jobs.len())].iter().map(|job| job.3).sum::<u64>()
                + jobs.get(next).map_or(0, |job| job.3);
            match end {
                Some((at, id)) if next == jobs.len() || at <= arrival => {
                    now = at;
                    tell(&mut planner, now, Input::End(id));
                }
                _ if next < jobs.len() => {
                    now = arrival.max(now);
                    let (nodes, memory, queue, ..) = jobs[next];
                    tell(&mut planner, now, Input::Submit(spec(next as u64, nodes, memory, queue)));
                    next += 1;
                }
                _ => break,
            }
        }
        prop_assert!(planner.state().jobs.is_empty(), "everybody had a turn");
    }

    #[test]
    fn without_limits_a_stream_overtakes_nobody_for_ever(
        first in prop::collection::vec((1..8_u32, 1..=MEMORY), 1..8),
        stream in prop::collection::vec((1..8_u32, 1..60_u64), 60),
    ) {
        let mut planner = cluster(&[None]);
        let mut id = 0;
        for (nodes, memory) in first {
            tell(&mut planner, 0, Input::Submit(spec(id, nodes, memory, 0)));
            id += 1;
        }
        let Some((head, _)) = head(&planner) else { return Ok(()) };
        let mut stream = stream.into_iter().cycle();
        // First the jobs that came before it end, then those that had overtaken it by then.
        for _ in 0..2 {
            let run: Vec<JobId> =
                planner.state().jobs.iter().filter(|(_, job)| !waits(job)).map(|(id, _)| *id).collect();
            for over in run.into_iter().filter(|over| *over != head) {
                for _ in 0..3 {
                    let (nodes, memory) = stream.next().unwrap();
                    tell(&mut planner, 0, Input::Submit(spec(id, nodes, memory, 0)));
                    id += 1;
                }
                tell(&mut planner, 0, Input::End(over));
            }
        }
        prop_assert!(!waits(&planner.state().jobs[&head]), "job {} still waits", head);
    }
}
