//! Which threads may use an end of a ring, which supports one user at a time.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// An end of a ring.
pub(crate) enum End {
    /// A single thread uses it for as long as the graph runs.
    One(Owner),
    /// Several threads use it, serialised by other means: they hold the lock of a join, or of a stage.
    Serial,
    /// Several threads use it, serialised by this lock.
    Many(Mutex<()>),
}

impl End {
    pub(crate) fn one() -> End {
        End::One(Owner::default())
    }

    pub(crate) fn many() -> End {
        End::Many(Mutex::new(()))
    }

    /// The calling thread uses the end while the result lives.
    #[inline]
    pub(super) fn enter(&self) -> Option<MutexGuard<'_, ()>> {
        match self {
            End::One(owner) => {
                owner.check();
                None
            }
            End::Serial => None,
            // No code that can panic runs under the lock.
            End::Many(lock) => Some(lock.lock().unwrap_or_else(PoisonError::into_inner)),
        }
    }
}

/// The thread that an end belongs to: the first that used it. Only checked in debug builds.
#[derive(Default)]
pub(crate) struct Owner {
    #[cfg(debug_assertions)]
    thread: std::sync::OnceLock<std::thread::ThreadId>,
}

impl Owner {
    #[inline]
    fn check(&self) {
        #[cfg(debug_assertions)]
        {
            let here = std::thread::current().id();
            assert_eq!(*self.thread.get_or_init(|| here), here, "two threads at one end of a queue");
        }
    }
}
