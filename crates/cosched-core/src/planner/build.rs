//! Makes a plan from the jobs and the matrix.

use super::{Entry, Planner};
use crate::id::JobId;
use crate::job::Policy;
use crate::plan::{Plan, PlannedJob, Standing};
use crate::policy::{gang, local};
use crate::time::Time;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

/// The finest division of users' shares.
const SCALE_MAX: u64 = 1 << 16;

impl Planner {
    /// Gives every gang with slots its cells, and frees those of all others.
    pub(super) fn settle_matrix(&mut self) {
        let housed: BTreeSet<JobId> = self.matrix.rows().iter().flat_map(|r| r.jobs()).collect();
        let gone: Vec<JobId> = housed.iter().copied().filter(|id| !self.has_slots(*id)).collect();
        for id in &gone {
            if let Some(home) = self.matrix.home(*id).filter(|_| self.matrix.has_places() && self.jobs.contains_key(id))
            {
                let columns = self.matrix.first_of_cores(*id, &home.columns).unwrap_or(home.columns);
                self.places.insert(*id, columns);
            }
            self.matrix.remove(*id);
        }
        let rows = self.matrix.rows().len();
        let homeless: Vec<JobId> =
            self.jobs.keys().copied().filter(|id| self.has_slots(*id) && !housed.contains(id)).collect();
        for id in homeless {
            self.house(id);
        }
        // The free cells of a new row may take in the gangs of an older one.
        if !gone.is_empty() || self.matrix.rows().len() > rows {
            self.matrix.unify();
        }
    }

    /// Gives a gang cells. Its processes cannot move to another node, so its first node stays its node; and if it had a place, it
    /// gets that again if possible.
    fn house(&mut self, id: JobId) {
        let Some(entry) = self.jobs.get_mut(&id) else { return };
        let (job, alone, packing) = (&mut entry.job, entry.alone, self.config.packing);
        let before = self.places.get(&id).filter(|columns| columns.len() == job.cpus as usize);
        let is_back = before.is_some_and(|columns| match alone {
            true => self.matrix.put_back_alone(id, columns),
            false => self.matrix.put_back(id, columns),
        });
        if is_back {
            return;
        }
        // It fits: that was checked when the job arrived.
        let place = match alone {
            true => self.matrix.insert_alone(id, job.cpus, packing),
            false => self.matrix.insert(id, job.cpus, job.node, packing),
        };
        let column = place.and_then(|p| p.columns.first().copied());
        job.node = column.map(|c| self.matrix.columns()[c as usize].node).or(job.node);
    }

    fn has_slots(&self, id: JobId) -> bool {
        self.jobs
            .get(&id)
            .is_some_and(|e| e.policy(self.config.policy) == Policy::Gang && e.standing == Standing::Scheduled)
    }

    /// The plan of the present jobs and matrix; the caller sets generation and slot.
    pub(super) fn build(&self) -> Plan {
        let users = self.shares_of_users();
        let slot_shares =
            self.jobs.iter().filter(|(id, _)| self.has_slots(**id)).filter_map(|(id, e)| Some((*id, e.slot_share?)));
        let share = |id| self.jobs.get(&id).map_or(1, |e| self.share_of_turns(e, &users));
        let turns = gang::cycle(&self.matrix, share, &slot_shares.collect(), self.ceiling_permille);
        let mut owned: BTreeMap<JobId, u32> = BTreeMap::new();
        for id in turns.iter().flat_map(|t| &t.run) {
            *owned.entry(*id).or_default() += 1;
        }
        let rows = self.matrix.rows().len();
        let cycle = turns.iter().filter(|turn| (turn.row as usize) < rows).count();
        let mut matrix = self.matrix.clone();
        if cycle < turns.len() {
            // The row of open turns.
            matrix.add_rows(rows + 1);
        }
        let part = |(id, e): (&JobId, &Entry)| local::Part {
            share: self.share(e),
            cpus: e.job.cpus,
            turns: owned.get(id).map_or((1, 1), |own| (*own, cycle as u32)),
        };
        let parts: Vec<local::Part> = self.jobs.iter().map(part).collect();
        let weights = local::weights(&parts);
        let mut homes = self.matrix.homes();
        let planned = |((id, e), weight): ((&JobId, &Entry), u32)| {
            let home = homes.remove(id);
            let job = PlannedJob {
                class: e.job.class,
                policy: e.policy(self.config.policy),
                auto: e.job.policy.unwrap_or(self.config.policy) == Policy::Auto,
                cpus: e.job.cpus,
                standing: e.standing,
                slot_share: e.slot_share,
                weight,
                alone_on: home.as_ref().and_then(|p| self.matrix.first_of_cores(*id, &p.columns)),
                home: home.map(|p| (p.row as u32, p.columns)),
                is_placed: self.matrix.has_places(),
                turns: owned.get(id).copied().unwrap_or(0),
            };
            (*id, job)
        };
        Plan {
            generation: self.plan.generation,
            epoch: Time(0),
            slot_length_ns: self.config.slot_length_ns,
            from_slot: self.plan.from_slot,
            policy: self.config.policy,
            sharing: self.config.sharing,
            matrix,
            turns,
            jobs: self.jobs.iter().zip(weights).map(planned).collect(),
        }
    }

    /// For each user, over the gangs with slots: the sum of their shares, and the largest.
    fn shares_of_users(&self) -> BTreeMap<u32, (u64, u64)> {
        let mut users: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
        for entry in self.jobs.iter().filter(|(id, _)| self.has_slots(**id)).map(|(_, entry)| entry) {
            let (sum, most) = users.entry(entry.job.owner).or_default();
            let share = u64::from(self.share(entry));
            (*sum, *most) = (*sum + share, share.max(*most));
        }
        users
    }

    /// A gang's share of the slots. A user has the share of their most urgent gang, and their gangs divide it by their own shares: otherwise
    /// one user with many gangs, even sleeping ones, would leave the others next to nothing.
    fn share_of_turns(&self, entry: &Entry, users: &BTreeMap<u32, (u64, u64)>) -> u32 {
        let scale = users.values().map(|(sum, _)| *sum).max().unwrap_or(1).min(SCALE_MAX);
        let (sum, most) = users.get(&entry.job.owner).copied().unwrap_or((1, 1));
        let share = most * u64::from(self.share(entry)) * scale / sum.max(1);
        share.clamp(1, u64::from(u32::MAX)) as u32
    }

    fn share(&self, entry: &Entry) -> u32 {
        self.config.shares.of(entry.job.class)
    }
}
