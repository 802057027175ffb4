//! The parts of jobs on this node: when one is over, and what it waits for before that.
//!
//! Rule. A part with the main process is over when its last process has ended and the main one's exit status is known; it waits
//! for that for a short time. Other parts may have no process at times, and are over when they have none after the end of the main process,
//! or when the whole job is to end. For a job without a main process each part reports whether it has processes, and the cluster decides.

use crate::Node;
use crate::auto::Watch;
use crate::request::Outcome;
use crate::types::{Action, Began, FoundPart, PartOf};
use cosched_cluster::Moment;
use cosched_cluster::wire::{Attempt, Exit};
use cosched_core::{JobId, Time};

/// How long a part without processes waits for a launcher to report the main process's exit status, in nanoseconds.
const REPORT_GRACE_NS: u64 = 2_000_000_000;

/// How long the first process of a job that has a place may take to enter it, in nanoseconds.
pub const ENTER_GRACE_NS: u64 = 60_000_000_000;

#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) of: PartOf,
    /// A first process has entered it.
    pub(crate) has_begun: bool,
    /// The exit status of its main process is known.
    exited: bool,
    pub(crate) populated: bool,
    pub(crate) watch: Watch,
    /// For a job without a main process: whether the cluster was last told that it has no process here.
    told_empty: Option<bool>,
    /// Whether it was last reported as asleep.
    asleep: bool,
    /// When the processes that are left after a polite signal are killed.
    kill_at: Option<Time>,
    /// When it counts as over, or as without processes, unless an event comes first.
    end_at: Option<Time>,
}

impl Part {
    pub(crate) fn new(now: Moment, of: PartOf) -> Part {
        Part {
            of,
            has_begun: false,
            exited: false,
            populated: false,
            watch: Watch::new(now),
            told_empty: Some(false),
            asleep: false,
            kill_at: None,
            end_at: None,
        }
    }

    /// A part of the last daemon. It is unknown what that daemon has reported of it.
    pub(crate) fn found(now: Moment, found: &FoundPart) -> Part {
        let FoundPart { of, has_begun, populated, .. } = *found;
        let waits_for_main = of.lead && has_begun && !populated;
        let end_at = match (of.alike, has_begun) {
            (true, _) => Some(now.steady),
            // Its launcher may be about to report the main process's exit status.
            (false, true) => waits_for_main.then_some(now.steady + REPORT_GRACE_NS),
            (false, false) => (of.lead && !populated).then_some(now.steady + ENTER_GRACE_NS),
        };
        let told_empty = (!of.alike).then_some(false);
        let kill_at = of.grace_ms.map(|ms| after(now, ms));
        Part { has_begun, populated, told_empty, kill_at, end_at, ..Part::new(now, of) }
    }

    pub(crate) fn is_news_of_sleep(&mut self, asleep: bool) -> bool {
        std::mem::replace(&mut self.asleep, asleep) != asleep
    }

    pub(crate) fn due(&self) -> Option<Time> {
        self.kill_at.into_iter().chain(self.end_at).min()
    }
}

fn after(now: Moment, ms: u64) -> Time {
    now.steady + ms.saturating_mul(1_000_000)
}

impl Node {
    pub(crate) fn began(&mut self, id: JobId, began: &Began) {
        let Some(part) = self.parts.get_mut(&id) else { return };
        (part.populated, part.has_begun) = (began.populated, began.populated);
        self.local.populated(id, began.populated);
        // Ranks come at any time, but the main process comes soon. One that has ended already never comes.
        let awaited = !began.populated && (part.of.alike || part.of.lead);
        let grace = if began.comes { ENTER_GRACE_NS } else { 0 };
        part.end_at = awaited.then_some(self.now.steady + grace);
        if part.of.closing && !part.of.lead && !began.populated {
            self.finish(id);
        }
        self.has_changed();
        self.answer_launcher(id, Ok(Outcome::Job(id)));
    }

