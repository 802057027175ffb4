//! The evaluation of the last windows: what limits, whether others use the CPUs, and whether anything can be gained.

use super::config::StageInfo;
use crate::stage::{Limit, Resource, StageView, Window, limiting};
use alloc::vec::Vec;

/// Others are present if they use more of the CPU time than this …
const OTHERS_COME: f64 = 0.08;

/// … and gone if they use less than this.
const OTHERS_GO: f64 = 0.03;

/// A resource that is used for more of the time than this has nothing left to gain.
const USED_UP: f64 = 0.97;

/// Blocking stages that wait for a CPU for less of the time than this, all together, do not count as waiting.
const WAITS: f64 = 0.005;

/// What limits, and whether others use the CPUs: a kind that failed in one of these cases may help in another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Case {
    pub(super) limiting: Resource,
    pub(super) others: bool,
}

/// Several windows in a row, merged.
#[derive(Debug, Clone)]
pub(super) struct Situation {
    pub(super) window: Window,
    pub(super) limit: Limit,
    pub(super) case: Case,
}

impl Situation {
    /// From at least one window; `before` is the previous case.
    pub(super) fn new(windows: &[Window], before: Option<Case>) -> Option<Situation> {
        let window = windows.iter().skip(1).fold(windows.first()?.clone(), |sum, next| merged(&sum, next));
        let limit = limiting(&window);
        let case = Case { limiting: limit.resource, others: others_are_active(&window, before) };
        Some(Situation { window, limit, case })
    }

    /// Whether a better schedule could not gain anything.
    pub(super) fn is_at_its_bound(&self) -> bool {
        // CPU time that is used up by all stages together may still go to switches and cold caches.
        let used = match (self.limit.resource, self.limit.stage) {
            (Resource::Compute, stage) => stage.map_or(0.0, |stage| self.computes(stage)),
            _ => self.limit.share,
        };
        used >= USED_UP || self.limit.share == 0.0
    }

    /// The part of a thread's time that these are of a stage.
    fn of_thread(&self, view: &StageView, ns: u64) -> f64 {
        self.window.share(ns) / f64::from(view.threads.max(1))
    }

    /// Whether stages that block would continue sooner if they got a CPU sooner.
    pub(super) fn blocking_waits_for_cpu(&self, stages: &[StageInfo]) -> bool {
        let blocking = self.window.stages.iter().zip(stages).filter(|(_, info)| blocks(info) && info.own_threads);
        blocking.map(|(stage, _)| self.of_thread(stage, stage.delay_ns)).sum::<f64>() >= WAITS
    }

    /// The part of a thread's time that a stage computes.
    pub(super) fn computes(&self, stage: usize) -> f64 {
        self.part(stage, |view| view.cpu_ns)
    }

    /// The part of a thread's time that a stage computes or waits for a CPU.
    pub(super) fn wants_cpu(&self, stage: usize) -> f64 {
        self.computes(stage) + self.part(stage, |view| view.delay_ns)
    }

    /// The part of a thread's time that a stage has a buffer.
    pub(super) fn is_busy(&self, stage: usize) -> f64 {
        self.part(stage, |view| view.busy_ns)
    }

    fn part(&self, stage: usize, ns: fn(&StageView) -> u64) -> f64 {
        self.window.stages.get(stage).map_or(0.0, |view| self.of_thread(view, ns(view)))
    }

    /// The number of idle CPUs.
    pub(super) fn idle_cpus(&self) -> f64 {
        (1.0 - self.window.cpu_share() - self.window.others_share()) * f64::from(self.window.cpus)
    }
}

/// Whether others use the CPUs in this window; `before` is the previous case.
pub(super) fn others_are_active(window: &Window, before: Option<Case>) -> bool {
    let threshold = if before.is_some_and(|case| case.others) { OTHERS_GO } else { OTHERS_COME };
    window.others_share() > threshold
}

/// Whether a stage by its nature waits for something other than CPUs.
pub(super) fn blocks(info: &StageInfo) -> bool {
    info.resource != Resource::Compute
}

fn merged(a: &Window, b: &Window) -> Window {
    let weight = |window: &Window| window.length_ns as f64 / (a.length_ns + b.length_ns).max(1) as f64;
    let view = |(x, y): (&StageView, &StageView)| StageView {
        rounds: x.rounds + y.rounds,
        busy_ns: x.busy_ns + y.busy_ns,
        cpu_ns: x.cpu_ns + y.cpu_ns,
        delay_ns: x.delay_ns + y.delay_ns,
        wait_in_ns: x.wait_in_ns + y.wait_in_ns,
        wait_out_ns: x.wait_out_ns + y.wait_out_ns,
        queue_in: x.queue_in * weight(a) + y.queue_in * weight(b),
        ..*y
    };
    let stages: Vec<StageView> = a.stages.iter().zip(&b.stages).map(view).collect();
    let others_ns = a.others_ns.zip(b.others_ns).map(|(x, y)| x + y);
    let (length_ns, rounds) = (a.length_ns + b.length_ns, a.rounds + b.rounds);
    Window { length_ns, cpus: b.cpus, rounds, stages, others_ns }
}
