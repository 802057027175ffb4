//! Threads that work for a stage besides its own, such as those of a file engine: they get its settings, and their CPU time is
//! accounted to the stage.

use std::sync::Arc;

use super::{Seat, Watch, lock};

/// Registered helper threads of a stage, until this is dropped.
pub(crate) struct Helpers<'a> {
    watch: &'a Watch,
    seats: Vec<Arc<Seat>>,
}

impl Watch {
    /// Registers threads of the process as helpers of the stage.
    pub(crate) fn helpers(&self, stage: usize, tids: &[i32]) -> Helpers<'_> {
        let seat = |tid: &i32| self.seat(Seat::helper(*tid, stage));
        Helpers { watch: self, seats: tids.iter().map(seat).collect() }
    }
}

impl Drop for Helpers<'_> {
    fn drop(&mut self) {
        for seat in &self.seats {
            seat.divide();
            lock(&self.watch.crew).leave(seat);
        }
    }
}
