//! Behind several incarnations of a stage: the order of the buffers and the mark of the last one.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::buffer::Buffer;

/// The joining end of a replicated stage, for one path.
pub(crate) struct Join {
    ordered: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Done, but behind one that is not. Only where order is kept.
    held: BTreeMap<u64, Buffer>,
    /// How many have gone on; where order is kept, also the round that is next.
    gone: u64,
    /// How many there are, once the last one has been seen.
    total: Option<u64>,
}

impl Join {
    pub(crate) fn new(ordered: bool) -> Join {
        Join { ordered, state: Mutex::default() }
    }

    /// A buffer is done; `on` gets all that may go on now, in their order.
    pub(crate) fn pass(&self, mut buffer: Buffer, mut on: impl FnMut(Buffer)) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if self.ordered {
            state.held.insert(buffer.round(), buffer);
            loop {
                let next = state.gone;
                let Some(buffer) = state.held.remove(&next) else { return };
                state.gone += 1;
                on(buffer);
            }
        }
        if buffer.is_last() {
            state.total = Some(buffer.round() + 1);
        }
        state.gone += 1;
        // The mark goes to whichever is the last to come out.
        buffer.set_last(state.total == Some(state.gone));
        on(buffer);
    }
}
