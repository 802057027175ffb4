//! The plan: which job owns which CPUs in which slot, the same for every reader.
//!
//! A plan never changes; the next one has a higher generation. No message is needed at a slot boundary, because the
//! row at a time is a pure function of the plan and the time (LLNL, "Gang Scheduler Design": "at prearranged times").

use crate::class::Class;
use crate::id::JobId;
use crate::job::{Policy, Sharing};
use crate::matrix::Matrix;
use crate::policy::share::SlotShare;
use crate::time::Time;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// One slot of the cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The row of the matrix.
    pub row: u32,
    /// The jobs that own CPUs, ascending: the row's residents, alternates, and single-CPU jobs that fill it.
    pub run: Vec<JobId>,
}

/// Whether a job is scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Scheduled by its policy.
    Scheduled,
    /// A gang that used no CPU: it has no slots and is left to the operating system until it wakes.
    Asleep,
    /// Suspended by a user.
    Suspended,
}

/// What the plan says about one job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedJob {
    /// Its class.
    pub class: Class,
    /// The policy in force for it; never [`Policy::Auto`], but the one that auto has chosen.
    pub policy: Policy,
    /// Whether the policy was chosen for it (auto).
    pub auto: bool,
    /// CPUs at the same time.
    pub cpus: u32,
    /// Whether it is scheduled.
    pub standing: Standing,
    /// The largest part of the slots that it may have.
    pub slot_share: Option<SlotShare>,
    /// Its weight against the other jobs that run at the same time, 1 to 10000.
    pub weight: u32,
    /// Its row and columns, while it has cells.
    pub home: Option<(u32, Vec<u32>)>,
    /// Of its columns those that its processes run on, where it has whole cores: their siblings are among its columns, and empty.
    pub alone_on: Option<Vec<u32>>,
    /// Whether its columns are its place.
    pub is_placed: bool,
    /// The number of turns of the cycle in which it owns CPUs.
    pub turns: u32,
}

/// What a job may do in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Disposition {
    /// It owns its CPUs, or is not a gang with slots.
    Run,
    /// It may use CPUs that are idle.
    Background,
    /// It must not run.
    Stop,
}

/// An immutable plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The generation; each plan has the next number.
    pub generation: u64,
    /// The beginning of slot 0.
    pub epoch: Time,
    /// The length of a slot.
    pub slot_length_ns: u64,
    /// The first slot in which this plan is in force.
    pub from_slot: u64,
    /// The machine's policy.
    pub policy: Policy,
    /// What gangs that are not current may do.
    pub sharing: Sharing,
    /// The cells of all gangs with slots.
    pub matrix: Matrix,
    /// The cycle: slot k has turn k modulo its length. Empty while no gang has slots.
    pub turns: Vec<Turn>,
    /// Every job that has not ended.
    pub jobs: BTreeMap<JobId, PlannedJob>,
}

impl Plan {
    /// The number of the slot at a time.
    pub fn slot_at(&self, t: Time) -> u64 {
        (t - self.epoch) / self.slot_length_ns
    }

    /// When a slot begins.
    pub fn slot_start(&self, slot: u64) -> Time {
        self.epoch + slot.saturating_mul(self.slot_length_ns)
    }

    /// The turn of a slot; `None` while no gang has slots.
    pub fn turn(&self, slot: u64) -> Option<&Turn> {
        let cycle = self.turns.len() as u64;
        (cycle > 0).then(|| &self.turns[(slot % cycle) as usize])
    }

    /// The row at a time.
    pub fn row_at(&self, t: Time) -> Option<u32> {
        self.turn(self.slot_at(t)).map(|turn| turn.row)
    }

    /// What a job may do in slots in which it owns no CPU.
    pub fn otherwise(&self, job: JobId) -> Disposition {
        let Some(planned) = self.jobs.get(&job) else { return Disposition::Run };
        match (planned.standing, planned.policy, self.sharing) {
            (Standing::Suspended, ..) => Disposition::Stop,
            (Standing::Asleep, ..) => Disposition::Run,
            (_, policy, _) if policy.is_local() => Disposition::Run,
            // CPUs that others leave idle would be more than its share.
            _ if planned.slot_share.is_some() => Disposition::Stop,
            (.., Sharing::Soft | Sharing::Paired) => Disposition::Background,
            (.., Sharing::Strict) => Disposition::Stop,
        }
    }

    /// What a job may do in a slot.
    pub fn disposition(&self, job: JobId, slot: u64) -> Disposition {
        let owns = self.turn(slot).is_some_and(|turn| turn.run.binary_search(&job).is_ok());
        if owns { Disposition::Run } else { self.otherwise(job) }
    }

    /// What every job may do in a slot, by id.
    pub fn dispositions(&self, slot: u64) -> impl Iterator<Item = (JobId, Disposition)> {
        self.jobs.keys().map(move |job| (*job, self.disposition(*job, slot)))
    }

    /// The turns in which a gang owns CPUs, and the turns in total; `None` for a job without slots.
    pub fn share(&self, job: JobId) -> Option<(u32, u32)> {
        let planned = self.jobs.get(&job)?;
        (planned.turns > 0).then_some((planned.turns, self.turns.len() as u32))
    }

    /// The place of a gang with slots: the CPUs that its processes may use, by their columns. `None` for a job that may use all.
    pub fn place(&self, job: JobId) -> Option<&[u32]> {
        let planned = self.jobs.get(&job).filter(|planned| planned.is_placed)?;
        let (_, columns) = planned.home.as_ref()?;
        let columns = planned.alone_on.as_ref().unwrap_or(columns);
        (columns.len() < self.matrix.columns().len()).then_some(columns)
    }

    /// The time between `from` and `to` in slots in which a job owns CPUs, in nanoseconds.
    pub fn owned_ns(&self, job: JobId, from: Time, to: Time) -> u64 {
        let cycle_ns = self.slot_length_ns.saturating_mul(self.turns.len() as u64);
        let turns = self.jobs.get(&job).map_or(0, |planned| u64::from(planned.turns));
        if cycle_ns == 0 || turns == 0 {
            return 0;
        }
        let cycles = (to - from) / cycle_ns;
        let rest = from + cycles * cycle_ns;
        let owns = |slot: &u64| self.turn(*slot).is_some_and(|turn| turn.run.binary_search(&job).is_ok());
        let within = |slot: u64| self.slot_start(slot + 1).min(to) - self.slot_start(slot).max(rest);
        let of_rest: u64 = (self.slot_at(rest)..=self.slot_at(to)).filter(owns).map(within).sum();
        cycles * turns * self.slot_length_ns + of_rest
    }

    /// Whether the decisions are the same; the generation and the slot from which they are in force are not compared.
    pub(crate) fn same_content(&self, other: &Plan) -> bool {
        self.slot_length_ns == other.slot_length_ns
            && self.policy == other.policy
            && self.sharing == other.sharing
            && self.jobs == other.jobs
            && self.turns == other.turns
            && self.matrix == other.matrix
    }
}
