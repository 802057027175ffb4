//! Expands a program for each task of a job: patterns become sends and receives.

use super::code::{Code, Op, Span, neighbours};
use super::{Pattern, Peer, Program, ProgramError, Statement, Who};
use crate::draw::Draws;
use crate::params::Topology;
use std::collections::BTreeMap;

/// The maximum number of operations of all tasks of a job: a quarter of a gigabyte, and as much again to pair them.
pub(crate) const OPS_MAX: usize = 10_000_000;

/// The maximum number of passes through nested loops: more than any simulation will do, and far from overflow.
pub(super) const PASSES_MAX: u64 = 1_000_000_000_000;

/// The parameters of an expansion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The number of tasks.
    pub tasks: u32,
    /// For random pairs.
    pub seed: u64,
    /// For `exchange 1d`.
    pub topology: Topology,
}

/// Expands the program for one task.
struct Writer {
    setting: Setting,
    task: u32,
    ops: Vec<Op>,
    /// How many it may have.
    room: usize,
    /// How often the present statement is executed.
    passes: u64,
    /// The number of draws and random pairings so far in the text.
    draws: u32,
    pairings: u64,
}

impl Program {
    /// The operations of each task of a job. An error says what is impossible: a task that does not exist, a message
    /// that is sent and never received or the other way round, a task that communicates with itself.
    pub fn expand(&self, setting: Setting) -> Result<Vec<Code>, ProgramError> {
        self.expand_within(setting, OPS_MAX)
    }

    fn expand_within(&self, setting: Setting, most: usize) -> Result<Vec<Code>, ProgramError> {
        let (mut codes, mut room) = (Vec::new(), most);
        for task in 0..setting.tasks {
            let mut writer = Writer { setting, task, ops: Vec::new(), room, passes: 1, draws: 0, pairings: 0 };
            writer.body(&self.body, true)?;
            room -= writer.ops.len();
            codes.push(Code::new(writer.ops));
        }
        check_pairs(&codes)?;
        Ok(codes)
    }
}

fn error(what: String, why: &str, hint: &str) -> ProgramError {
    ProgramError { at: None, what, why: why.into(), hint: hint.into() }
}

fn too_often() -> ProgramError {
    let what = "loops in loops are done more than 10^12 times".to_owned();
    error(what, "that would never end", "make the numbers of 'repeat' smaller")
}

/// Checks that the same number of messages is received as is sent, from each task to each other.
fn check_pairs(codes: &[Code]) -> Result<(), ProgramError> {
    let mut balance: BTreeMap<(u32, u32), i128> = BTreeMap::new();
    for (task, code) in codes.iter().enumerate() {
        let task = task as u32;
        code.each(|op, loops| {
            let times: i128 = loops.iter().map(|times| i128::from(*times)).product();
            match op {
                Op::Send { to, .. } => *balance.entry((task, *to)).or_default() += times,
                Op::Receive { from } => *balance.entry((*from, task)).or_default() -= times,
                Op::Compute(_) | Op::Hold(_) | Op::Io(_) | Op::Repeat { .. } | Op::Again => {}
            }
        });
    }
    let Some(((from, to), more)) = balance.into_iter().find(|(_, more)| *more != 0) else { return Ok(()) };
    let (sends, why) =
        if more > 0 { ("more", "they would never be read") } else { ("fewer", "the receiver would wait for ever") };
    let what = format!("task {from} sends {} messages {sends} to task {to} than that receives", more.abs());
    Err(error(what, why, "give every send its recv; beware of 'left' and 'right' at the ends of 'on'"))
}

impl Writer {
    /// `mine`: this task takes part. A task that does not still counts draws and pairings, because they belong to the
    /// text.
    fn body(&mut self, body: &[Statement], mine: bool) -> Result<(), ProgramError> {
        body.iter().try_for_each(|statement| self.statement(statement, mine))
    }

