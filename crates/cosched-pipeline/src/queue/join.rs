//! The join after several incarnations of a stage: restores the order of the buffers and the mark of the last one.
//!
//! Buffers have consecutive numbers, in the order in which the preceding stage conveyed them. (Not the rounds: an unordered
//! stage before may have mixed these.) If order is kept, a buffer that is done before its turn is stored in an array by its
//! number. There are never more of them in flight than the path has buffers: the array has one place for each, and the place
//! of the next one is always free. If order is not kept, buffers get new numbers as they leave.

use std::sync::{Mutex, PoisonError};

use crate::buffer::Buffer;

/// The joining end of a replicated stage, for one path.
pub(crate) struct Join {
    ordered: bool,
    state: Mutex<State>,
}

struct State {
    /// Buffers that are done, but come after one that is not, by number. Only used if order is kept.
    held: Box<[Option<Buffer>]>,
    /// The number of buffers that have left; if order is kept, also the number of the next one.
    gone: u64,
    /// The total number of buffers, once the last one has been seen.
    total: Option<u64>,
}

impl Join {
    /// The join of a path with this number of buffers.
    pub(crate) fn new(ordered: bool, buffers: usize) -> Join {
        let held = (0..if ordered { buffers } else { 0 }).map(|_| None).collect();
        Join { ordered, state: Mutex::new(State { held, gone: 0, total: None }) }
    }

    /// A buffer is done; calls `on` for all buffers that may leave now, in order and from one thread at a time. Returns their
    /// number.
    pub(crate) fn pass(&self, mut buffer: Buffer, mut on: impl FnMut(Buffer)) -> usize {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if self.ordered {
            return state.in_order(buffer, on);
        }
        if buffer.is_last() {
            state.total = Some(buffer.token().number + 1);
        }
        buffer.token_mut().number = state.gone;
        state.gone += 1;
        // The mark moves to the buffer that leaves last.
        buffer.set_last(state.total == Some(state.gone));
        on(buffer);
        1
    }
}

impl State {
    fn in_order(&mut self, buffer: Buffer, mut on: impl FnMut(Buffer)) -> usize {
        let begin = self.gone;
        if buffer.token().number == begin {
            self.gone += 1;
            on(buffer);
        } else {
            let place = self.place(buffer.token().number);
            debug_assert!(self.held[place].is_none(), "two buffers in one place");
            self.held[place] = Some(buffer);
            return 0;
        }
        while let Some(buffer) = self.held[self.place(self.gone)].take() {
            self.gone += 1;
            on(buffer);
        }
        (self.gone - begin) as usize
    }

    fn place(&self, number: u64) -> usize {
        (number % self.held.len() as u64) as usize
    }
}
