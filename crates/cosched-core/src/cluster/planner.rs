//! The cluster's planner as a state machine: inputs in, plans and actions out.
//!
//! Beside the state it keeps only what can be computed from it (columns, rows, the use of each node), so that a planner made from
//! a stored state continues exactly as the one that wrote it.

use super::input::{Action, Input, Refusal};
use super::layout::{Layout, Span};
use super::lineup::Cache;
use super::nodes::Use;
use super::plan::Plan;
use super::row::Row;
use super::state::{JobRecord, Place, Stage, State};
use crate::id::JobId;
use crate::job::Policy;
use crate::plan::Standing;
use crate::reason::Reason;
use crate::sound::Flaw;
use crate::time::Time;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

/// The cells of a gang, by column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Gang {
    pub(super) row: u32,
    /// A new version each time that it gets cells.
    pub(super) version: u64,
    pub(super) spans: Arc<[Span]>,
    /// Its CPUs on each node, by the node's index in the layout.
    pub(super) cpus: Arc<[(u32, u32)]>,
}

/// Why a stored state is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadState {
    /// The job's cells are not where it has its parts, lie beyond their node, or belong to another job.
    Cells(JobId),
    /// The job's queue does not exist.
    Queue(JobId),
    /// A node without CPUs, a slot of no length, or no queue.
    Config,
    /// A number, a time or an amount is beyond the limits of computation.
    Numbers,
    /// The resulting plan contradicts itself.
    Plan(Flaw),
}

impl fmt::Display for BadState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadState::Cells(job) => write!(f, "the cells of job {job} are invalid"),
            BadState::Queue(job) => write!(f, "job {job} is in a queue that does not exist"),
            BadState::Config => f.write_str("a node without CPUs, a slot of no length, or no queue"),
            BadState::Numbers => f.write_str("a number, a time or an amount is too large"),
            BadState::Plan(flaw) => write!(f, "the plan contradicts itself: {flaw}"),
        }
    }
}

impl core::error::Error for BadState {}

/// Plans all nodes of a cluster together.
#[derive(Debug)]
pub struct Planner {
    pub(super) state: State,
    pub(super) layout: Arc<Layout>,
    pub(super) rows: Vec<Row>,
    /// The resources used on each node, by the node's index in the layout.
    pub(super) uses: Vec<Use>,
    pub(super) gangs: BTreeMap<JobId, Gang>,
    /// The parts of each job, as they are in the plan.
    pub(super) parts: BTreeMap<JobId, Arc<[super::state::Part]>>,
    /// Jobs that wait, in the order in which they are served: queue, then order.
    pub(super) waiting: BTreeSet<(u32, u64, JobId)>,
    /// Whether cells have become free since rows were last unified.
    vacated: bool,
    /// How often a gang was given cells; the source of versions.
    pub(super) versions: u64,
    pub(super) cache: Cache,
    pub(super) plan: Arc<Plan>,
    pub(super) actions: VecDeque<Action>,
}

impl Planner {
    /// A planner that continues from a state.
    ///
    /// # Errors
    /// The state contradicts itself.
    pub fn new(state: State) -> Result<Planner, BadState> {
        let sound = state.nodes.values().all(|node| node.capacity.cpus > 0);
        if !sound || state.config.slot_length_ns == 0 || state.config.queues.is_empty() {
            return Err(BadState::Config);
        }
        if let Some((id, _)) = state.jobs.iter().find(|(_, job)| job.spec.queue as usize >= state.config.queues.len()) {
            return Err(BadState::Queue(*id));
        }
        if !state.can_be_counted() {
            return Err(BadState::Numbers);
        }
        let mut planner = Planner {
            state,
            layout: Arc::default(),
            rows: Vec::new(),
            uses: Vec::new(),
            gangs: BTreeMap::new(),
            parts: BTreeMap::new(),
            waiting: BTreeSet::new(),
            vacated: false,
            versions: 0,
            cache: Cache::default(),
            plan: Arc::new(Plan::default()),
            actions: VecDeque::new(),
        };
        planner.derive()?;
        let plan = planner.build();
        plan.check().map_err(BadState::Plan)?;
        planner.plan = Arc::new(plan);
        Ok(planner)
    }

    /// Everything that another planner needs to continue from here.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The newest plan.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// Takes an input. A resulting plan takes effect in the first slot after `holds_from` (see
    /// [`super::holds_from`]), and not before the previous plan.
    ///
    /// # Errors
    /// The input is refused, and nothing has changed.
    pub fn handle(&mut self, now: Time, holds_from: Time, input: Input) -> Result<(), Refusal> {
        let reason = self.apply(now, input)?;
        self.publish(now, holds_from, reason);
        Ok(())
    }

    /// Takes one of several inputs; [`Planner::publish`] makes one plan for all of them afterwards.
    ///
    /// # Errors
    /// The input is refused, and nothing has changed.
    pub fn apply(&mut self, now: Time, input: Input) -> Result<Reason, Refusal> {
        let reason = self.take(now, input)?;
        self.settle(now);
        Ok(reason)
    }

    /// Time has passed; it is now `now`: ends jobs that are over their time limit, and starts those whose begin time has come.
    pub fn handle_timeout(&mut self, now: Time, holds_from: Time) {
        let Some((_, reason)) = self.poll_timeout().filter(|(at, _)| *at <= now) else { return };
        let over = |job: &JobRecord| self.limit(job).filter(|(limit, _)| *limit <= now);
        let late = |(id, job): (&JobId, &JobRecord)| over(job).map(|(_, reason)| (*id, reason));
        let late: Vec<(JobId, Reason)> = self.state.jobs.iter().filter_map(late).collect();
        for (id, reason) in late {
            self.end(id, reason);
        }
        self.settle(now);
        self.publish(now, holds_from, reason);
    }

