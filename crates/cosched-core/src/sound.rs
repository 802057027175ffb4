//! Invariants of every plan of a node, checked where it is published, filled or compiled.
//!
//! Problem: a plan that contradicts itself freezes the wrong processes, or lets two gangs spin against each other on a CPU. Rule.
//! The code that makes a plan checks it afterwards, in release builds too; an unsound plan is not run: the host gets the [`Flaw`],
//! and the jobs have no slots until the next plan, so that Linux schedules them. It never aborts, because the daemon has other
//! jobs. A check takes time proportional to the plan's size.

use crate::id::JobId;
use crate::job::Policy;
use crate::plan::{Plan, PlannedJob, Standing, Turn};
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

/// How a plan contradicts itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// The number of a gang's cells is not that of its CPUs, or they lie beyond its nodes, or are not its own in the matrix.
    Cells(JobId),
    /// Two gangs have the same CPU in one slot.
    TwoOnOneCpu {
        /// The slot's index in the cycle, or the row in a cluster's plan.
        at: u32,
        /// The first job on the CPU.
        first: JobId,
        /// The other job on the CPU.
        second: JobId,
    },
    /// Gangs have more CPUs of a node than it has.
    TooManyCpus {
        /// The slot's index in the cycle.
        at: u32,
    },
    /// A slot lists a job that has no cells, or lists one twice.
    NotGiven(JobId),
    /// A gang that spans nodes has other slots or cells on this node than in the cluster's plan.
    NotAsTheCluster(JobId),
    /// A job with a share of the slots has more slots than that.
    OverShare(JobId),
    /// A turn is of a row that does not exist, or a cycle is not a whole number of line-ups.
    Turn {
        /// The turn's index in the cycle, or the row.
        at: u32,
    },
    /// The generation is not above the last one's, or the plan takes effect too early.
    Order(u64),
    /// A job has no disposition, or a job that does not exist has one.
    Jobs {
        /// The number of jobs with a disposition.
        told: usize,
        /// The number of jobs.
        there: usize,
    },
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Flaw::Cells(job) => write!(f, "the cells of job {job} are not those that it needs"),
            Flaw::TwoOnOneCpu { at, first, second } => {
                write!(f, "jobs {first} and {second} have the same CPU in slot {at} of the cycle")
            }
            Flaw::TooManyCpus { at } => {
                write!(f, "in slot {at} of the cycle gangs have more CPUs of a node than it has")
            }
            Flaw::NotGiven(job) => write!(f, "job {job} has a slot without cells, or the same slot twice"),
            Flaw::NotAsTheCluster(job) => write!(f, "job {job} has other slots here than in the cluster's plan"),
            Flaw::OverShare(job) => write!(f, "job {job} has more slots than its share"),
            Flaw::Turn { at } => {
                write!(f, "turn {at} of the cycle is of a row that does not exist, or rows are uneven")
            }
            Flaw::Order(generation) => write!(f, "plan {generation} does not follow the one before it"),
            Flaw::Jobs { told, there } => write!(f, "the plan has entries for {told} jobs, and there are {there}"),
        }
    }
}

impl core::error::Error for Flaw {}

/// A gang's row and columns.
type Home = (u32, Vec<u32>);

const BITS: usize = u64::BITS as usize;

impl Plan {
    /// Checks that no two gangs have the same CPU in a slot, and that everything about a gang agrees.
    ///
    /// # Errors
    /// The first violated invariant.
    pub fn check(&self) -> Result<(), Flaw> {
        // Where columns only count CPUs, a single-CPU job fills any free column of its node.
        let has_places = self.matrix.has_places();
        self.check_with(|turn, _, (row, columns)| has_places || columns.len() > 1 || *row == turn.row)
    }

    /// Like `check`, and checks that the plan comes after `before`.
    pub(crate) fn check_after(&self, before: &Plan) -> Result<(), Flaw> {
        match self.generation > before.generation {
            true => self.check(),
            false => Err(Flaw::Order(self.generation)),
        }
    }

    /// Gangs for which `is_tied` is true must have their own cells in a turn, others any free ones of their node.
    pub(crate) fn check_with(&self, is_tied: impl Fn(&Turn, JobId, &Home) -> bool) -> Result<(), Flaw> {
        let mut gangs = Gangs::new(self)?;
        let mut last: Vec<&[JobId]> = vec![&[]; self.matrix.rows().len()];
        for (at, turn) in (0..).zip(&self.turns) {
            let last = last.get_mut(turn.row as usize).ok_or(Flaw::Turn { at })?;
            // A row without guests in its free cells has the same jobs in each of its turns.
            if *last != turn.run {
                gangs.check(at, turn, &is_tied)?;
                *last = &turn.run;
            }
        }
        self.check_shares()
    }

