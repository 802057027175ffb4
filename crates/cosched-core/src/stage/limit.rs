//! The limiting resource and stage of a pipeline.
//!
//! Problem: "it is difficult to determine the limiting resource directly, especially on the fly" (Roysden 2004, section 1);
//! the paper guesses from the lengths of queues. Since then the kernel reports each thread's CPU time and how long it
//! waited for a CPU, so that a wait for a device can be distinguished from a wait for a CPU.
//!
//! Rule. The bottleneck is the stage that has work nearly all the time; of several, the last one with a full input queue,
//! because the queue behind it is empty. If the CPUs are used up, or the bottleneck's threads use or wait for a CPU for most
//! of their busy time, CPU time is the limit, whatever the stage's own resource is. Otherwise the stage is busy without a CPU, and its own
//! resource is the limit. The bound of a round is max(compute, communicate, I/O) (section 1): CPU time divided among the CPUs, but
//! no stage is faster than its own threads; of the other resources the time that their busiest stage was blocked or
//! computed. A device that several stages share may be used more than that: this cannot be seen from the stages' times.

use super::{Resource, StageView, Window};

/// A pipeline that uses this part of all CPU time can get no more.
const CPUS_FULL: f64 = 0.90;

/// Two stages whose busy parts differ by less than this are equally busy, and the queues decide.
const EQUALLY_BUSY: f64 = 0.05;

/// The limit of a pipeline in a window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limit {
    /// The resource.
    pub resource: Resource,
    /// The bottleneck; none if nothing worked, or if the CPUs are used up by all stages together.
    pub stage: Option<usize>,
    /// The part of the window in which the resource was in use, 0 to 1; the rest to 1 could be gained.
    pub share: f64,
    /// The part of its threads' time that the bottleneck waited for a CPU, 0 to 1.
    pub delay: f64,
}

/// The shortest time that the window's work needs, by resource. Units: ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bound {
    /// CPU time of all stages over the CPUs, or the busiest stage's over its threads if that is more.
    pub compute_ns: u64,
    /// The busiest stage that communicates, over its threads, without its waits for a CPU.
    pub communicate_ns: u64,
    /// The busiest stage that does I/O, over its threads, without its waits for a CPU.
    pub io_ns: u64,
}

impl Bound {
    /// max(compute, communicate, I/O).
    pub fn ns(&self) -> u64 {
        self.compute_ns.max(self.communicate_ns).max(self.io_ns)
    }

    /// The resource with the greatest time; compute before the others if they are equal.
    pub fn limiting(&self) -> Resource {
        if self.compute_ns == self.ns() {
            Resource::Compute
        } else if self.io_ns == self.ns() {
            Resource::Io
        } else {
            Resource::Communicate
        }
    }
}

/// The bound of the work that was done in the window.
pub fn bound(window: &Window) -> Bound {
    let per_thread = |stage: &StageView, ns: u64| ns / u64::from(stage.threads.max(1));
    let cpu_ns: u64 = window.stages.iter().map(|stage| stage.cpu_ns).sum();
    let mut bound = Bound { compute_ns: cpu_ns / u64::from(window.cpus.max(1)), ..Bound::default() };
    for stage in &window.stages {
        let alone_ns = per_thread(stage, stage.on_cpu_ns() + stage.blocked_ns());
        let of_resource = match stage.resource {
            Resource::Compute => &mut bound.compute_ns,
            Resource::Communicate => &mut bound.communicate_ns,
            Resource::Io => &mut bound.io_ns,
        };
        *of_resource = alone_ns.max(*of_resource);
    }
    bound
}

/// The stage that the others wait for; `None` if none worked.
pub fn bottleneck(window: &Window) -> Option<usize> {
    let busy = |stage: &StageView| window.share(stage.busy_ns) / f64::from(stage.threads.max(1));
    let most = window.stages.iter().map(busy).fold(0.0, f64::max);
    if most == 0.0 {
        return None;
    }
    // Full before it and empty behind it: 1; empty before and full behind: −1.
    let piles = |k: usize| window.stages[k].fill() - window.stages.get(k + 1).map_or(0.0, StageView::fill);
    let as_busy = (0..window.stages.len()).filter(|k| busy(&window.stages[*k]) >= most - EQUALLY_BUSY);
    as_busy.max_by(|a, b| {
        let key = |k: usize| (piles(k), busy(&window.stages[k]));
        let ((pile_a, busy_a), (pile_b, busy_b)) = (key(*a), key(*b));
        pile_a.total_cmp(&pile_b).then(busy_a.total_cmp(&busy_b)).then(b.cmp(a))
    })
}

