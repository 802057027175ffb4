//! The watchdog: reports the stage that holds a buffer for too long.
//!
//! Two conditions can stop a graph without an error. A stage may not return from its code; its seat shows since when it has been on the same block,
//! or in its `init` or `cleanup`. Or all threads wait for each other: bodies hold buffers and wait for more, and none are left; or two bodies on
//! opposite paths each wait for the other's block. Then no seat is at work, and nothing will ever change.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::{Doing, Seat, Watch, lock};
use crate::report::Stall;

/// A stage that holds a buffer for longer than this is reported on standard error and in the report, unless configured otherwise.
pub const STALL_WARNING: Duration = Duration::from_secs(30);

/// A stall that the watchdog has found.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Found {
    pub(super) stage: usize,
    tid: i32,
    pub(super) since_ns: u64,
    held: Held,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Held {
    /// It works on this block.
    Block(u64),
    /// It is in its `init` or `cleanup`.
    Nothing,
    /// It has this number of buffers and waits for more, and all other threads wait too.
    Buffers(usize),
}

impl Held {
    fn words(self) -> String {
        match self {
            Held::Block(round) => format!("works on block {round}"),
            Held::Nothing => "is in its init or cleanup".to_owned(),
            Held::Buffers(0) => "waits for a block, as all others do".to_owned(),
            Held::Buffers(count) => format!("holds {count} buffers and waits for more, as all others do"),
        }
    }
}

impl Watch {
    /// The threads that have held a buffer for longer than `limit`.
    pub(super) fn stalled(&self, limit: Duration) -> Vec<Found> {
        let (now_ns, limit_ns) = (self.now_ns(), limit.as_nanos() as u64);
        let is_old = |since_ns: u64| now_ns.saturating_sub(since_ns) > limit_ns;
        let seats = self.seats();
        let mut at_work = Vec::new();
        let (mut waiting, mut for_empty) = (Vec::new(), Vec::new());
        for seat in &seats {
            let (doing, since_ns) = seat.doing();
            let (unmoved_ns, round) = seat.unmoved(now_ns);
            match doing {
                Doing::Nothing => {}
                Doing::Aside(stage) => at_work.push(found(seat, stage, Held::Nothing, since_ns)),
                Doing::Work(stage) | Doing::Carry(stage) => {
                    at_work.push(found(seat, stage, Held::Block(round), since_ns.max(unmoved_ns)))
                }
                Doing::WaitIn(stage) => waiting.push(found(seat, stage, held(seat), since_ns)),
                Doing::WaitOut(stage) => for_empty.push(found(seat, stage, held(seat), since_ns)),
            }
        }
        let all_wait = at_work.is_empty() && waiting.iter().chain(&for_empty).all(|found| is_old(found.since_ns));
        at_work.retain(|found| is_old(found.since_ns));
        if all_wait {
            // Reports the threads that hold what the others wait for; if none does, those that wait for a block: the lack of empty buffers is their
            // fault.
            let holds = |found: &Found| found.held != Held::Buffers(0);
            if waiting.iter().chain(&for_empty).any(holds) {
                waiting.append(&mut for_empty);
                waiting.retain(holds);
            }
            return waiting;
        }
        at_work
    }

    /// Records new stalls and the end of old ones; returns descriptions of the new ones.
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
                    let (stage, what) = (self.facts.stages[found.stage].name.clone(), found.held.words());
                    let since_s = seconds(found.since_ns);
                    stalls.push(Stall { stage, tid: found.tid, what, since_s, held_s, over: false });
                }
            }
        }
        news
    }

    fn is_of(&self, stall: &Stall, found: &Found) -> bool {
        !stall.over && stall.tid == found.tid && stall.since_s == seconds(found.since_ns)
    }

    /// A description of a stall.
    pub(super) fn describe(&self, found: &Found) -> String {
        let name = &self.facts.stages[found.stage].name;
        let held_s = seconds(self.now_ns().saturating_sub(found.since_ns));
        let what = format!("stage '{name}' {} for {held_s:.1} s (thread {})", found.held.words(), found.tid);
        match found.held {
            Held::Buffers(0) => {
                format!("{what}: nothing will move; let the stages of several paths take from them in the same order")
            }
            Held::Buffers(_) => {
                format!("{what}: nothing will move; give its paths more buffers, or let it convey before it accepts")
            }
            Held::Block(_) | Held::Nothing => what,
        }
    }
}

fn held(seat: &Seat) -> Held {
    Held::Buffers(seat.held.load(Relaxed))
}

fn found(seat: &Seat, stage: usize, held: Held, since_ns: u64) -> Found {
    Found { stage, tid: seat.tid, since_ns, held }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
