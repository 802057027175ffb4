//! The table of slots: a plan in the form that a slot thread needs, prepared before the boundary so that nothing has to be looked up at it.

mod apart;
mod fillers;

use crate::id::JobId;
use crate::job::Sharing;
use crate::plan::{Disposition, Plan, PlannedJob, Standing};
use crate::sound::Flaw;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
pub use apart::Apart;
use fillers::Fillers;

/// The weight of a job that is not in the plan.
const WEIGHT_UNPLANNED: u32 = 100;

/// One job of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry<S> {
    /// The handle by which the slot thread switches it.
    pub switch: S,
    /// Its weight while it runs, 1 to 10000.
    pub weight: u32,
    /// Its state in turns that do not list it.
    pub otherwise: Disposition,
}

/// Which of the jobs in the background may use CPUs that the running gang leaves idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fill {
    /// The gang of the next turn only: it forms a pair with the running one (Strazdins & Uhlmann 2004, §6).
    Pair,
    /// The pair first, then all others by weight, the largest first; equals in the order of their turns, those without a turn last.
    #[default]
    All,
}

/// Which jobs run when. Slot k covers the wall clock from `epoch_ns + k·slot_length_ns`, and its turn is `turns[k mod turns.len()]`.
#[derive(Debug, Clone)]
pub struct Table<S> {
    /// When slot 0 starts, in nanoseconds since the Unix epoch.
    pub epoch_ns: u64,
    /// The length of a slot, in nanoseconds.
    pub slot_length_ns: u64,
    /// The jobs.
    pub jobs: Vec<Entry<S>>,
    /// For each turn, the jobs that run in it, as indices into `jobs`. Empty: every job is in its `otherwise` state all the time.
    pub turns: Vec<Vec<u16>>,
    /// Which jobs fill idle CPUs, where the mechanism supports a background.
    pub fill: Fill,
    /// The CPUs that stay empty.
    pub apart: Apart,
}

impl<S> Table<S> {
    /// A table without jobs.
    pub fn empty() -> Table<S> {
        Table {
            epoch_ns: 0,
            slot_length_ns: 100_000_000,
            jobs: Vec::new(),
            turns: Vec::new(),
            fill: Fill::All,
            apart: Apart::default(),
        }
    }

    /// Whether the two tables are the same at all times. With at most one turn, the times of slots do not matter.
    pub fn is_as(&self, other: &Table<S>) -> bool
    where
        S: PartialEq,
    {
        let times = |table: &Table<S>| (table.epoch_ns, table.slot_length_ns);
        let is_timed = self.turns.len() > 1;
        self.jobs == other.jobs
            && self.turns == other.turns
            && self.fill == other.fill
            && self.apart == other.apart
            && (!is_timed || times(self) == times(other))
    }

    /// Makes one entry for each job in `here` and, for each turn, the jobs that run in it. Without `slots` there are no turns, and
    /// all jobs run except the suspended ones. `unplanned` gives the state of jobs that the plan does not have (yet).
    ///
    /// A table that differs from the plan is replaced by one without turns, and the flaw is returned.
    pub fn compile(
        plan: &Plan,
        mut here: BTreeMap<JobId, S>,
        slots: bool,
        unplanned: impl Fn(JobId) -> Disposition,
    ) -> (Table<S>, Option<Flaw>) {
        let there = here.len();
        let otherwise = |id: JobId, job: &PlannedJob| match job.standing {
            Standing::Suspended => Disposition::Stop,
            _ if !slots => Disposition::Run,
            _ => plan.otherwise(id),
        };
        let planned = plan.jobs.iter().filter_map(|(id, job)| Some((*id, job, here.remove(id)?)));
        let (ids, mut jobs): (Vec<JobId>, Vec<Entry<S>>) = planned
            .map(|(id, job, switch)| (id, Entry { switch, weight: job.weight, otherwise: otherwise(id, job) }))
            .unzip();
        let rest =
            here.into_iter().map(|(id, switch)| Entry { switch, weight: WEIGHT_UNPLANNED, otherwise: unplanned(id) });
        jobs.extend(rest);
        let turns = if slots { &plan.turns[..] } else { &[] };
        let index = |id: &JobId| ids.binary_search(id).ok().map(|at| at as u16);
        let turns = turns.iter().map(|turn| turn.run.iter().filter_map(index).collect()).collect();
        let fill = if plan.sharing == Sharing::Paired { Fill::Pair } else { Fill::All };
        let apart = if slots { Apart::of(plan, &ids) } else { Apart::default() };
        let mut table = Table { epoch_ns: plan.epoch.0, slot_length_ns: plan.slot_length_ns, jobs, turns, fill, apart };
        let flaw = table.check(plan, &ids, there, slots).err();
        if flaw.is_some() {
            table.turns.clear();
            for (id, entry) in ids.iter().zip(&mut table.jobs) {
                let is_stopped = plan.jobs.get(id).is_some_and(|job| job.standing == Standing::Suspended);
                entry.otherwise = if is_stopped { Disposition::Stop } else { Disposition::Run };
            }
        }
        (table, flaw)
    }