/// The limit of the pipeline in this window.
pub fn limiting(window: &Window) -> Limit {
    let Some(k) = bottleneck(window) else {
        return Limit { resource: bound(window).limiting(), stage: None, share: 0.0, delay: 0.0 };
    };
    let stage = &window.stages[k];
    let threads = f64::from(stage.threads.max(1));
    let delay = window.share(stage.delayed_ns()) / threads;
    let cpus = window.cpu_share();
    let needs_cpu = stage.on_cpu_ns() + stage.delayed_ns();
    if needs_cpu >= stage.blocked_ns() && needs_cpu > 0 {
        let own = window.share(stage.on_cpu_ns()) / threads;
        let all = cpus >= CPUS_FULL && own < CPUS_FULL;
        let share = own.max(cpus).min(1.0);
        return Limit { resource: Resource::Compute, stage: (!all).then_some(k), share, delay };
    }
    if cpus >= CPUS_FULL {
        return Limit { resource: Resource::Compute, stage: None, share: cpus.min(1.0), delay };
    }
    let share = window.share(stage.busy_ns - stage.delayed_ns()) / threads;
    Limit { resource: stage.resource, stage: Some(k), share: share.min(1.0), delay }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const MS: u64 = 1_000_000;

    /// A stage by (resource, CPU ms, delay ms, blocked ms, buffers that wait before it) in a window of 100 ms.
    type Seen = (Resource, u64, u64, u64, f64);

    fn window(cpus: u32, stages: &[Seen]) -> Window {
        let view = |(resource, cpu, delay, blocked, queue_in): &Seen| StageView {
            rounds: 10,
            busy_ns: (cpu + delay + blocked) * MS,
            cpu_ns: cpu * MS,
            delay_ns: delay * MS,
            wait_in_ns: (100 - cpu - delay - blocked) * MS,
            queue_in: *queue_in,
            queue_in_max: 4,
            ..StageView::idle(*resource)
        };
        Window { length_ns: 100 * MS, cpus, rounds: 10, stages: stages.iter().map(view).collect(), others_ns: None }
    }

    use Resource::{Communicate, Compute, Io};

    #[test]
    fn what_limits_follows_from_time_and_queues() {
        type Case = (&'static str, Vec<Seen>, (Resource, Option<usize>));
        let cases: [Case; 8] = [
            (
                "threads wait for CPUs that are used up",
                alloc::vec![
                    (Io, 10, 5, 20, 0.0),
                    (Compute, 92, 5, 0, 2.0),
                    (Compute, 88, 9, 0, 2.0),
                    (Io, 5, 5, 20, 0.0)
                ],
                (Compute, None),
            ),
            (
                "busy without CPU",
                alloc::vec![(Io, 5, 1, 93, 3.0), (Compute, 40, 0, 0, 0.0), (Io, 5, 1, 30, 0.0)],
                (Io, Some(0)),
            ),
            (
                "one thread computes all the time",
                alloc::vec![(Io, 5, 0, 10, 0.0), (Compute, 99, 0, 0, 4.0), (Io, 5, 0, 10, 0.0)],
                (Compute, Some(1)),
            ),
            (
                "an I/O stage that waits for a CPU more than for its device",
                alloc::vec![(Io, 20, 45, 30, 3.0), (Compute, 50, 10, 0, 0.0)],
                (Compute, Some(0)),
            ),
            (
                "one that is called I/O and computes",
                alloc::vec![(Io, 90, 2, 5, 4.0), (Compute, 20, 0, 0, 0.0)],
                (Compute, Some(0)),
            ),
            (
                "communication",
                alloc::vec![(Io, 5, 0, 50, 0.0), (Communicate, 4, 0, 95, 4.0), (Io, 5, 0, 50, 0.0)],
                (Communicate, Some(1)),
            ),
            (
                "equally busy, and the first has the full queue",
                alloc::vec![(Io, 1, 0, 97, 4.0), (Io, 1, 0, 98, 0.5)],
                (Io, Some(0)),
            ),
            (
                "equally busy, both queues are full",
                alloc::vec![(Io, 1, 0, 98, 4.0), (Io, 1, 0, 97, 4.0)],
                (Io, Some(1)),
            ),
        ];
        for (what, stages, expected) in cases {
            let limit = limiting(&window(2, &stages));
            assert_eq!((limit.resource, limit.stage), expected, "{what}: {limit:?}");
        }
    }

    #[test]
    fn the_share_says_what_is_left_to_gain() {
        let disk = limiting(&window(2, &[(Io, 4, 20, 70, 3.0), (Compute, 20, 0, 0, 0.0)]));
        assert_eq!((disk.resource, disk.share, disk.delay), (Io, 0.74, 0.2));
        let cpus = limiting(&window(2, &[(Compute, 95, 5, 0, 3.0), (Compute, 95, 5, 0, 3.0)]));
        assert_eq!((cpus.resource, cpus.share), (Compute, 0.95));
        let nothing = limiting(&window(2, &[(Io, 0, 0, 0, 0.0)]));
        assert_eq!((nothing.stage, nothing.share), (None, 0.0));
    }

    #[test]
    fn section_1_the_bound_is_the_greatest_of_the_three() {
        let bound = bound(&window(
            2,
            &[(Io, 10, 10, 40, 0.0), (Compute, 60, 20, 0, 0.0), (Communicate, 5, 0, 30, 0.0), (Compute, 50, 0, 0, 0.0)],
        ));
        assert_eq!(bound, Bound { compute_ns: 62_500_000, communicate_ns: 35 * MS, io_ns: 50 * MS });
        assert_eq!((bound.ns(), bound.limiting()), (62_500_000, Compute));
    }

    #[test]
    fn no_stage_is_faster_than_its_threads() {
        let mut one = window(8, &[(Compute, 90, 0, 0, 0.0), (Compute, 10, 0, 0, 0.0)]);
        assert_eq!(bound(&one).compute_ns, 90 * MS, "not 100 over 8");
        one.stages[0].threads = 3;
        assert_eq!(bound(&one).compute_ns, 30 * MS);
    }
}
