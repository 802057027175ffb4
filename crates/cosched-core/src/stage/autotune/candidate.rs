//! The kinds of changes that can be tried, when, and in which order.
//!
//! Each kind has a condition under which it could help; otherwise it is not tried. The order follows from
//! measurements: structure gains more than priorities, and under competition stages that block gain most if they get a CPU at
//! once (reference/pipelines.md, section 4).

use super::action::Reason;
use super::config::{Config, StageInfo};
use super::situation::{Situation, blocks};
use crate::stage::fixed::{FIFO_PRIORITY, LOWERED, RAISED, SLICE_US_LONG, SLICE_US_SHORT};
use crate::stage::{Change, Class, Resource};
use alloc::vec::Vec;

/// A stage that alone wants a CPU for this part of the time may need one more thread.
const ALWAYS_BUSY: f64 = 0.75;

/// A device that is in use for this part of the time may do more with concurrent requests.
const ALWAYS_ASKED: f64 = 0.90;

/// A blocking stage that computes more than this is not given a real-time class: it would starve the others.
const FIFO_COMPUTES_MOST: f64 = 0.30;

/// The part of the CPUs that must be in use before it matters which stage interrupts which.
const CROWDED: f64 = 0.60;

/// A pipeline that uses this part of the CPUs has them all.
const ALL: f64 = 0.95;

/// Stages whose CPU times differ by less than this may be bound to a CPU each.
const EVEN: f64 = 0.15;

/// A kind of change that may help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// One more incarnation of a stage.
    Replicate(usize),
    /// The lowest real-time class for stages that block.
    FifoBlocking,
    /// Nice down for stages that compute.
    RaiseComputing,
    /// Nice down for stages that block.
    RaiseBlocking,
    /// Short slices for stages that block.
    ShortSlices,
    /// Long slices for stages that compute.
    LongSlices,
    /// `SCHED_BATCH` for stages that do not limit.
    BatchRest,
    /// Nice up for stages that do not limit.
    LowerRest,
    /// One CPU for each stage that computes.
    Bind,
}

/// The permission that a kind needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    Nothing,
    LowerNice,
    RealTime,
}

impl Kind {
    /// All kinds that could help in this situation, the most promising first.
    pub(super) fn for_situation(now: &Situation, stages: &[StageInfo], config: &Config) -> Vec<Kind> {
        let replicate = now.limit.stage.filter(|stage| replicates(*stage, now, stages)).map(Kind::Replicate);
        if now.is_at_its_bound() {
            return replicate.into_iter().collect();
        }
        let computes = now.case.limiting == Resource::Compute;
        let crowded = now.window.cpu_share() >= CROWDED && !now.case.others;
        // Where the pipeline has all the CPU time, it does not matter which stage gets it first.
        let has_all = computes && !now.case.others && now.window.cpu_share() >= ALL;
        let letting_in = now.blocking_waits_for_cpu(stages) && !has_all;
        let fifo = letting_in && none_computes_much(now, stages);
        let all = [
            (Kind::RaiseComputing, computes && now.case.others),
            (Kind::FifoBlocking, fifo),
            (Kind::RaiseBlocking, letting_in),
            (Kind::ShortSlices, letting_in),
            (Kind::LongSlices, letting_in),
            (Kind::BatchRest, crowded),
            (Kind::LowerRest, crowded),
            (Kind::Bind, crowded && computes && is_even(now, stages, config)),
        ];
        replicate.into_iter().chain(all.into_iter().filter(|(_, when)| *when).map(|(kind, _)| kind)).collect()
    }

