//! The planner: jobs in, plans out.
//!
//! It keeps the matrix, so that a new plan does not move jobs unnecessarily, and publishes a plan whenever its content has
//! changed. A refused input changes nothing.

mod build;
mod phase;

use crate::class::{Class, Shares};
use crate::id::{JobId, NodeId};
use crate::job::{Job, Node, Packing, Policy, Sharing};
use crate::matrix::Matrix;
use crate::plan::{Plan, Standing};
use crate::policy::SLOT_LENGTH_NS;
use crate::policy::share::SlotShare;
use crate::reason::Reason;
use crate::sound::Flaw;
use crate::time::Time;
use crate::topology::Topology;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

/// The parameters of a planner.
#[derive(Clone, Debug)]
pub struct PlannerConfig {
    /// The nodes; at least one, with at least one CPU.
    pub nodes: Vec<Node>,
    /// The length of a slot, in [`SLOT_LENGTH_NS`].
    pub slot_length_ns: u64,
    /// The policy of jobs that have none of their own.
    pub policy: Policy,
    /// What gangs that are not current may do.
    pub sharing: Sharing,
    /// How new gangs are placed.
    pub packing: Packing,
    /// The classes' shares.
    pub shares: Shares,
}

/// The planner's inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlannerInput {
    /// A job arrives.
    Submit(Job),
    /// Its last process has ended.
    End(JobId),
    /// A user suspends it.
    Suspend(JobId),
    /// A user resumes it.
    Resume(JobId),
    /// The job's new class.
    Class(JobId, Class),
    /// The number of CPUs that it uses at the same time from now on.
    Cpus(JobId, u32),
    /// Its new policy; `None`: it follows the machine's.
    JobPolicy(JobId, Option<Policy>),
    /// The largest part of the slots that it may have; `None`: no limit.
    Share(JobId, Option<SlotShare>),
    /// It is to have whole cores to itself, as many as its CPUs, where columns are places.
    WholeCores(JobId),
    /// The policy that auto has chosen for it, also in advance of its being under auto; never [`Policy::Auto`].
    Choice(JobId, Policy, Reason),
    /// An agent reports that this gang uses no CPU.
    Asleep(JobId),
    /// An agent reports that it uses CPU again.
    Awake(JobId),
    /// The machine's new policy.
    MachinePolicy(Policy),
    /// The machine's new sharing: soft or strict.
    MachineSharing(Sharing),
    /// The length of a slot, in nanoseconds.
    SlotLength(u64),
    /// The classes' new shares, when working hours or off-hours begin.
    Shares(Shares),
    /// The largest part of the slots that all gangs may have together, in thousandths.
    Ceiling(u32),
}

/// Why an input is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlannerError {
    /// No such job.
    UnknownJob(JobId),
    /// A job of this name exists already.
    DuplicateJob(JobId),
    /// No node, or not the requested one, has this number of CPUs.
    TooManyCpus {
        /// What the job requested.
        wanted: u32,
        /// The CPUs of the largest permitted node.
        largest: u32,
    },
    /// The node has fewer cores, and the job wants them to itself.
    TooManyCores {
        /// What the job asked for.
        wanted: u32,
        /// What the node has.
        cores: u32,
    },
    /// A job needs at least one CPU.
    NoCpus,
    /// The length of a slot is out of range.
    SlotLength(u64),
}

impl fmt::Display for PlannerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlannerError::UnknownJob(job) => write!(f, "there is no job {job}"),
            PlannerError::DuplicateJob(job) => write!(f, "there is a job {job} already"),
            PlannerError::TooManyCpus { wanted, largest } => {
                write!(f, "the job wants {wanted} CPUs on one node, the largest has {largest}")
            }
            PlannerError::TooManyCores { wanted, cores } => {
                write!(f, "the job wants {wanted} cores to itself, and the node has {cores}")
            }
            PlannerError::NoCpus => f.write_str("a job needs at least one CPU"),
            PlannerError::SlotLength(ns) => {
                let (low, high) = (SLOT_LENGTH_NS.start() / 1_000_000, SLOT_LENGTH_NS.end() / 1_000_000);
                write!(f, "a slot of {ns} ns is out of range: {low} ms to {high} ms")
            }
        }
    }
}

