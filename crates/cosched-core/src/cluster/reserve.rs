//! Reservations of jobs that wait, and what later jobs may use of them meanwhile: EASY backfilling by node.
//!
//! Problem: a job that waits must not be overtaken for ever, and must not block all jobs that come after it.
//! Rule. The first job in order that waits for a node has a reservation there: from the earliest time at which it would fit
//! if all jobs that have started end by their time limits. A later job may start on that node if it ends before then, or leaves
//! enough at that time for the first one (see [`Hole`]). A job that would not fit even on all empty nodes that take jobs (because a node
//! is drained or away) has no reservation, and blocks no other job.
//! The end of a job without a time limit is unknown. The waiting job waits for those of them that came before it, and as long
//! as they keep it from starting, it has no reservation: blocking other jobs would not help it. As soon as only later jobs
//! without a limit are in its way, it has a reservation that begins at once: they will end some day, and no more of them start.
//! So no job is overtaken by an endless stream, and with correct time limits no job is delayed at all.
//! Source: Lifka 1995 (EASY); here for memory and disk space, because CPUs are shared in time.

use super::admit::{Key, key_of};
use super::place::Wanted;
use super::planner::Planner;
use super::state::{JobRecord, Stage, Want};
use crate::backfill::Hole;
use crate::id::JobId;
use crate::job::Policy;
use crate::reason::Reason;
use crate::time::Time;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

/// What a job that has started uses of a node, and until when.
#[derive(Clone, Copy, Debug)]
struct Usage {
    key: Key,
    /// `None`: unknown.
    ends: Option<Time>,
    memory: u64,
    disk: u64,
    alone: bool,
    row: Option<u32>,
}

/// A reservation on a node.
#[derive(Clone, Copy, Debug)]
struct Kept {
    from: Time,
    /// The memory that is free at that time beside the job, in bytes; `disk` likewise.
    memory: u64,
    disk: u64,
    /// The job has to have the node for itself.
    alone: bool,
    /// The job is a gang that spans nodes: it needs a row, too.
    spans: bool,
}

/// A job that may use what is reserved for others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Guest {
    /// When it ends, if that is known.
    pub(super) ends: Option<Time>,
    /// It would have the node for itself.
    pub(super) alone: bool,
}

/// All reservations of one pass over the waiting jobs.
#[derive(Debug)]
pub(super) struct Reserved {
    pub(super) now: Time,
    kept: BTreeMap<u32, Kept>,
    /// The use of each node; computed when it is first needed, and again after a job has started.
    usages: Option<Vec<Vec<Usage>>>,
}

impl Reserved {
    /// No reservations yet.
    pub(super) fn new(now: Time) -> Reserved {
        Reserved { now, kept: BTreeMap::new(), usages: None }
    }

    pub(super) fn has(&self, at: u32) -> bool {
        self.kept.contains_key(&at)
    }

    /// The free memory and disk space of a node that a job may use; `None` if it must not use the node.
    pub(super) fn left(&self, at: u32, guest: &Guest, memory: u64, disk: u64) -> Option<(u64, u64)> {
        let Some(kept) = self.kept.get(&at) else { return Some((memory, disk)) };
        let time = guest.ends.map(|ends| ends - self.now);
        let most = |free, extra| Hole { free, extra, time: kept.from - self.now }.most(time);
        let outlasts = guest.ends.is_none_or(|ends| ends > kept.from);
        let no = outlasts && (kept.alone || guest.alone);
        (!no).then(|| (most(memory, kept.memory), most(disk, kept.disk)))
    }

    /// Whether a gang that spans nodes may take cells of this node, when this number of rows may still be made.
    pub(super) fn leaves_row(&self, at: u32, guest: &Guest, rows_left: u32) -> bool {
        let in_the_way = |kept: &Kept| kept.spans && guest.ends.is_none_or(|ends| ends > kept.from);
        rows_left > 1 || !self.kept.get(&at).is_some_and(in_the_way)
    }