    /// The changes of this kind.
    pub(super) fn changes(self, now: &Situation, stages: &[StageInfo], config: &Config) -> Vec<(usize, Change)> {
        let own = || stages.iter().enumerate().filter(|(_, info)| info.own_threads);
        let all = |when: &dyn Fn(&StageInfo) -> bool, change: Change| -> Vec<(usize, Change)> {
            own().filter(|(_, info)| when(info)).map(|(stage, _)| (stage, change.clone())).collect()
        };
        let rest = |info: &StageInfo| info.resource != now.case.limiting;
        let compute = |info: &StageInfo| !blocks(info);
        match self {
            Kind::Replicate(stage) => {
                let threads = now.window.stages.get(stage).map_or(1, |view| view.threads);
                alloc::vec![(stage, Change::Incarnations(threads + 1))]
            }
            Kind::FifoBlocking => all(&blocks, Change::Class(Class::Fifo(FIFO_PRIORITY))),
            Kind::RaiseComputing => all(&compute, Change::Nice(RAISED)),
            Kind::RaiseBlocking => all(&blocks, Change::Nice(RAISED)),
            Kind::ShortSlices => all(&blocks, Change::SliceUs(SLICE_US_SHORT)),
            Kind::LongSlices => all(&compute, Change::SliceUs(SLICE_US_LONG)),
            Kind::BatchRest => all(&rest, Change::Class(Class::Batch)),
            Kind::LowerRest => all(&rest, Change::Nice(LOWERED)),
            Kind::Bind => {
                let computing = own().filter(|(_, info)| compute(info));
                let bound =
                    |((stage, _), cpu): ((usize, &StageInfo), &usize)| (stage, Change::Affinity(alloc::vec![*cpu]));
                computing.zip(&config.cpus).map(bound).collect()
            }
        }
    }

    /// The reason for trying it.
    pub(super) fn why(self) -> Reason {
        match self {
            Kind::Replicate(_) => Reason::LimitsAlone,
            Kind::RaiseComputing => Reason::LimitsBesideOthers,
            Kind::FifoBlocking | Kind::RaiseBlocking | Kind::ShortSlices => Reason::BlocksAndWaitsForCpu,
            Kind::LongSlices => Reason::Interrupted,
            Kind::BatchRest | Kind::LowerRest => Reason::DoesNotLimit,
            Kind::Bind => Reason::Wanders,
        }
    }

    /// The permission that it needs. A kind that raises nice values needs the one to lower them, too, to be undone.
    pub(super) fn needs(self) -> Need {
        match self {
            Kind::RaiseComputing | Kind::RaiseBlocking | Kind::LowerRest => Need::LowerNice,
            Kind::FifoBlocking => Need::RealTime,
            _ => Need::Nothing,
        }
    }

    /// Whether it does harm as soon as others use the CPUs, because it yields to them.
    pub(super) fn suffers_from_others(self) -> bool {
        matches!(self, Kind::BatchRest | Kind::LowerRest | Kind::Bind)
    }

    /// The part that a window with it may lose, as an estimate; the ledger decides with it.
    pub(super) fn risk(self) -> f64 {
        if self.suffers_from_others() { 0.05 } else { 0.02 }
    }

    /// Whether the kinds have the same purpose: once one of them is kept, the others are not tried.
    pub(super) fn stands_in_for(self, other: Kind) -> bool {
        let lets_in = |kind| matches!(kind, Kind::FifoBlocking | Kind::RaiseBlocking | Kind::ShortSlices);
        let gives_way = |kind| matches!(kind, Kind::BatchRest | Kind::LowerRest);
        lets_in(self) && lets_in(other) || gives_way(self) && gives_way(other)
    }
}

fn replicates(stage: usize, now: &Situation, stages: &[StageInfo]) -> bool {
    let (Some(info), Some(view)) = (stages.get(stage), now.window.stages.get(stage)) else { return false };
    if view.threads >= info.replicable_to {
        return false;
    }
    let has_cpu = now.case.others || now.idle_cpus() >= 0.4;
    let computes = now.case.limiting == Resource::Compute && now.wants_cpu(stage) >= ALWAYS_BUSY && has_cpu;
    let asks = now.case.limiting == info.resource && blocks(info) && now.is_busy(stage) >= ALWAYS_ASKED;
    computes || asks
}

fn none_computes_much(now: &Situation, stages: &[StageInfo]) -> bool {
    let blocking = stages.iter().enumerate().filter(|(_, info)| blocks(info) && info.own_threads);
    blocking.into_iter().all(|(stage, _)| now.computes(stage) <= FIFO_COMPUTES_MOST)
}

/// Whether there is one single-threaded computing stage for each CPU, all with about the same work.
fn is_even(now: &Situation, stages: &[StageInfo], config: &Config) -> bool {
    let computing = || stages.iter().enumerate().filter(|(_, info)| !blocks(info));
    let single = computing()
        .all(|(stage, info)| info.own_threads && now.window.stages.get(stage).is_some_and(|view| view.threads == 1));
    let shares = || computing().map(|(stage, _)| now.computes(stage));
    let (least, most) = (shares().fold(f64::MAX, f64::min), shares().fold(0.0, f64::max));
    single && computing().count() == config.cpus.len() && least >= most * (1.0 - EVEN)
}