impl core::error::Error for PlannerError {}

/// What the host has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlannerAction {
    /// Publish this plan; it takes effect in its `from_slot`.
    Publish(Arc<Plan>, Reason),
    /// The plan that was made contradicts itself; in its place one without slots is published. Report it. With the next
    /// input all gangs get new cells.
    Unsound(Flaw),
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    job: Job,
    standing: Standing,
    /// The policy that auto has chosen.
    choice: Policy,
    /// The largest part of the slots that it may have.
    slot_share: Option<SlotShare>,
    /// It has whole cores.
    alone: bool,
}

impl Entry {
    /// The policy in force; never auto.
    fn policy(&self, machine: Policy) -> Policy {
        // Only a gang has slots to count.
        if self.slot_share.is_some() {
            return Policy::Gang;
        }
        match self.job.policy.unwrap_or(machine) {
            Policy::Auto => self.choice,
            policy => policy,
        }
    }
}

/// Plans jobs by their policies: those of one node in its daemon, and those of all nodes in the simulator.
#[derive(Debug)]
pub struct Planner {
    config: PlannerConfig,
    ceiling_permille: u32,
    jobs: BTreeMap<JobId, Entry>,
    matrix: Matrix,
    /// The last places of gangs.
    places: BTreeMap<JobId, Vec<u32>>,
    plan: Arc<Plan>,
    turns: phase::Turns,
    actions: VecDeque<PlannerAction>,
}

impl Planner {
    /// A planner without jobs; its plan has generation 0.
    pub fn new(config: PlannerConfig) -> Planner {
        let matrix = Matrix::new(&config.nodes);
        let plan = Arc::new(Plan {
            generation: 0,
            epoch: Time(0),
            slot_length_ns: config.slot_length_ns,
            from_slot: 0,
            policy: config.policy,
            sharing: config.sharing,
            matrix: matrix.clone(),
            turns: Vec::new(),
            jobs: BTreeMap::new(),
        });
        Planner {
            config,
            ceiling_permille: 1000,
            jobs: BTreeMap::new(),
            matrix,
            places: BTreeMap::new(),
            plan,
            turns: phase::Turns::default(),
            actions: VecDeque::new(),
        }
    }

    /// The planner of one node, whose columns are places. To be called before the first job arrives.
    #[must_use]
    pub fn with_places(mut self, topology: Arc<Topology>) -> Planner {
        let node = self.config.nodes.first().map_or(NodeId(0), |node| node.id);
        self.matrix = Matrix::of_places(node, topology);
        Arc::make_mut(&mut self.plan).matrix = self.matrix.clone();
        self
    }

    /// The columns that a job had before it arrives here: it gets them again, if they are free.
    pub fn remember_place(&mut self, job: JobId, columns: Vec<u32>) {
        self.places.insert(job, columns);
    }

    /// The cores of the node, where columns are places.
    pub fn cores(&self) -> Option<u32> {
        self.matrix.cores()
    }

    /// The largest part of the slots that all gangs may have together, in thousandths.
    pub(crate) fn ceiling_permille(&self) -> u32 {
        self.ceiling_permille
    }

    /// The present plan.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// Takes an input.
    ///
    /// # Errors
    /// The input is refused, and nothing has changed.
    pub fn handle(&mut self, now: Time, input: PlannerInput) -> Result<(), PlannerError> {
        let reason = self.take(input)?;
        self.replan(now, reason);
        Ok(())
    }

    /// Takes one of many inputs, such as the jobs that a restarted daemon finds; [`Planner::plan_noted`] then makes the plan.
    ///
    /// # Errors
    /// As for [`Planner::handle`].
    pub fn note(&mut self, input: PlannerInput) -> Result<(), PlannerError> {
        self.take(input).map(drop)
    }

    /// Makes one plan for all inputs of [`Planner::note`].
    pub fn plan_noted(&mut self, now: Time) {
        self.replan(now, Reason::Arrival);
    }

