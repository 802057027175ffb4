//! When a job may start, and its limits.

use cosched_core::cluster::{After, NUMBERS_END, Suspended as CoreSuspended, Terms as CoreTerms};
use cosched_core::{JobId, Time};
use serde::{Deserialize, Serialize};

/// A job that another one follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AfterAsk {
    /// The job to be followed.
    pub job: u64,
    /// Only if it ends by itself, with exit code 0.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ok: bool,
}

/// The terms as a user requests them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TermsAsk {
    /// The maximum run time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_ms_max: Option<u64>,
    /// The time that its processes then have to end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_ms: Option<u64>,
    /// The earliest start, since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begin_ms: Option<u64>,
    /// It starts when all of these have ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<AfterAsk>,
    /// The maximum memory of its processes on one node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes_max: Option<u64>,
    /// In its slots no other job uses the cores of its CPUs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exclusive_cores: bool,
}

impl TermsAsk {
    /// Whether no terms are requested.
    pub fn is_none(&self) -> bool {
        *self == TermsAsk::default()
    }

    /// The terms as the planner has them; it waits for those jobs of `after` for which `lives` is true.
    pub(crate) fn planned(&self, lives: impl Fn(u64) -> bool) -> CoreTerms {
        let ns = |ms: u64| ms.saturating_mul(1_000_000).min(NUMBERS_END - 1);
        let after = self.after.iter().filter(|after| lives(after.job));
        CoreTerms {
            time_ns_max: self.time_ms_max.map(ns),
            begin: self.begin_ms.map(|ms| Time(ns(ms))),
            after: after.map(|after| After { job: JobId(after.job), ok: after.ok }).collect(),
        }
    }
}

/// The terms as the state has them.
#[derive(Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Terms {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    time_ns_max: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    begin_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    after: Vec<AfterAsk>,
}

impl Terms {
    pub(super) fn is_none(&self) -> bool {
        *self == Terms::default()
    }
}

impl From<&CoreTerms> for Terms {
    fn from(terms: &CoreTerms) -> Terms {
        let CoreTerms { time_ns_max, begin, after } = terms;
        let after = after.iter().map(|after| AfterAsk { job: after.job.0, ok: after.ok }).collect();
        Terms { time_ns_max: *time_ns_max, begin_ns: begin.map(|begin| begin.0), after }
    }
}

impl From<Terms> for CoreTerms {
    fn from(terms: Terms) -> CoreTerms {
        let Terms { time_ns_max, begin_ns, after } = terms;
        let after = after.iter().map(|after| After { job: JobId(after.job), ok: after.ok }).collect();
        CoreTerms { time_ns_max, begin: begin_ns.map(Time), after }
    }
}

/// For how long a job has been suspended.
#[derive(Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Suspended {
    since_ns: Option<u64>,
    ns: u64,
}

impl Suspended {
    pub(super) fn is_none(&self) -> bool {
        *self == Suspended::default()
    }
}

impl From<CoreSuspended> for Suspended {
    fn from(suspended: CoreSuspended) -> Suspended {
        Suspended { since_ns: suspended.since.map(|since| since.0), ns: suspended.ns }
    }
}

impl From<Suspended> for CoreSuspended {
    fn from(suspended: Suspended) -> CoreSuspended {
        CoreSuspended { since: suspended.since_ns.map(Time), ns: suspended.ns }
    }
}
