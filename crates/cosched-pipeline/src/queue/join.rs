//! Behind several incarnations of a stage: the order of the buffers and the mark of the last one.
//!
//! Buffers come with numbers without gaps, in the order in which the stage before conveyed them. (Not the rounds: an unordered
//! stage before has mixed these.) Where order is kept, a buffer that is done before its turn lies in a row by its number. No
//! more of them are on their way than the path has buffers: the row has one place for each, and the one that is next finds
//! its place free. Where it is not kept, they leave with new numbers.

use std::sync::{Mutex, PoisonError};

use crate::buffer::Buffer;

/// The joining end of a replicated stage, for one path.
pub(crate) struct Join {
    ordered: bool,
    state: Mutex<State>,
}

struct State {
    /// Done, but behind one that is not, by number. Only where order is kept.
    held: Box<[Option<Buffer>]>,
    /// How many have gone on; where order is kept, also the number that is next.
    gone: u64,
    /// How many there are, once the last one has been seen.
    total: Option<u64>,
}

impl Join {
    /// The join of a path with so many buffers.
    pub(crate) fn new(ordered: bool, buffers: usize) -> Join {
        let held = (0..if ordered { buffers } else { 0 }).map(|_| None).collect();
        Join { ordered, state: Mutex::new(State { held, gone: 0, total: None }) }
    }

    /// A buffer is done; `on` gets all that may go on now, in their order and by one thread at a time. Returns their number.
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
        // The mark goes to whichever is the last to come out.
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