    /// Checks that the turns are those of the plan (`ids` are its jobs on this node), and that no job is missing.
    fn check(&self, plan: &Plan, ids: &[JobId], there: usize, slots: bool) -> Result<(), Flaw> {
        let turns = if slots { &plan.turns[..] } else { &[] };
        if self.jobs.len() != there || ids.len() > there {
            return Err(Flaw::Jobs { told: self.jobs.len(), there });
        }
        if self.turns.len() != turns.len() {
            return Err(Flaw::Turn { at: self.turns.len() as u32 });
        }
        let columns = plan.matrix.columns().len() as u64;
        for ((at, run), turn) in (0..).zip(&self.turns).zip(turns) {
            let mut named = turn.run.iter().filter(|id| ids.binary_search(id).is_ok());
            let mut cpus = 0;
            for job in run {
                let id = ids.get(usize::from(*job)).filter(|id| named.next() == Some(id));
                let planned = id.and_then(|id| plan.jobs.get(id)).ok_or(Flaw::Turn { at })?;
                cpus += u64::from(planned.cpus);
            }
            if named.next().is_some() {
                return Err(Flaw::Turn { at });
            }
            if cpus > columns {
                return Err(Flaw::TooManyCpus { at });
            }
        }
        Ok(())
    }
}

/// One turn, with its differences from the previous one.
#[derive(Debug)]
pub struct Turn {
    /// The jobs that it lists, ascending.
    run: Box<[u16]>,
    /// The jobs that start to run.
    pub enter: Box<[u16]>,
    /// The jobs that stop running.
    pub leave: Box<[u16]>,
    /// The number of turns until the next job of the background runs; 0 when none ever does.
    pair: u32,
    /// The number of slots until the next turn with differences; 0 when there is none.
    pub next_change: u32,
}

/// A table prepared for the slot thread. Its size and preparation time grow with the sum of the jobs and the turns' entries, not with their
/// product: users register thousands of jobs, and each of them makes a new table.
#[derive(Debug)]
pub struct Prepared<S> {
    /// The table's number, counted by the caller that installs it.
    pub number: u64,
    epoch_ns: i64,
    /// The length of a slot.
    pub slot_length_ns: i64,
    /// The jobs.
    pub jobs: Vec<Entry<S>>,
    /// The cycle.
    pub turns: Vec<Turn>,
    fill: Fill,
    apart: Apart,
    fillers: Fillers,
    may_fill: bool,
}

impl<S> Prepared<S> {
    /// Prepares a table. Entries of turns without a job in the table are dropped.
    pub fn new(table: Table<S>, number: u64) -> Prepared<S> {
        let Table { epoch_ns, slot_length_ns, jobs, mut turns, fill, apart } = table;
        for run in &mut turns {
            run.retain(|&j| usize::from(j) < jobs.len());
            run.sort_unstable();
            run.dedup();
        }
        let fillers = Fillers::new(&turns, &jobs);
        let turn = |(k, run): (usize, &Vec<u16>)| {
            let before = &turns[(k + turns.len() - 1) % turns.len()];
            let moved = |of: &[u16], not: &[u16]| {
                let differs =
                    |&&j: &&u16| jobs[usize::from(j)].otherwise != Disposition::Run && not.binary_search(&j).is_err();
                of.iter().filter(differs).copied().collect()
            };
            let (enter, leave) = (moved(run, before), moved(before, run));
            Turn { run: run.as_slice().into(), enter, leave, pair: fillers.pair(&turns, k), next_change: 0 }
        };
        let mut prepared: Vec<Turn> = turns.iter().enumerate().map(turn).collect();
        find_changes(&mut prepared);
        let mut prepared = Prepared {
            number,
            epoch_ns: i64::try_from(epoch_ns).unwrap_or(i64::MAX),
            slot_length_ns: i64::try_from(slot_length_ns).unwrap_or(i64::MAX).max(1),
            jobs,
            turns: prepared,
            fill,
            apart,
            fillers,
            may_fill: false,
        };
        prepared.may_fill = (0..turns.len()).any(|k| prepared.fills(k as i64).next().is_some());
        prepared
    }