    /// A job has started: what it uses for longer than until the reservations begin is no longer left over.
    pub(super) fn start(&mut self, guest: &Guest, parts: &[(u32, u64, u64)]) {
        self.usages = None;
        for (at, memory, disk) in parts {
            let Some(kept) = self.kept.get_mut(at) else { continue };
            if guest.ends.is_none_or(|ends| ends > kept.from) {
                kept.memory = kept.memory.saturating_sub(*memory);
                kept.disk = kept.disk.saturating_sub(*disk);
            }
        }
    }
}

/// The use of a node at some time.
#[derive(Clone, Copy, Debug, Default)]
struct Used {
    memory: u64,
    disk: u64,
    jobs: u32,
    alone: bool,
}

fn sum<'a>(usages: impl Iterator<Item = &'a Usage>) -> Used {
    usages.fold(Used::default(), |sum, usage| Used {
        memory: sum.memory.saturating_add(usage.memory),
        disk: sum.disk.saturating_add(usage.disk),
        jobs: sum.jobs + 1,
        alone: sum.alone || usage.alone,
    })
}

/// What a waiting job needs of a node: the node's index, memory, disk space.
type Need = (u32, u64, u64);

/// A waiting job, with the use of nodes by jobs that have started.
struct Waiter<'a> {
    planner: &'a Planner,
    reserved: &'a Reserved,
    job: &'a JobRecord,
    key: Key,
    alone: bool,
    usages: &'a [Vec<Usage>],
}

