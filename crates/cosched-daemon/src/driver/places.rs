//! Moves each job to the place that the plan gives it.

use super::{Driver, Live};
use crate::places::confine;
use crate::record::Record;
use cosched_core::{JobId, Plan, Standing};
use cosched_linux::confine::Move;
use cosched_linux::cpulist;

/// The place of a job.
pub(super) struct Place {
    /// The machine's CPUs that it may use; all of them when it has no place.
    pub(super) cpus: Vec<u32>,
    /// It has no process yet that could have created others.
    is_new: bool,
    /// False for a job that was found: an earlier daemon placed it there, and may have released it since.
    is_known: bool,
}

impl Place {
    /// The place of a job that begins on these CPUs.
    pub(super) fn new(all: &[u32]) -> Place {
        Place { cpus: all.to_vec(), is_new: true, is_known: true }
    }

    /// The place of a job that was found.
    pub(super) fn found(record: &Record, all: &[u32]) -> Place {
        let cpus = if record.place.is_empty() { all } else { &record.place };
        Place { cpus: cpus.to_vec(), is_new: false, is_known: false }
    }

    /// The move of a process that enters the job.
    pub(super) fn entered(&self, all: &[u32]) -> Move {
        Move { from: all.to_vec(), to: self.cpus.clone(), all: false }
    }

    /// The move of a process that leaves it.
    pub(super) fn left(&self, all: &[u32]) -> Move {
        Move { from: self.cpus.clone(), to: all.to_vec(), all: true }
    }

    /// Its CPUs as a list in the kernel's format; `None` if these are all.
    pub(super) fn list(&self, all: &[u32]) -> Option<String> {
        Some(cpulist::format(self.of(all))).filter(|list| !list.is_empty())
    }

    /// Its CPUs; empty if these are all.
    fn of(&self, all: &[u32]) -> &[u32] {
        if self.cpus.len() < all.len() { &self.cpus } else { &[] }
    }
}

impl Driver {
    /// Lets the planner give a job that was found its earlier place.
    pub(super) fn remember_place(&mut self, record: &Record) {
        let column = |cpu: &u32| self.identity.cpus.iter().position(|has| has == cpu).map(|at| at as u32);
        let columns: Option<Vec<u32>> = record.place.iter().map(column).collect();
        if let Some(columns) = columns.filter(|columns| !columns.is_empty()) {
            self.cluster.node.remember_place(JobId(record.id), columns);
        }
    }

    /// Moves the jobs whose place differs in the current plan. A new job is in its place before its command is executed.
    pub(super) fn move_to_places(&mut self) {
        let (all, has_slots) = (&self.identity.cpus, self.cluster.node.local().has_slots());
        let mut moved = Vec::new();
        // The CPUs of an adopted cgroup are its owner's business.
        for (id, live) in self.live.iter_mut().filter(|(_, live)| !live.cgroup.is_adopted()) {
            let Some(to) = wanted(&self.plan, JobId(*id), has_slots, all, &live.place) else { continue };
            if to == live.place.cpus && live.place.is_known {
                continue;
            }
            let place = Move { all: to.len() == all.len(), from: live.place.cpus.clone(), to };
            live.place = Place { cpus: place.to.clone(), is_known: true, is_new: live.place.is_new };
            moved.push((*id, live.place.of(all).to_vec()));
            match live.place.is_new {
                true => confine(&live.cgroup, &place),
                false => self.machinery.mover.order(live.cgroup.clone(), place),
            }
        }
        self.live.values_mut().for_each(|live| live.place.is_new = false);
        for (id, place) in moved {
            if let Some(record) = self.state.jobs.get(&id).filter(|record| record.place != place) {
                self.keep_soon(Record { place, ..record.clone() });
            }
        }
    }

    /// This daemon ends: running jobs may use all CPUs until another daemon starts.
    pub(super) fn free_places<'a>(all: &[u32], lives: impl Iterator<Item = &'a Live>) {
        for live in lives.filter(|live| !live.place.of(all).is_empty()) {
            confine(&live.cgroup, &live.place.left(all));
        }
    }
}

/// The CPUs that a job is to have; `None` while it is to stay where it is: it is stopped or asleep, and will be back.
fn wanted(plan: &Plan, id: JobId, has_slots: bool, all: &[u32], now: &Place) -> Option<Vec<u32>> {
    let planned = plan.jobs.get(&id).filter(|_| has_slots);
    if planned.is_some_and(|job| job.standing != Standing::Scheduled) && now.is_known {
        return None;
    }
    let columns = plan.place(id).filter(|_| planned.is_some());
    let cpus: Option<Vec<u32>> = columns.map(|at| at.iter().filter_map(|at| all.get(*at as usize).copied()).collect());
    Some(cpus.filter(|cpus| !cpus.is_empty()).unwrap_or_else(|| all.to_vec()))
}
