//! Where the cycle of a new plan begins.
//!
//! Problem: the turn of slot k is k modulo the cycle's length, so a cycle of another length would jump to any row: an
//! arrival could take the CPUs from a gang in the middle of its slot, and a job that comes and goes could skew the shares
//! of all others.
//! Rule: in the present slot the running gangs continue to run. Of the turns that allow it, the one is taken in which
//! jobs with a share of the slots run least before they have earned it, otherwise plans in quick succession would give them more; and
//! of equals the one after which the gang that has waited longest comes soonest. An unchanged cycle keeps its phase.
//! Units: slots.

use super::Planner;
use crate::id::JobId;
use crate::plan::{Plan, Turn};
use crate::policy::share::{Account, PACED_TURNS_MAX};
use crate::time::Time;
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

/// When each gang with slots last had one, for the gangs of the present plan.
#[derive(Debug, Default)]
pub(super) struct Turns {
    last_ran: BTreeMap<JobId, Time>,
    /// For gangs with a share of the slots, up to slot `accounted_to` (exclusive).
    accounts: BTreeMap<JobId, Account>,
    accounted_to: u64,
    /// The cycle of the present plan as it was planned, before it was rotated into its phase.
    cycle: Vec<Turn>,
}

impl Planner {
    /// Rotates the cycle of `plan`, which takes effect at `now`, into its phase.
    pub(super) fn set_phase(&mut self, plan: &mut Plan, now: Time) {
        self.note_runs(plan, now);
        self.note_shares(plan, now);
        let old = &self.plan;
        let same_cycle = plan.turns == self.turns.cycle && plan.slot_length_ns == old.slot_length_ns;
        if same_cycle {
            plan.turns.clone_from(&old.turns);
            return;
        }
        self.turns.cycle.clone_from(&plan.turns);
        if plan.turns.len() < 2 {
            return;
        }
        let running = old.turn(old.slot_at(now)).map_or(&[][..], |turn| &turn.run);
        let begin = self.begin(&plan.turns, running);
        let n = plan.turns.len();
        let at = (plan.slot_at(now) % n as u64) as usize;
        plan.turns.rotate_left((begin + n - at) % n);
    }

    /// Records when each gang last ran; the wait of a gang that never did begins now.
    fn note_runs(&mut self, plan: &Plan, now: Time) {
        let old = &self.plan;
        let last_ran = &mut self.turns.last_ran;
        last_ran.retain(|id, _| plan.jobs.get(id).is_some_and(|job| job.turns > 0));
        let slot = old.slot_at(now);
        let first = old.from_slot.max((slot + 1).saturating_sub(old.turns.len() as u64));
        for past in first..=slot {
            for id in old.turn(past).map_or(&[][..], |turn| &turn.run) {
                last_ran.entry(*id).and_modify(|t| *t = old.slot_start(past + 1).min(now));
            }
        }
        for (id, _) in plan.jobs.iter().filter(|(_, job)| job.turns > 0) {
            last_ran.entry(*id).or_insert(now);
        }
    }

    /// Records what jobs with a share have earned, the present slot included: a job that runs in it continues to run in it.
    fn note_shares(&mut self, plan: &Plan, now: Time) {
        let old = &self.plan;
        let Turns { accounts, accounted_to, .. } = &mut self.turns;
        let end = old.slot_at(now) + 1;
        for slot in (*accounted_to).max(old.from_slot).max(end.saturating_sub(PACED_TURNS_MAX as u64))..end {
            let run = old.turn(slot).map_or(&[][..], |turn| &turn.run);
            accounts.iter_mut().for_each(|(id, account)| account.slot(run.binary_search(id).is_ok()));
        }
        // With slots of another length, slots have other numbers.
        *accounted_to = if plan.slot_length_ns == old.slot_length_ns { end } else { plan.slot_at(now) + 1 };
        accounts.retain(|id, _| plan.jobs.get(id).is_some_and(|job| job.slot_share.is_some()));
        for (id, share) in plan.jobs.iter().filter_map(|(id, job)| Some((*id, job.slot_share?))) {
            accounts.entry(id).or_insert_with(|| Account::full(share)).share = share;
        }
    }

    /// The index of the turn of `cycle` for the present slot.
    fn begin(&self, cycle: &[Turn], running: &[JobId]) -> usize {
        let go_on = |turn: &Turn| turn.run.iter().filter(|id| running.binary_search(id).is_ok()).count();
        let most = cycle.iter().map(go_on).max().unwrap_or(0);
        let waits = |id: &JobId| running.binary_search(id).is_err();
        let longest = self.turns.last_ran.iter().filter(|(id, _)| waits(id)).min_by_key(|(id, t)| (**t, **id));
        let delay = match longest {
            Some((id, _)) => slots_until(cycle, *id),
            None => vec![0; cycle.len()],
        };
        let mut early = vec![0; cycle.len()];
        for (id, account) in &self.turns.accounts {
            let until = slots_until(cycle, *id);
            let runs = |turn: &Turn| turn.run.binary_search(id).is_ok();
            for (at, early) in early.iter_mut().enumerate() {
                // A job that runs in this slot has paid for it.
                let next = if waits(id) && runs(&cycle[at]) { 0 } else { until[at] as u64 };
                *early += account.slots_until_earned().saturating_sub(next);
            }
        }
        let candidates = (0..cycle.len()).filter(|i| go_on(&cycle[*i]) == most);
        candidates.min_by_key(|i| (early[*i], delay[*i], *i)).unwrap_or(0)
    }
}

