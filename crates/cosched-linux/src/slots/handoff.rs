//! Passes a value to the slot thread without a lock: it takes the newest, and returns the old ones for others to drop.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// A value with its link in the list of returned ones.
pub(super) struct Node<T> {
    pub(super) value: T,
    next: *mut Node<T>,
}

// SAFETY: the pointer is only used inside Handoff, which passes whole nodes between threads.
unsafe impl<T: Send> Send for Node<T> {}

/// A slot for the newest value, and a list of returned ones.
pub(super) struct Handoff<T> {
    pending: AtomicPtr<Node<T>>,
    returned: AtomicPtr<Node<T>>,
}

// SAFETY: values move between threads through atomic exchanges, and no two threads ever hold the same node.
unsafe impl<T: Send> Send for Handoff<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Handoff<T> {}

impl<T> Handoff<T> {
    pub(super) fn new() -> Handoff<T> {
        Handoff { pending: AtomicPtr::new(ptr::null_mut()), returned: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Offers a value in place of one that was not taken yet. Drops that one and the returned ones.
    pub(super) fn offer(&self, value: T) {
        let node = Box::into_raw(Box::new(Node { value, next: ptr::null_mut() }));
        let untaken = self.pending.swap(node, AcqRel);
        if !untaken.is_null() {
            // SAFETY: a non-null pending pointer came from Box::into_raw, and the exchange made it ours alone.
            drop(unsafe { Box::from_raw(untaken) });
        }
        self.reclaim();
    }

    /// Takes the newest value. Neither locks nor allocates.
    pub(super) fn take(&self) -> Option<Box<Node<T>>> {
        if self.pending.load(Relaxed).is_null() {
            return None;
        }
        let node = self.pending.swap(ptr::null_mut(), AcqRel);
        // SAFETY: as in offer.
        (!node.is_null()).then(|| unsafe { Box::from_raw(node) })
    }

    /// Returns a taken value for others to drop. Neither locks nor allocates nor frees.
    pub(super) fn give_back(&self, node: Box<Node<T>>) {
        let node = Box::into_raw(node);
        let mut head = self.returned.load(Relaxed);
        loop {
            // SAFETY: the node is ours until the exchange below succeeds.
            unsafe { (*node).next = head };
            match self.returned.compare_exchange_weak(head, node, Release, Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// Drops the returned values.
    pub(super) fn reclaim(&self) {
        let mut node = self.returned.swap(ptr::null_mut(), Acquire);
        while !node.is_null() {
            // SAFETY: the whole list became ours by the exchange; each node came from Box::into_raw.
            let owned = unsafe { Box::from_raw(node) };
            node = owned.next;
        }
    }
}

impl<T> Drop for Handoff<T> {
    fn drop(&mut self) {
        drop(self.take());
        self.reclaim();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn every_value_is_dropped_once_and_the_newest_arrives() {
        let token = Arc::new(());
        let handoff = Handoff::new();
        handoff.offer(Arc::clone(&token));
        handoff.offer(Arc::clone(&token));
        assert_eq!(Arc::strong_count(&token), 2, "the untaken one is gone");
        let taken = handoff.take().unwrap();
        assert!(handoff.take().is_none());
        handoff.give_back(taken);
        assert_eq!(Arc::strong_count(&token), 2, "not dropped by the taker");
        handoff.reclaim();
        assert_eq!(Arc::strong_count(&token), 1);
    }

    #[test]
    fn threads_pass_many_values() {
        let handoff = Arc::new(Handoff::new());
        let taker = {
            let handoff = Arc::clone(&handoff);
            std::thread::spawn(move || {
                let mut last = 0u64;
                while last < 10_000 {
                    if let Some(node) = handoff.take() {
                        assert!(node.value > last);
                        last = node.value;
                        handoff.give_back(node);
                    }
                }
            })
        };
        for value in 1..=10_000u64 {
            handoff.offer(value);
        }
        taker.join().unwrap();
    }
}
