//! The jobs on this node: what the host has to start, close and kill, and what it has reported of them.

use super::Member;
use super::types::{Action, Found};
use crate::wire::{Ask, Attempt, KillHow, MainProcess, PartEnd};
use cosched_core::cluster::{JobRecord, Part, Stage};
use cosched_core::{JobId, Reason, Standing, Time};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    /// It has a place here.
    Running,
    /// It is over as soon as it has no process.
    Closing,
    /// Its processes are being killed: how, if a user has chosen that, and whether because of a time limit.
    Killing(Option<KillHow>, bool),
    /// Its last process has ended; whether that was reported.
    Ended(PartEnd, bool),
}

/// The jobs that the host knows of.
#[derive(Debug, Default)]
pub(super) struct LocalJobs {
    pub(super) jobs: BTreeMap<JobId, (Attempt, Status)>,
    /// The jobs that were killed because the node was unreachable.
    pub(super) fenced: BTreeSet<(JobId, Attempt)>,
    /// For jobs that an earlier daemon began: until when they may run while the node is unreachable.
    fences: BTreeMap<JobId, Time>,
    /// For jobs that an earlier daemon began: the tree in which they were found.
    trees: BTreeMap<JobId, u64>,
    /// When each was submitted, in milliseconds since the Unix epoch; 0 if that is not known.
    submitted_ms: BTreeMap<JobId, u64>,
    /// For jobs without a main process: whether they were last reported to have no process.
    empty: BTreeMap<JobId, bool>,
}

impl LocalJobs {
    pub(super) fn new(found: &[Found]) -> LocalJobs {
        let status = |found: &Found| match found.ended {
            Some(end) => Status::Ended(end, false),
            None => Status::Running,
        };
        LocalJobs {
            jobs: found.iter().map(|found| (found.job, (found.attempt, status(found)))).collect(),
            trees: found.iter().map(|found| (found.job, found.tree)).collect(),
            submitted_ms: found.iter().map(|found| (found.job, found.submitted_ms)).collect(),
            fenced: BTreeSet::new(),
            fences: found.iter().filter_map(|found| Some((found.job, found.fence_at?))).collect(),
            empty: BTreeMap::new(),
        }
    }

    pub(super) fn fence_found(&self, job: JobId) -> Option<Time> {
        self.fences.get(&job).copied()
    }

    /// Forgets the jobs of all other trees; returns those of them that have processes here.
    pub(super) fn forget_others(&mut self, tree: u64) -> Vec<JobId> {
        let trees = std::mem::take(&mut self.trees);
        let (own, others): (BTreeMap<_, _>, BTreeMap<_, _>) = std::mem::take(&mut self.jobs)
            .into_iter()
            .partition(|(job, _)| trees.get(job).is_some_and(|of| *of == 0 || *of == tree));
        self.jobs = own;
        let living = others.into_iter().filter(|(_, (_, status))| !matches!(status, Status::Ended(..)));
        living.map(|(job, _)| job).collect()
    }

    /// Marks ends to be reported again, and returns each job without a main process, with its attempt and whether it has no process.
    fn say_again(&mut self) -> Vec<(JobId, Attempt, bool)> {
        for (_, status) in self.jobs.values_mut() {
            if let Status::Ended(_, said) = status {
                *said = false;
            }
        }
        self.empty.retain(|job, _| self.jobs.contains_key(job));
        self.empty.iter().filter_map(|(job, empty)| Some((*job, self.running(*job)?, *empty))).collect()
    }

    /// Whether the job on this node is another one with this number: an earlier copy of the store was restored while this node was
    /// away, and used the number again.
    fn is_another(&self, job: JobId, submitted_ms: u64) -> bool {
        self.submitted_ms.get(&job).is_some_and(|known| ![0, submitted_ms].contains(known))
    }

    pub(super) fn note_empty(&mut self, job: JobId, empty: bool) {
        self.empty.insert(job, empty);
    }

    pub(super) fn ended(&mut self, job: JobId, attempt: Attempt, end: PartEnd) {
        let known = self.jobs.get_mut(&job).filter(|(of, _)| *of == attempt);
        if let Some((_, status)) = known.filter(|(_, status)| !matches!(status, Status::Ended(..))) {
            *status = Status::Ended(end, false);
        }
    }

    /// Whether jobs have processes here.
    pub(super) fn is_busy(&self) -> bool {
        self.jobs.values().any(|(_, status)| !matches!(status, Status::Ended(..)))
    }

    /// The attempt of a job that runs here.
    pub(super) fn running(&self, job: JobId) -> Option<Attempt> {
        let (attempt, status) = self.jobs.get(&job)?;
        matches!(status, Status::Running | Status::Closing).then_some(*attempt)
    }
}

/// The report that a job without a main process has no process here, or has one again.
pub(super) fn is_empty(job: JobId, attempt: Attempt, empty: bool) -> Ask {
    match empty {
        true => Ask::Empty { job: job.0, attempt },
        false => Ask::Occupied { job: job.0, attempt },
    }
}

fn is_limit(reason: Reason) -> bool {
    matches!(reason, Reason::TimeLimit | Reason::RunTime)
}

