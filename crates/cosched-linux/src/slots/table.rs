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
}

impl Table {
    /// A table of nothing.
    pub fn empty() -> Table {
        Table { epoch_ns: 0, slot_length_ns: 100_000_000, jobs: Vec::new(), turns: Vec::new() }
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
    /// The jobs that may fill idle CPUs, the next ones to run first.
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
        let Table { epoch_ns, slot_length_ns, jobs, turns } = table;
        let named: Vec<Box<[bool]>> = turns.iter().map(|turn| named(turn, jobs.len())).collect();
        let mut prepared: Vec<Turn> = Vec::with_capacity(named.len());
        for (k, now) in named.iter().enumerate() {
            let before = &named[(k + named.len() - 1) % named.len()];
            let differing = |starts: bool| {
                let moved = |&j: &usize| now[j] != before[j] && now[j] == starts && jobs[j].otherwise != State::Run;
                (0..jobs.len()).filter(moved).map(|j| j as u16).collect()
            };
            let (enter, leave) = (differing(true), differing(false));
            prepared.push(Turn { named: now.clone(), enter, leave, fill: fill(k, &named, &jobs), next_change: 0 });
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

/// How many jobs may fill at most: each costs a few writes, and the CPUs are soon full.
const FILL_MAX: usize = 4;

/// The jobs in the background of turn `k`: those of the next turns first, then those of none.
fn fill(k: usize, named: &[Box<[bool]>], jobs: &[Entry]) -> Box<[u16]> {
    let mut found: Vec<u16> = Vec::new();
    let may = |j: usize| jobs[j].otherwise == State::Background && !named[k][j];
    for turn in (1..named.len()).map(|d| &named[(k + d) % named.len()]) {
        for j in (0..jobs.len()).filter(|&j| turn[j] && may(j)) {
            if found.len() < FILL_MAX && !found.contains(&(j as u16)) {
                found.push(j as u16);
            }
        }
        if found.len() == FILL_MAX {
            return found.into();
        }
    }
    let of_none = |&j: &usize| may(j) && named.iter().all(|turn| !turn[j]);
    found.extend((0..jobs.len()).filter(of_none).take(FILL_MAX - found.len()).map(|j| j as u16));
    found.into()
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
        let files = SwitchFiles { freeze: dir.join("freeze"), idle: None, weight: None, procs: dir.join("procs") };
        Arc::new(JobSwitch::open(id, &files).unwrap())
    }

    fn prepared(otherwise: &[State], turns: &[&[u16]]) -> Prepared {
        let dir = tempfile::tempdir().unwrap();
        let entry =
            |(id, &otherwise): (usize, &State)| Entry { switch: switch(dir.path(), id as u64), weight: 100, otherwise };
        let table = Table {
            epoch_ns: 1000,
            slot_length_ns: 10,
            jobs: otherwise.iter().enumerate().map(entry).collect(),
            turns: turns.iter().map(|t| t.to_vec()).collect(),
        };
        Prepared::new(table, 1)
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

    #[test]
    fn idle_cpus_are_filled_by_the_next_to_run() {
        let table = prepared(&[State::Background; 4], &[&[0], &[1], &[2]]);
        let fill = |k: i64| table.turn(k).unwrap().fill.to_vec();
        assert_eq!([fill(0), fill(1), fill(2)], [[1, 2, 3], [2, 0, 3], [0, 1, 3]]);
        let table = prepared(&[State::Stop, State::Background, State::Run], &[&[0], &[2]]);
        assert_eq!(table.turn(0).unwrap().fill.to_vec(), [1], "stopped and running ones do not fill");
        let table = prepared(&[State::Background; 9], &[&[0], &[1, 2, 3, 4, 5, 6]]);
        assert_eq!(table.turn(0).unwrap().fill.len(), FILL_MAX);
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
