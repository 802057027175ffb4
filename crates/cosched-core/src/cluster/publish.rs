//! Makes a plan from the state, and decides where the cycle of a new plan begins.
//!
//! Rule. A plan is a function of the state. When its content differs from that of the last one, it becomes the next
//! generation: it takes effect in the first slot that begins at or after the time that the host gives, and not before the
//! previous plan does, so that generations have the same order on all nodes. Its cycle begins with the row that will have
//! waited longest by then; an unchanged cycle continues in its phase. A new gang whose CPUs are not in use by any gang
//! in any slot until then may start at once ("the execution of a newly initiated program may commence prior to the
//! beginning of a new time-slice": LLNL, "Gang Scheduler Design").

use super::cycle::{self, Claim};
use super::input::Action;
use super::lineup::Cache;
use super::pace::pace;
use super::plan::{LINEUPS_MAX, Plan, PlannedJob};
use super::planner::{Gang, Planner};
use super::row::Bits;
use super::state::{JobRecord, Stage};
use crate::id::JobId;
use crate::job::Policy;
use crate::plan::Standing;
use crate::policy::local;
use crate::reason::Reason;
use crate::time::Time;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

/// The number of slots ahead that are examined for whether a gang may start early.
const EARLY_SLOTS_MAX: u64 = 256;

impl Planner {
    /// The plan of the present state.
    pub(super) fn build(&mut self) -> Plan {
        let mut cache = core::mem::take(&mut self.cache);
        let plan = self.build_with(&mut cache);
        self.cache = cache;
        plan
    }

    fn build_with(&self, cache: &mut Cache) -> Plan {
        let config = &self.state.config;
        let gangs: Vec<cycle::Gang> = self.gangs.iter().map(|(id, home)| self.gang(*id, home)).collect();
        let claims = self.claims();
        let cycle = cycle::cycle((&self.layout, &self.rows), &gangs, &claims, config.ceiling_permille, cache);
        // Gangs and jobs are both ascending by id.
        let mut own = self.gangs.iter().zip(&cycle.turns_16).peekable();
        let mut own = |id: &JobId| own.next_if(|((gang, _), _)| *gang == id).map(|((_, home), turns)| (home, *turns));
        let homes: Vec<Option<(&Gang, u32)>> = self.state.jobs.keys().map(&mut own).collect();
        let length = cycle.turns.len() as u32 * LINEUPS_MAX;
        let shares = config.shares();
        let part = |(job, home): (&JobRecord, &Option<(_, u32)>)| local::Part {
            share: shares.of(job.spec.class),
            cpus: job.place.as_ref().and_then(|place| place.parts.iter().map(|part| part.cpus).max()).unwrap_or(1),
            turns: home.map_or((1, 1), |(_, own)| (own, length)),
        };
        let weights = local::weights(&self.state.jobs.values().zip(&homes).map(part).collect::<Vec<_>>());
        type Known<'a> = ((&'a JobId, &'a JobRecord), u32);
        let planned = |(((id, job), weight), home): (Known, &Option<(&Gang, u32)>)| {
            let planned = PlannedJob {
                class: job.spec.class,
                policy: self.policy(job),
                auto: job.spec.policy.unwrap_or(config.policy) == Policy::Auto,
                standing: job.standing,
                slot_share: job.spec.slot_share,
                stage: job.stage,
                weight,
                parts: self.parts.get(id).cloned().unwrap_or_default(),
                home: home.map(|(gang, _)| (gang.row, gang.spans.clone())),
                turns_16: home.map_or(0, |(_, turns)| turns),
            };
            (*id, planned)
        };
        let mut plan = Plan {
            generation: self.state.generation,
            slot_length_ns: config.slot_length_ns,
            from_slot: self.state.from_slot,
            start: self.state.start,
            policy: config.policy,
            sharing: config.sharing,
            layout: Arc::clone(&self.layout),
            rows: cycle.rows,
            row_turns: cycle.row_turns,
            turns: cycle.turns.into(),
            paced: Arc::default(),
            jobs: self.state.jobs.iter().zip(weights).zip(&homes).map(planned).collect(),
            early: self.state.early.clone(),
        };
        pace(&mut plan, &gangs, &claims, config.ceiling_permille < 1000);
        plan
    }