/// For every turn, the number of slots until the job's next turn (the turn itself not counted).
fn slots_until(cycle: &[Turn], job: JobId) -> Vec<usize> {
    let n = cycle.len();
    let mut delay = vec![0; n];
    let mut next = 0;
    for i in (0..2 * n).rev() {
        delay[i % n] = next;
        next = if cycle[i % n].run.binary_search(&job).is_ok() { 1 } else { next + 1 };
    }
    delay
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::{Class, Shares};
    use crate::id::NodeId;
    use crate::job::{Job, Node, Packing, Policy, Sharing};
    use crate::planner::{PlannerConfig, PlannerInput};

    const SLOT_NS: u64 = 100_000_000;

    fn planner() -> Planner {
        Planner::new(PlannerConfig {
            nodes: vec![Node { id: NodeId(0), cpus: 2 }],
            slot_length_ns: SLOT_NS,
            policy: Policy::Gang,
            sharing: Sharing::Strict,
            packing: Packing::FirstFit,
            shares: Shares::default(),
        })
    }

    fn submit(p: &mut Planner, id: u64, now: Time) {
        let job = Job { id: JobId(id), owner: 0, class: Class::Batch, policy: None, cpus: 2, node: None };
        p.handle(now, PlannerInput::Submit(job)).unwrap();
    }

    fn running(p: &Planner, now: Time) -> Vec<JobId> {
        p.plan().turn(p.plan().slot_at(now)).map_or(Vec::new(), |t| t.run.clone())
    }

    #[test]
    fn an_arrival_takes_the_cpus_from_nobody_in_the_middle_of_a_slot() {
        for at in 0..12 {
            let mut p = planner();
            for id in 1..4 {
                submit(&mut p, id, Time(0));
            }
            let now = Time(at * SLOT_NS + SLOT_NS / 2);
            let before = running(&p, now);
            submit(&mut p, 9, now);
            assert_eq!(running(&p, now), before, "slot {at}");
        }
    }

    #[test]
    fn users_share_slots_however_many_gangs_each_has() {
        let mut p = planner();
        for id in 0..200 {
            submit(&mut p, id, Time(0));
        }
        let other = |id, class| Job { id: JobId(id), owner: 7, class, policy: None, cpus: 2, node: None };
        let part = |p: &Planner, id| f64::from(p.plan().jobs[&JobId(id)].turns) / p.plan().turns.len() as f64;
        p.handle(Time(0), PlannerInput::Submit(other(900, Class::Batch))).unwrap();
        assert!((0.45..=0.55).contains(&part(&p, 900)), "{}", part(&p, 900));
        // Two gangs of the second user divide that user's share; a third user with a more urgent gang has that gang's share.
        p.handle(Time(0), PlannerInput::Submit(other(901, Class::Batch))).unwrap();
        assert!((0.22..=0.28).contains(&part(&p, 900)), "{}", part(&p, 900));
        p.handle(Time(0), PlannerInput::Submit(Job { owner: 8, ..other(902, Class::Interactive) })).unwrap();
        let shares = Shares::default();
        let fair = f64::from(shares.interactive) / f64::from(shares.interactive + 2 * shares.batch);
        assert!((part(&p, 902) - fair).abs() < 0.05, "{} and {fair}", part(&p, 902));
        assert!((0..200).all(|id| part(&p, id) > 0.0), "nobody starves");
    }

    #[test]
    fn jobs_that_come_and_go_skew_nobodys_share() {
        let mut p = planner();
        submit(&mut p, 1, Time(0));
        submit(&mut p, 2, Time(0));
        let mut ran = [0_u32; 3];
        for slot in 0..600 {
            let now = Time(slot * SLOT_NS + 1);
            let short = JobId(10 + slot / 2);
            match slot % 2 {
                0 => submit(&mut p, short.0, now),
                _ => p.handle(now, PlannerInput::End(short)).unwrap(),
            }
            match running(&p, now + SLOT_NS / 2)[..] {
                [JobId(id @ 1..=2)] => ran[id as usize] += 1,
                _ => ran[0] += 1,
            }
        }
        assert!(ran[1].abs_diff(ran[2]) <= 60, "{ran:?}");
    }

    #[test]
    fn the_wait_for_the_next_turn_is_counted_around_the_end() {
        let turn = |id| Turn { row: 0, run: vec![JobId(id)] };
        let cycle = [turn(1), turn(2), turn(2), turn(1)];
        assert_eq!(slots_until(&cycle, JobId(1)), [3, 2, 1, 1]);
    }
}
