//! Which group a job joins (RollMux's scheduler between groups): the one in which it costs least, if no limit is at risk.

use super::group::Group;
use super::{MEMBERS_MAX, PhaseRun, PhaseSettings};
use crate::workload::phase_jobs::PhaseJob;

/// In how many cycles a joining job may have its first turn.
const CYCLES_TRIED: u64 = 4;

/// A place for a job: on nodes of a block, or beside the blocks on new ones.
struct Place {
    group: usize,
    block: usize,
    /// What its new nodes cost per hour.
    price: f64,
    /// What the nodes that it shares but does not use cost per hour.
    idle: f64,
}

struct Cluster<'a> {
    jobs: &'a [PhaseJob],
    settings: &'a PhaseSettings,
    groups: Vec<Group>,
    run: PhaseRun,
}

pub(super) fn run(jobs: &[PhaseJob], settings: &PhaseSettings) -> PhaseRun {
    let run = PhaseRun { end_us: vec![0; jobs.len()], held: [0; 2] };
    let mut cluster = Cluster { jobs, settings, groups: Vec::new(), run };
    for (number, job) in jobs.iter().enumerate() {
        cluster.advance(job.arrival_us);
        cluster.place(number);
    }
    cluster.advance(u64::MAX);
    cluster.run
}

impl Cluster<'_> {
    /// Executes what ends by `now_us`. What runs then counts as not begun, so plans know no length in advance.
    fn advance(&mut self, now_us: u64) {
        let (jobs, settings) = (self.jobs, self.settings);
        let length_us = |job: usize, iteration| settings.lengths.of(job, &jobs[job], iteration);
        for group in &mut self.groups {
            while let Some(step) = group.step(jobs, settings, now_us, length_us) {
                if step.is_last {
                    self.run.end_us[step.job] = step.end_us;
                }
            }
        }
        let ended = self.groups.extract_if(.., |group| group.members.is_empty());
        ended.for_each(|group| self.run.held.iter_mut().zip(group.held).for_each(|(all, held)| *all += held));
    }

    fn place(&mut self, number: usize) {
        let mut places: Vec<Place> = (0..self.groups.len()).flat_map(|group| self.places(number, group)).collect();
        // Stable: the oldest group and block first.
        places.sort_by(|a, b| a.price.total_cmp(&b.price).then(a.idle.total_cmp(&b.idle)));
        if let Some((group, joined)) = places.iter().find_map(|place| Some((place.group, self.joined(number, place)?)))
        {
            self.groups[group] = joined;
            return;
        }
        let now_us = self.jobs[number].arrival_us;
        let mut group = Group::new(now_us);
        group.join(number, 0, 0, now_us, now_us + self.settings.cold_us);
        self.groups.push(group);
    }

    /// Where a job fits into a group by number of nodes, memory, and length of a cycle.
    fn places(&self, number: usize, group: usize) -> Vec<Place> {
        let (jobs, job, of) = (self.jobs, &self.jobs[number], &self.groups[group]);
        let idle = |block: Option<usize>| {
            let pool = usize::from(block.is_none());
            let nodes = of.size(jobs, block).checked_sub(job.nodes[pool])?;
            Some(f64::from(nodes) * self.settings.prices[pool])
        };
        let fits = |block: Option<usize>| {
            let members = of.members.iter().filter(|member| block.is_none_or(|block| member.block == block));
            let used: u64 = members.map(|member| u64::from(jobs[member.job].memory_gb)).sum();
            used + u64::from(job.memory_gb) <= self.settings.memory_gb.into()
        };
        let Some(second) = idle(None).filter(|_| of.members.len() < MEMBERS_MAX && fits(None)) else {
            return Vec::new();
        };
        let blocks = of.blocks().filter(|block| fits(Some(*block)));
        let shared =
            blocks.filter_map(|block| Some(Place { group, block, price: 0.0, idle: second + idle(Some(block))? }));
        let price = f64::from(job.nodes[0]) * self.settings.prices[0];
        let beside = Place { group, block: of.blocks().end, price, idle: second };
        shared.chain([beside]).filter(|place| self.keeps_cycles(number, place)).collect()
    }

    /// Whether a cycle with the longest phases is no longer than each member's limit allows for its iteration alone.
    fn keeps_cycles(&self, number: usize, place: &Place) -> bool {
        let group = &self.groups[place.group];
        let others = group.members.iter().map(|member| (member.job, member.block));
        let members: Vec<(usize, usize)> = others.chain([(number, place.block)]).collect();
        let longest = |job: usize| self.settings.lengths.longest(&self.jobs[job]);
        let cycle_us = cycle_us(&members, longest, self.settings.switch_us);
        members.iter().all(|(job, _)| {
            let [first, second] = longest(*job);
            cycle_us as f64 <= self.jobs[*job].slowdown_max * (first + second) as f64
        })
    }

    /// The group with the job in it, if with the longest phases all members end by their deadlines. Its first turn is in the first
    /// cycle that is not over before its first phase could be, or in one of the next three; without such a cycle in the last one.
    fn joined(&self, number: usize, place: &Place) -> Option<Group> {
        let (jobs, settings, group) = (self.jobs, self.settings, &self.groups[place.group]);
        let longest = |job: usize, _| settings.lengths.longest(&jobs[job]);
        let now_us = jobs[number].arrival_us;
        let ready_us = now_us + settings.cold_us;
        let first_end_us = ready_us + longest(number, 0)[0];
        let (mut ahead, mut first) = (group.clone(), group.cycle());
        while let Some(step) = ahead.step(jobs, settings, u64::MAX, longest) {
            first = step.cycle;
            if step.end_us >= first_end_us {
                break;
            }
        }
        for cycle in first..first + CYCLES_TRIED {
            let mut joined = group.clone();
            joined.join(number, place.block, cycle, now_us, ready_us);
            let mut plan = joined.clone();
            let mut steps = std::iter::from_fn(|| plan.step(jobs, settings, u64::MAX, longest));
            match steps.find(|step| step.end_us > settings.deadline_us(&jobs[step.job])) {
                None => return Some(joined),
                // In a later cycle it would be later.
                Some(step) if step.job == number => return None,
                Some(_) => {}
            }
        }
        None
    }
}

/// How long a cycle takes in which each of these jobs, on its block, has both phases.
pub(super) fn cycle_us(members: &[(usize, usize)], phases_us: impl Fn(usize) -> [u64; 2], switch_us: u64) -> u64 {
    let sharers = |block: Option<usize>| members.iter().filter(move |(_, of)| block.is_none_or(|block| block == *of));
    let switched_us =
        |pool: usize, job, block| phases_us(job)[pool] + if sharers(block).count() > 1 { switch_us } else { 0 };
    let load_us = |pool, block| sharers(block).map(|(job, _)| switched_us(pool, *job, block)).sum::<u64>();
    let of_member = |(job, block): &(usize, usize)| {
        let alone_us = switched_us(0, *job, Some(*block)) + switched_us(1, *job, None);
        alone_us.max(load_us(0, Some(*block)))
    };
    members.iter().map(of_member).fold(load_us(1, None), u64::max)
}
