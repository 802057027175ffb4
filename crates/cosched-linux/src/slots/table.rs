//! What runs when: the table that the daemon makes of its plan, and its prepared form.

use std::sync::Arc;

use crate::switch::{JobSwitch, State};

/// One job of a table.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The job's open switch.
    pub switch: Arc<JobSwitch>,
    /// Its weight while it runs, 1 to 10000.
    pub weight: u32,
    /// Its state in the turns that do not name it.
    pub otherwise: State,
}

/// Which of the jobs in the background may use what the running gang leaves idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fill {
    /// The gang of the next turn only: with the running one it is a pair (Strazdins & Uhlmann 2004, §6).
    Pair,
    /// The pair first, then all others by their weight, the largest first; equals in the order of their turns, those of no turn last.
    #[default]
    All,
}

/// What runs when. Slot k covers the wall clock from `epoch_ns + k·slot_length_ns`, and its turn is `turns[k mod turns.len()]`.
#[derive(Debug, Clone)]
pub struct Table {
    /// When slot 0 starts, in nanoseconds since 1970.
    pub epoch_ns: u64,
    /// How long each slot is, in nanoseconds.
    pub slot_length_ns: u64,
    /// The jobs.
    pub jobs: Vec<Entry>,
    /// For each turn, the jobs that run in it, as indices into `jobs`. Empty: every job takes its `otherwise` for good.
    pub turns: Vec<Vec<u16>>,
    /// Who fills idle CPUs, where the mechanism knows a background.
    pub fill: Fill,
}

impl Table {
    /// A table of nothing.
    pub fn empty() -> Table {
        Table { epoch_ns: 0, slot_length_ns: 100_000_000, jobs: Vec::new(), turns: Vec::new(), fill: Fill::All }
    }
}

/// One turn, with its differences from the turn before it.
#[derive(Debug)]
pub(super) struct Turn {
    /// For each job, whether this turn names it.
    named: Box<[bool]>,
    /// The jobs that start to run.
    pub(super) enter: Box<[u16]>,
    /// The jobs that stop to run.
    pub(super) leave: Box<[u16]>,
    /// The jobs that may fill idle CPUs, in this order.
    pub(super) fill: Box<[u16]>,
    /// How many slots later the next turn with differences is; 0 when there is none.
    pub(super) next_change: u32,
}

/// A table made ready for the slot thread.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) number: u64,
    epoch_ns: i64,
    pub(super) slot_length_ns: i64,
    pub(super) jobs: Vec<Entry>,
    pub(super) turns: Vec<Turn>,
}

impl Prepared {
    pub(super) fn new(table: Table, number: u64) -> Prepared {
        let Table { epoch_ns, slot_length_ns, jobs, turns, fill } = table;
        let named: Vec<Box<[bool]>> = turns.iter().map(|turn| named(turn, jobs.len())).collect();
        let mut prepared: Vec<Turn> = Vec::with_capacity(named.len());
        for (k, now) in named.iter().enumerate() {
            let before = &named[(k + named.len() - 1) % named.len()];
            let differing = |starts: bool| {
                let moved = |&j: &usize| now[j] != before[j] && now[j] == starts && jobs[j].otherwise != State::Run;
                (0..jobs.len()).filter(moved).map(|j| j as u16).collect()
            };
            let (enter, leave) = (differing(true), differing(false));
            prepared.push(Turn {
                named: now.clone(),
                enter,
                leave,
                fill: order(fill, k, &named, &jobs),
                next_change: 0,
            });
        }
        for k in 0..prepared.len() {
            let changes = |d: &usize| {
                let turn = &prepared[(k + d) % prepared.len()];
                !(turn.enter.is_empty() && turn.leave.is_empty())
            };
            prepared[k].next_change = (1..=prepared.len()).find(changes).unwrap_or(0) as u32;
        }
        Prepared {
            number,
            epoch_ns: i64::try_from(epoch_ns).unwrap_or(i64::MAX),
            slot_length_ns: i64::try_from(slot_length_ns).unwrap_or(i64::MAX).max(1),
            jobs,
            turns: prepared,
        }
    }

    /// The slot at a time; negative before the epoch.
    pub(super) fn slot_at(&self, now_ns: i64) -> i64 {
        now_ns.saturating_sub(self.epoch_ns).div_euclid(self.slot_length_ns)
    }

    /// When a slot starts.
    pub(super) fn boundary_ns(&self, slot: i64) -> i64 {
        self.epoch_ns.saturating_add(slot.saturating_mul(self.slot_length_ns))
    }

    /// True when some turn has a job in the background.
    pub(super) fn may_fill(&self) -> bool {
        self.turns.iter().any(|turn| !turn.fill.is_empty())
    }

    fn turn_index(&self, slot: i64) -> usize {
        slot.rem_euclid(self.turns.len() as i64) as usize
    }

    /// The turn of a slot; none in a table without turns.
    pub(super) fn turn(&self, slot: i64) -> Option<&Turn> {
        if self.turns.is_empty() { None } else { self.turns.get(self.turn_index(slot)) }
    }

