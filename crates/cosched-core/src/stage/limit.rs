//! What limits a pipeline: the resource, and the stage.
//!
//! Problem: "it is difficult to determine the limiting resource directly, especially on the fly" (Roysden 2004, section 1);
//! the paper guesses from the lengths of queues. Since then the kernel tells each thread's CPU time and how long it
//! waited for a CPU, so that a wait for a device can be told from a wait for a CPU.
//!
//! Rule. The bottleneck is the stage that has work nearly all the time; of several, the last one with a full input queue,
//! because what is behind it is empty. If the CPUs are used up, or the bottleneck's threads use or wait for a CPU for most
//! of their busy time, CPU time limits, whatever the stage is called. Otherwise it is busy without a CPU, and its own
//! resource limits. The bound of a round is max(compute, communicate, I/O) (section 1): CPU time divided among the CPUs, but
//! no stage is faster than its own threads; of the other resources the time that their busiest stage was blocked or
//! computed. A device that several stages share may be used more than that: nobody can see it from here.

use super::{Resource, StageView, Window};

/// A pipeline that uses so much of all CPU time has no more of it.
const CPUS_FULL: f64 = 0.90;

/// Two stages whose busy parts differ by less are equally busy, and the queues decide.
const EQUALLY_BUSY: f64 = 0.05;

/// What limits a pipeline in a window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limit {
    /// The resource.
    pub resource: Resource,
    /// The bottleneck; none if nothing worked, or if the CPUs are used up by all stages together.
    pub stage: Option<usize>,
    /// How much of the window the resource was in use, 0 to 1: what is missing to 1 could be gained.
    pub share: f64,
    /// The part of its threads' time that the bottleneck waited for a CPU, 0 to 1.
    pub delay: f64,
}

/// The least time that the window's work needs, by resource. Units: ns.
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

/// The stage that the others wait for; none if none worked.
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

/// What limits the pipeline in this window.
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
