//! SIGINT and similar signals end the program at once. Working files have no name; an output that has one is removed
//! first.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use nix::sys::signal::{SigSet, Signal, raise};
use nix::sys::signalfd::SignalFd;

use super::out;

const ENDING: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

/// The file to remove when the program is ended by a signal.
#[derive(Clone, Default)]
pub(crate) struct Named(Arc<Mutex<Option<PathBuf>>>);

impl Named {
    /// Sets the file to remove.
    pub(crate) fn set(&self, path: &Path) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(path.into());
    }

    /// Removes the file, if one is set.
    pub(crate) fn remove(&self) {
        if let Some(path) = self.0.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // If the file cannot be removed, nothing more can be done.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// From now on signals end the program through a thread. Must be called before other threads start.
pub(crate) fn on_signals() -> Named {
    let named = Named::default();
    let set: SigSet = ENDING.into_iter().collect();
    // If a signalfd cannot be created, signals end the program in the default way.
    let Ok(signals) = set.thread_block().and_then(|()| SignalFd::new(&set)) else { return named };
    let on_signal = named.clone();
    let spawned = std::thread::Builder::new().name("signals".into()).spawn(move || {
        while let Ok(info) = signals.read_signal() {
            let Some(info) = info else { continue };
            on_signal.remove();
            out::say("interrupted; the input is unchanged, and nothing is left of the output");
            end_by(info.ssi_signo as i32);
        }
    });
    if spawned.is_err() {
        let _ = set.thread_unblock();
    }
    named
}

/// Ends the process by the signal's default action: at once, without the exit handlers of libraries. MPI's would wait
/// for its other threads.
fn end_by(number: i32) {
    let Ok(signal) = Signal::try_from(number) else { std::process::exit(128) };
    let _ = SigSet::from(signal).thread_unblock();
    let _ = raise(signal);
    // Only reached if another part of the process has installed a handler for the signal.
    std::process::exit(128 + number);
}
