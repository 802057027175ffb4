//! Keeps the guard alive: the process that thaws all jobs when this daemon dies or hangs.

use cosched_linux::{Beat, Guard, GuardSpec, KernelAgent, spawn_guard};
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// How long to wait before another try when the guard cannot be started.
const RETRY: Duration = Duration::from_secs(1);

/// The guard, and the kernel's own last resort.
pub struct GuardKeeper {
    spec: GuardSpec,
    guard: Option<AsyncFd<Guard>>,
    agent: Result<KernelAgent, String>,
}

impl GuardKeeper {
    /// Starts the guard. Without one the daemon runs all the same, and says so in its status.
    pub fn start(spec: GuardSpec, agent: Result<KernelAgent, String>) -> GuardKeeper {
        let mut keeper = GuardKeeper { spec, guard: None, agent };
        keeper.revive();
        keeper
    }

    /// The beat that the slot thread gives and the guard listens to.
    pub fn beat(&self) -> &Beat {
        &self.spec.beat
    }

    /// Resolves when the guard has died, or when it is time for another try to start it.
    pub async fn died(&self) {
        match &self.guard {
            // An error here means that the descriptor is useless: a new guard is right too.
            Some(guard) => drop(guard.ready(Interest::READABLE).await),
            None => tokio::time::sleep(RETRY).await,
        }
    }

    /// Starts a guard in the place of one that died.
    pub fn revive(&mut self) {
        if let Some(dead) = self.guard.take() {
            tracing::warn!(pid = dead.get_ref().pid(), "the guard died; starting another");
            dead.into_inner().reap();
        }
        let started = spawn_guard(&self.spec).map_err(|e| e.to_string());
        self.guard = match started
            .and_then(|guard| AsyncFd::with_interest(guard, Interest::READABLE).map_err(|e| e.to_string()))
        {
            Ok(guard) => Some(guard),
            Err(e) => {
                tracing::error!("the guard could not be started: {e}");
                None
            }
        };
    }

    /// The guard's process, while it lives.
    pub fn pid(&self) -> Option<i32> {
        self.guard.as_ref().map(|g| g.get_ref().pid())
    }

    /// Why the kernel agent is not armed; `None` when it is.
    pub fn kernel_agent(&self) -> Option<&str> {
        self.agent.as_ref().err().map(String::as_str)
    }

    /// The daemon ends in order and has thawed everything: guard and agent are not needed.
    pub fn disarm(self) {
        if let Some(guard) = self.guard {
            guard.into_inner().dismiss();
        }
        if let Ok(agent) = self.agent {
            agent.disarm();
        }
    }
}
