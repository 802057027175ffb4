//! The incarnations of a stage that several buffers may want at once: each works for one buffer at a time.
//!
//! For stages with fewer incarnations than workers, and for one incarnation on several paths. Where one is free, two
//! read-modify-writes get it. Where none is, the buffer joins a queue, under a lock that is held for a few instructions, and
//! whoever leaves an incarnation carries it on.

use std::collections::VecDeque;
use std::sync::PoisonError;

use super::sync::{AtomicBool, AtomicIsize, AtomicU32, AtomicU64, Mutex, MutexGuard, Ordering, fence};
use crate::buffer::Buffer;

const NONE: u32 = u32::MAX;

/// Free incarnations, the one that was left last first: its data may still be in a cache. Treiber's stack of numbers; a
/// count beside the top tells a top that went and came back from one that stayed.
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
    /// Incarnations for buffers that are about to join the queue.
    granted: Vec<u32>,
}

pub(super) struct Permits {
    free: Free,
    /// Free incarnations; below 0, the buffers that wait for one.
    count: AtomicIsize,
    queue: Mutex<Queue>,
    /// By incarnation: it is not to work, and nobody has it.
    out: Box<[AtomicBool]>,
}

impl Permits {
    /// For at most `max` incarnations, none of which is there yet.
    pub(super) fn new(max: usize) -> Permits {
        let below = (0..max).map(|_| AtomicU32::new(NONE)).collect();
        let free = Free { top: AtomicU64::new(NONE.into()), below };
        let out = (0..max).map(|_| AtomicBool::new(true)).collect();
        Permits { free, count: AtomicIsize::new(0), queue: Mutex::default(), out }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        // Nothing that can panic runs under the lock.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A buffer comes. It is returned, with its incarnation, if one is free.
    #[inline]
    pub(super) fn arrive(&self, mut buffer: Buffer) -> Option<Buffer> {
        if self.count.fetch_sub(1, Ordering::AcqRel) > 0 {
            // Who counts an incarnation has put it there before.
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

    /// An incarnation is free (again). Returns the buffer that it works for next, if one waits.
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

    /// An incarnation is to work (again). Returns the buffer that it works for first, if one waits.
    pub(super) fn recall(&self, number: u32) -> Option<Buffer> {
        // That it is wanted was said before: either this sees the mark of who withdraws it, or that one sees that it is wanted.
        fence(Ordering::SeqCst);
        // Whoever takes the mark away puts it back among the free ones. Where there is none, it has never stopped.
        let was_out = self.out[number as usize].swap(false, Ordering::AcqRel);
        if was_out { self.free(number) } else { None }
    }

    /// An incarnation is free and is not to work on, unless it turns out now that it is to.
    pub(super) fn withdraw(&self, number: u32, wanted: impl Fn() -> bool) -> Option<Buffer> {
        self.out[number as usize].swap(true, Ordering::AcqRel);
        fence(Ordering::SeqCst);
        if wanted() { self.recall(number) } else { None }
    }

    /// How many wait.
    pub(super) fn waiting(&self) -> usize {
        self.count.load(Ordering::Relaxed).min(0).unsigned_abs()
    }
}
