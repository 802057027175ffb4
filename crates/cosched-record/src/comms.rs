//! The communicators seen so far, with their members.

use crate::file::put;
use crate::library;
use core::ffi::c_int;

/// A communicator. It stays in the list when it is freed, as requests may still name it.
#[derive(Debug)]
pub(crate) struct Comm {
    handle: usize,
    /// World ranks; empty for an intercommunicator or if they are unknown.
    pub(crate) members: Vec<c_int>,
}

/// All communicators; the index is the communicator's number.
#[derive(Debug, Default)]
pub(crate) struct Comms {
    all: Vec<Comm>,
    last: usize,
}

/// The handle of a freed communicator.
const FREED: usize = usize::MAX;

impl Comms {
    pub(crate) const fn new() -> Comms {
        Comms { all: Vec::new(), last: 0 }
    }

    /// The number of a communicator; a new one is described in `record`.
    pub(crate) fn number(&mut self, comm: usize, record: &mut Vec<u8>) -> usize {
        let handle = library::handle(comm);
        if self.all.get(self.last).is_some_and(|comm| comm.handle == handle) {
            return self.last;
        }
        let known = self.all.iter().position(|comm| comm.handle == handle);
        self.last = known.unwrap_or_else(|| self.learn(handle, record));
        self.last
    }

    fn learn(&mut self, handle: usize, record: &mut Vec<u8>) -> usize {
        let is_inter = library::is_inter(handle);
        let size = library::rank_and_size(handle).filter(|_| !is_inter);
        let members = size.and_then(|(_, size)| library::members(handle, size)).unwrap_or_default();
        let number = self.all.len();
        record.push(1);
        [number as u64, u64::from(is_inter), members.len() as u64].into_iter().for_each(|field| put(record, field));
        // A member outside the world becomes a rank that does not exist.
        members.iter().for_each(|rank| put(record, u64::from(*rank as u32)));
        self.all.push(Comm { handle, members });
        number
    }

    /// The communicator with this number.
    pub(crate) fn members(&self, number: usize) -> &[c_int] {
        self.all.get(number).map_or(&[], |comm| &comm.members)
    }

    /// The handle may soon be reused.
    pub(crate) fn forget(&mut self, handle: usize) {
        self.all.iter_mut().filter(|comm| comm.handle == handle).for_each(|comm| comm.handle = FREED);
    }
}