    fn check_shares(&self) -> Result<(), Flaw> {
        for (id, share) in self.jobs.iter().filter_map(|(id, job)| Some((*id, job.slot_share?))) {
            let has = self.turns.iter().filter(|turn| turn.run.binary_search(&id).is_ok()).count();
            if has > share.of(self.turns.len()) {
                return Err(Flaw::OverShare(id));
            }
        }
        Ok(())
    }

    /// Leaves all jobs to the operating system, except those that are stopped for another reason than slots.
    pub(crate) fn drop_slots(&mut self) {
        self.turns.clear();
        self.jobs.values_mut().for_each(|job| (job.policy, job.turns, job.home) = (Policy::Local, 0, None));
    }
}

/// A gang whose cells are its own.
struct Gang<'a> {
    id: JobId,
    /// Its cells.
    cpus: u32,
    /// The index of its node.
    node: usize,
    home: &'a Home,
}

/// All gangs by id, with a bit for each of their columns: there are far more turns than gangs.
struct Gangs<'a> {
    gangs: Vec<Gang<'a>>,
    bits: Vec<u64>,
    /// The number of words that the columns take.
    words: usize,
    /// The number of CPUs of each node.
    has: Vec<u32>,
    left: Vec<u32>,
    taken: Vec<u64>,
}