    /// The next slot after `slot` that needs a switch.
    pub(super) fn next_change(&self, slot: i64) -> Option<i64> {
        let distance = i64::from(self.turn(slot)?.next_change);
        (distance > 0).then(|| slot + distance)
    }

    /// The state of a job in a slot.
    pub(super) fn state(&self, job: usize, slot: i64) -> State {
        match self.turn(slot) {
            Some(turn) if turn.named[job] => State::Run,
            _ => self.jobs[job].otherwise,
        }
    }
}

/// The jobs in the background of turn `k` that fill, in their order.
fn order(fill: Fill, k: usize, named: &[Box<[bool]>], jobs: &[Entry]) -> Box<[u16]> {
    let may = |j: &usize| jobs[*j].otherwise == State::Background && !named[k][*j];
    // How many turns later it runs; those of no turn come last.
    let turns_to = |j: usize| (1..named.len()).find(|d| named[(k + d) % named.len()][j]).unwrap_or(usize::MAX);
    let mut found: Vec<usize> = (0..jobs.len()).filter(may).collect();
    // The next turn that differs has the pair: one whose jobs all run now as well pairs with nobody.
    let pair = found.iter().map(|&j| turns_to(j)).min().unwrap_or(usize::MAX);
    let is_pair = |j: usize| turns_to(j) == pair && pair != usize::MAX;
    if fill == Fill::Pair {
        found.retain(|&j| is_pair(j));
    }
    found.sort_by_key(|&j| (!is_pair(j), std::cmp::Reverse(jobs[j].weight), turns_to(j)));
    found.into_iter().map(|j| j as u16).collect()
}

fn named(turn: &[u16], jobs: usize) -> Box<[bool]> {
    let mut named = vec![false; jobs].into_boxed_slice();
    for &job in turn {
        if let Some(mark) = named.get_mut(usize::from(job)) {
            *mark = true;
        }
    }
    named
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::SwitchFiles;

    fn switch(dir: &std::path::Path, id: u64) -> Arc<JobSwitch> {
        for file in ["freeze", "procs"] {
            std::fs::write(dir.join(file), "").unwrap();
        }
        let (freeze, procs) = (dir.join("freeze"), dir.join("procs"));
        let files = SwitchFiles { freeze, idle: None, weight: None, procs, usage: None };
        Arc::new(JobSwitch::open(id, &files).unwrap())
    }

    fn prepared(otherwise: &[State], turns: &[&[u16]]) -> Prepared {
        Prepared::new(table(otherwise, turns), 1)
    }

    fn table(otherwise: &[State], turns: &[&[u16]]) -> Table {
        let dir = tempfile::tempdir().unwrap();
        let entry =
            |(id, &otherwise): (usize, &State)| Entry { switch: switch(dir.path(), id as u64), weight: 100, otherwise };
        Table {
            epoch_ns: 1000,
            slot_length_ns: 10,
            jobs: otherwise.iter().enumerate().map(entry).collect(),
            turns: turns.iter().map(|t| t.to_vec()).collect(),
            fill: Fill::All,
        }
    }

    #[test]
    fn turns_hold_their_differences() {
        let table = prepared(&[State::Stop, State::Background, State::Run], &[&[0, 2], &[1], &[1]]);
        let show = |k: i64| (table.turn(k).unwrap().enter.to_vec(), table.turn(k).unwrap().leave.to_vec());
        assert_eq!(show(0), (vec![0], vec![1]));
        assert_eq!(show(1), (vec![1], vec![0]), "job 2 runs anyway");
        assert_eq!(show(2), (vec![], vec![]));
        assert_eq!(table.next_change(0), Some(1));
        assert_eq!(table.next_change(1), Some(3), "slot 2 changes nothing");
        assert_eq!(table.next_change(5), Some(6));
    }

    #[test]
    fn states_follow_the_turns() {
        let table = prepared(&[State::Stop, State::Background], &[&[0], &[1]]);
        assert_eq!([table.state(0, 0), table.state(1, 0)], [State::Run, State::Background]);
        assert_eq!([table.state(0, 7), table.state(1, 7)], [State::Stop, State::Run]);
        assert_eq!(table.state(0, -2), State::Run, "slots before the epoch count on");
    }

    fn fills(fill: Fill, weights: &[u32], turns: &[&[u16]]) -> Vec<Vec<u16>> {
        let mut table = table(&vec![State::Background; weights.len()], turns);
        table.fill = fill;
        table.jobs.iter_mut().zip(weights).for_each(|(job, &weight)| job.weight = weight);
        Prepared::new(table, 1).turns.iter().map(|turn| turn.fill.to_vec()).collect()
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
        let table = prepared(&[State::Stop, State::Background, State::Run], &[&[0], &[2]]);
        assert_eq!(table.turn(0).unwrap().fill.to_vec(), [1]);
    }

    #[test]
    fn one_turn_or_none_needs_no_switch() {
        assert_eq!(prepared(&[State::Stop], &[&[0]]).next_change(0), None);
        assert_eq!(prepared(&[State::Stop], &[]).next_change(0), None);
        assert_eq!(prepared(&[State::Stop], &[&[0], &[0]]).next_change(5), None);
        assert_eq!(prepared(&[State::Stop], &[]).state(0, 3), State::Stop);
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
}