    pub(crate) fn populated(&mut self, id: JobId, populated: bool) {
        let now = self.now.steady;
        let Some(part) = self.parts.get_mut(&id) else { return };
        part.populated = populated;
        part.has_begun |= populated;
        self.local.populated(id, populated);
        if populated {
            part.end_at = None;
            if part.told_empty != Some(false) {
                self.tell_empty(id);
            }
        } else if part.of.closing && !part.of.lead || part.of.lead && part.exited {
            self.finish(id);
        } else if part.of.alike || part.of.lead {
            part.end_at.get_or_insert(now + REPORT_GRACE_NS);
        }
    }

    /// The main process's exit status is known. The host checks whether other processes are left.
    pub(crate) fn exited(&mut self, id: JobId, exit: Exit) {
        if let Some(part) = self.parts.get_mut(&id) {
            part.exited = true;
            self.actions.push_back(Action::Exited(id, exit));
        }
    }

    fn tell_empty(&mut self, id: JobId) {
        let Some(part) = self.parts.get_mut(&id) else { return };
        let empty = !part.populated;
        part.end_at = None;
        if part.told_empty.replace(empty) != Some(empty) {
            self.member.empty(self.now, id, empty);
        }
    }

    /// The part is over as soon as it has no process.
    pub fn close(&mut self, id: JobId) {
        let Some(part) = self.parts.get_mut(&id) else { return };
        if !std::mem::replace(&mut part.of.closing, true) {
            self.actions.push_back(Action::Keep(id));
        }
        if !part.populated {
            self.finish(id);
        }
    }

    /// The part is over, although its processes continue: they existed before the job.
    pub fn release(&mut self, id: JobId) {
        self.finish(id);
    }

    /// Processes that were told to end are killed by force after this grace time; never, if it is `None`. A time that an earlier request
    /// has set holds if it is sooner, unless this one may put it off.
    pub(crate) fn kill_in(&mut self, id: JobId, grace_ms: Option<u64>, puts_off: bool) {
        let Some(part) = self.parts.get_mut(&id) else { return };
        let begun = part.kill_at.filter(|_| !puts_off);
        let at = grace_ms.map(|ms| after(self.now, ms)).into_iter().chain(begun).min();
        if std::mem::replace(&mut part.kill_at, at) != at {
            part.of.grace_ms = grace_ms;
            self.actions.push_back(Action::Keep(id));
        }
    }

    /// When processes that were told to end are killed by force.
    #[cfg(test)]
    pub(crate) fn kills_at(&self, id: JobId) -> Option<Time> {
        self.parts.get(&id)?.kill_at
    }

    /// No process will come into a part that has none.
    pub(crate) fn give_up(&mut self, id: JobId) {
        if let Some(part) = self.parts.get_mut(&id) {
            part.end_at = Some(self.now.steady);
        }
    }

    /// The part is over.
    pub(crate) fn finish(&mut self, id: JobId) {
        let is_all = self.local.job(id).is_some_and(|job| !job.spans);
        self.ending(id, is_all);
        if let Some(attempt) = self.gone(id) {
            self.actions.push_back(Action::Finish(id, attempt));
        }
    }

    pub(crate) fn gone(&mut self, id: JobId) -> Option<Attempt> {
        let part = self.parts.remove(&id)?;
        self.local.end(id);
        Some(part.of.attempt)
    }

    pub(crate) fn look_at_parts(&mut self) {
        let now = self.now.steady;
        let is_due = |at: Option<Time>| at.is_some_and(|at| at <= now);
        let due: Vec<JobId> = self.parts.iter().filter(|(_, part)| is_due(part.due())).map(|(id, _)| *id).collect();
        for id in due {
            let Some(part) = self.parts.get_mut(&id) else { continue };
            if is_due(part.kill_at) {
                (part.kill_at, part.of.grace_ms) = (None, None);
                self.actions.push_back(Action::Keep(id));
                self.actions.push_back(Action::KillRest(id));
            }
            if !is_due(part.end_at) {
                continue;
            }
            match part.of {
                PartOf { alike: true, closing: false, .. } => self.tell_empty(id),
                _ if part.populated => part.end_at = None,
                _ => self.finish(id),
            }
        }
    }
}
