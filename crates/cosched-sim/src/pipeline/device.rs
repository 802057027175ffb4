//! Disks: a limited number of requests at a time, the others in order of arrival.

use std::collections::VecDeque;

#[derive(Debug)]
pub(super) struct Device {
    parallel: u32,
    served: u32,
    /// The waiting threads, and how long each will be served.
    queue: VecDeque<(usize, u64)>,
    /// Time of all requests that were served, ns.
    pub(super) used_ns: u64,
}

impl Device {
    pub(super) fn new(parallel: u32) -> Device {
        Device { parallel, served: 0, queue: VecDeque::new(), used_ns: 0 }
    }

    /// A thread requests service for `ns` nanoseconds; returns whether it is served at once.
    pub(super) fn ask(&mut self, thread: usize, ns: u64) -> bool {
        if self.served == self.parallel {
            self.queue.push_back((thread, ns));
            return false;
        }
        self.served += 1;
        self.used_ns += ns;
        true
    }

    /// A request is done. Returns the next thread to be served, and for how long.
    pub(super) fn done(&mut self) -> Option<(usize, u64)> {
        let next = self.queue.pop_front();
        match next {
            Some((_, ns)) => self.used_ns += ns,
            None => self.served -= 1,
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_wait_in_their_order() {
        let mut device = Device::new(2);
        assert_eq!([1, 2, 3, 4].map(|thread| device.ask(thread, 10)), [true, true, false, false]);
        assert_eq!(
            [device.done(), device.done(), device.done(), device.done()],
            [Some((3, 10)), Some((4, 10)), None, None]
        );
        assert!(device.ask(5, 10));
        assert_eq!(device.used_ns, 50);
    }
}