impl Waiter<'_> {
    /// The use of a node at a time, as far as this job has to wait for it: not by later jobs without a limit.
    fn used(&self, at: u32, time: Time) -> Used {
        let counts = |usage: &&Usage| match usage.ends {
            Some(ends) => ends > time,
            None => usage.key < self.key,
        };
        sum(self.usages[at as usize].iter().filter(|usage| usage.key != self.key).filter(counts))
    }

    fn is_open(&self, at: u32, used: &Used) -> bool {
        !(used.alone || self.reserved.has(at) || self.alone && used.jobs > 0)
    }

    /// Whether one more row may be made at that time.
    fn has_row(&self, time: Time) -> bool {
        let counts = |usage: &&Usage| usage.ends.map_or(usage.key < self.key, |ends| ends > time);
        let rows = self.usages.iter().flatten().filter(counts).filter_map(|usage| usage.row);
        rows.collect::<BTreeSet<u32>>().len() < self.planner.state.config.rows_max.max(1) as usize
    }

    fn is_gang(&self, nodes: usize) -> bool {
        nodes > 1 && self.planner.policy(self.job) == Policy::Gang
    }

    fn has(&self, at: u32) -> &super::state::NodeRecord {
        &self.planner.state.nodes[&self.planner.layout.nodes()[at as usize].id]
    }

    /// Whether it fits at that time on the nodes that it has or requests.
    fn fits_named(&self, needs: &[Need], time: Time) -> bool {
        let held = self.job.place.is_some();
        let fits = |(at, memory, disk): &Need| {
            let (used, has) = (self.used(*at, time), self.has(*at).capacity);
            let memory_fits = used.memory.saturating_add(*memory) <= has.memory_bytes || held && used.memory == 0;
            let disk_fits = used.disk.saturating_add(*disk) <= has.disk_bytes;
            memory_fits && (held || disk_fits && self.is_open(*at, &used)) && !self.reserved.has(*at)
        };
        if !needs.iter().all(fits) {
            return false;
        }
        let wanted = || needs.iter().map(|(at, ..)| (*at, self.planner.cpus_wanted(self.job, *at))).collect::<Wanted>();
        held || !self.is_gang(needs.len()) || self.planner.row_for(&wanted()).is_some() || self.has_row(time)
    }

    /// The nodes that it would get at that time, of those without a reservation.
    fn fits_on_nodes(&self, cpus: u32, memory: u64, disk: u64, time: Time) -> Option<Vec<Need>> {
        let offer = |at: u32| {
            let (used, has) = (self.used(at, time), self.has(at));
            let left = has.capacity.memory_bytes.saturating_sub(used.memory);
            let fit = left.checked_div(memory).unwrap_or(u64::MAX).min(has.capacity.cpus.into()) as u32;
            let disk_fits = used.disk.saturating_add(disk) <= has.capacity.disk_bytes;
            let takes = self.planner.takes_new(self.planner.layout.nodes()[at as usize].id);
            (takes && disk_fits && self.is_open(at, &used) && fit > 0).then_some((at, fit))
        };
        let mut offers: Vec<(u32, u32)> = (0..self.usages.len() as u32).filter_map(offer).collect();
        let need = |(at, cpus): (u32, u32)| (at, memory * u64::from(cpus), disk);
        if let Some((at, _)) = offers.iter().find(|(_, fit)| *fit >= cpus) {
            return Some(alloc::vec![need((*at, cpus))]);
        }
        offers.sort_by_key(|(at, fit)| (core::cmp::Reverse(*fit), *at));
        let mut left = cpus;
        let mut needs = Vec::new();
        for (at, fit) in offers {
            if left > 0 {
                needs.push(need((at, fit.min(left))));
                left -= fit.min(left);
            }
        }
        (left == 0 && (!self.is_gang(2) || self.has_row(time))).then_some(needs)
    }

    /// The first of the times at which a usage ends, or now, for which `fits` is true; it must stay true from then on.
    fn first(&self, on: impl Iterator<Item = u32>, fits: impl Fn(Time) -> bool) -> Option<Time> {
        let ends = on.flat_map(|at| &self.usages[at as usize]).filter_map(|usage| usage.ends);
        let mut times: Vec<Time> = ends.chain([self.reserved.now]).collect();
        times.sort_unstable();
        times.dedup();
        let first = times.partition_point(|time| !fits(*time));
        times.get(first).copied()
    }

    /// The time of its reservation, and what it needs of which nodes.
    fn reservation(&self) -> Option<(Time, Vec<Need>)> {
        let at = |node| self.planner.layout.index_of(node).map(|at| at as u32);
        match (&self.job.place, &self.job.spec.want) {
            (None, Want::Total { cpus, memory_per_cpu_bytes, disk_bytes }) => {
                let nodes = |time| self.fits_on_nodes(*cpus, *memory_per_cpu_bytes, *disk_bytes, time);
                let from = self.first(0..self.usages.len() as u32, |time| nodes(time).is_some())?;
                Some((from, nodes(from)?))
            }
            (place, want) => {
                let needs: Option<Vec<Need>> = match (place, want) {
                    (Some(place), _) => {
                        place.parts.iter().map(|part| Some((at(part.node)?, part.memory_bytes, 0))).collect()
                    }
                    (None, Want::PerNode(wants)) => {
                        let need = |want: &super::state::NodeWant| {
                            let node = self.planner.state.nodes.get(&want.node)?;
                            let takes = self.planner.takes_new(want.node) && node.capacity.cpus >= want.cpus_min;
                            Some((at(want.node).filter(|_| takes)?, want.memory_bytes, want.disk_bytes))
                        };
                        wants.iter().map(need).collect()
                    }
                    (None, Want::Total { .. }) => None,
                };
                let needs = needs?;
                // The rows of all gangs count, on whatever nodes they are.
                let from = match self.is_gang(needs.len()) {
                    true => self.first(0..self.usages.len() as u32, |time| self.fits_named(&needs, time)),
                    false => self.first(needs.iter().map(|(at, ..)| *at), |time| self.fits_named(&needs, time)),
                };
                Some((from?, needs))
            }
        }
    }

    /// The reservation of a node, with what the job leaves over beside the jobs that run there at that time.
    fn keeps(&self, from: Time, (at, memory, disk): Need, spans: bool) -> (u32, Kept) {
        let lasts = |usage: &&Usage| usage.key != self.key && usage.ends.is_none_or(|ends| ends > from);
        let (used, has) = (sum(self.usages[at as usize].iter().filter(lasts)), self.has(at).capacity);
        let left = |has: u64, used: u64, needed: u64| has.saturating_sub(used).saturating_sub(needed);
        let kept = Kept {
            from,
            memory: left(has.memory_bytes, used.memory, memory),
            disk: left(has.disk_bytes, used.disk, disk),
            alone: self.alone,
            spans,
        };
        (at, kept)
    }
}

