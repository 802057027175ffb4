//! The incarnations of a stage that several buffers may need at once: each works on one buffer at a time.
//!
//! For stages with fewer incarnations than workers, and for one incarnation on several paths. If one is free, it takes two
//! read-modify-writes to get it. If none is, the buffer joins a queue, under a lock that is held for a few instructions, and
//! the worker that releases an incarnation carries the buffer on.

use std::collections::VecDeque;
use std::sync::PoisonError;

use super::sync::{AtomicBool, AtomicIsize, AtomicU32, AtomicU64, Mutex, MutexGuard, Ordering, fence};
use crate::buffer::Buffer;

const NONE: u32 = u32::MAX;

/// The free incarnations, the most recently released one first: its data may still be in a cache. Treiber's stack of numbers; a
/// count next to the top guards against ABA (a top that was taken and put back meanwhile).
struct Free {
    top: AtomicU64,
    below: Box<[AtomicU32]>,
}

impl Free {
    fn push(&self, number: u32) {
        let mut top = self.top.load(Ordering::Relaxed);
        loop {
            self.below[number as usize].store(top as u32, Ordering::Relaxed);
            let new = (top >> 32).wrapping_add(1) << 32 | u64::from(number);
            match self.top.compare_exchange_weak(top, new, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => top = now,
            }
        }
    }

    fn pop(&self) -> Option<u32> {
        let mut top = self.top.load(Ordering::Acquire);
        loop {
            let number = top as u32;
            if number == NONE {
                return None;
            }
            let below = self.below[number as usize].load(Ordering::Relaxed);
            let new = (top >> 32).wrapping_add(1) << 32 | u64::from(below);
            match self.top.compare_exchange_weak(top, new, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => return Some(number),
                Err(now) => top = now,
            }
        }
    }
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Buffer>,
    /// Incarnations that have been assigned to buffers that are about to join the queue.
    granted: Vec<u32>,
}

pub(super) struct Permits {
    free: Free,
    /// The number of free incarnations; if negative, the number of buffers that wait for one.
    count: AtomicIsize,
    queue: Mutex<Queue>,
    /// By incarnation: it is withdrawn, and no buffer uses it.
    out: Box<[AtomicBool]>,
}

impl Permits {
    /// For at most `max` incarnations, none of which is available yet.
    pub(super) fn new(max: usize) -> Permits {
        let below = (0..max).map(|_| AtomicU32::new(NONE)).collect();
        let free = Free { top: AtomicU64::new(NONE.into()), below };
        let out = (0..max).map(|_| AtomicBool::new(true)).collect();
        Permits { free, count: AtomicIsize::new(0), queue: Mutex::default(), out }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        // No code that can panic runs under the lock.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A buffer arrives. Returned with its incarnation if one is free.
    #[inline]
    pub(super) fn arrive(&self, mut buffer: Buffer) -> Option<Buffer> {
        if self.count.fetch_sub(1, Ordering::AcqRel) > 0 {
            // The count is raised only after the incarnation has been pushed.
            let number = self.free.pop();
            debug_assert!(number.is_some(), "an incarnation was counted that is not there");
            buffer.token_mut().incarnation = number?;
            return Some(buffer);
        }
        let mut queue = self.queue();
        match queue.granted.pop() {
            Some(number) => {
                buffer.token_mut().incarnation = number;
                Some(buffer)
            }
            None => {
                queue.waiting.push_back(buffer);
                None
            }
        }
    }

    /// An incarnation is (again) free. Returns the buffer that it works on next, if one waits.
    #[inline]
    pub(super) fn free(&self, number: u32) -> Option<Buffer> {
        self.free.push(number);
        if self.count.fetch_add(1, Ordering::AcqRel) >= 0 {
            return None;
        }
        let number = self.free.pop();
        debug_assert!(number.is_some(), "an incarnation was counted that is not there");
        let number = number?;
        let mut queue = self.queue();
        let Some(mut buffer) = queue.waiting.pop_front() else {
            queue.granted.push(number);
            return None;
        };
        buffer.token_mut().incarnation = number;
        Some(buffer)
    }

    /// An incarnation is to work (again). Returns the buffer that it works on first, if one waits.
    pub(super) fn recall(&self, number: u32) -> Option<Buffer> {
        // `wanted` was raised before: either this call sees the mark of the worker that withdraws the incarnation, or that
        // worker sees that it is wanted.
        fence(Ordering::SeqCst);
        // The one that removes the mark returns the incarnation to the free ones. Without a mark it has never been withdrawn.
        let was_out = self.out[number as usize].swap(false, Ordering::AcqRel);
        if was_out { self.free(number) } else { None }
    }

    /// An incarnation is free and is to be withdrawn, unless it turns out now to be wanted.
    pub(super) fn withdraw(&self, number: u32, wanted: impl Fn() -> bool) -> Option<Buffer> {
        self.out[number as usize].swap(true, Ordering::AcqRel);
        fence(Ordering::SeqCst);
        if wanted() { self.recall(number) } else { None }
    }

    /// The number of buffers that wait for an incarnation.
    pub(super) fn waiting(&self) -> usize {
        self.count.load(Ordering::Relaxed).min(0).unsigned_abs()
    }
}