/// The desired state of a job on this node.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    attempt: Attempt,
    submitted_ms: u64,
    part: Part,
    /// The reason for killing its processes, if they are to end.
    ends: Option<Reason>,
    closing: bool,
}

impl Wanted {
    /// The reason for killing, if processes were first told to end and may not have done so.
    fn ends_politely(&self) -> Option<Reason> {
        self.ends.filter(|reason| *reason == Reason::UserRequest || is_limit(*reason))
    }
}

impl Member {
    /// Connected again: a restored copy of the store may lack earlier reports, without any other sign of that.
    pub(super) fn say_again(&mut self) {
        let own = &self.settings.name;
        for (id, attempt, empty) in self.local.say_again() {
            let known = self.replica.jobs.get(&id.0).map(|job| job.value.empty_on.contains(own));
            if known.is_some_and(|known| known != empty) {
                self.outbox.report(&self.settings, self.now, is_empty(id, attempt, empty));
            }
        }
    }

    /// Compares the jobs on this node with the desired ones.
    pub(super) fn local_changed(&mut self) {
        if !self.can_compare() {
            return;
        }
        self.replica.is_news_of_jobs = false;
        let wanted = self.wanted_parts();
        for (id, wanted) in &wanted {
            self.want(*id, wanted);
        }
        // Jobs without a place here any more: the node was given up, or the job is over.
        let own: Vec<JobId> = self.local.jobs.keys().copied().collect();
        for id in own.into_iter().filter(|id| !wanted.contains_key(id)) {
            self.unwanted(id);
        }
    }

    /// The same for one job.
    pub(super) fn job_changed(&mut self, id: JobId) {
        if self.can_compare() {
            let record = self.replica.state.as_ref().and_then(|state| state.value.jobs.get(&id));
            match record.and_then(|record| self.wanted(id, record)) {
                Some(wanted) => self.want(id, &wanted),
                None => self.unwanted(id),
            }
        }
    }

    /// Whether jobs can be compared. What the plan says of a rebooted machine is no longer true until a member has planned with the reboot.
    fn can_compare(&self) -> bool {
        self.session.is_joined() && !self.replica.is_ahead() && self.is_counted()
    }

    /// The jobs that have a part here which has not ended.
    fn wanted_parts(&self) -> BTreeMap<JobId, Wanted> {
        let jobs = self.replica.state.iter().flat_map(|state| &state.value.jobs);
        jobs.filter_map(|(id, record)| Some((*id, self.wanted(*id, record)?))).collect()
    }

    /// The desired state of a job, if it has a part here that has not ended.
    fn wanted(&self, id: JobId, record: &JobRecord) -> Option<Wanted> {
        let (node, state) = (self.id?, &self.replica.state.as_ref()?.value);
        let parts = &record.place.as_ref()?.parts;
        let planned = parts.binary_search_by_key(&node, |part| part.node).ok().map(|at| parts[at]);
        // A part that was kept for this node is planned again as soon as a planner has seen this node.
        let part = planned.or_else(|| state.kept.get(&node)?.get(&id).copied())?;
        let job = &self.replica.jobs.get(&id.0)?.value;
        let ends = match record.stage {
            Stage::Ending(reason) => Some(reason),
            Stage::Clearing => Some(Reason::NodeLost),
            Stage::Ready | Stage::Waiting(_) => None,
        };
        let over = job.ended_on.contains_key(&self.settings.name);
        let (attempt, submitted_ms) = (job.attempt, job.submitted_ns / 1_000_000);
        (!over).then_some(Wanted { attempt, submitted_ms, part, ends, closing: job.closing })
    }

    /// The main processes on this node, live or ended, of jobs that have no part here, or not yet: only this node can see that one
    /// has ended, and there is no cgroup for it. In later attempts there is always a part where the main process is.
    pub fn mains(&self) -> impl Iterator<Item = (JobId, MainProcess)> {
        let jobs = self.state().into_iter().flat_map(|state| &state.jobs);
        jobs.filter_map(|(id, record)| {
            let job = &self.replica.jobs.get(&id.0)?.value;
            let parts = record.place.as_ref().map_or(&[][..], |place| &place.parts);
            let local = parts.iter().any(|part| Some(part.node) == self.id);
            let open = !local && !job.closing && job.main_exit.is_none() && job.attempt == 0;
            let leads = job.ask.lead.as_ref() == Some(&self.settings.name) && !matches!(record.stage, Stage::Ending(_));
            Some((*id, job.ask.main.filter(|_| open && leads)?))
        })
    }

    /// Whether a report that a gang is asleep or awake here would have no effect. An agent reports it at every sample while
    /// the gang's state on the other nodes differs.
    pub(super) fn is_known(&self, id: JobId, asleep: bool) -> bool {
        let (Some(state), Some(job)) = (&self.replica.state, self.replica.jobs.get(&id.0)) else { return false };
        let Some(record) = state.value.jobs.get(&id) else { return false };
        let (on, own) = (&job.value.asleep_on, &self.settings.name);
        let parts = record.place.as_ref().map_or(&[][..], |place| &place.parts);
        let all = parts.iter().all(|part| on.contains(self.replica.name_of(part.node)));
        let as_it_is = (record.standing == Standing::Asleep) == (asleep && all);
        if !asleep && parts.iter().all(|part| job.value.dropped_on.contains(self.replica.name_of(part.node))) {
            // Only a user brings it back.
            return true;
        }
        on.contains(own) == asleep && (as_it_is || record.standing == Standing::Suspended)
    }