    fn statement(&mut self, statement: &Statement, mine: bool) -> Result<(), ProgramError> {
        match statement {
            Statement::Compute { ns, skew } => {
                let span = self.span(*ns, *skew);
                self.op(Op::Compute(span), mine)
            }
            Statement::Hold { ns } => self.op(Op::Hold(*ns), mine),
            Statement::Io { ns, skew } => {
                let span = self.span(*ns, *skew);
                self.op(Op::Io(span), mine)
            }
            Statement::Send { to, bytes } if mine => {
                let to = self.peer(*to)?;
                self.op(Op::Send { to, bytes: *bytes }, true)
            }
            Statement::Receive { from } if mine => {
                let from = self.peer(*from)?;
                self.op(Op::Receive { from }, true)
            }
            Statement::Send { .. } | Statement::Receive { .. } => Ok(()),
            Statement::Pattern(pattern) => self.pattern(*pattern, mine),
            Statement::On { who, body } => {
                let among = self.among(*who);
                self.body(body, mine && among)
            }
            Statement::Repeat { times, body } => {
                let begin = self.ops.len();
                let passes = self.passes;
                self.passes = passes.checked_mul(*times).filter(|all| *all <= PASSES_MAX).ok_or_else(too_often)?;
                self.op(Op::Repeat { times: *times }, mine)?;
                self.body(body, mine)?;
                self.passes = passes;
                if self.ops.len() == begin + 1 {
                    self.ops.pop();
                    return Ok(());
                }
                self.op(Op::Again, mine)
            }
        }
    }

    fn op(&mut self, op: Op, mine: bool) -> Result<(), ProgramError> {
        if mine {
            self.ops.push(op);
        }
        if self.ops.len() > self.room {
            let what = format!("the tasks of a job have more than {OPS_MAX} operations together");
            return Err(error(what, "patterns are written out for each task", "use repeat, or fewer tasks"));
        }
        Ok(())
    }

    fn span(&mut self, ns: u64, skew: bool) -> Span {
        let draw = skew.then_some(self.draws);
        self.draws += u32::from(skew);
        Span { ns, draw }
    }

    fn among(&self, who: Who) -> bool {
        match who {
            Who::Range(first, last) => (first..=last).contains(&self.task),
            Who::Even => self.task.is_multiple_of(2),
            Who::Odd => !self.task.is_multiple_of(2),
            Who::Last => self.task + 1 == self.setting.tasks,
        }
    }

    fn peer(&self, peer: Peer) -> Result<u32, ProgramError> {
        let tasks = self.setting.tasks;
        let task = match peer {
            Peer::Offset(by) => (i64::from(self.task) + by).rem_euclid(i64::from(tasks)) as u32,
            Peer::Task(task) => self.existing(task)?,
        };
        if task == self.task {
            let what = format!("task {task} of {tasks} talks to itself ('{peer}')");
            return Err(error(what, "messages go from one task to another", "give the job more tasks, or use 'on'"));
        }
        Ok(task)
    }

    fn existing(&self, task: u32) -> Result<u32, ProgramError> {
        let tasks = self.setting.tasks;
        if task < tasks {
            return Ok(task);
        }
        let what = format!("there is no task {task}");
        Err(error(what, &format!("the job has {tasks} tasks, numbered from 0"), "give the job more tasks"))
    }

    fn send(&mut self, to: u32, bytes: u64) -> Result<(), ProgramError> {
        self.op(Op::Send { to, bytes }, true)
    }

    fn receive(&mut self, from: u32) -> Result<(), ProgramError> {
        self.op(Op::Receive { from }, true)
    }

    fn pattern(&mut self, pattern: Pattern, mine: bool) -> Result<(), ProgramError> {
        if let Pattern::RandomPairs(_) = pattern {
            self.pairings += 1;
        }
        if !mine {
            return Ok(());
        }
        let (task, tasks) = (self.task, self.setting.tasks);
        match pattern {
            Pattern::Barrier => self.barrier(),
            Pattern::AllToAll(bytes) => (1..tasks).try_for_each(|step| {
                self.send((task + step) % tasks, bytes)?;
                self.receive((task + tasks - step) % tasks)
            }),
            Pattern::Broadcast { root, bytes } => self.broadcast(root, bytes),
            Pattern::Reduce { root, bytes } => self.reduce(root, bytes),
            Pattern::Exchange { dimensions, bytes } => self.exchange(dimensions, bytes),
            Pattern::Ring(bytes) if tasks > 1 => {
                self.send((task + 1) % tasks, bytes)?;
                self.receive((task + tasks - 1) % tasks)
            }
            Pattern::Ring(_) => Ok(()),
            Pattern::RandomPairs(bytes) => match self.partner() {
                Some(partner) => self.send(partner, bytes).and_then(|()| self.receive(partner)),
                None => Ok(()),
            },
        }
    }

