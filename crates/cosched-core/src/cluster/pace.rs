//! Shares of the slots for gangs that span nodes: the cycle that all nodes run.
//!
//! Rule. As on one node (`policy/share.rs`): a gang with a share runs in its row only when it has earned a slot, and the cycle is
//! repeated until all gangs have whole numbers of slots. The turns that it leaves go to other gangs that span nodes and whose cells are
//! free, the least served first, if no other job or program has a claim on their nodes; otherwise each node gives them to those that have
//! one (`fill.rs`). The plan says which gangs run, so all nodes have the same slots.
//! Units: turns.

use super::cycle::{Claim, Gang};
use super::plan::{LINEUPS_MAX, Plan};
use super::row::Bits;
use crate::id::JobId;
use crate::policy::share::{self, SlotShare};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

/// Gives the gangs with shares only as many turns as they may have. `gangs` must be ascending by id.
pub(super) fn pace(plan: &mut Plan, gangs: &[Gang], claims: &[Claim], has_ceiling: bool) {
    let share_of = |gang: &Gang| Some((gang.id, plan.jobs.get(&gang.id)?.slot_share?));
    let shares: BTreeMap<JobId, SlotShare> = gangs.iter().filter_map(share_of).collect();
    let cycle = plan.turns.len();
    if shares.is_empty() || cycle == 0 {
        return;
    }
    let is_free = |gang: &&Gang| !has_ceiling && gang.cpus.iter().all(|(node, _)| claims[*node as usize].threads == 0);
    let guests: Vec<&Gang> = gangs.iter().filter(is_free).collect();
    let base = cycle * plan.period() as usize;
    let length = base * share::repeats(base, shares.values().copied());
    let mut served = vec![0_u64; guests.len()];
    let mut used = Bits::none(plan.layout.columns());
    let runs = share::pace(&shares, length, |k, may| {
        let turn = plan.turns[k % cycle];
        let lineup = plan.lineup(turn, (k / cycle) as u64);
        let mut run: Vec<JobId> = lineup.iter().copied().filter(|id| may(*id)).collect();
        if run.len() < lineup.len() {
            lend(&mut run, gangs, (&guests, &served, &may), &mut used);
        }
        let runs = |gang: &&Gang| run.binary_search(&gang.id).is_ok();
        served.iter_mut().zip(&guests).for_each(|(served, gang)| *served += u64::from(runs(gang)));
        run
    });
    let turns_16 = |id: JobId| {
        let turns = runs.iter().filter(|run| run.binary_search(&id).is_ok()).count() as u64;
        (turns * cycle as u64 * u64::from(LINEUPS_MAX) / length as u64).max(turns.min(1)) as u32
    };
    for (id, job) in plan.jobs.iter_mut().filter(|(_, job)| job.home.is_some()) {
        job.turns_16 = turns_16(*id);
    }
    plan.paced = Arc::from(runs);
}

type Guests<'a> = (&'a [&'a Gang<'a>], &'a [u64], &'a dyn Fn(JobId) -> bool);

/// Adds gangs of other rows to a turn, as far as their cells are free.
fn lend(run: &mut Vec<JobId>, gangs: &[Gang], (guests, served, may): Guests, used: &mut Bits) {
    used.clear();
    for id in run.iter() {
        let at = gangs.binary_search_by_key(id, |gang| gang.id);
        at.into_iter().for_each(|at| used.add(gangs[at].spans));
    }
    let mut queue: Vec<usize> = (0..guests.len()).filter(|at| may(guests[*at].id)).collect();
    queue.sort_by_key(|at| (served[*at] * 65_536 / u64::from(guests[*at].share), *at));
    for gang in queue.into_iter().map(|at| guests[at]) {
        if !used.meets(gang.spans) {
            used.add(gang.spans);
            run.push(gang.id);
        }
    }
    run.sort_unstable();
}
