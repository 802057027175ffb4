//! A process: one task of a job on its node.

use super::grain::Grain;
use crate::draw::Draws;
use crate::program::{Code, Op, Span};
use cosched_core::wait::spin::{Ended, SpinRule};
use cosched_core::{Endpoint, Wait};
use std::collections::VecDeque;

/// A process's name: its job (place in the job list) and its task. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Pid {
    pub(super) job: u32,
    pub(super) task: u32,
}

/// The state of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// In its node's queue.
    Ready,
    /// The current process of a CPU (index in the list of all CPUs), also while that switches or does kernel work.
    Running(usize),
    /// Asleep for I/O.
    Io,
    /// Blocked in a receive.
    Blocked,
    /// It has ended.
    Ended,
}

/// Its present step. Times grow while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// At the operation that its program counter points to.
    Begin,
    Compute {
        left_ns: u64,
    },
    /// Sends a message (receiver, size), or receives one that has arrived.
    Message {
        left_ns: u64,
        sends: Option<(u32, u64)>,
    },
    Receive {
        from: u32,
        /// Its spinning in this receive since the receive began, or since it woke or yielded.
        spun_ns: u64,
        /// It has yielded in this receive.
        yielded: bool,
    },
}

/// Why a process is at the head of the highest level (D5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    None,
    /// PB or SY has put it there.
    Boosted,
    /// DCS has put it there.
    Demanded,
    /// It has been woken.
    Woken,
}

#[derive(Clone, Debug)]
pub(super) struct Process {
    pub(super) node: u32,
    pub(super) state: State,
    /// When it fell asleep or blocked.
    pub(super) since_ns: u64,
    pub(super) level: u8,
    /// The used part of its quantum.
    pub(super) used_ns: u64,
    pub(super) mark: Mark,
    /// Its lag when it went to sleep: the CPU time that it should have had in addition (fair scheduler).
    pub(super) lag_ns: i64,
    pub(super) last_cpu: Option<usize>,
    pub(super) step: Step,
    code: Code,
    counter: usize,
    /// The remaining passes of each loop that it is in, this one included, and where the loop begins.
    loops: Vec<(u64, usize)>,
    draws: Draws,
    /// How often each operation with a draw has been done.
    drawn: Vec<u64>,
    /// The sizes of the messages in its endpoint, by sender.
    inbox: Vec<(u32, VecDeque<u64>)>,
    /// When the last message through its node's memory arrives: no message overtakes another.
    pub(super) memory_until_ns: u64,
    /// For the iteration in progress: the computation that was drawn, and that was done.
    pub(super) asked_ns: u64,
    pub(super) computed_ns: u64,
    /// What it computed of its next nanosecond, in parts of its demand of bandwidth.
    pub(super) begun: u64,
    /// The I/O that was drawn.
    pub(super) slept_ns: u64,
    /// Iterations done.
    pub(super) iterations: u64,
    /// For the receive in progress: the time that it spun and was blocked, and whether it was blocked.
    pub(super) waited: (u64, bool),
    /// Whether a custom strategy was asked how it waits in that receive, and what it said: how, and how long it spins first.
    pub(super) asked: bool,
    pub(super) told: Option<(Wait, u64)>,
    /// What flexible coscheduling has seen of it.
    pub(super) grain: Grain,
    /// Finds its spin time, unless that is fixed.
    spin: Option<Box<SpinRule>>,
}

impl Process {
    pub(super) fn new(node: u32, code: Code, draws: Draws, spin: Option<SpinRule>) -> Process {
        Process {
            node,
            state: State::Ready,
            since_ns: 0,
            level: super::levels::TOP,
            used_ns: 0,
            mark: Mark::None,
            lag_ns: 0,
            last_cpu: None,
            step: Step::Begin,
            code,
            counter: 0,
            loops: Vec::new(),
            draws,
            drawn: Vec::new(),
            inbox: Vec::new(),
            memory_until_ns: 0,
            asked_ns: 0,
            computed_ns: 0,
            begun: 0,
            slept_ns: 0,
            iterations: 0,
            waited: (0, false),
            asked: false,
            told: None,
            grain: Grain::default(),
            spin: spin.map(Box::new),
        }
    }

