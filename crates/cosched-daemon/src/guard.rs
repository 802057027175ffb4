//! Keeps the guard alive: the process that thaws all jobs when this daemon dies or hangs.

use crate::pollable::pollable;
use cosched_linux::beat::Beat;
use cosched_linux::fence::Fences;
use cosched_linux::guard::{Guard, GuardOptions, spawn_guard};
use cosched_linux::kernel_agent::KernelAgent;
use cosched_linux::thaw::ThawPaths;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::unix::AsyncFd;
use tokio::time::Instant;

/// The pause before the next try when a helper process cannot be started.
const RETRY: Duration = Duration::from_secs(1);

/// When the next try to start a helper process is due: a time, because the event loop asks again after each event.
pub(crate) struct Retry(Instant);

impl Retry {
    pub(crate) fn new() -> Retry {
        Retry(Instant::now())
    }

    pub(crate) fn tried(&mut self) {
        self.0 = Instant::now() + RETRY;
    }

    pub(crate) async fn due(&self) {
        tokio::time::sleep_until(self.0).await;
    }
}

/// The guard, and the kernel agent as a last resort.
pub(crate) struct GuardKeeper {
    /// The program of the guard, which is also the gate of other processes.
    pub(crate) exe: PathBuf,
    paths: ThawPaths,
    /// The page of the daemon's heartbeat.
    pub(crate) beat: Arc<Beat>,
    /// The file of deadlines for jobs that other nodes will start again.
    pub(crate) fences: PathBuf,
    /// The guard, and its pidfd in the event loop.
    guard: Option<(Guard, AsyncFd<OwnedFd>)>,
    retry: Retry,
    agent: Result<KernelAgent, String>,
}

impl GuardKeeper {
    /// Without a guard the daemon runs all the same, and reports that in its status; `revive` starts it, in the event loop.
    pub(crate) fn new(
        exe: PathBuf,
        paths: ThawPaths,
        (beat, fences): (Arc<Beat>, PathBuf),
        agent: Result<KernelAgent, String>,
    ) -> GuardKeeper {
        GuardKeeper { exe, paths, beat, fences, guard: None, retry: Retry::new(), agent }
    }

    /// Resolves when the guard has died, or when it is time for the next try to start it.
    pub(crate) async fn died(&self) {
        match &self.guard {
            // An error here means that the descriptor is useless: a new guard is the right answer to that, too.
            Some((_, pidfd)) => drop(pidfd.readable().await),
            None => self.retry.due().await,
        }
    }

    /// Starts a guard in the place of one that died.
    pub(crate) fn revive(&mut self) {
        if let Some((mut dead, _)) = self.guard.take() {
            tracing::warn!(pid = dead.pid(), "the guard died; starting another");
            // Its pidfd reported its end, so this only reaps it.
            let _ = dead.try_wait();
        }
        self.retry.tried();
        match self.spawn() {
            Ok(guard) => self.guard = Some(guard),
            Err(e) => tracing::error!("the guard {} could not be started: {e}", self.exe.display()),
        }
    }

    fn spawn(&self) -> std::io::Result<(Guard, AsyncFd<OwnedFd>)> {
        let guard = spawn_guard(
            &self.exe,
            &GuardOptions { paths: self.paths.clone(), beat: &self.beat, fences: &self.fences },
        )?;
        let pidfd = pollable(&guard)?;
        Ok((guard, pidfd))
    }

    /// The process number of the guard, while it lives.
    pub(crate) fn pid(&self) -> Option<i32> {
        self.guard.as_ref().map(|(guard, _)| guard.pid())
    }

    /// Moves a child of the daemon out of the kernel agent's cgroup: only the daemon and its guard count there.
    pub(crate) fn release(&self, pid: i32) -> std::io::Result<()> {
        self.agent.as_ref().map_or(Ok(()), |agent| agent.release(pid))
    }

    /// Why the kernel agent is not armed; `None` when it is.
    pub(crate) fn kernel_agent(&self) -> Option<&str> {
        self.agent.as_ref().err().map(String::as_str)
    }

    /// For an orderly end, when everything has been thawed: the agent is no longer needed, nor the guard, unless it has jobs to end at their
    /// deadline.
    pub(crate) fn disarm(self) {
        let stays = !Fences::read(&self.fences).jobs.is_empty();
        match self.guard {
            Some((guard, _)) if stays => guard.leave(),
            Some((guard, _)) => guard.dismiss(),
            None => (),
        }
        if !stays {
            // The file may never have been written.
            let _ = std::fs::remove_file(&self.fences);
        }
        if let Ok(agent) = self.agent
            && let Err(e) = agent.disarm()
        {
            tracing::warn!("the kernel agent's files could not be removed: {e}");
        }
    }
}
