//! Invariants of every plan of a cluster, and of what a node makes of it; see `crate::sound` for those of one node's plan.
//!
//! Rule. The plan is a function of the state, so a member that reads a state checks the whole plan that follows from it. The member that
//! plans changes a few rows at a time, and a large cluster has many rows: it only checks those that are not the same objects as in the
//! previous plan, which was checked. Debug builds and the simulation check everything.

use super::layout::Layout;
use super::plan::{LINEUPS_MAX, Plan, PlannedJob, PlannedRow};
use super::row::Bits;
use super::state::Stage;
use crate::id::{JobId, NodeId};
use crate::job::Policy;
use crate::plan::{Plan as NodePlan, Standing};
use crate::sound::Flaw;
use alloc::collections::BTreeSet;
use alloc::sync::Arc;

impl Plan {
    /// Checks that no two gangs have the same CPU in a slot, and that gangs and rows agree with each other.
    ///
    /// # Errors
    /// The first violated invariant.
    pub fn check(&self) -> Result<(), Flaw> {
        for (id, job) in &self.jobs {
            self.has_its_cells(job).then_some(()).ok_or(Flaw::Cells(*id))?;
        }
        self.check_rows(&BTreeSet::new())
    }

    /// Checks that this plan comes after `before`, which was checked, and checks its new rows; in debug builds all of it.
    pub(super) fn check_after(&self, before: &Plan) -> Result<(), Flaw> {
        if self.generation <= before.generation {
            return Err(Flaw::Order(self.generation));
        }
        if cfg!(debug_assertions) || self.layout != before.layout {
            return self.check();
        }
        self.check_new(before)
    }

    /// Checks only new rows: a gang with other cells than before is always in a row that was made again.
    fn check_new(&self, before: &Plan) -> Result<(), Flaw> {
        self.check_rows(&before.rows.iter().map(Arc::as_ptr).collect())
    }

    fn check_rows(&self, known: &BTreeSet<*const PlannedRow>) -> Result<(), Flaw> {
        let mut used = Bits::none(self.layout.columns());
        for (at, row) in (0..).zip(&self.rows) {
            if !known.contains(&Arc::as_ptr(row)) {
                self.check_row(at, row, &mut used)?;
            }
        }
        self.check_paced(&mut used)?;
        self.check_cycle()
    }

    /// Where gangs have shares of the slots: no gang has more than its share, and no two gangs have the same CPU.
    fn check_paced(&self, used: &mut Bits) -> Result<(), Flaw> {
        if self.turns.is_empty() || !self.paced.len().is_multiple_of(self.turns.len()) {
            return if self.paced.is_empty() { Ok(()) } else { Err(Flaw::Turn { at: 0 }) };
        }
        for (at, run) in (0..).zip(self.paced.iter()) {
            self.check_run(at, run, used)?;
        }
        for (id, share) in self.jobs.iter().filter_map(|(id, job)| Some((*id, job.slot_share?))) {
            let has = self.paced.iter().filter(|run| run.binary_search(&id).is_ok()).count();
            if has > share.of(self.paced.len()) {
                return Err(Flaw::OverShare(id));
            }
        }
        Ok(())
    }

    fn has_its_cells(&self, job: &PlannedJob) -> bool {
        let Some((row, spans)) = &job.home else { return job.turns_16 == 0 };
        let columns = spans.last().map_or(0, |last| last.end());
        (job.policy, job.standing, job.stage) == (Policy::Gang, Standing::Scheduled, Stage::Ready)
            && (*row as usize) + 1 < self.rows.len()
            && columns <= self.layout.columns()
            && spans.windows(2).all(|pair| pair[0].end() <= pair[1].first)
            && are_of(&self.layout, spans, &job.parts)
    }

    fn check_row(&self, at: u32, row: &PlannedRow, used: &mut Bits) -> Result<(), Flaw> {
        let lineups = row.lineups.len();
        if !lineups.is_power_of_two() || lineups > LINEUPS_MAX as usize {
            return Err(Flaw::Turn { at });
        }
        let home = |id: &JobId| self.jobs.get(id).and_then(|job| job.home.as_ref()).ok_or(Flaw::NotGiven(*id));
        for id in &row.residents {
            let is_resident = home(id)?.0 == at && self.has_its_cells(&self.jobs[id]);
            is_resident.then_some(()).ok_or(Flaw::Cells(*id))?;
        }
        row.lineups.iter().try_for_each(|run| self.check_run(at, run, used))
    }

