//! The watchdog: names the stage that holds a buffer for too long.
//!
//! Two things can stop a graph without an error. A stage does not come back from its code; its seat shows since when it works
//! on the same block. Or all threads wait for each other: bodies hold buffers, ask for more, and nobody has any; then no
//! seat is at work, and nothing will ever change.

use std::time::Duration;

use super::{Doing, Seat, Watch, lock};
use crate::report::Stall;

/// A stage that holds a buffer for longer than this is named on standard error and in the report, unless told otherwise.
pub const STALL_WARNING: Duration = Duration::from_secs(30);

/// What the watchdog has found.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Found {
    pub(super) stage: usize,
    pub(super) tid: i32,
    /// None: it waits for more, and all others wait too.
    pub(super) round: Option<u64>,
    pub(super) since_ns: u64,
    held: usize,
}

impl Watch {
    /// The threads that have held a buffer for longer than `limit`.
    pub(super) fn stalled(&self, limit: Duration) -> Vec<Found> {
        let (now_ns, limit_ns) = (self.now_ns(), limit.as_nanos() as u64);
        let seats = self.seats();
        let looks: Vec<_> = seats.iter().map(|seat| (seat, seat.doing())).collect();
        let is_old = |since_ns: u64| now_ns.saturating_sub(since_ns) > limit_ns;
        let at_work = looks.iter().filter_map(|(seat, (doing, since_ns, round))| match doing {
            Doing::Work(stage) if is_old(*since_ns) => Some(found(seat, *stage, Some(*round), *since_ns)),
            _ => None,
        });
        let at_work: Vec<Found> = at_work.collect();
        let all_wait = !looks.is_empty()
            && looks.iter().all(|(_, (doing, since_ns, _))| waits(*doing).is_some() && is_old(*since_ns));
        if !at_work.is_empty() || !all_wait {
            return at_work;
        }
        let holders = looks.iter().filter(|(seat, _)| seat.held.load(std::sync::atomic::Ordering::Relaxed) > 0);
        holders.filter_map(|(seat, (doing, since_ns, _))| Some(found(seat, waits(*doing)?, None, *since_ns))).collect()
    }

    /// Writes down what was found and what is over; tells which are new, in words.
    pub(super) fn note_stalls(&self, found: &[Found]) -> Vec<String> {
        let now_ns = self.now_ns();
        let mut stalls = lock(&self.stalls);
        let mut news = Vec::new();
        for stall in stalls.iter_mut() {
            stall.over |= !found.iter().any(|found| self.is_of(stall, found));
        }
        for found in found {
            let held_s = seconds(now_ns.saturating_sub(found.since_ns));
            match stalls.iter_mut().find(|stall| self.is_of(stall, found)) {
                Some(stall) => stall.held_s = held_s,
                None => {
                    news.push(format!("pipeline '{}': {}", self.facts.name, self.describe(found)));
                    let stage = self.facts.stages[found.stage].name.clone();
                    let since_s = seconds(found.since_ns);
                    stalls.push(Stall { stage, tid: found.tid, round: found.round, since_s, held_s, over: false });
                }
            }
        }
        news
    }

    fn is_of(&self, stall: &Stall, found: &Found) -> bool {
        !stall.over && stall.tid == found.tid && stall.round == found.round && stall.since_s == seconds(found.since_ns)
    }

    /// A stall in words.
    pub(super) fn describe(&self, found: &Found) -> String {
        let name = &self.facts.stages[found.stage].name;
        let held_s = seconds(self.now_ns().saturating_sub(found.since_ns));
        match found.round {
            Some(round) => {
                format!(
                    "stage '{name}' has worked on block {round} for {held_s:.1} s (thread {}) and not conveyed it",
                    found.tid
                )
            }
            None => format!(
                "stage '{name}' holds {} buffers and waits for more for {held_s:.1} s (thread {}), and all other threads wait too: \
                 nothing will move; give its paths more buffers, or let it convey before it accepts",
                found.held, found.tid
            ),
        }
    }
}

fn found(seat: &Seat, stage: usize, round: Option<u64>, since_ns: u64) -> Found {
    Found { stage, tid: seat.tid, round, since_ns, held: seat.held.load(std::sync::atomic::Ordering::Relaxed) }
}

fn waits(doing: Doing) -> Option<usize> {
    match doing {
        Doing::WaitIn(stage) | Doing::WaitOut(stage) => Some(stage),
        Doing::Nothing | Doing::Work(_) => None,
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
