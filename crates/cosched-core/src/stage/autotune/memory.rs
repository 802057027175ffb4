//! The rule's memory: which changes are kept, which failed and when, which are refused, and what trials have cost.

use super::candidate::{Kind, Need};
use super::config::{Config, Rights};
use super::situation::Case;
use crate::stage::{Change, Class, Setting};
use alloc::vec::Vec;

/// A change that helped.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    pub(super) kind: Kind,
    /// The changes that make it, and those that undo it.
    pub(super) forward: Vec<(usize, Change)>,
    pub(super) back: Vec<(usize, Change)>,
    /// Its gain when it was kept, 0.05 for 5 %.
    pub(super) gain: f64,
    /// When it is doubted next, and how long it rests after that.
    pub(super) doubt_ns: u64,
    pub(super) rest_ns: u64,
    /// The cases in which it has proved itself.
    pub(super) proven: Vec<Case>,
}

impl Kept {
    /// Whether it changed something that `other` had changed before.
    pub(super) fn builds_on(&self, other: &Kept) -> bool {
        let held_by_other = |back: &(usize, Change)| other.forward.contains(back);
        self.back.iter().any(held_by_other)
    }
}

/// A kind that did not help in a case, and rests.
#[derive(Debug, Clone, Copy)]
struct Failed {
    kind: Kind,
    case: Case,
    until_ns: u64,
    rest_ns: u64,
}

/// Failures, separately for each case.
#[derive(Debug, Clone, Default)]
pub(super) struct Failures(Vec<Failed>);

impl Failures {
    /// It did not help: it rests, each time twice as long.
    pub(super) fn add(&mut self, kind: Kind, case: Case, now_ns: u64, config: &Config) {
        match self.0.iter_mut().find(|failed| failed.kind == kind && failed.case == case) {
            Some(failed) => {
                failed.rest_ns = failed.rest_ns.saturating_mul(2).min(config.rest_ns_max);
                failed.until_ns = now_ns.saturating_add(failed.rest_ns);
            }
            None => {
                let rest_ns = config.rest_ns_min;
                self.0.push(Failed { kind, case, until_ns: now_ns.saturating_add(rest_ns), rest_ns });
            }
        }
    }

    pub(super) fn rests(&self, kind: Kind, case: Case, now_ns: u64) -> bool {
        self.0.iter().any(|failed| failed.kind == kind && failed.case == case && now_ns < failed.until_ns)
    }
}

/// Refused changes, and what follows from them.
#[derive(Debug, Clone, Default)]
pub(super) struct Bars {
    exact: Vec<(usize, Change)>,
    slices: bool,
    affinity: bool,
    classes: Vec<Class>,
    replicas: Vec<usize>,
    rights: Rights,
}

impl Bars {
    pub(super) fn new(rights: Rights) -> Bars {
        Bars { rights, ..Bars::default() }
    }

    /// The system refused this change to a stage with this setting.
    pub(super) fn add(&mut self, stage: usize, change: &Change, setting: &Setting) {
        self.exact.push((stage, change.clone()));
        match change {
            Change::Nice(nice) if *nice < setting.nice.unwrap_or(0) => self.rights.lower_nice = false,
            Change::Nice(_) => {}
            Change::SliceUs(_) => self.slices = true,
            Change::Affinity(_) => self.affinity = true,
            Change::Class(Class::Fifo(_)) => self.rights.real_time = false,
            Change::Class(class) => self.classes.push(*class),
            Change::Incarnations(_) => self.replicas.push(stage),
        }
    }

    /// Whether this change must not be requested for a stage with this setting.
    pub(super) fn has(&self, stage: usize, change: &Change, setting: &Setting) -> bool {
        let kind = match change {
            Change::Nice(nice) => *nice < setting.nice.unwrap_or(0) && !self.rights.lower_nice,
            Change::SliceUs(_) => self.slices,
            Change::Affinity(_) => self.affinity,
            Change::Class(Class::Fifo(_)) => !self.rights.real_time,
            Change::Class(class) => self.classes.contains(class),
            Change::Incarnations(_) => self.replicas.contains(&stage),
        };
        kind || self.exact.iter().any(|(other, refused)| *other == stage && refused == change)
    }

    pub(super) fn lacks(&self, need: Need) -> bool {
        match need {
            Need::Nothing => false,
            Need::LowerNice => !self.rights.lower_nice,
            Need::RealTime => !self.rights.real_time,
        }
    }
}

/// The cost of trials until now, and what they may still cost.
#[derive(Debug, Clone, Default)]
pub(super) struct Ledger {
    spent_ns: f64,
}

impl Ledger {
    pub(super) fn spend(&mut self, ns: f64) {
        self.spent_ns += ns.max(0.0);
    }

    /// Whether `ns` more may be lost after a running time of `now_ns`.
    pub(super) fn allows(&self, ns: f64, now_ns: u64, config: &Config) -> bool {
        let allowed = now_ns as f64 * f64::from(config.loss_ppm_max) / 1e6 + config.credit_ns as f64;
        self.spent_ns + ns <= allowed
    }
}