impl Gangs<'_> {
    fn new(plan: &Plan) -> Result<Gangs<'_>, Flaw> {
        let columns = plan.matrix.columns();
        let words = columns.len().div_ceil(BITS);
        let (mut node_of, mut has): (Vec<usize>, Vec<u32>) = (Vec::new(), Vec::new());
        for (at, column) in columns.iter().enumerate() {
            if at == 0 || columns[at - 1].node != column.node {
                has.push(0);
            }
            node_of.push(has.len() - 1);
            has[node_of[at]] += 1;
        }
        let (left, taken) = (has.clone(), vec![0; words]);
        let mut all = Gangs { gangs: Vec::new(), bits: Vec::new(), words, has, left, taken };
        for (id, job) in plan.jobs.iter().filter(|(_, job)| job.home.is_some() || job.turns > 0) {
            let gang = all.add(plan, *id, job, &node_of).ok_or(Flaw::Cells(*id))?;
            all.gangs.push(gang);
        }
        Ok(all)
    }

    /// A gang, if it has the right number of cells, and they are its own and on one node.
    fn add<'a>(&mut self, plan: &'a Plan, id: JobId, job: &'a PlannedJob, node_of: &[usize]) -> Option<Gang<'a>> {
        let home = job.home.as_ref()?;
        let cells = plan.matrix.rows().get(home.0 as usize)?.cells();
        let node = *node_of.get(*home.1.first()? as usize)?;
        let bits = self.bits.len();
        self.bits.resize(bits + self.words, 0);
        let mut next = 0;
        for column in &home.1 {
            let at = *column as usize;
            if at < next || node_of.get(at) != Some(&node) || cells[at] != Some(id) {
                return None;
            }
            self.bits[bits + at / BITS] |= 1 << (at % BITS);
            next = at + 1;
        }
        let is_own = |on: &[u32]| on.iter().all(|column| home.1.binary_search(column).is_ok());
        let width = match &job.alone_on {
            Some(on) if !is_own(on) => return None,
            on => on.as_ref().map_or(home.1.len(), Vec::len),
        };
        let is_gang = (job.standing, job.policy) == (Standing::Scheduled, Policy::Gang);
        (is_gang && width == job.cpus as usize).then_some(Gang { id, cpus: home.1.len() as u32, node, home })
    }

    fn check(&mut self, at: u32, turn: &Turn, is_tied: impl Fn(&Turn, JobId, &Home) -> bool) -> Result<(), Flaw> {
        self.left.copy_from_slice(&self.has);
        self.taken.fill(0);
        let mut before = None;
        for (nth, id) in turn.run.iter().enumerate() {
            let found = self.gangs.binary_search_by_key(id, |gang| gang.id).map_err(|_| Flaw::NotGiven(*id))?;
            if before.replace(found).is_some_and(|before| before >= found) {
                return Err(Flaw::NotGiven(*id));
            }
            let Gang { cpus, node, home, .. } = self.gangs[found];
            self.left[node] = self.left[node].checked_sub(cpus).ok_or(Flaw::TooManyCpus { at })?;
            if !is_tied(turn, *id, home) {
                continue;
            }
            let bits = &self.bits[found * self.words..][..self.words];
            if self.taken.iter().zip(bits).any(|(taken, bits)| taken & bits != 0) {
                let first = self.first_with(&turn.run[..nth], bits).unwrap_or(*id);
                return Err(Flaw::TwoOnOneCpu { at, first, second: *id });
            }
            self.taken.iter_mut().zip(bits).for_each(|(taken, bits)| *taken |= bits);
        }
        Ok(())
    }

    fn first_with(&self, run: &[JobId], bits: &[u64]) -> Option<JobId> {
        let has = |id: &&JobId| {
            let found = self.gangs.binary_search_by_key(*id, |gang| gang.id);
            found.is_ok_and(|at| self.bits[at * self.words..].iter().zip(bits).any(|(a, b)| a & b != 0))
        };
        run.iter().find(has).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Class, Job, Node, NodeId, Packing, Planner, PlannerConfig, PlannerInput, Shares, Sharing, Time};

    /// Jobs 1 and 2 side by side, 3 and 4 in rows of their own, and 5, which fills free cells.
    fn plan() -> Plan {
        let mut planner = Planner::new(PlannerConfig {
            nodes: vec![Node { id: NodeId(0), cpus: 4 }],
            slot_length_ns: 100_000_000,
            policy: Policy::Gang,
            sharing: Sharing::Soft,
            packing: Packing::FirstFit,
            shares: Shares::default(),
        });
        for (id, cpus) in [(1, 2), (2, 2), (3, 3), (4, 4), (5, 1)] {
            let job = Job { id: JobId(id), owner: 0, class: Class::Batch, policy: None, cpus, node: None };
            planner.handle(Time(0), PlannerInput::Submit(job)).unwrap();
        }
        Plan::clone(planner.plan())
    }

    fn broken(change: impl FnOnce(&mut Plan)) -> Result<(), Flaw> {
        let mut plan = plan();
        assert_eq!(plan.check(), Ok(()), "it is sound as it was planned");
        change(&mut plan);
        plan.check()
    }

    fn home(plan: &mut Plan, id: u64) -> &mut (u32, Vec<u32>) {
        plan.jobs.get_mut(&JobId(id)).unwrap().home.as_mut().unwrap()
    }

    #[test]
    fn two_gangs_on_one_cpu_are_refused() {
        let both = |plan: &mut Plan| {
            let turn = plan.turns.iter().position(|turn| turn.run.contains(&JobId(3))).unwrap();
            plan.turns[turn].run = vec![JobId(2), JobId(3)];
        };
        assert!(matches!(broken(both), Err(Flaw::TooManyCpus { .. })));
        // There are as many CPUs as they want, but both want the same ones.
        let same = |plan: &mut Plan| {
            plan.matrix.remove(JobId(2));
            plan.matrix.add_rows(4);
            plan.matrix.put(3, &[0, 1], JobId(2));
            *home(plan, 2) = (3, vec![0, 1]);
        };
        assert!(matches!(broken(same), Err(Flaw::TwoOnOneCpu { first: JobId(1), second: JobId(2), .. })));
    }

    #[test]
    fn cells_that_are_not_the_gangs_own_are_refused() {
        let cells = Err(Flaw::Cells(JobId(1)));
        assert_eq!(broken(|plan| home(plan, 1).1 = vec![0]), cells, "too few");
        assert_eq!(broken(|plan| home(plan, 1).1 = vec![0, 0]), cells, "one of them twice");
        assert_eq!(broken(|plan| home(plan, 1).1 = vec![1, 2]), cells, "another's");
        assert_eq!(broken(|plan| home(plan, 1).1 = vec![3, 4]), cells, "beyond the node");
        assert_eq!(broken(|plan| home(plan, 1).0 = 9), cells, "in no row");
        assert_eq!(broken(|plan| plan.jobs.get_mut(&JobId(1)).unwrap().home = None), cells, "turns, and no cells");
        let asleep = |plan: &mut Plan| plan.jobs.get_mut(&JobId(1)).unwrap().standing = Standing::Asleep;
        assert_eq!(broken(asleep), cells, "it is to have none");
    }

    #[test]
    fn slots_of_nobody_are_refused() {
        assert_eq!(broken(|plan| plan.turns[0].run.push(JobId(9))), Err(Flaw::NotGiven(JobId(9))));
        let twice = |plan: &mut Plan| {
            let first = plan.turns[0].run[0];
            plan.turns[0].run.insert(0, first);
        };
        let reverse = |plan: &mut Plan| {
            let two = plan.turns.iter_mut().find(|turn| turn.run.len() > 1).unwrap();
            two.run.reverse();
        };
        assert!(matches!(broken(reverse), Err(Flaw::NotGiven(_))), "out of order");
        assert!(matches!(broken(twice), Err(Flaw::NotGiven(_))));
        assert_eq!(broken(|plan| plan.turns[1].row = 9), Err(Flaw::Turn { at: 1 }));
    }

    #[test]
    fn a_plan_comes_after_the_one_before_it() {
        let before = plan();
        let next = Plan { generation: before.generation + 1, ..before.clone() };
        assert_eq!(
            (next.check_after(&before), before.check_after(&next)),
            (Ok(()), Err(Flaw::Order(before.generation)))
        );
        assert_eq!(before.check_after(&before), Err(Flaw::Order(before.generation)));
    }

    #[test]
    fn without_slots_everything_is_sound() {
        let mut plan = plan();
        *home(&mut plan, 1) = (7, vec![7]);
        plan.drop_slots();
        assert_eq!((plan.check(), plan.turns.len()), (Ok(()), 0));
    }
}
