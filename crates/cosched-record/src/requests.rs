//! Requests that are recorded when they complete: receives and nonblocking collectives. A send is recorded when it is called.

use core::ffi::c_int;

/// The event that a request stands for when it is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pending {
    /// A message was received in this communicator.
    Receive { comm: usize },
    /// A collective has ended.
    Collective { function: u64, comm: usize, root: c_int, bytes: u64 },
}

/// The requests of this process.
#[derive(Debug)]
pub(crate) struct Requests(Vec<(usize, Pending)>);

impl Requests {
    pub(crate) const fn new() -> Requests {
        Requests(Vec::new())
    }

    /// Adds a request. Libraries share handles between requests that were complete at once, so there may be several with one handle.
    pub(crate) fn add(&mut self, handle: usize, pending: Pending) {
        self.0.push((handle, pending));
    }

    /// Removes and returns the oldest one with this handle.
    pub(crate) fn take(&mut self, handle: usize) -> Option<Pending> {
        let place = self.0.iter().position(|(other, _)| *other == handle)?;
        Some(self.0.remove(place).1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_handles_are_taken_in_order() {
        let mut requests = Requests::new();
        let [a, b] = [0, 1].map(|comm| Pending::Receive { comm });
        requests.add(7, a);
        requests.add(7, b);
        assert_eq!([requests.take(7), requests.take(7), requests.take(7)], [Some(a), Some(b), None]);
    }
}
