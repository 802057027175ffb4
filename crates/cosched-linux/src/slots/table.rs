//! What runs when: the table that the daemon makes of its plan, and its prepared form.

use std::sync::Arc;

use super::fillers::Fillers;
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
    /// The jobs that it names, in rising order.
    run: Box<[u16]>,
    /// The jobs that start to run.
    pub(super) enter: Box<[u16]>,
    /// The jobs that stop to run.
    pub(super) leave: Box<[u16]>,
    /// How many turns later the next job in the background runs; 0 when none ever does.
    pair: u32,
    /// How many slots later the next turn with differences is; 0 when there is none.
    pub(super) next_change: u32,
}

/// A table made ready for the slot thread. Its size and the work for it grow as the jobs and what the turns name, not as their product: users
/// register thousands, and each of them makes a new table.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) number: u64,
    epoch_ns: i64,
    pub(super) slot_length_ns: i64,
    pub(super) jobs: Vec<Entry>,
    pub(super) turns: Vec<Turn>,
    fill: Fill,
    fillers: Fillers,
    may_fill: bool,
}

impl Prepared {
    pub(super) fn new(table: Table, number: u64) -> Prepared {
        let Table { epoch_ns, slot_length_ns, jobs, mut turns, fill } = table;
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
                    |&&j: &&u16| jobs[usize::from(j)].otherwise != State::Run && not.binary_search(&j).is_err();
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
            fillers,
            may_fill: false,
        };
        prepared.may_fill = (0..turns.len()).any(|k| prepared.fills(k as i64).next().is_some());
        prepared
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
        self.may_fill
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
            Some(turn) if turn.run.binary_search(&(job as u16)).is_ok() => State::Run,
            _ => self.jobs[job].otherwise,
        }
    }

    /// The jobs that may fill CPUs that the running ones of a slot leave idle, in their order. Allocates nothing.
    pub(super) fn fills(&self, slot: i64) -> impl Iterator<Item = u16> {
        let all = self.fill == Fill::All;
        let turn = self.turn(slot).map(|turn| (self.turn_index(slot), turn.pair));
        turn.into_iter().flat_map(move |(k, pair)| self.fillers.after(k, pair, all))
    }
}

/// For each turn, how far the next one is that has differences.
fn find_changes(turns: &mut [Turn]) {
    let mut next = 0;
    // Twice round: the first time for what comes after the last turn.
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
pub(super) mod tests {
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

    /// Jobs of these states, whose switches have no effect.
    pub(in super::super) fn entries(otherwise: &[State]) -> Vec<Entry> {
        let dir = tempfile::tempdir().unwrap();
        let switch = switch(dir.path(), 1);
        otherwise.iter().map(|&otherwise| Entry { switch: Arc::clone(&switch), weight: 100, otherwise }).collect()
    }

    fn table(otherwise: &[State], turns: &[&[u16]]) -> Table {
        Table {
            epoch_ns: 1000,
            slot_length_ns: 10,
            jobs: entries(otherwise),
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
        let table = prepared(&[State::Stop, State::Background, State::Run], &[&[0], &[2]]);
        assert_eq!(table.fills(0).collect::<Vec<u16>>(), [1]);
        assert!(table.may_fill() && !prepared(&[State::Stop], &[&[0], &[]]).may_fill());
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