    /// When `handle_timeout` is to be called next, and why.
    pub fn poll_timeout(&self) -> Option<(Time, Reason)> {
        let begins = |job| self.begins_at(job).map(|at| (at, Reason::WaitsForTime));
        self.state.jobs.values().filter_map(|job| self.limit(job).or_else(|| begins(job))).min()
    }

    /// The next action that a host has to carry out.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// The policy in force for a job; never auto.
    pub(super) fn policy(&self, job: &JobRecord) -> Policy {
        // Only a gang has slots to count.
        if job.spec.slot_share.is_some() {
            return Policy::Gang;
        }
        match job.spec.policy.unwrap_or(self.state.config.policy) {
            Policy::Auto => job.choice,
            policy => policy,
        }
    }

    /// Whether a job needs cells: a gang that spans nodes and may run.
    pub(super) fn has_slots(&self, job: &JobRecord) -> bool {
        job.stage == Stage::Ready
            && job.standing == Standing::Scheduled
            && self.policy(job) == Policy::Gang
            && job.place.as_ref().is_some_and(|place| place.parts.len() > 1 && !self.is_silent(place))
    }

    /// Whether one of its nodes is silent.
    fn is_silent(&self, place: &Place) -> bool {
        !self.state.silent.is_empty() && place.parts.iter().any(|part| self.state.silent.contains_key(&part.node))
    }

    /// Applies what follows from the last input: starts waiting jobs that fit now, and gives cells to gangs.
    fn settle(&mut self, now: Time) {
        self.wake_local_jobs();
        self.vacate();
        if core::mem::take(&mut self.vacated) {
            self.unify();
        }
        // The free cells of a new row could take in gangs of older rows; that is left to the next rebalancing, because an arrival
        // must not take long.
        self.house_all();
        self.admit(now);
    }

    /// Wakes jobs that are no longer gangs without a share: only those can be asleep; see the planner of one node.
    fn wake_local_jobs(&mut self) {
        let asleep = |(id, job): (&JobId, &JobRecord)| {
            let stays = self.policy(job) == Policy::Gang && job.spec.slot_share.is_none();
            (job.standing == Standing::Asleep && !stays).then_some(*id)
        };
        let awake: Vec<JobId> = self.state.jobs.iter().filter_map(asleep).collect();
        for id in awake {
            if let Some(job) = self.state.jobs.get_mut(&id) {
                job.standing = Standing::Scheduled;
            }
        }
    }

    /// Takes the cells of jobs that must no longer have any.
    fn vacate(&mut self) {
        let mut housed = self.gangs.keys().copied().peekable();
        let mut gone: Vec<JobId> = Vec::new();
        for (id, job) in &self.state.jobs {
            // An ended job has lost its cells already.
            if housed.next_if_eq(id).is_some() && !self.has_slots(job) {
                gone.push(*id);
            }
        }
        gone.iter().for_each(|id| self.evict(*id));
    }

    /// Gives cells on their nodes to all jobs that need cells and have none.
    fn house_all(&mut self) {
        let mut housed = self.gangs.keys().copied().peekable();
        let homeless = |(id, job): (&JobId, &JobRecord)| {
            let has_cells = housed.next_if_eq(id).is_some();
            (!has_cells && self.has_slots(job)).then_some(*id)
        };
        let homeless: Vec<JobId> = self.state.jobs.iter().filter_map(homeless).collect();
        for id in homeless {
            let wanted = self.wanted(id);
            let row = self.row_for(&wanted).unwrap_or_else(|| self.new_row());
            self.house(id, row, &wanted);
        }
    }

    /// Gives a job cells in a row that has room for it.
    pub(super) fn house(&mut self, id: JobId, row: usize, wanted: &[(u32, u32)]) {
        let spans = self.rows[row].lowest(&self.layout, wanted);
        self.put(id, row, spans.into());
    }

    /// Gives a job these cells, which must be free.
    pub(super) fn put(&mut self, id: JobId, row: usize, spans: Arc<[Span]>) {
        let cpus: Arc<[(u32, u32)]> = self.layout.cpus_of(&spans).into();
        self.rows[row].put(id, &spans, &cpus);
        let cells = self.cells_of(&spans);
        if let Some(Place { home, .. }) = self.state.jobs.get_mut(&id).and_then(|job| job.place.as_mut()) {
            *home = Some((row as u32, cells));
        }
        self.versions += 1;
        self.gangs.insert(id, Gang { row: row as u32, version: self.versions, spans, cpus });
    }

    /// Takes a gang's cells.
    pub(super) fn evict(&mut self, id: JobId) {
        if let Some(gang) = self.gangs.remove(&id) {
            self.rows[gang.row as usize].remove(id, &gang.spans, &gang.cpus);
            self.vacated = true;
        }
        if let Some(place) = self.state.jobs.get_mut(&id).and_then(|job| job.place.as_mut()) {
            place.home = None;
        }
    }

    /// Marks rows as changed, because some may be empty now.
    pub(super) fn look_at_rows(&mut self) {
        self.vacated = true;
    }

    pub(super) fn new_row(&mut self) -> usize {
        self.rows.push(Row::empty(&self.layout));
        self.rows.len() - 1
    }
}
