//! Whole jobs in turns, as in Gandiva (Xiao et al. 2018): in a slot one job of a group has the nodes of both pools, the others are suspended
//! where they are. The nodes of the phase that it does not execute stay idle.
//!
//! Turns are a function of time until a job ends or has loaded its state, so slots between such events are not stepped through.

use super::{MEMBERS_MAX, PhaseRun, PhaseSettings};
use crate::workload::phase_jobs::PhaseJob;
use std::collections::VecDeque;

/// A job in a group.
struct Member {
    job: usize,
    /// When its state is loaded, µs.
    ready_us: u64,
    /// What it has left to execute, µs.
    left_us: u64,
}

struct Group {
    /// The first one's turn is on.
    rotation: VecDeque<Member>,
    loading: Vec<Member>,
    /// When this turn began.
    turn_us: u64,
    /// Whether this turn begins with a switch.
    has_switch: bool,
    /// Until when nodes are paid, µs.
    held_us: u64,
}

pub(super) fn run(jobs: &[PhaseJob], settings: &PhaseSettings) -> PhaseRun {
    let mut run = PhaseRun { end_us: vec![0; jobs.len()], held: [0; 2] };
    let mut groups: Vec<Group> = Vec::new();
    for (number, job) in jobs.iter().enumerate() {
        groups.iter_mut().for_each(|group| group.advance(jobs, settings, job.arrival_us, &mut run));
        groups.retain(|group| group.members().next().is_some());
        let left_us = settings.alone_us(settings.lengths.all(number, job)) - settings.cold_us;
        let member = Member { job: number, ready_us: job.arrival_us + settings.cold_us, left_us };
        // Of equals the first is taken: the oldest group.
        let idle = |group: &Group| group.idle(jobs, settings, job);
        let places = groups.iter_mut().filter_map(|group| Some((idle(group)?, group)));
        match places.min_by(|(a, _), (b, _)| a.total_cmp(b)) {
            Some((_, group)) => group.loading.push(member),
            None => groups.push(Group {
                rotation: VecDeque::new(),
                loading: vec![member],
                turn_us: job.arrival_us,
                has_switch: false,
                held_us: job.arrival_us,
            }),
        }
    }
    groups.iter_mut().for_each(|group| group.advance(jobs, settings, u64::MAX, &mut run));
    run
}

impl Group {
    fn members(&self) -> impl Iterator<Item = &Member> {
        self.rotation.iter().chain(&self.loading)
    }

    fn size(&self, jobs: &[PhaseJob]) -> [u32; 2] {
        [0, 1].map(|pool| self.members().map(|member| jobs[member.job].nodes[pool]).max().unwrap_or(0))
    }

    /// What the nodes that a job would not use here cost per hour; `None` if the nodes, their memory or a limit do not allow it.
    fn idle(&self, jobs: &[PhaseJob], settings: &PhaseSettings, job: &PhaseJob) -> Option<f64> {
        let all = || self.members().map(|member| &jobs[member.job]).chain([job]);
        let memory_gb: u64 = all().map(|job| u64::from(job.memory_gb)).sum();
        let count = all().count();
        let slowdown = count as f64 * settings.slot_us as f64 / (settings.slot_us - settings.switch_us) as f64;
        let fits = memory_gb <= settings.memory_gb.into() && all().all(|job| slowdown <= job.slowdown_max);
        let [first, second] = self.size(jobs);
        let (first, second) = (first.checked_sub(job.nodes[0])?, second.checked_sub(job.nodes[1])?);
        let price = f64::from(first) * settings.prices[0] + f64::from(second) * settings.prices[1];
        (fits && count <= MEMBERS_MAX).then_some(price)
    }

    fn advance(&mut self, jobs: &[PhaseJob], settings: &PhaseSettings, now_us: u64, run: &mut PhaseRun) {
        loop {
            let ends = (0..self.rotation.len()).map(|place| self.end_us(place, settings));
            let end_us = ends.min().unwrap_or(u64::MAX);
            let loaded = self.loading.iter().enumerate().min_by_key(|(_, member)| member.ready_us);
            let (loaded, ready_us) = loaded.map_or((0, u64::MAX), |(place, member)| (place, member.ready_us));
            if end_us.min(ready_us) > now_us.min(u64::MAX - 1) {
                break;
            }
            if end_us <= ready_us {
                self.take_turns(settings, end_us - 1);
                self.leave(jobs, end_us, run);
            } else {
                self.take_turns(settings, ready_us);
                if self.rotation.is_empty() {
                    (self.turn_us, self.has_switch) = (ready_us, false);
                }
                self.rotation.push_back(self.loading.remove(loaded));
            }
        }
        if now_us < u64::MAX {
            self.take_turns(settings, now_us);
        }
    }

    /// What the member at a place executes in its next turn.
    fn turn_gain_us(&self, place: usize, settings: &PhaseSettings) -> u64 {
        let has_switch = if place == 0 { self.has_switch } else { true };
        settings.slot_us - if has_switch { settings.switch_us } else { 0 }
    }

    /// When the member at a place ends if the others stay.
    fn end_us(&self, place: usize, settings: &PhaseSettings) -> u64 {
        let left_us = self.rotation[place].left_us;
        let gain_us = self.turn_gain_us(place, settings);
        let count = self.rotation.len() as u64;
        let begin_us = self.turn_us + place as u64 * settings.slot_us;
        if left_us <= gain_us || count == 1 {
            return begin_us + settings.slot_us - gain_us + left_us;
        }
        let later_us = settings.slot_us - settings.switch_us;
        let turns = (left_us - gain_us).div_ceil(later_us);
        let rest_us = left_us - gain_us - (turns - 1) * later_us;
        begin_us + turns * count * settings.slot_us + settings.switch_us + rest_us
    }

    /// Executes the turns that are over at `until_us`; no job ends in them.
    fn take_turns(&mut self, settings: &PhaseSettings, until_us: u64) {
        let count = self.rotation.len() as u64;
        let turns = until_us.saturating_sub(self.turn_us) / settings.slot_us;
        if count == 0 || turns == 0 {
            return;
        }
        let later_us = if count == 1 { settings.slot_us } else { settings.slot_us - settings.switch_us };
        for place in 0..self.rotation.len() {
            let own = turns / count + u64::from((place as u64) < turns % count);
            if own > 0 {
                let gain_us = self.turn_gain_us(place, settings) + (own - 1) * later_us;
                self.rotation[place].left_us -= gain_us;
            }
        }
        self.rotation.rotate_left((turns % count) as usize);
        self.turn_us += turns * settings.slot_us;
        self.has_switch = count > 1;
    }

    /// Ends the job whose turn it is; the next one has the rest of the turn and a whole one.
    fn leave(&mut self, jobs: &[PhaseJob], end_us: u64, run: &mut PhaseRun) {
        for (held, nodes) in run.held.iter_mut().zip(self.size(jobs)) {
            *held += u128::from(nodes) * u128::from(end_us - self.held_us);
        }
        self.held_us = end_us;
        if let Some(member) = self.rotation.pop_front() {
            run.end_us[member.job] = end_us;
        }
        (self.turn_us, self.has_switch) = (end_us, true);
    }
}