    fn check_run(&self, at: u32, run: &[JobId], used: &mut Bits) -> Result<(), Flaw> {
        let home = |id: &JobId| self.jobs.get(id).and_then(|job| job.home.as_ref()).ok_or(Flaw::NotGiven(*id));
        if let Some(pair) = run.windows(2).find(|pair| pair[0] >= pair[1]) {
            return Err(Flaw::NotGiven(pair[1]));
        }
        used.clear();
        for (nth, id) in run.iter().enumerate() {
            let (_, spans) = home(id)?;
            if used.meets(spans) {
                let shares = |other: &&JobId| self.jobs[other].home.as_ref().is_some_and(|home| meet(&home.1, spans));
                let first = run[..nth].iter().find(shares).copied().unwrap_or(*id);
                return Err(Flaw::TwoOnOneCpu { at, first, second: *id });
            }
            used.add(spans);
        }
        Ok(())
    }

    /// Every turn belongs to a row, and each row has the number of turns that the plan states.
    fn check_cycle(&self) -> Result<(), Flaw> {
        let mut had = alloc::vec![0_u32; self.rows.len()];
        for (at, turn) in (0..).zip(self.turns.iter()) {
            let had = had.get_mut(turn.row as usize).ok_or(Flaw::Turn { at })?;
            (turn.nth == *had).then_some(()).ok_or(Flaw::Turn { at })?;
            *had += 1;
        }
        match had == self.row_turns {
            true => Ok(()),
            false => Err(Flaw::Turn { at: had.len() as u32 }),
        }
    }
}

/// Whether the cells of a job have as many CPUs on each node as the job has there.
fn are_of(layout: &Layout, spans: &[super::Span], parts: &[super::Part]) -> bool {
    let cpus = layout.cpus_of(spans);
    let is = |((at, cpus), part): (&(u32, u32), &super::Part)| {
        layout.nodes()[*at as usize].id == part.node && *cpus == part.cpus
    };
    cpus.len() == parts.len() && cpus.iter().zip(parts).all(is)
}

fn meet(a: &[super::Span], b: &[super::Span]) -> bool {
    a.iter().any(|a| b.iter().any(|b| a.first < b.end() && b.first < a.end()))
}

