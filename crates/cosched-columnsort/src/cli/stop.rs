//! ^C and its like end the program at once. Working files have no name; an output that has one is removed first.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use nix::sys::signal::{SigSet, Signal, raise};
use nix::sys::signalfd::SignalFd;

use super::out;

const ENDING: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

/// What is to be removed when the program is ended.
#[derive(Clone, Default)]
pub(crate) struct Named(Arc<Mutex<Option<PathBuf>>>);

impl Named {
    /// This one, from now on.
    pub(crate) fn set(&self, path: &Path) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(path.into());
    }

    /// Removes it.
    pub(crate) fn remove(&self) {
        if let Some(path) = self.0.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // Nothing can be done about a name that does not go away.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// From now on signals end the program. To be called before other threads start.
pub(crate) fn on_signals() -> Named {
    let named = Named::default();
    let set: SigSet = ENDING.into_iter().collect();
    // Where signals cannot be had as data, they end the program as ever.
    let Ok(signals) = set.thread_block().and_then(|()| SignalFd::new(&set)) else { return named };
    let on_signal = named.clone();
    let spawned = std::thread::Builder::new().name("signals".into()).spawn(move || {
        while let Ok(info) = signals.read_signal() {
            let Some(info) = info else { continue };
            on_signal.remove();
            out::say("interrupted; the input is as it was, and nothing is left of the output");
            end_by(info.ssi_signo as i32);
        }
    });
    if spawned.is_err() {
        let _ = set.thread_unblock();
    }
    named
}

/// The signal's own way: at once, without what libraries want to do at an exit. MPI's would wait for its other threads.
fn end_by(number: i32) {
    let Ok(signal) = Signal::try_from(number) else { std::process::exit(128) };
    let _ = SigSet::from(signal).thread_unblock();
    let _ = raise(signal);
    // Somebody else took the signal for himself.
    std::process::exit(128 + number);
}