    fn want(&mut self, id: JobId, wanted: &Wanted) {
        let attempt = wanted.attempt;
        let Some((known, status)) = self.local.jobs.get(&id).copied() else {
            return self.begin_part(id, wanted);
        };
        if self.local.is_another(id, wanted.submitted_ms) {
            return self.replace(id, status, wanted);
        }
        match status {
            // An attempt that is over on all other nodes.
            Status::Running | Status::Closing if known != attempt => self.kill(id, known, Reason::NodeLost),
            Status::Running | Status::Closing if wanted.ends.is_some() => {
                self.kill(id, known, wanted.ends.unwrap_or(Reason::UserRequest));
            }
            Status::Killing(how, at_limit) if known == attempt => match wanted.ends_politely() {
                // It was told to end, has not done so, and exceeds its time limit.
                Some(reason) if is_limit(reason) && !at_limit => self.kill(id, known, reason),
                // A user has requested it again in another way, such as KILL after a TERM that was ignored.
                Some(_) if how != self.kill_how(id) => self.kill(id, known, Reason::UserRequest),
                _ => (),
            },
            Status::Running if wanted.closing => {
                self.local.jobs.insert(id, (known, Status::Closing));
                self.actions.push_back(Action::ClosePart { job: id, attempt });
            }
            Status::Ended(end, false) if known == attempt => {
                self.local.jobs.insert(id, (known, Status::Ended(end, true)));
                match self.local.fenced.contains(&(id, attempt)) {
                    true => self.outbox.report(&self.settings, self.now, Ask::PartLost { job: id.0, attempt }),
                    false => self.report_end(id, attempt, end),
                }
            }
            Status::Ended(..) if known != attempt => self.begin_part(id, wanted),
            _ => (),
        }
    }

    /// The other job of this number continues without being planned; while it is on this node, the new one cannot begin.
    fn replace(&mut self, id: JobId, status: Status, wanted: &Wanted) {
        self.local.empty.remove(&id);
        if matches!(status, Status::Ended(..)) {
            return self.begin_part(id, wanted);
        }
        self.actions.push_back(Action::Forgotten(id));
        self.never_began(id, wanted);
    }

    fn never_began(&mut self, id: JobId, wanted: &Wanted) {
        let end = PartEnd::default();
        self.local.submitted_ms.insert(id, wanted.submitted_ms);
        self.local.jobs.insert(id, (wanted.attempt, Status::Ended(end, true)));
        self.report_end(id, wanted.attempt, end);
    }

    fn begin_part(&mut self, id: JobId, wanted: &Wanted) {
        let Wanted { attempt, submitted_ms, part, ends, closing } = *wanted;
        if ends.is_some() || closing {
            return self.never_began(id, wanted);
        }
        let Some(job) = self.replica.jobs.get(&id.0) else { return };
        let job = Box::new(job.value.clone());
        self.local.jobs.insert(id, (attempt, Status::Running));
        self.local.submitted_ms.insert(id, submitted_ms);
        self.local.fenced.retain(|(of, _)| *of != id);
        self.actions.push_back(Action::StartPart { job, part });
    }

    fn unwanted(&mut self, id: JobId) {
        match self.local.jobs.get(&id).copied() {
            Some((attempt, Status::Running | Status::Closing)) => {
                let reason = match self.replica.jobs.get(&id.0) {
                    Some(job) if job.value.end.is_none() => Reason::NodeLost,
                    _ => Reason::Departure,
                };
                self.kill(id, attempt, reason);
            }
            Some((_, Status::Ended(..))) => {
                self.local.jobs.remove(&id);
                self.local.submitted_ms.remove(&id);
                self.local.empty.remove(&id);
                self.local.fenced.retain(|(of, _)| *of != id);
            }
            Some((_, Status::Killing(..))) | None => (),
        }
    }

    fn kill(&mut self, job: JobId, attempt: Attempt, reason: Reason) {
        let at_limit = is_limit(reason) || matches!(self.local.jobs.get(&job), Some((_, Status::Killing(_, true))));
        self.local.jobs.insert(job, (attempt, Status::Killing(self.kill_how(job), at_limit)));
        self.actions.push_back(Action::KillPart { job, attempt, reason });
    }

    fn kill_how(&self, job: JobId) -> Option<KillHow> {
        self.replica.jobs.get(&job.0)?.value.kill_how
    }

    fn report_end(&mut self, job: JobId, attempt: Attempt, end: PartEnd) {
        self.outbox.report(&self.settings, self.now, Ask::PartEnded { job: job.0, attempt, end });
    }
}

#[cfg(test)]
mod tests;