impl Planner {
    /// The latest end of a job, if it is known.
    fn ends(&self, job: &JobRecord, now: Time) -> Option<Time> {
        match job.stage {
            // Its processes are being killed.
            Stage::Ending(_) | Stage::Clearing => Some(now),
            _ => self.limit(job).map(|(limit, _)| limit.max(now)),
        }
    }

    /// A job as one that would use reserved resources: either it starts now, or it has started.
    pub(super) fn guest(&self, job: &JobRecord, now: Time) -> Guest {
        let queue = &self.state.config.queues[job.spec.queue as usize];
        let ends = match &job.place {
            Some(_) => self.ends(job, now),
            None => self.time_ns_max(&job.spec).map(|most| now + most),
        };
        Guest { ends, alone: queue.exclusive }
    }

    /// The latest start of each waiting job with a reservation, if the jobs that have started run no longer than their
    /// time limits permit. Other jobs have no such time, because the end of a job without a limit is unknown.
    pub fn expected_starts(&self, now: Time) -> BTreeMap<JobId, Time> {
        let mut reserved = Reserved::new(now);
        let reserves = |id: &JobId| {
            use Reason::{BehindOthers, RowsFull, WaitsForDisk, WaitsForExclusive, WaitsForMemory};
            let of_nodes = [WaitsForMemory, WaitsForDisk, WaitsForExclusive, RowsFull, BehindOthers];
            of_nodes.map(Stage::Waiting).contains(&self.state.jobs[id].stage)
        };
        let waiting = self.in_order(now).into_iter().filter(reserves);
        let start = |id| self.reserve(id, &mut reserved).filter(|from| *from > now).map(|from| (id, from));
        waiting.filter_map(start).collect()
    }

    /// Makes a reservation for a waiting job, if it can start some day and no job before it has one on its nodes. Returns when the
    /// reservation begins.
    pub(super) fn reserve(&self, id: JobId, reserved: &mut Reserved) -> Option<Time> {
        if reserved.kept.len() == self.layout.nodes().len() {
            return None;
        }
        let usages = reserved.usages.take().unwrap_or_else(|| self.usages(reserved.now));
        let job = &self.state.jobs[&id];
        let alone = self.state.config.queues[job.spec.queue as usize].exclusive;
        let key = key_of(id, job);
        let waiter = Waiter { planner: self, reserved, job, key, alone, usages: &usages };
        let reservation = waiter.reservation();
        let from = reservation.as_ref().map(|(from, _)| *from);
        let kept: Vec<(u32, Kept)> = match reservation {
            Some((from, needs)) => {
                let spans = job.place.is_none() && waiter.is_gang(needs.len());
                needs.into_iter().map(|need| waiter.keeps(from, need, spans)).collect()
            }
            None => Vec::new(),
        };
        reserved.kept.extend(kept);
        reserved.usages = Some(usages);
        from
    }

    fn usages(&self, now: Time) -> Vec<Vec<Usage>> {
        let mut usages = alloc::vec![Vec::new(); self.layout.nodes().len()];
        for (id, job) in &self.state.jobs {
            let Some(place) = &job.place else { continue };
            let held = matches!(job.stage, Stage::Waiting(_));
            let usage = Usage {
                key: key_of(*id, job),
                ends: self.ends(job, now),
                memory: 0,
                disk: 0,
                alone: self.state.config.queues[job.spec.queue as usize].exclusive,
                row: self.gangs.get(id).map(|gang| gang.row),
            };
            for part in &place.parts {
                let Some(at) = self.layout.index_of(part.node) else { continue };
                let memory = if held { 0 } else { part.memory_bytes };
                usages[at].push(Usage { memory, disk: part.disk_bytes, ..usage });
            }
        }
        usages
    }
}