    /// Dissemination (Hensgen, Finkel, Manber 1988): empty messages.
    fn barrier(&mut self) -> Result<(), ProgramError> {
        let (task, tasks) = (u64::from(self.task), u64::from(self.setting.tasks));
        let mut distance = 1;
        while distance < tasks {
            self.send(((task + distance) % tasks) as u32, 0)?;
            self.receive(((task + tasks - distance) % tasks) as u32)?;
            distance *= 2;
        }
        Ok(())
    }

    /// The place in a binomial tree whose root is 0: the parent, and the children from the largest subtree on.
    fn tree(&self, root: u32) -> Result<(Option<u32>, Vec<u32>), ProgramError> {
        let (root, tasks) = (u64::from(self.existing(root)?), u64::from(self.setting.tasks));
        let place = (u64::from(self.task) + tasks - root) % tasks;
        let task = |place: u64| ((place + root) % tasks) as u32;
        // The lowest set bit is the distance to the parent; lower bits are distances to children.
        let reach = if place == 0 { tasks.next_power_of_two() } else { place & place.wrapping_neg() };
        let distances = std::iter::successors(Some(reach / 2), |d| Some(d / 2)).take_while(|d| *d > 0);
        let children = distances.map(|d| place + d).filter(|child| *child < tasks).map(task).collect();
        Ok(((place > 0).then(|| task(place - reach)), children))
    }

    fn broadcast(&mut self, root: u32, bytes: u64) -> Result<(), ProgramError> {
        let (parent, children) = self.tree(root)?;
        parent.map_or(Ok(()), |parent| self.receive(parent))?;
        children.into_iter().try_for_each(|child| self.send(child, bytes))
    }

    fn reduce(&mut self, root: u32, bytes: u64) -> Result<(), ProgramError> {
        let (parent, children) = self.tree(root)?;
        children.into_iter().rev().try_for_each(|child| self.receive(child))?;
        parent.map_or(Ok(()), |parent| self.send(parent, bytes))
    }

    /// Sends to all neighbours, then receives from all, in the order of D11: first towards higher numbers.
    fn exchange(&mut self, dimensions: u32, bytes: u64) -> Result<(), ProgramError> {
        let mut pairs = Vec::new();
        if dimensions == 1 {
            pairs.push(neighbours(self.task, self.setting.tasks, self.setting.topology));
        } else {
            let extents = near_cube(self.setting.tasks, dimensions);
            let mut stride = 1;
            for extent in extents {
                pairs.push(along(self.task, stride, extent));
                stride *= extent;
            }
        }
        for (left, right) in &pairs {
            [right, left].into_iter().flatten().try_for_each(|to| self.send(*to, bytes))?;
        }
        for (left, right) in &pairs {
            [left, right].into_iter().flatten().try_for_each(|from| self.receive(*from))?;
        }
        Ok(())
    }

    /// The partner of this task, by a random order of all tasks: neighbours in it are pairs.
    fn partner(&self) -> Option<u32> {
        let draws = Draws::new(self.setting.seed, u64::MAX - self.pairings, self.setting.tasks.into());
        let mut order: Vec<u32> = (0..self.setting.tasks).collect();
        order.sort_by_key(|task| ((draws.unit(u64::from(*task), 2) * (1_u64 << 53) as f64) as u64, *task));
        let place = order.iter().position(|task| *task == self.task)?;
        order.get(place ^ 1).copied()
    }
}

/// The neighbours along one dimension of a periodic grid. With an extent of two they are the same: one message each way.
fn along(task: u32, stride: u32, extent: u32) -> (Option<u32>, Option<u32>) {
    let place = task / stride % extent;
    let at = |other: u32| task - place * stride + other * stride;
    match extent {
        0 | 1 => (None, None),
        2 => (None, Some(at(1 - place))),
        _ => (Some(at((place + extent - 1) % extent)), Some(at((place + 1) % extent))),
    }
}

