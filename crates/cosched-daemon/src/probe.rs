//! Keeps the idle probe alive: the helper process that tells the slot thread that a CPU is idle.

use crate::guard::{GuardKeeper, Retry};
use crate::pollable::pollable;
use cosched_linux::probe::IdleProbe;
use cosched_linux::process::open_pidfd;
use cosched_linux::{SlotThread, Tree};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use tokio::io::unix::AsyncFd;

/// The probe's pidfd in the event loop, which shows its end.
pub(crate) struct ProbeKeeper {
    exe: PathBuf,
    pidfd: Result<AsyncFd<OwnedFd>, String>,
    retry: Retry,
}

impl ProbeKeeper {
    /// A keeper without a probe; `revive` starts one, in the event loop.
    pub(crate) fn new(exe: PathBuf) -> ProbeKeeper {
        ProbeKeeper { exe, pidfd: Err("it was not started".to_owned()), retry: Retry::new() }
    }

    /// Resolves when the probe has died, or when it is time for the next try to start it.
    pub(crate) async fn died(&self) {
        match &self.pidfd {
            // An error here means that the descriptor is useless: a new probe is the right answer to that, too.
            Ok(pidfd) => drop(pidfd.readable().await),
            Err(_) => self.retry.due().await,
        }
    }

    /// Starts a probe, also in place of one that died, and gives it to the slot thread.
    pub(crate) fn revive(&mut self, tree: &Tree, slots: &SlotThread, guard: &GuardKeeper) {
        self.retry.tried();
        self.pidfd = self.spawn(tree, slots, guard);
        if let Err(e) = &self.pidfd {
            tracing::warn!("the idle probe could not be started: {e}");
        }
    }

    fn spawn(&self, tree: &Tree, slots: &SlotThread, guard: &GuardKeeper) -> Result<AsyncFd<OwnedFd>, String> {
        let probe = IdleProbe::spawn(&self.exe, tree).map_err(|e| e.to_string())?;
        // The kernel agent acts when its cgroup is empty: the probe must not be in it after the daemon and guard have ended.
        guard.release(probe.pid()).map_err(|e| format!("it would block the kernel agent: {e}"))?;
        let pidfd = open_pidfd(probe.pid()).and_then(|fd| pollable(&fd)).map_err(|e| e.to_string())?;
        slots.set_probe(probe);
        Ok(pidfd)
    }

    /// Why no probe runs; `None` while one runs.
    pub(crate) fn missing(&self) -> Option<&str> {
        self.pidfd.as_ref().err().map(String::as_str)
    }
}
