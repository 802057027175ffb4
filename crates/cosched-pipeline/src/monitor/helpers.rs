//! Threads that work for a stage beside its own, such as those of a file engine: they get its settings, and what they spend is
//! the stage's.

use std::sync::Arc;

use super::{Seat, Watch, lock};

/// Helpers of a stage, until this is dropped.
pub(crate) struct Helpers<'a> {
    watch: &'a Watch,
    seats: Vec<Arc<Seat>>,
}

impl Watch {
    /// These threads of the process work for the stage.
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