/// Extents whose product is `tasks`, as equal as can be, the largest last.
fn near_cube(tasks: u32, dimensions: u32) -> Vec<u32> {
    if dimensions <= 1 {
        return vec![tasks];
    }
    let below_root = |n: &u32| u64::from(*n).pow(dimensions) <= u64::from(tasks);
    let divides = |n: &u32| tasks.is_multiple_of(*n);
    let first = (1..=tasks).take_while(below_root).filter(divides).last().unwrap_or(1);
    let mut extents = vec![first];
    extents.extend(near_cube(tasks / first, dimensions - 1));
    extents
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expand(text: &str, tasks: u32) -> Result<Vec<Code>, ProgramError> {
        text.parse::<Program>().unwrap().expand(Setting { tasks, seed: 3, topology: Topology::Ring })
    }

    /// (from, to) of all sends.
    fn sends(text: &str, tasks: u32) -> Vec<(u32, u32)> {
        let codes = expand(text, tasks).unwrap();
        let of = |(task, code): (usize, &Code)| {
            let to = |op: &Op| if let Op::Send { to, .. } = op { Some((task as u32, *to)) } else { None };
            code.ops().iter().filter_map(to).collect::<Vec<_>>()
        };
        codes.iter().enumerate().flat_map(of).collect()
    }

    #[test]
    fn patterns_send_what_they_should() {
        assert_eq!(sends("barrier", 3), [(0, 1), (0, 2), (1, 2), (1, 0), (2, 0), (2, 1)]);
        assert_eq!(sends("bcast root=1 8B", 5), [(1, 0), (1, 3), (1, 2), (3, 4)]);
        assert_eq!(sends("reduce root=0 8B", 4), [(1, 0), (2, 0), (3, 2)]);
        assert_eq!(sends("alltoall 8B", 3), [(0, 1), (0, 2), (1, 2), (1, 0), (2, 0), (2, 1)]);
        assert_eq!(sends("ring", 2), [(0, 1), (1, 0)]);
        assert_eq!(sends("exchange 1d", 3), [(0, 1), (0, 2), (1, 2), (1, 0), (2, 0), (2, 1)]);
        for lonely in ["barrier", "ring", "alltoall 8B", "bcast root=0", "exchange 3d", "random-pairs"] {
            assert_eq!(sends(lonely, 1), [], "{lonely}");
        }
    }

    #[test]
    fn grids_are_as_square_as_can_be() {
        assert_eq!(
            [near_cube(12, 2), near_cube(7, 2), near_cube(32, 3), near_cube(36, 2)].concat(),
            [3, 4, 1, 7, 2, 4, 4, 6, 6]
        );
        // 2 × 4: one neighbour down, two along.
        assert_eq!(sends("exchange 2d", 8).iter().filter(|(from, _)| *from == 0).count(), 3);
        assert_eq!(sends("exchange 3d", 27).len(), 27 * 6);
    }

    #[test]
    fn random_pairs_are_pairs_and_differ_by_place_in_the_text() {
        let first = sends("random-pairs", 9);
        assert_eq!(first.len(), 8);
        assert!(first.iter().all(|(a, b)| first.contains(&(*b, *a)) && a != b));
        let both = sends("random-pairs; random-pairs", 9);
        assert_ne!(both.iter().step_by(2).collect::<Vec<_>>(), first.iter().collect::<Vec<_>>());
    }

    #[test]
    fn messages_that_nobody_waits_for_are_found() {
        let what = |text, tasks| expand(text, tasks).unwrap_err().what;
        assert_eq!(what("on 0 { send 1 }", 2), "task 0 sends 1 messages more to task 1 than that receives");
        assert_eq!(what("repeat 3 { recv left }", 3), "task 0 sends 3 messages fewer to task 1 than that receives");
        assert_eq!(what("send 5; recv 5", 3), "there is no task 5");
        assert!(what("repeat 1000000 { repeat 1000001 { compute 1ns } }", 1).contains("10^12"));
        assert!(what("send right; recv left", 1).contains("talks to itself"));
        assert!(what("send 0; recv 0", 2).contains("talks to itself"));
    }

    #[test]
    fn all_tasks_together_are_bounded() {
        let program: Program = "alltoall 8B; on 0 { compute 1ms }".parse().unwrap();
        let within = |most| program.expand_within(Setting { tasks: 5, seed: 3, topology: Topology::Ring }, most);
        assert_eq!(within(41).unwrap().len(), 5);
        assert!(within(40).unwrap_err().what.contains("the tasks of a job have more than"));
    }

    #[test]
    fn what_others_do_leaves_no_empty_loops() {
        let codes = expand("repeat 4 { on 0 { repeat 2 { compute 1ms } } }", 2).unwrap();
        assert_eq!((codes[0].ops().len(), codes[1].ops().len()), (5, 0));
    }

    #[test]
    fn draws_belong_to_the_text_and_not_to_the_task() {
        let codes = expand("on 0 { compute 1ms skew }; compute 2ms skew", 2).unwrap();
        let second = Op::Compute(Span { ns: 2_000_000, draw: Some(1) });
        assert_eq!((codes[0].ops()[1], codes[1].ops()[0]), (second, second));
    }
}
