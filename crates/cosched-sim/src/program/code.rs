//! The operations of a task: a list with loops. The paper's jobs are such lists, too.

use super::{Pattern, Program, Statement};
use crate::draw::{Draws, skewed_ns};
use crate::job::{JobSpec, Shape};
use crate::params::{Params, Topology};

/// An operation of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Uses the CPU; the time is that on the first host of a platform.
    Compute(Span),
    /// Uses the CPU for this time on any host, in ns.
    Hold(u64),
    /// Sleeps for a device.
    Io(Span),
    /// Passes a message to the network interface; costs the task no time.
    Send {
        /// The receiving task.
        to: u32,
        /// The message's size.
        bytes: u64,
    },
    /// Waits for the next message of a task.
    Receive {
        /// The sending task.
        from: u32,
    },
    /// Begins a loop.
    Repeat {
        /// The number of passes, at least one.
        times: u64,
    },
    /// Ends the innermost loop.
    Again,
}

/// A duration, with skewness or without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The time without skewness.
    pub ns: u64,
    /// With skewness: the number of its draws, 0, 1, … in the order of the program's text.
    pub draw: Option<u32>,
}

impl Span {
    /// The time at its `nth` execution (D20).
    pub(crate) fn drawn_ns(self, skew: f64, draws: Draws, nth: u64) -> u64 {
        match self.draw {
            Some(kind) => skewed_ns(self.ns, skew, draws.unit(nth, kind.into())),
            None => self.ns,
        }
    }
}

/// The totals of a task's operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    /// Passes through outermost loops; a list without one counts as one pass.
    pub(crate) iterations: u64,
    pub(crate) sends: u64,
    pub(crate) receives: u64,
    pub(crate) compute_ns: u128,
    /// Held CPUs and I/O: on any host the same.
    pub(crate) fixed_ns: u128,
}

/// A task's operations. Invariant: loops are closed, and run at least once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Code {
    ops: Vec<Op>,
}

impl Code {
    /// Creates it from operations whose loops are closed.
    pub(crate) fn new(ops: Vec<Op>) -> Code {
        Code { ops }
    }

    /// The operations.
    pub fn ops(&self) -> &[Op] {
        &self.ops
    }

    /// Task `task` of a job of the paper (D8, D11).
    pub(crate) fn of_paper(job: &JobSpec, shape: &Shape, params: &Params, task: u32) -> Code {
        let mut ops = vec![
            Op::Repeat { times: shape.iterations },
            Op::Compute(Span { ns: shape.compute_ns, draw: Some(0) }),
            Op::Io(Span { ns: shape.io_ns, draw: Some(1) }),
        ];
        let (left, right) = neighbours(task, job.tasks, params.readings.topology);
        ops.extend([right, left].into_iter().flatten().map(|to| Op::Send { to, bytes: MESSAGE_BYTES }));
        ops.extend([left, right].into_iter().flatten().map(|from| Op::Receive { from }));
        ops.push(Op::Again);
        Code { ops }
    }

    /// Gives each operation, and how often each of the loops around it is done.
    pub(crate) fn each(&self, mut give: impl FnMut(&Op, &[u64])) {
        let mut loops: Vec<u64> = Vec::new();
        for op in &self.ops {
            give(op, &loops);
            match op {
                Op::Repeat { times } => loops.push(*times),
                Op::Again => _ = loops.pop(),
                _ => {}
            }
        }
    }

    pub(crate) fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        self.each(|op, loops| {
            let times: u64 = loops.iter().product();
            match op {
                Op::Compute(span) => totals.compute_ns += u128::from(times) * u128::from(span.ns),
                Op::Io(Span { ns, .. }) | Op::Hold(ns) => totals.fixed_ns += u128::from(times) * u128::from(*ns),
                Op::Send { .. } => totals.sends += times,
                Op::Receive { .. } => totals.receives += times,
                Op::Repeat { times } => totals.iterations += if loops.is_empty() { *times } else { 0 },
                Op::Again => {}
            }
        });
        if totals.iterations == 0 && !self.ops.is_empty() {
            totals.iterations = 1;
        }
        totals
    }
}

impl Program {
    /// A job of the paper (D8, D11) as a program.
    pub fn of_paper(shape: &Shape) -> Program {
        let body = vec![
            Statement::Compute { ns: shape.compute_ns, skew: true },
            Statement::Io { ns: shape.io_ns, skew: true },
            Statement::Pattern(Pattern::Exchange { dimensions: 1, bytes: MESSAGE_BYTES }),
        ];
        Program { body: vec![Statement::Repeat { times: shape.iterations, body }] }
    }
}

/// The size of all messages in the paper (Table 3).
pub(crate) const MESSAGE_BYTES: u64 = 4096;

/// The left and the right neighbour of a task (D8). With two tasks, each has one neighbour.
pub(crate) fn neighbours(task: u32, tasks: u32, topology: Topology) -> (Option<u32>, Option<u32>) {
    match (tasks, topology) {
        (0 | 1, _) => (None, None),
        (2, _) => (None, Some(1 - task)),
        (_, Topology::Ring) => (Some((task + tasks - 1) % tasks), Some((task + 1) % tasks)),
        (_, Topology::Line) => (task.checked_sub(1), Some(task + 1).filter(|right| *right < tasks)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_on_a_ring_and_on_a_line() {
        let ring = |task, tasks| neighbours(task, tasks, Topology::Ring);
        assert_eq!([ring(0, 3), ring(2, 3)], [(Some(2), Some(1)), (Some(1), Some(0))]);
        assert_eq!([ring(0, 1), ring(0, 2), ring(1, 2)], [(None, None), (None, Some(1)), (None, Some(0))]);
        let line = |task| neighbours(task, 3, Topology::Line);
        assert_eq!([line(0), line(1), line(2)], [(None, Some(1)), (Some(0), Some(2)), (Some(1), None)]);
    }

    #[test]
    fn totals_multiply_through_loops() {
        let send = Op::Send { to: 0, bytes: 1 };
        let span = Span { ns: 5, draw: None };
        let nested =
            [send, Op::Repeat { times: 3 }, Op::Repeat { times: 4 }, send, Op::Again, Op::Compute(span), Op::Again];
        let totals = Code::new(nested.to_vec()).totals();
        assert_eq!((totals.iterations, totals.sends, totals.compute_ns), (3, 13, 15));
        assert_eq!(Code::new(vec![send]).totals().iterations, 1);
    }
}