    /// The slot at a time; negative before the epoch.
    pub fn slot_at(&self, now_ns: i64) -> i64 {
        now_ns.saturating_sub(self.epoch_ns).div_euclid(self.slot_length_ns)
    }

    /// When a slot starts.
    pub fn boundary_ns(&self, slot: i64) -> i64 {
        self.epoch_ns.saturating_add(slot.saturating_mul(self.slot_length_ns))
    }

    /// True when some turn has a job in the background.
    pub fn may_fill(&self) -> bool {
        self.may_fill
    }

    fn turn_index(&self, slot: i64) -> usize {
        slot.rem_euclid(self.turns.len() as i64) as usize
    }

    /// The turn of a slot; `None` in a table without turns.
    pub fn turn(&self, slot: i64) -> Option<&Turn> {
        if self.turns.is_empty() { None } else { self.turns.get(self.turn_index(slot)) }
    }

    /// The next slot after `slot` that needs a switch.
    pub fn next_change(&self, slot: i64) -> Option<i64> {
        let distance = i64::from(self.turn(slot)?.next_change);
        (distance > 0).then(|| slot + distance)
    }

    /// The state of a job in a slot.
    pub fn state(&self, job: usize, slot: i64) -> Disposition {
        match self.turn(slot) {
            Some(turn) if turn.run.binary_search(&(job as u16)).is_ok() => Disposition::Run,
            _ => self.jobs[job].otherwise,
        }
    }

    /// The jobs that run in a slot but not in every slot, ascending: the held part of the slot holds these.
    pub fn holds(&self, slot: i64) -> impl Iterator<Item = u16> {
        let run = self.turn(slot).map_or(&[][..], |turn| &turn.run);
        run.iter().copied().filter(|job| self.jobs[usize::from(*job)].otherwise != Disposition::Run)
    }

    /// The jobs that may fill CPUs that the running jobs of a slot leave idle, in their order. Does not allocate.
    pub fn fills(&self, slot: i64) -> impl Iterator<Item = u16> {
        let all = self.fill == Fill::All;
        let turn = self.turn(slot).map(|turn| (self.turn_index(slot), turn.pair));
        turn.into_iter()
            .flat_map(move |(k, pair)| self.fillers.after(k, pair, all).filter(move |job| !self.apart.bars(k, *job)))
    }
}

