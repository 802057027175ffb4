//! A stage while it is simulated: its queue, and its accounts.

use cosched_core::stage::{Resource, StageView};
use std::collections::VecDeque;

/// A stage's totals since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Account {
    pub(super) rounds: u64,
    pub(super) busy_ns: u64,
    pub(super) cpu_ns: u64,
    pub(super) delay_ns: u64,
    pub(super) wait_in_ns: u64,
    pub(super) wait_out_ns: u64,
    /// The number of waiting buffers, integrated over time.
    pub(super) queued_ns: u128,
}

impl Account {
    pub(super) fn since(&self, before: &Account) -> Account {
        Account {
            rounds: self.rounds - before.rounds,
            busy_ns: self.busy_ns - before.busy_ns,
            cpu_ns: self.cpu_ns - before.cpu_ns,
            delay_ns: self.delay_ns - before.delay_ns,
            wait_in_ns: self.wait_in_ns - before.wait_in_ns,
            wait_out_ns: self.wait_out_ns - before.wait_out_ns,
            queued_ns: self.queued_ns - before.queued_ns,
        }
    }

    /// The view of a rule on this stage, for a window of this length.
    pub(super) fn view(
        &self,
        length_ns: u64,
        resource: Resource,
        threads: u32,
        replicable_to: u32,
        most: u32,
    ) -> StageView {
        StageView {
            resource,
            threads,
            rounds: self.rounds,
            busy_ns: self.busy_ns,
            cpu_ns: self.cpu_ns,
            delay_ns: self.delay_ns,
            wait_in_ns: self.wait_in_ns,
            wait_out_ns: self.wait_out_ns,
            queue_in: self.queued_ns as f64 / length_ns.max(1) as f64,
            queue_in_max: most,
            replicable_to,
        }
    }
}

/// The buffers in front of a stage, by the numbers of their rounds.
#[derive(Debug, Default)]
pub(super) struct Books {
    pub(super) queue: VecDeque<u64>,
    /// Threads of the stage that wait for a buffer.
    pub(super) hungry: VecDeque<usize>,
    /// The number of threads that have a buffer of this stage now.
    pub(super) working: u32,
    pub(super) account: Account,
    since_ns: u64,
}

impl Books {
    /// Brings the account of the queue up to date.
    pub(super) fn settle(&mut self, now_ns: u64) {
        self.account.queued_ns += u128::from(now_ns - self.since_ns) * self.queue.len() as u128;
        self.since_ns = now_ns;
    }

    pub(super) fn push(&mut self, now_ns: u64, round: u64) {
        self.settle(now_ns);
        self.queue.push_back(round);
    }

    pub(super) fn pop(&mut self, now_ns: u64) -> Option<u64> {
        self.settle(now_ns);
        self.queue.pop_front()
    }
}