    /// The next action that the host has to carry out.
    pub fn poll_action(&mut self) -> Option<PlannerAction> {
        self.actions.pop_front()
    }

    fn take(&mut self, input: PlannerInput) -> Result<Reason, PlannerError> {
        match input {
            PlannerInput::Submit(job) => {
                self.check(&job)?;
                let (standing, choice) = (Standing::Scheduled, Policy::Gang);
                self.jobs.insert(job.id, Entry { job, standing, choice, slot_share: None, alone: false });
                return Ok(Reason::Arrival);
            }
            PlannerInput::End(id) => {
                self.jobs.remove(&id).ok_or(PlannerError::UnknownJob(id))?;
                self.places.remove(&id);
                return Ok(Reason::Departure);
            }
            PlannerInput::Suspend(id) => self.entry(id)?.standing = Standing::Suspended,
            PlannerInput::Resume(id) => self.entry(id)?.standing = Standing::Scheduled,
            PlannerInput::Asleep(id) => return self.set_asleep(id, true).map(|()| Reason::NoCpuUsed),
            PlannerInput::Awake(id) => return self.set_asleep(id, false).map(|()| Reason::CpuUsed),
            PlannerInput::Class(id, class) => self.entry(id)?.job.class = class,
            PlannerInput::Cpus(id, cpus) => self.set_cpus(id, cpus)?,
            PlannerInput::JobPolicy(id, policy) => self.entry(id)?.job.policy = policy,
            PlannerInput::Share(id, share) => self.entry(id)?.slot_share = share,
            PlannerInput::WholeCores(id) => {
                let cpus = self.entry(id)?.job.cpus;
                self.check_cores(cpus)?;
                self.entry(id)?.alone = true;
                self.matrix.remove(id);
            }
            PlannerInput::Choice(id, policy, reason) => {
                self.entry(id)?.choice = if policy == Policy::Auto { Policy::Gang } else { policy };
                return Ok(reason);
            }
            PlannerInput::Shares(shares) => {
                self.config.shares = shares;
                return Ok(Reason::PeriodBegins);
            }
            PlannerInput::MachinePolicy(policy) => self.config.policy = policy,
            PlannerInput::MachineSharing(sharing) => self.config.sharing = sharing,
            PlannerInput::Ceiling(permille) => self.ceiling_permille = permille,
            PlannerInput::SlotLength(ns) if SLOT_LENGTH_NS.contains(&ns) => self.config.slot_length_ns = ns,
            PlannerInput::SlotLength(ns) => return Err(PlannerError::SlotLength(ns)),
        }
        match input {
            PlannerInput::Suspend(_) | PlannerInput::Resume(_) => Ok(Reason::UserRequest),
            _ => Ok(Reason::Settings),
        }
    }

    fn check(&self, job: &Job) -> Result<(), PlannerError> {
        if self.jobs.contains_key(&job.id) {
            return Err(PlannerError::DuplicateJob(job.id));
        }
        self.check_cpus(job.cpus, job.node)
    }

    fn check_cpus(&self, wanted: u32, node: Option<NodeId>) -> Result<(), PlannerError> {
        if wanted == 0 {
            return Err(PlannerError::NoCpus);
        }
        let permitted = self.config.nodes.iter().filter(|n| node.is_none_or(|id| id == n.id));
        let largest = permitted.map(|n| n.cpus).max().unwrap_or(0);
        if wanted > largest {
            return Err(PlannerError::TooManyCpus { wanted, largest });
        }
        Ok(())
    }

    fn check_cores(&self, wanted: u32) -> Result<(), PlannerError> {
        let too_few = self.matrix.cores().filter(|cores| *cores < wanted);
        too_few.map_or(Ok(()), |cores| Err(PlannerError::TooManyCores { wanted, cores }))
    }

