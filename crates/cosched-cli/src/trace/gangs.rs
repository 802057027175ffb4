//! When each gang runs and when it is stopped, as the plans and the jobs' states have it: what cosched does to a gang's processes.
//! Whether they use their CPUs is another matter, which the counters show.

use super::{GANGS, Recorded, lane, slots_of, titled};
use cosched_api::{JobState, Sharing};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// It has the CPUs of its row.
const RUNS: &str = "runs";
/// Another gang has the CPUs; it may use what that leaves idle, or fill free cells of the row.
const MAY_RUN: &str = "may run";
/// Its processes stand still.
const STOPPED: &str = "stopped";
/// They do so because it was asked for.
const SUSPENDED: &str = "suspended";

type Span = (&'static str, f64, f64);

impl Recorded {
    pub(super) fn gangs(&self, all: &mut Vec<Value>) {
        let names = self.names();
        for (job, spans) in self.spans() {
            all.push(lane(GANGS, job, &titled(job, names.get(&job).copied().unwrap_or_default())));
            all.extend(spans.into_iter().map(|span| self.span(GANGS, "gang", job, span)));
        }
    }

    /// What each gang does, in the order of time and without overlap.
    fn spans(&self) -> BTreeMap<u64, Vec<Span>> {
        let mut gangs: BTreeMap<u64, Vec<Span>> = BTreeMap::new();
        for (plan, from_us, to_us) in self.plans() {
            let rows = plan.matrix.rows.iter();
            let planned: BTreeSet<u64> =
                rows.flat_map(|row| row.cells.iter().flatten().chain(&row.also)).copied().collect();
            let capped: BTreeSet<u64> = planned.iter().copied().filter(|job| self.has_share(*job, to_us)).collect();
            for slot in slots_of(plan, from_us, to_us) {
                let Some(row) = slot.row else { continue };
                let own: BTreeSet<u64> = row.cells.iter().flatten().copied().collect();
                for job in &planned {
                    let idle_too = plan.sharing != Sharing::Strict && !capped.contains(job);
                    let what = match own.contains(job) {
                        true => RUNS,
                        false if idle_too || row.also.contains(job) => MAY_RUN,
                        false => STOPPED,
                    };
                    continued(gangs.entry(*job).or_default(), (what, slot.from_us, slot.to_us));
                }
            }
        }
        for job in self.names().into_keys() {
            let suspended = self.states(job).into_iter().filter(|(state, ..)| *state == JobState::Suspended);
            for (_, from_us, to_us) in suspended {
                between(gangs.entry(job).or_default(), from_us, to_us);
            }
        }
        gangs
    }

    /// Whether a job has a share of the time, which CPUs that others leave idle would exceed: as told before the end of a plan, since
    /// a change of it makes a new one.
    fn has_share(&self, job: u64, to_us: f64) -> bool {
        let before = self.jobs.iter().find(|of| of.id == job).map(|of| of.share_max);
        let told = self.told(job).take_while(|(at, _)| *at <= to_us).map(|(_, of)| of.share_max).last();
        told.or(before).flatten().is_some()
    }
}

/// Adds a span, or lengthens the last one by it.
fn continued(spans: &mut Vec<Span>, (what, from_us, to_us): Span) {
    match spans.last_mut() {
        Some(last) if last.0 == what && last.2 >= from_us => last.2 = to_us,
        _ => spans.push((what, from_us, to_us)),
    }
}

/// Adds a suspension where no plan has the gang: its states are told a little later than plans begin.
fn between(spans: &mut Vec<Span>, from_us: f64, to_us: f64) {
    let mut at = from_us;
    let mut free = Vec::new();
    for (_, begin, end) in spans.iter().filter(|(_, begin, end)| *end > from_us && *begin < to_us) {
        free.extend((at < *begin).then_some((SUSPENDED, at, *begin)));
        at = at.max(*end);
    }
    free.extend((at < to_us).then_some((SUSPENDED, at, to_us)));
    spans.extend(free);
    spans.sort_by(|a, b| a.1.total_cmp(&b.1));
}