    fn gang<'a>(&self, id: JobId, home: &'a Gang) -> cycle::Gang<'a> {
        let Gang { row, version, spans, cpus } = home;
        cycle::Gang { id, row: *row, share: self.share(id), version: *version, spans, cpus }
    }

    /// For each node, the threads that want its CPUs beside the gangs that span nodes.
    fn claims(&self) -> Vec<Claim> {
        let config = &self.state.config;
        let other = u64::from(config.other_share.max(1));
        let of_node = |node: &super::state::NodeRecord| {
            let threads = u64::from(node.other_threads);
            Claim { threads, weight: threads * other, gangs: Vec::new() }
        };
        let mut claims: Vec<Claim> = self.state.nodes.values().map(of_node).collect();
        for job in self.state.jobs.values() {
            // A job that is being ended has to run to handle the signal.
            let ends = matches!(job.stage, Stage::Clearing | Stage::Ending(_));
            let takes_part = ends || job.stage == Stage::Ready && job.standing == Standing::Scheduled;
            let [part] = job.place.as_ref().map_or(&[][..], |place| &place.parts) else { continue };
            if takes_part
                && self.policy(job) == Policy::Gang
                && let Some(at) = self.layout.index_of(part.node)
            {
                let share = config.shares().of(job.spec.class);
                claims[at].threads += u64::from(part.cpus);
                claims[at].weight += u64::from(part.cpus) * u64::from(share);
                claims[at].gangs.push((part.cpus, share));
            }
        }
        claims
    }

    /// Publishes the plan of the present state as the next generation, if it differs from the present plan.
    pub fn publish(&mut self, now: Time, holds_from: Time, reason: Reason) {
        let next = self.build();
        if !next.same_content(&self.plan) {
            self.publish_this(next, now, holds_from.max(self.plan.holds_from()), reason);
        }
    }

    /// Like [`Planner::publish`], but also publishes an unchanged plan if it takes effect earlier than the present one, which then
    /// never does.
    pub fn overtake(&mut self, now: Time, holds_from: Time, reason: Reason) {
        if holds_from >= self.plan.holds_from() {
            return self.publish(now, holds_from, reason);
        }
        let next = self.build();
        self.publish_this(next, now, holds_from, reason);
    }

    fn publish_this(&mut self, mut next: Plan, now: Time, holds_from: Time, reason: Reason) {
        let old = Arc::clone(&self.plan);
        next.from_slot = holds_from.0.div_ceil(next.slot_length_ns);
        let from = next.holds_from();
        self.note_turns(&old, from);
        next.generation = old.generation + 1;
        next.start = self.begin(&old, &next);
        next.early = self.early(&old, &next, now);
        if let Err(flaw) = next.check_after(&old) {
            return self.actions.push_back(Action::Unsound(flaw));
        }
        self.state.generation = next.generation;
        self.state.from_slot = next.from_slot;
        self.state.start = next.start;
        self.state.early.clone_from(&next.early);
        self.plan = Arc::new(next);
        self.actions.push_back(Action::Publish(Arc::clone(&self.plan), reason));
    }

    /// Records when each row last had its turn, under the plan that is in force until `to`. A new row's wait begins then.
    ///
    /// Rows are recognised by their residents, because a row that was given up no longer has a number, and the rows after it have
    /// moved up.
    fn note_turns(&mut self, old: &Plan, to: Time) {
        let row_of = |residents: &[JobId]| residents.iter().find_map(|id| self.gangs.get(id)).map(|gang| gang.row);
        let now_row: Vec<Option<u32>> = old.rows.iter().map(|row| row_of(&row.residents)).collect();
        let mut last: Vec<Option<Time>> = self.state.row_turns.iter().map(|t| Some(*t)).collect();
        last.resize(self.rows.len(), None);
        let end = to.0 / old.slot_length_ns;
        let first = old.from_slot.max(end.saturating_sub(old.turns.len() as u64));
        for slot in first..end {
            let row = old.turn(slot).and_then(|(turn, _)| now_row[turn.row as usize]);
            if let Some(last) = row.and_then(|row| last.get_mut(row as usize)) {
                *last = Some(old.slot_start(slot + 1).min(to));
            }
        }
        self.state.row_turns = last.into_iter().map(|t| t.unwrap_or(to)).collect();
    }

    /// The turn with which a plan begins, counted over the cycles after which everything repeats.
    fn begin(&self, old: &Plan, next: &Plan) -> u32 {
        let cycle = next.turns.len() as u64;
        if cycle == 0 {
            return 0;
        }
        // Line-ups also rotate from generation to generation, otherwise plans in quick succession would favour the first one.
        let cycles = next.generation % next.period();
        if next.turns == old.turns && next.slot_length_ns == old.slot_length_ns {
            let all = cycle * next.period();
            let passed = next.from_slot % all + all - old.from_slot % all;
            return ((passed + u64::from(old.start)) % all) as u32;
        }
        let waits = |row: &u32| self.state.row_turns.get(*row as usize);
        let longest = (0..self.rows.len() as u32).min_by_key(|row| (waits(row), *row));
        let at = next.turns.iter().position(|turn| Some(turn.row) == longest).unwrap_or(0);
        (cycles * cycle) as u32 + at as u32
    }

    /// The gangs that are new in `next` and whose CPUs no other gang has until it takes effect.
    fn early(&self, old: &Plan, next: &Plan, now: Time) -> Vec<JobId> {
        let slot = old.slot_at(now);
        let until = next.holds_from().0.div_ceil(old.slot_length_ns);
        let has_home = |id: &JobId| old.jobs.get(id).is_some_and(|job| job.home.is_some());
        let new: Vec<(&JobId, &Arc<[super::Span]>)> = next
            .jobs
            .iter()
            .filter_map(|(id, job)| Some((id, &job.home.as_ref()?.1)))
            .filter(|(id, _)| !has_home(id))
            // Until its plan is in force, its slots are not counted.
            .filter(|(id, _)| next.jobs[*id].slot_share.is_none())
            .collect();
        let looks = !new.is_empty() && until - slot.min(until) <= EARLY_SLOTS_MAX && old.layout == next.layout;
        // While an even older plan is in force, the planner does not know which gangs run.
        if !looks || old.from_slot > slot {
            return vec![];
        }
        let mut used = Bits::none(next.layout.columns());
        for slot in slot..until {
            for id in old.run(slot) {
                if let Some((_, spans)) = &old.jobs[id].home {
                    used.add(spans);
                }
            }
        }
        let mut early = Vec::new();
        for (id, spans) in new {
            if !used.meets(spans) {
                used.add(spans);
                early.push(*id);
            }
        }
        early
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Input, JobSpec, Want, two_nodes};
    use super::*;
    use crate::{Class, Policy};

    fn planner() -> Planner {
        two_nodes(2)
    }

    fn submit(planner: &mut Planner, id: u64, holds_from: u64) {
        let want = Want::Total { cpus: 4, memory_per_cpu_bytes: 0, disk_bytes: 0 };
        let spec = JobSpec { policy: Some(Policy::Gang), ..JobSpec::new(JobId(id), Class::Batch, want) };
        planner.handle(Time(0), Time(holds_from), Input::Submit(spec)).unwrap();
    }

    #[test]
    fn a_plan_does_not_hold_before_the_one_that_it_follows() {
        let mut planner = planner();
        submit(&mut planner, 1, 9_000_000_000);
        assert_eq!(planner.plan().holds_from(), Time(9_000_000_000));
        submit(&mut planner, 2, 3_000_000_000);
        assert_eq!(planner.plan().holds_from(), Time(9_000_000_000));
        let generation = planner.plan().generation;
        planner.overtake(Time(0), Time(4_000_000_000), Reason::Settings);
        assert_eq!((planner.plan().holds_from(), planner.plan().generation), (Time(4_000_000_000), generation + 1));
        planner.overtake(Time(0), Time(5_000_000_000), Reason::Settings);
        assert_eq!(planner.plan().generation, generation + 1, "one that holds later overtakes nothing");
    }

    #[test]
    fn what_is_planned_already_is_not_published_again() {
        let mut planner = planner();
        submit(&mut planner, 1, 1_000_000_000);
        let plan = Arc::clone(planner.plan());
        planner.publish(Time(5), Time(9_000_000_000), Reason::Settings);
        assert!(Arc::ptr_eq(planner.plan(), &plan));
    }

    #[test]
    fn a_gang_starts_early_on_cpus_that_nobody_uses_until_its_plan_holds() {
        let mut planner = planner();
        submit(&mut planner, 1, 200_000_000);
        assert_eq!(planner.plan().early, [JobId(1)]);
        submit(&mut planner, 2, 200_000_000);
        assert_eq!(planner.plan().early, [0; 0].map(JobId), "the first one has them, or will");
    }
}
