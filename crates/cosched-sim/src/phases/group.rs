//! A group of jobs whose phases take turns: in each cycle every member executes its first phase, then its second, all in the same order.
//!
//! All members use the second-pool nodes of the group, one at a time. Its first-pool nodes are blocks, and the members of a block have them one
//! at a time. So an iteration depends on what is before it in the order alone, and time is no queue of events but a recursion over cycles
//! and members. Two facts follow. With constant lengths a cycle takes the longest of: an iteration alone, the load of a block, the load of
//! the second nodes (each circuit of dependencies is no longer than that for each cycle that it crosses). And no end moves later
//! when a phase becomes shorter: a plan with the longest phases bounds every end.

use super::PhaseSettings;
use crate::workload::phase_jobs::PhaseJob;

/// A job in the group.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) job: usize,
    pub(super) block: usize,
    /// The first cycle in which it has a turn.
    pub(super) first_cycle: u64,
    /// Iterations that are over.
    done: u32,
    /// When its next iteration can begin, µs.
    ready_us: u64,
}

/// Nodes that run one phase after another.
#[derive(Clone, Debug)]
struct Nodes {
    free_us: u64,
    /// Whose phase was last.
    last: Option<usize>,
    /// Until when they are paid, µs.
    held_us: u64,
}

impl Nodes {
    fn new(now_us: u64) -> Nodes {
        Nodes { free_us: now_us, last: None, held_us: now_us }
    }

    /// When a phase ends here that can begin at `ready_us`.
    fn end_us(&self, job: usize, ready_us: u64, length_us: u64, switch_us: u64) -> u64 {
        let is_change = self.last.is_some_and(|last| last != job);
        ready_us.max(self.free_us) + length_us + if is_change { switch_us } else { 0 }
    }
}

/// An iteration that is over.
pub(super) struct Step {
    pub(super) job: usize,
    pub(super) cycle: u64,
    pub(super) end_us: u64,
    /// Whether it was the job's last one.
    pub(super) is_last: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Group {
    /// In the order of their turns.
    pub(super) members: Vec<Member>,
    blocks: Vec<Nodes>,
    second: Nodes,
    /// The cycle, and the place of the member whose turn is next.
    turn: (u64, usize),
    /// What has been paid, node · µs.
    pub(super) held: [u128; 2],
}

impl Group {
    /// A group without members.
    pub(super) fn new(now_us: u64) -> Group {
        Group { members: Vec::new(), blocks: Vec::new(), second: Nodes::new(now_us), turn: (0, 0), held: [0; 2] }
    }

    /// The cycle whose turns are not all over.
    pub(super) fn cycle(&self) -> u64 {
        self.turn.0
    }

    pub(super) fn blocks(&self) -> std::ops::Range<usize> {
        0..self.blocks.len()
    }

    /// The nodes of a block, or of the second pool: what its largest member needs.
    pub(super) fn size(&self, jobs: &[PhaseJob], block: Option<usize>) -> u32 {
        let pool = usize::from(block.is_none());
        let members = self.members.iter().filter(|member| block.is_none_or(|block| member.block == block));
        members.map(|member| jobs[member.job].nodes[pool]).max().unwrap_or(0)
    }

    /// Adds a member as the last in the order; the block after the existing ones is a new one.
    pub(super) fn join(&mut self, job: usize, block: usize, first_cycle: u64, now_us: u64, ready_us: u64) {
        if block == self.blocks.len() {
            self.blocks.push(Nodes::new(now_us));
        }
        self.members.push(Member { job, block, first_cycle, done: 0, ready_us });
    }

    /// The place of the member whose turn is next.
    fn next(&mut self) -> Option<usize> {
        let first = self.members.iter().map(|member| member.first_cycle).min()?;
        loop {
            let (cycle, place) = self.turn;
            let is_in = |place: &usize| self.members[*place].first_cycle <= cycle;
            if let Some(place) = (place..self.members.len()).find(is_in) {
                self.turn.1 = place;
                return Some(place);
            }
            self.turn = (first.max(cycle + 1), 0);
        }
    }

    /// Executes the next iteration if it ends by `until_us`.
    pub(super) fn step(
        &mut self,
        jobs: &[PhaseJob],
        settings: &PhaseSettings,
        until_us: u64,
        length_us: impl Fn(usize, u32) -> [u64; 2],
    ) -> Option<Step> {
        let place = self.next()?;
        let Member { job, block, done, ready_us, .. } = self.members[place];
        let [first_us, second_us] = length_us(job, done);
        let first_end_us = self.blocks[block].end_us(job, ready_us, first_us, settings.switch_us);
        let end_us = self.second.end_us(job, first_end_us, second_us, settings.switch_us);
        if end_us > until_us {
            return None;
        }
        for (nodes, free_us) in [(&mut self.blocks[block], first_end_us), (&mut self.second, end_us)] {
            (nodes.free_us, nodes.last) = (free_us, Some(job));
        }
        let cycle = self.cycle();
        let is_last = done + 1 == jobs[job].iterations;
        if is_last {
            self.leave(jobs, place, end_us);
        } else {
            (self.members[place].done, self.members[place].ready_us) = (done + 1, end_us);
            self.turn.1 = place + 1;
        }
        Some(Step { job, cycle, end_us, is_last })
    }

    /// Takes a member out, and gives back the nodes that the others do not need.
    fn leave(&mut self, jobs: &[PhaseJob], place: usize, end_us: u64) {
        let block = self.members[place].block;
        let sizes = [self.size(jobs, Some(block)), self.size(jobs, None)];
        for (pool, nodes) in [&mut self.blocks[block], &mut self.second].into_iter().enumerate() {
            self.held[pool] += u128::from(sizes[pool]) * u128::from(end_us - nodes.held_us);
            nodes.held_us = end_us;
        }
        self.members.remove(place);
    }
}
