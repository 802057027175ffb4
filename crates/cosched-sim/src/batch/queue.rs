//! The queue of a batch machine: in the order of submission, and for shortest-first backfilling also by estimate.

use super::engine::Policy;
use super::filter::BatchJob;

/// A waiting job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waiting {
    pub(super) job: u32,
    pub(super) size: u32,
    pub(super) estimate_us: u64,
}

/// The waiting jobs. The head is the oldest one; the others are looked at in the order of backfilling.
#[derive(Debug)]
pub(super) struct Queue {
    shortest_first: bool,
    /// From the oldest to the youngest: job numbers rise. Before `head` they have started.
    fifo: Vec<Waiting>,
    head: usize,
    /// The order of backfilling, the head's job included; only if it is another one.
    by_estimate: Vec<Waiting>,
}

impl Queue {
    pub(super) fn new(policy: Policy) -> Queue {
        let shortest_first = policy == Policy::EasySjbf;
        Queue { shortest_first, fifo: Vec::new(), head: 0, by_estimate: Vec::new() }
    }

    pub(super) fn push(&mut self, job: u32, spec: &BatchJob) {
        let waiting = Waiting { job, size: spec.size, estimate_us: spec.estimate_us };
        self.fifo.push(waiting);
        if self.shortest_first {
            let key = (waiting.estimate_us, waiting.job);
            let place = self.by_estimate.partition_point(|other| (other.estimate_us, other.job) < key);
            self.by_estimate.insert(place, waiting);
        }
    }

    pub(super) fn head(&self) -> Option<Waiting> {
        self.fifo.get(self.head).copied()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.head == self.fifo.len()
    }

    /// Removes the head.
    pub(super) fn pop(&mut self) {
        let Some(waiting) = self.head() else { return };
        self.head += 1;
        // Started jobs at the front are given back in large pieces.
        if self.head > 1024 && self.head * 2 > self.fifo.len() {
            self.fifo.drain(..self.head);
            self.head = 0;
        }
        if self.shortest_first {
            remove(&mut self.by_estimate, |other| (other.estimate_us, other.job), waiting);
        }
    }

    /// Shows every job behind the head to `take`, in the order of backfilling, and removes those that it takes; stops
    /// when `take` returns none.
    pub(super) fn scan(&mut self, mut take: impl FnMut(Waiting) -> Option<bool>) {
        let Some(head) = self.head() else { return };
        let list = if self.shortest_first { &self.by_estimate[..] } else { &self.fifo[self.head + 1..] };
        let mut taken: Vec<Waiting> = Vec::new();
        for waiting in list.iter().filter(|waiting| waiting.job != head.job) {
            match take(*waiting) {
                Some(true) => taken.push(*waiting),
                Some(false) => {}
                None => break,
            }
        }
        for waiting in taken {
            remove(&mut self.fifo, |other| other.job, waiting);
            if self.shortest_first {
                remove(&mut self.by_estimate, |other| (other.estimate_us, other.job), waiting);
            }
        }
    }
}

fn remove<K: Ord>(sorted: &mut Vec<Waiting>, key: impl Fn(&Waiting) -> K, waiting: Waiting) {
    if let Ok(place) = sorted.binary_search_by_key(&key(&waiting), &key) {
        sorted.remove(place);
    }
}