/// For each turn, finds the distance to the next one with differences.
fn find_changes(turns: &mut [Turn]) {
    let mut next = 0;
    // Twice round: the first pass is for what comes after the last turn.
    for k in (0..2 * turns.len()).rev() {
        let turn = &mut turns[k % turns.len()];
        turn.next_change = next;
        next = match next {
            _ if !(turn.enter.is_empty() && turn.leave.is_empty()) => 1,
            0 => 0,
            distance => distance + 1,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn prepared(otherwise: &[Disposition], turns: &[&[u16]]) -> Prepared<()> {
        Prepared::new(table(otherwise, turns), 1)
    }

    pub(super) fn entries(otherwise: &[Disposition]) -> Vec<Entry<()>> {
        otherwise.iter().map(|&otherwise| Entry { switch: (), weight: 100, otherwise }).collect()
    }

    fn table(otherwise: &[Disposition], turns: &[&[u16]]) -> Table<()> {
        Table {
            epoch_ns: 1000,
            slot_length_ns: 10,
            jobs: entries(otherwise),
            turns: turns.iter().map(|t| t.to_vec()).collect(),
            fill: Fill::All,
            apart: Apart::default(),
        }
    }

    #[test]
    fn turns_hold_their_differences() {
        let table = prepared(&[Disposition::Stop, Disposition::Background, Disposition::Run], &[&[0, 2], &[1], &[1]]);
        let show = |k: i64| (table.turn(k).unwrap().enter.to_vec(), table.turn(k).unwrap().leave.to_vec());
        assert_eq!(show(0), (vec![0], vec![1]));
        assert_eq!(show(1), (vec![1], vec![0]), "job 2 runs anyway");
        assert_eq!(show(2), (vec![], vec![]));
        assert_eq!(table.next_change(0), Some(1));
        assert_eq!(table.next_change(1), Some(3), "slot 2 changes nothing");
        assert_eq!(table.next_change(5), Some(6));
    }

    #[test]
    fn a_table_is_as_another_one_that_does_the_same_at_any_time() {
        let of = |otherwise, turns: &[&[u16]]| table(&[otherwise, Disposition::Stop], turns);
        let later = |table: Table<()>| Table { epoch_ns: 5, slot_length_ns: 7, ..table };
        let (one, two) = (of(Disposition::Stop, &[&[0]]), of(Disposition::Stop, &[&[0], &[1]]));
        assert!(one.is_as(&later(one.clone())), "nobody takes turns");
        assert!(two.is_as(&two.clone()));
        let moved = Table { epoch_ns: 1001, ..two.clone() };
        let slower = Table { slot_length_ns: 11, ..two.clone() };
        let paired = Table { fill: Fill::Pair, ..two.clone() };
        let mut heavier = two.clone();
        heavier.jobs[0].weight = 7;
        let others = [one, moved, slower, paired, heavier, of(Disposition::Run, &[&[0], &[1]])];
        assert!(others.iter().all(|other| !two.is_as(other) && !other.is_as(&two)));
    }

    #[test]
    fn states_follow_the_turns() {
        let table = prepared(&[Disposition::Stop, Disposition::Background], &[&[0], &[1]]);
        assert_eq!([table.state(0, 0), table.state(1, 0)], [Disposition::Run, Disposition::Background]);
        assert_eq!([table.state(0, 7), table.state(1, 7)], [Disposition::Stop, Disposition::Run]);
        assert_eq!(table.state(0, -2), Disposition::Run, "slots before the epoch count on");
    }

    fn fills(fill: Fill, weights: &[u32], turns: &[&[u16]]) -> Vec<Vec<u16>> {
        let mut table = table(&vec![Disposition::Background; weights.len()], turns);
        table.fill = fill;
        table.jobs.iter_mut().zip(weights).for_each(|(job, &weight)| job.weight = weight);
        let table = Prepared::new(table, 1);
        (0..turns.len()).map(|k| table.fills(k as i64).collect()).collect()
    }

    #[test]
    fn a_pair_is_filled_by_the_next_gang_alone() {
        assert_eq!(fills(Fill::Pair, &[100; 4], &[&[0], &[1], &[2, 3]]), [vec![1], vec![2, 3], vec![0]]);
        assert_eq!(fills(Fill::Pair, &[100; 3], &[&[0], &[0], &[1]]), [[1], [1], [0]], "the next other gang");
        assert_eq!(fills(Fill::Pair, &[100; 2], &[&[0]]), [[0; 0]], "nobody comes next");
    }

    #[test]
    fn else_all_fill_the_pair_first_then_by_weight() {
        assert_eq!(fills(Fill::All, &[100; 4], &[&[0], &[1], &[2]]), [[1, 2, 3], [2, 0, 3], [0, 1, 3]]);
        let weights = [100, 100, 50, 400];
        assert_eq!(fills(Fill::All, &weights, &[&[0], &[2], &[1], &[3]])[0], [2, 3, 1]);
    }

    #[test]
    fn stopped_and_running_ones_do_not_fill() {
        let table = prepared(&[Disposition::Stop, Disposition::Background, Disposition::Run], &[&[0], &[2]]);
        assert_eq!(table.fills(0).collect::<Vec<u16>>(), [1]);
        assert!(table.may_fill() && !prepared(&[Disposition::Stop], &[&[0], &[]]).may_fill());
    }

    #[test]
    fn one_turn_or_none_needs_no_switch() {
        assert_eq!(prepared(&[Disposition::Stop], &[&[0]]).next_change(0), None);
        assert_eq!(prepared(&[Disposition::Stop], &[]).next_change(0), None);
        assert_eq!(prepared(&[Disposition::Stop], &[&[0], &[0]]).next_change(5), None);
        assert_eq!(prepared(&[Disposition::Stop], &[]).state(0, 3), Disposition::Stop);
    }

    #[test]
    fn slots_and_boundaries_agree() {
        let table = prepared(&[], &[]);
        assert_eq!(table.slot_at(1000), 0);
        assert_eq!(table.slot_at(1009), 0);
        assert_eq!(table.slot_at(1010), 1);
        assert_eq!(table.slot_at(999), -1);
        assert_eq!(table.boundary_ns(-1), 990);
    }

    #[test]
    fn a_plan_is_compiled_for_the_jobs_that_are_here() {
        let mut planner = crate::Planner::new(crate::PlannerConfig {
            nodes: [crate::Node { id: crate::NodeId(0), cpus: 2 }].into(),
            slot_length_ns: 100_000_000,
            policy: crate::Policy::Gang,
            sharing: Sharing::Soft,
            packing: crate::Packing::FirstFit,
            shares: crate::Shares::default(),
        });
        for id in (1..=3).map(JobId) {
            let job = crate::Job { id, owner: 0, class: crate::Class::Batch, policy: None, cpus: 2, node: None };
            planner.handle(crate::Time(0), crate::PlannerInput::Submit(job)).unwrap();
        }
        planner.handle(crate::Time(0), crate::PlannerInput::Suspend(JobId(3))).unwrap();
        let here = || [1, 3, 9].map(|id| (JobId(id), id)).into();
        let states = |table: &Table<u64>| table.jobs.iter().map(|job| (job.switch, job.otherwise)).collect::<Vec<_>>();
        let (run, stop) = (Disposition::Run, Disposition::Stop);
        let (table, flaw) = Table::compile(planner.plan(), here(), true, |_| stop);
        assert_eq!(flaw, None);
        assert_eq!(
            states(&table),
            [(1, Disposition::Background), (3, stop), (9, stop)],
            "job 2 is not here, 9 not planned"
        );
        assert_eq!(table.turns, [vec![0], vec![]], "job 2 has its turn elsewhere");
        let (table, _) = Table::compile(planner.plan(), here(), false, |_| run);
        assert_eq!((states(&table), table.turns.len()), (vec![(1, run), (3, stop), (9, run)], 0), "without slots");
    }

    /// Two gangs that take turns, and a job that a user has suspended.
    fn planned() -> Plan {
        let mut planner = crate::Planner::new(crate::PlannerConfig {
            nodes: [crate::Node { id: crate::NodeId(0), cpus: 2 }].into(),
            slot_length_ns: 100_000_000,
            policy: crate::Policy::Gang,
            sharing: Sharing::Strict,
            packing: crate::Packing::FirstFit,
            shares: crate::Shares::default(),
        });
        for id in (1..=3).map(JobId) {
            let job = crate::Job { id, owner: 0, class: crate::Class::Batch, policy: None, cpus: 2, node: None };
            planner.handle(crate::Time(0), crate::PlannerInput::Submit(job)).unwrap();
        }
        planner.handle(crate::Time(0), crate::PlannerInput::Suspend(JobId(3))).unwrap();
        Plan::clone(planner.plan())
    }

    #[test]
    fn a_plan_with_two_gangs_on_one_cpu_gives_a_table_without_turns() {
        let mut plan = planned();
        plan.turns[0].run = vec![JobId(1), JobId(2)];
        let (table, flaw) =
            Table::compile(&plan, [1, 2, 3].map(|id| (JobId(id), ())).into(), true, |_| Disposition::Run);
        assert_eq!((flaw, table.turns.len()), (Some(Flaw::TooManyCpus { at: 0 }), 0));
        let states: Vec<Disposition> = table.jobs.iter().map(|job| job.otherwise).collect();
        assert_eq!(
            states,
            [Disposition::Run, Disposition::Run, Disposition::Stop],
            "what a user stopped stays stopped"
        );
    }

    #[test]
    fn a_table_that_says_something_else_than_the_plan_is_refused() {
        let (plan, ids) = (planned(), [1, 2, 3].map(JobId));
        let there = || ids.map(|id| (id, ())).into();
        let check = |change: fn(&mut Table<()>)| {
            let (mut table, flaw) = Table::compile(&plan, there(), true, |_| Disposition::Run);
            assert_eq!(flaw, None);
            change(&mut table);
            table.check(&plan, &ids, ids.len(), true)
        };
        assert_eq!(check(|_| ()), Ok(()));
        assert_eq!(check(|table| table.jobs.truncate(2)), Err(Flaw::Jobs { told: 2, there: 3 }), "nobody tells it");
        assert_eq!(check(|table| table.turns.truncate(1)), Err(Flaw::Turn { at: 1 }), "a part of the cycle");
        assert_eq!(check(|table| table.turns[1] = vec![0]), Err(Flaw::Turn { at: 1 }), "another gang");
        assert_eq!(check(|table| table.turns[1].clear()), Err(Flaw::Turn { at: 1 }), "nobody");
        assert_eq!(check(|table| table.turns[0].push(9)), Err(Flaw::Turn { at: 0 }), "one that there is not");
    }

    /// Regression, found by this check: a 16-bit index referred to job 0 instead of job 65,536, and job 0 ran in the other's slots.
    #[test]
    fn more_jobs_than_can_be_named_are_left_to_linux() {
        let many = 65_537;
        let mut plan = planned();
        let job = plan.jobs[&JobId(1)].clone();
        plan.jobs = (0..many).map(|id| (JobId(id), job.clone())).collect();
        plan.turns = vec![crate::Turn { row: 0, run: vec![JobId(many - 1)] }];
        let (table, flaw) =
            Table::compile(&plan, (0..many).map(|id| (JobId(id), ())).collect(), true, |_| Disposition::Run);
        assert_eq!((flaw, table.turns.len()), (Some(Flaw::Turn { at: 0 }), 0));
    }
}