/// Whether a node's plan runs gangs that span nodes as the cluster's plan does, and gives only the rest to its own.
pub(super) fn check_filled(plan: &NodePlan, cluster: &Plan, node: NodeId) -> Result<(), Flaw> {
    let is_spanning = |id: &&JobId| cluster.jobs[id].home.is_some() && cluster.part(**id, node).is_some();
    let spanning: BTreeSet<JobId> = cluster.jobs.keys().filter(is_spanning).copied().collect();
    let Some(first) = spanning.first() else { return plan.check() };
    plan.check_with(|_, id, _| spanning.contains(&id))?;
    let laid = cluster.layout.index_of(node).ok_or(Flaw::NotAsTheCluster(*first))?;
    let laid = cluster.layout.nodes()[laid].span;
    for id in &spanning {
        let given = cluster.jobs[id].home.as_ref().map(|(row, spans)| {
            let columns = spans.iter().flat_map(|span| span.first.max(laid.first)..span.end().min(laid.end()));
            (*row, columns.map(|column| column - laid.first).collect())
        });
        let has = plan.jobs.get(id).is_some_and(|job| job.home == given);
        has.then_some(()).ok_or(Flaw::NotAsTheCluster(*id))?;
    }
    for slot in cluster.from_slot..cluster.from_slot + plan.turns.len() as u64 {
        let runs = plan.turn(slot).map_or(&[][..], |turn| &turn.run).iter().filter(|id| spanning.contains(id));
        let given = cluster.run(slot).iter().filter(|id| spanning.contains(id));
        let (mut runs, mut given) = (runs.copied(), given.copied());
        loop {
            match (runs.next(), given.next()) {
                (None, None) => break,
                (a, b) if a == b => (),
                (a, b) => return Err(Flaw::NotAsTheCluster(a.or(b).unwrap_or(*first))),
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{Input, JobSpec, Planner, Span, Want, fill, two_nodes};
    use crate::{Class, Node, Packing, Shares, Sharing, Time};
    use alloc::vec;
    use alloc::vec::Vec;

    fn planner() -> Planner {
        let mut planner = two_nodes(2);
        // Two side by side, and one in a row of its own.
        for (id, cpus) in [(1, 1), (2, 1), (3, 2)] {
            submit(&mut planner, id, cpus);
        }
        planner
    }

    fn submit(planner: &mut Planner, id: u64, cpus: u32) {
        let want = |node| super::super::NodeWant { node, cpus, cpus_min: 1, memory_bytes: 0, disk_bytes: 0 };
        let want = Want::PerNode([0, 1].map(NodeId).map(want).to_vec());
        let spec = JobSpec::new(JobId(id), Class::Batch, want);
        planner.handle(Time(0), Time(0), Input::Submit(spec)).unwrap();
    }

    fn broken(change: impl Fn(&mut Plan)) -> Result<(), Flaw> {
        let plan = Plan::clone(planner().plan());
        assert_eq!(plan.check(), Ok(()), "it is sound as it was planned");
        let mut next = Plan { generation: plan.generation + 1, ..plan.clone() };
        change(&mut next);
        let is_row_new = next.rows.iter().zip(&plan.rows).any(|(new, old)| !Arc::ptr_eq(new, old));
        if is_row_new {
            assert_eq!(next.check_new(&plan), next.check(), "rows that are new are looked at");
        }
        next.check_after(&plan)
    }

    fn home(plan: &mut Plan, id: u64) -> &mut (u32, Arc<[Span]>) {
        plan.jobs.get_mut(&JobId(id)).unwrap().home.as_mut().unwrap()
    }

    fn row(plan: &mut Plan, at: usize, change: impl Fn(&mut PlannedRow)) {
        let mut row = PlannedRow::clone(&plan.rows[at]);
        change(&mut row);
        plan.rows[at] = Arc::new(row);
    }

    fn spans(spans: &[(u32, u32)]) -> Arc<[Span]> {
        spans.iter().map(|(first, count)| Span { first: *first, count: *count }).collect()
    }

    #[test]
    fn two_gangs_on_one_cpu_are_refused() {
        let shared = |at, first, second| Err(Flaw::TwoOnOneCpu { at, first: JobId(first), second: JobId(second) });
        assert_eq!(broken(|plan| row(plan, 0, |row| row.lineups[0].push(JobId(3)))), shared(0, 1, 3));
        assert_eq!(broken(|plan| home(plan, 2).1 = Arc::clone(&home(plan, 1).1)), shared(0, 1, 2));
    }

    #[test]
    fn cells_that_are_not_the_gangs_own_are_refused() {
        let cells = Err(Flaw::Cells(JobId(3)));
        assert_eq!(broken(|plan| home(plan, 3).1 = spans(&[(0, 3)])), cells, "too few");
        assert_eq!(broken(|plan| home(plan, 3).1 = spans(&[(0, 2), (3, 2)])), cells, "beyond the cluster");
        assert_eq!(broken(|plan| home(plan, 3).1 = spans(&[(0, 3), (2, 1)])), cells, "one of them twice");
        assert_eq!(broken(|plan| home(plan, 3).0 = 2), cells, "in the row of open turns");
        assert_eq!(broken(|plan| plan.jobs.get_mut(&JobId(3)).unwrap().home = None), cells, "turns, and no cells");
        assert_eq!(broken(|plan| plan.jobs.get_mut(&JobId(3)).unwrap().stage = Stage::Clearing), cells);
    }

    #[test]
    fn turns_of_nobody_are_refused() {
        assert_eq!(broken(|plan| row(plan, 0, |row| row.lineups[0].push(JobId(9)))), Err(Flaw::NotGiven(JobId(9))));
        assert_eq!(broken(|plan| row(plan, 0, |row| row.lineups[0].push(JobId(2)))), Err(Flaw::NotGiven(JobId(2))));
        assert_eq!(broken(|plan| row(plan, 0, |row| row.lineups = vec![vec![]; 3])), Err(Flaw::Turn { at: 0 }));
        assert_eq!(broken(|plan| plan.row_turns[0] += 1), Err(Flaw::Turn { at: 3 }));
        assert_eq!(
            broken(|plan| plan.turns = [super::super::Turn { row: 7, nth: 0 }].into()),
            Err(Flaw::Turn { at: 0 })
        );
    }

    #[test]
    fn a_plan_comes_after_the_one_before_it() {
        let plan = Plan::clone(planner().plan());
        assert_eq!(plan.check_after(&plan), Err(Flaw::Order(plan.generation)));
    }

    #[test]
    fn a_planner_that_is_wrong_publishes_nothing_and_its_state_is_refused() {
        let mut planner = planner();
        while planner.poll_action().is_some() {}
        let before = Arc::clone(planner.plan());
        // Gives the first gang the second one's cells in what the planner keeps.
        let wrong = planner.gangs[&JobId(2)].spans.clone();
        planner.evict(JobId(1));
        planner.put(JobId(1), 0, wrong);
        submit(&mut planner, 4, 1);
        let said: Vec<_> = core::iter::from_fn(|| planner.poll_action()).collect();
        let flaw = Flaw::TwoOnOneCpu { at: 0, first: JobId(1), second: JobId(2) };
        assert!(said.contains(&super::super::Action::Unsound(flaw)), "{said:?}");
        assert_eq!(planner.plan(), &before);
        assert!(Planner::new(planner.state().clone()).is_err());
    }

    /// The cells are possible, but the job may not have any.
    #[test]
    fn a_state_in_which_a_job_has_slots_that_does_not_run_is_refused() {
        let mut state = planner().state().clone();
        state.jobs.get_mut(&JobId(1)).unwrap().standing = Standing::Suspended;
        let refused = Planner::new(state).map(drop).unwrap_err();
        assert_eq!(refused, crate::cluster::BadState::Plan(Flaw::Cells(JobId(1))));
    }

    fn own() -> crate::Planner {
        let mut own = crate::Planner::new(crate::PlannerConfig {
            nodes: vec![Node { id: NodeId(0), cpus: 2 }],
            slot_length_ns: 100_000_000,
            policy: Policy::Gang,
            sharing: Sharing::Soft,
            packing: Packing::FirstFit,
            shares: Shares::default(),
        });
        for (id, cpus) in [(8, 1), (9, 2)] {
            let job = crate::Job { id: JobId(id), owner: 0, class: Class::Batch, policy: None, cpus, node: None };
            own.handle(Time(0), crate::PlannerInput::Submit(job)).unwrap();
        }
        own
    }

    fn filled() -> NodePlan {
        let (plan, flaw) = fill(planner().plan(), NodeId(0), own().plan(), &Shares::default(), &BTreeSet::new());
        assert_eq!(flaw, None);
        plan
    }

    #[test]
    fn a_node_gives_away_no_cpu_of_a_gang_that_spans_nodes() {
        let cluster = planner();
        let check = |change: &dyn Fn(&mut NodePlan)| {
            let mut plan = filled();
            change(&mut plan);
            check_filled(&plan, cluster.plan(), NodeId(0))
        };
        assert_eq!(check(&|_| ()), Ok(()));
        let turn = |plan: &NodePlan, id| plan.turns.iter().position(|turn| turn.run.contains(&JobId(id))).unwrap();
        let beside = |plan: &mut NodePlan| {
            let at = turn(plan, 3);
            plan.turns[at].run = vec![JobId(3), JobId(8)];
        };
        assert!(matches!(check(&beside), Err(Flaw::TooManyCpus { .. })));
        let instead = |plan: &mut NodePlan| {
            let at = turn(plan, 3);
            plan.turns[at].run = vec![JobId(9)];
        };
        assert_eq!(check(&instead), Err(Flaw::NotAsTheCluster(JobId(3))));
        let more = |plan: &mut NodePlan| {
            let at = plan.turns.iter().position(|turn| !turn.run.contains(&JobId(3))).unwrap();
            plan.turns[at].run = vec![JobId(3)];
        };
        assert!(matches!(check(&more), Err(Flaw::NotAsTheCluster(_))));
        let elsewhere = |plan: &mut NodePlan| {
            [1, 2].into_iter().for_each(|id| plan.matrix.remove(JobId(id)));
            for (id, columns) in [(1, vec![1]), (2, vec![0])] {
                plan.matrix.put(0, &columns, JobId(id));
                plan.jobs.get_mut(&JobId(id)).unwrap().home = Some((0, columns));
            }
        };
        assert_eq!(check(&elsewhere), Err(Flaw::NotAsTheCluster(JobId(1))));
    }

    #[test]
    fn what_a_node_cannot_do_has_no_slots_there() {
        let mut cluster = Plan::clone(planner().plan());
        // In a plan that was not checked, gang 1 runs beside gang 3, which has all CPUs.
        row(&mut cluster, 1, |row| row.lineups[0].insert(0, JobId(1)));
        let (plan, flaw) = fill(&cluster, NodeId(0), own().plan(), &Shares::default(), &BTreeSet::new());
        assert!(matches!(flaw, Some(Flaw::TooManyCpus { .. })), "{flaw:?}");
        assert!(plan.turns.is_empty() && plan.dispositions(0).all(|(_, to)| to == crate::Disposition::Run));
    }
}