    /// A gang of another width needs other cells: its old ones are freed, and it gets new ones.
    fn set_cpus(&mut self, id: JobId, cpus: u32) -> Result<(), PlannerError> {
        let Entry { job, alone, .. } = *self.entry(id)?;
        self.check_cpus(cpus, job.node)?;
        if alone {
            self.check_cores(cpus)?;
        }
        if cpus != job.cpus {
            self.entry(id)?.job.cpus = cpus;
            self.places.remove(&id);
            self.matrix.remove(id);
            self.matrix.unify();
        }
        Ok(())
    }

    /// A suspended job stays suspended, whatever its CPU use is.
    fn set_asleep(&mut self, id: JobId, asleep: bool) -> Result<(), PlannerError> {
        let entry = self.entry(id)?;
        entry.standing = match (entry.standing, asleep) {
            (Standing::Suspended, _) => Standing::Suspended,
            (_, true) => Standing::Asleep,
            (_, false) => Standing::Scheduled,
        };
        Ok(())
    }

    /// Only a gang can be asleep: a local job has no slots to give up, and gets some at once when it becomes a gang. A gang with a share
    /// of the slots never is.
    fn wake_local_jobs(&mut self) {
        let machine = self.config.policy;
        for entry in self.jobs.values_mut().filter(|e| e.standing == Standing::Asleep) {
            if entry.policy(machine).is_local() || entry.slot_share.is_some() {
                entry.standing = Standing::Scheduled;
            }
        }
    }

    fn entry(&mut self, id: JobId) -> Result<&mut Entry, PlannerError> {
        self.jobs.get_mut(&id).ok_or(PlannerError::UnknownJob(id))
    }

    fn replan(&mut self, now: Time, reason: Reason) {
        self.wake_local_jobs();
        self.settle_matrix();
        let mut plan = self.build();
        self.set_phase(&mut plan, now);
        if plan.same_content(&self.plan) {
            return;
        }
        plan.generation = self.plan.generation + 1;
        plan.from_slot = plan.slot_at(now);
        if let Err(flaw) = plan.check_after(&self.plan) {
            self.actions.push_back(PlannerAction::Unsound(flaw));
            self.matrix = self.matrix.emptied();
            plan.drop_slots();
        }
        self.plan = Arc::new(plan);
        self.actions.push_back(PlannerAction::Publish(Arc::clone(&self.plan), reason));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn a_plan_with_two_gangs_on_one_cpu_is_not_published_and_the_next_one_heals() {
        let mut planner = Planner::new(PlannerConfig {
            nodes: vec![Node { id: NodeId(0), cpus: 2 }],
            slot_length_ns: 100_000_000,
            policy: Policy::Gang,
            sharing: Sharing::Strict,
            packing: Packing::FirstFit,
            shares: Shares::default(),
        });
        let submit = |planner: &mut Planner, id| {
            let job = Job { id: JobId(id), owner: 0, class: Class::Batch, policy: None, cpus: 2, node: None };
            planner.handle(Time(0), PlannerInput::Submit(job)).unwrap();
            core::iter::from_fn(|| planner.poll_action()).collect::<Vec<_>>()
        };
        submit(&mut planner, 1);
        submit(&mut planner, 2);
        planner.handle(Time(0), PlannerInput::Suspend(JobId(2))).unwrap();
        while planner.poll_action().is_some() {}
        // A cell of the first gang is missing.
        planner.matrix.remove(JobId(1));
        planner.matrix.put(0, &[1], JobId(1));
        let said = submit(&mut planner, 3);
        let is_told = matches!(said[..], [PlannerAction::Unsound(Flaw::Cells(JobId(1))), PlannerAction::Publish(..)]);
        assert!(is_told, "{said:?}");
        let states: Vec<_> = planner.plan().dispositions(0).collect();
        let (run, stop) = (crate::Disposition::Run, crate::Disposition::Stop);
        assert_eq!(
            states,
            [(JobId(1), run), (JobId(2), stop), (JobId(3), run)],
            "Linux has those that are not stopped"
        );
        assert!(matches!(submit(&mut planner, 4)[..], [PlannerAction::Publish(..)]));
        assert_eq!(planner.plan().check(), Ok(()));
        assert_eq!(planner.plan().turns.len(), 3, "gangs take turns again");
    }
}
