//! A graph that runs.

use std::sync::Arc;
use std::thread::JoinHandle;

use super::shared::Shared;
use crate::error::{Cause, Failure};
use crate::monitor::Watching;
use crate::report::Report;

/// A graph that runs. Dropping it stops it and waits for its threads.
pub struct Running {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    watching: Option<Watching>,
}

impl Running {
    pub(crate) fn new(shared: Arc<Shared>, watching: Watching) -> Running {
        Running { shared, threads: Vec::new(), watching: Some(watching) }
    }

    pub(crate) fn add(&mut self, thread: JoinHandle<()>) {
        self.threads.push(thread);
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// The first stage that failed or panicked, or that it was stopped. All threads have ended then, but for one that is stuck
    /// in its stage ([`Cause::Stalled`]).
    pub fn wait(mut self) -> Result<Report, Failure> {
        self.join();
        let report = self.shared.report();
        match self.shared.take_failure() {
            None => Ok(report),
            Some((stage, cause)) => Err(Failure { stage, cause, report: Box::new(report) }),
        }
    }

    /// Ends it as soon as each stage is done with its present buffer. [`Running::wait`] then says that it was stopped.
    pub fn stop(&self) {
        self.shared.fail(None, Cause::Stopped);
    }

    /// What has been done so far.
    pub fn snapshot(&self) -> Report {
        self.shared.report()
    }

    /// A hand on it for another thread than the one that waits.
    pub fn control(&self) -> Control {
        Control(self.shared.clone())
    }

    fn join(&mut self) {
        self.shared.watch.wait_for(self.threads.len());
        self.watching = None;
        for thread in self.threads.drain(..) {
            if self.shared.watch.is_given_up() && !thread.is_finished() {
                // It is stuck in its stage's code: the failure names it, and it is left behind.
                continue;
            }
            // Threads catch what their stages do; this one's end is all that matters.
            let _ = thread.join();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.threads.is_empty() {
            self.stop();
            self.join();
        }
    }
}

/// A hand on a running graph, for any thread, also after its end.
#[derive(Clone)]
pub struct Control(Arc<Shared>);

impl Control {
    /// As [`Running::stop`].
    pub fn stop(&self) {
        self.0.fail(None, Cause::Stopped);
    }

    /// What has been done so far.
    pub fn snapshot(&self) -> Report {
        self.0.report()
    }
}