    /// Its individual spin time, if it has one.
    pub(super) fn own_spin_ns(&self) -> Option<u64> {
        // A time of 0 would never end: it polls at least once.
        self.spin.as_ref().map(|rule| rule.spin_ns().max(1))
    }

    /// A receive is complete; returns the waiting time. A message that had already arrived causes no wait.
    pub(super) fn end_wait(&mut self) -> Option<u64> {
        let (waited_ns, blocked) = std::mem::take(&mut self.waited);
        (self.asked, self.told) = (false, None);
        let ended = if blocked { Ended::Blocked } else { Ended::Spinning };
        if let Some(rule) = self.spin.as_mut().filter(|_| waited_ns > 0) {
            rule.waited(waited_ns, ended);
        }
        (waited_ns > 0).then_some(waited_ns)
    }

    /// Its present operation; `None` at the end.
    pub(super) fn op(&self) -> Option<Op> {
        self.code.ops().get(self.counter).copied()
    }

    /// Moves on to the next operation. Returns whether that completes an iteration: a pass of an outermost loop, or the
    /// end of operations without a loop.
    pub(super) fn step_on(&mut self) -> bool {
        let done = self.op();
        self.counter += 1;
        match done {
            Some(Op::Repeat { times }) => self.loops.push((times, self.counter)),
            Some(Op::Again) => return self.end_pass(),
            _ => {}
        }
        self.counter == self.code.ops().len() && self.iterations == 0
    }

    fn end_pass(&mut self) -> bool {
        let outermost = self.loops.len() == 1;
        if let Some((left, begin)) = self.loops.last_mut() {
            *left -= 1;
            if *left > 0 {
                self.counter = *begin;
            } else {
                self.loops.pop();
            }
        }
        outermost
    }

    /// The duration of an operation in this execution.
    pub(super) fn draw_ns(&mut self, span: Span, skew: f64) -> u64 {
        let Some(kind) = span.draw else { return span.ns };
        let kind = kind as usize;
        if self.drawn.len() <= kind {
            self.drawn.resize(kind + 1, 0);
        }
        self.drawn[kind] += 1;
        span.drawn_ns(skew, self.draws, self.drawn[kind] - 1)
    }

    /// Sets its level; a new one renews the quantum (D3).
    pub(super) fn set_level(&mut self, level: u8) {
        if self.level != level {
            self.level = level;
            self.used_ns = 0;
        }
    }

    /// A message has arrived. Returns the number of this sender's messages in the endpoint.
    pub(super) fn deliver(&mut self, from: u32, bytes: u64) -> usize {
        if let Some((_, sizes)) = self.inbox.iter_mut().find(|(sender, _)| *sender == from) {
            sizes.push_back(bytes);
            return sizes.len();
        }
        self.inbox.push((from, VecDeque::from([bytes])));
        1
    }

    /// Takes a message of this sender, if there is one; returns its size.
    pub(super) fn take(&mut self, from: u32) -> Option<u64> {
        self.inbox.iter_mut().find(|(sender, _)| *sender == from)?.1.pop_front()
    }

    /// The number of messages in its endpoint.
    pub(super) fn unread(&self) -> usize {
        self.inbox.iter().map(|(_, sizes)| sizes.len()).sum()
    }

    /// The sender whose message it waits for in a receive.
    pub(super) fn awaits(&self) -> Option<u32> {
        match self.step {
            Step::Receive { from, .. } => Some(from),
            Step::Begin | Step::Compute { .. } | Step::Message { .. } => None,
        }
    }

    /// What can be observed of it from outside.
    pub(super) fn endpoint(&self) -> Endpoint {
        match self.state {
            State::Io | State::Blocked | State::Ended => Endpoint::Blocked,
            State::Ready | State::Running(_) => self.endpoint_awake(),
        }
    }

    /// The same, as if it were runnable.
    pub(super) fn endpoint_awake(&self) -> Endpoint {
        match self.awaits() {
            None => Endpoint::Computing,
            Some(from) if self.inbox.iter().any(|(sender, sizes)| *sender == from && !sizes.is_empty()) => {
                Endpoint::Served
            }
            Some(_) => Endpoint::Waiting,
        }
    }
}
