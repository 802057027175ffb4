//! The buffers that wait for a stage, by path. A pool is the inbox of its path's source.
//!
//! No queue has a bound of its own: a path's pool bounds them all.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::buffer::Buffer;
use crate::graph::PathId;

/// Which of a stage's queues to look into.
#[derive(Clone, Copy)]
pub(crate) enum Which {
    /// Any, in the order of arrival.
    Any,
    /// That of one path.
    Path(PathId),
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Buffer>,
    /// How many paths will still bring something.
    open: Vec<PathId>,
    stopped: bool,
}

/// What waits before a stage.
#[derive(Default)]
pub(crate) struct Inbox {
    state: Mutex<State>,
    arrived: Condvar,
}

impl Inbox {
    /// An inbox into which these paths lead.
    pub(crate) fn new(open: Vec<PathId>) -> Inbox {
        Inbox { state: Mutex::new(State { open, ..State::default() }), arrived: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that can panic runs under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A buffer arrives.
    pub(crate) fn put(&self, buffer: Buffer) {
        self.lock().waiting.push_back(buffer);
        self.arrived.notify_all();
    }

    /// The next buffer, if one waits.
    pub(crate) fn try_take(&self, which: Which) -> Option<Buffer> {
        take(&mut self.lock(), which)
    }

    /// The next buffer. None when no more will come, or when the graph stops.
    pub(crate) fn take(&self, which: Which) -> Option<Buffer> {
        let mut state = self.lock();
        loop {
            let over = match which {
                Which::Any => state.open.is_empty(),
                Which::Path(path) => !state.open.contains(&path),
            };
            if state.stopped || over {
                return None;
            }
            if let Some(buffer) = take(&mut state, which) {
                return Some(buffer);
            }
            state = self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Nothing more will be taken from this path.
    pub(crate) fn close(&self, path: PathId) {
        self.lock().open.retain(|open| *open != path);
        self.arrived.notify_all();
    }

    /// Whether any path will still bring something.
    pub(crate) fn is_open(&self) -> bool {
        !self.lock().open.is_empty()
    }

    /// Whether this path will still bring something.
    pub(crate) fn is_open_for(&self, path: PathId) -> bool {
        self.lock().open.contains(&path)
    }

    /// Nobody waits from now on.
    pub(crate) fn stop(&self) {
        self.lock().stopped = true;
        self.arrived.notify_all();
    }

    /// How many buffers wait.
    pub(crate) fn len(&self) -> usize {
        self.lock().waiting.len()
    }
}

/// The first buffer that fits.
fn take(state: &mut State, which: Which) -> Option<Buffer> {
    let place = match which {
        Which::Any => state.waiting.iter().position(|buffer| state.open.contains(&buffer.path()))?,
        Which::Path(path) => state.waiting.iter().position(|buffer| buffer.path() == path)?,
    };
    state.waiting.remove(place)
}
