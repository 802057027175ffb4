//! A running graph.

use std::sync::Arc;
use std::thread::JoinHandle;

use super::shared::Shared;
use crate::error::{Cause, Failure};
use crate::monitor::Watching;
use crate::report::Report;

/// A running graph. Dropping it stops it and waits for its threads.
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

    /// Waits until the graph has ended.
    ///
    /// # Errors
    /// The first failure or panic of a stage, or that the graph was stopped. All threads have ended then, except one that is
    /// stuck in its stage's code ([`Cause::Stalled`]).
    pub fn wait(mut self) -> Result<Report, Failure> {
        self.join();
        let report = self.shared.report();
        match self.shared.take_failure() {
            None => Ok(report),
            Some((stage, cause)) => Err(Failure { stage, cause, report: Box::new(report) }),
        }
    }

    /// Stops the graph as soon as each stage has finished its current buffer. [`Running::wait`] then reports that it was
    /// stopped.
    pub fn stop(&self) {
        self.shared.fail(None, Cause::Stopped);
    }

    /// A report of what has been done so far.
    pub fn snapshot(&self) -> Report {
        self.shared.report()
    }

    /// A handle for a thread other than the one that waits.
    pub fn control(&self) -> Control {
        Control(self.shared.clone())
    }

    fn join(&mut self) {
        self.shared.watch.wait_for(self.threads.len());
        self.watching = None;
        for thread in self.threads.drain(..) {
            if self.shared.watch.is_given_up() && !thread.is_finished() {
                // It is stuck in its stage's code: it is left behind, and the failure names the stage.
                continue;
            }
            // Threads catch the panics of their stages; the result of the join carries no information.
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

/// A handle to a running graph, usable from any thread, also after the graph has ended.
#[derive(Clone)]
pub struct Control(Arc<Shared>);

impl Control {
    /// As [`Running::stop`].
    pub fn stop(&self) {
        self.0.fail(None, Cause::Stopped);
    }

    /// A report of what has been done so far.
    pub fn snapshot(&self) -> Report {
        self.0.report()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
    use std::time::{Duration, Instant};

    use crate::{Buffer, Each, Flow, Kind, Options, Pipeline, Resource, Stage};

    /// An incarnation that counts its rounds, and how often it was begun and cleaned up.
    struct Shows {
        number: usize,
        shown: Arc<[AtomicUsize; 4]>,
        begun: Arc<AtomicUsize>,
    }

    impl Each for Shows {
        fn init(&mut self) -> Result<(), crate::BoxError> {
            self.begun.fetch_add(1, SeqCst);
            Ok(())
        }
        fn round(&mut self, _: &mut Buffer) -> Result<Flow, crate::BoxError> {
            self.shown[self.number].fetch_add(1, SeqCst);
            std::thread::sleep(Duration::from_micros(200));
            Ok(Flow::Continue)
        }
        fn cleanup(&mut self) -> Result<(), crate::BoxError> {
            self.begun.fetch_sub(1, SeqCst);
            Ok(())
        }
    }

    /// Waits until the condition holds, for at most 10 s.
    fn until(what: &str, holds: impl Fn() -> bool) {
        let begin = Instant::now();
        while !holds() {
            assert!(begin.elapsed() < Duration::from_secs(10), "{what}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn incarnations_come_and_go(kind: Kind) {
        let shown: Arc<[AtomicUsize; 4]> = Arc::default();
        let (begun, over) = (Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
        let (of_shown, of_begun, of_over) = (shown.clone(), begun.clone(), over.clone());
        let make = move |number| Shows { number, shown: of_shown.clone(), begun: of_begun.clone() };
        let source = Stage::source("source", Resource::Io, move |_: &mut Buffer| {
            Ok(if of_over.load(SeqCst) { Flow::Last } else { Flow::Continue })
        });
        let work = Stage::replicated("work", 1, Resource::Compute, make).replicable(3).kind(kind);
        let mut next = 0;
        let sink = Stage::blocking("sink", Resource::Io, move |buffer| {
            assert_eq!(buffer.round(), next, "in order all the time");
            next += 1;
            Ok(())
        });
        let options = Options { workers: Some(3), ..Options::default() };
        let line = Pipeline::new("grows").buffers(8, 8).stage(source).stage(work).stage(sink);
        let running = line.start(&options).unwrap();
        let rounds = |number: usize| shown[number].load(SeqCst);
        until("the first works", || rounds(0) > 5);
        assert_eq!([rounds(1), rounds(2)], [0, 0], "the others rest");
        assert_eq!(running.shared.set_incarnations(1, 9), 3, "no more than there are");
        until("all work", || (0..3).all(|number| rounds(number) > 5));
        running.shared.set_incarnations(1, 1);
        // They still finish the buffers that they had begun.
        std::thread::sleep(Duration::from_millis(20));
        let before = [rounds(1), rounds(2)];
        let first = rounds(0);
        until("the first goes on", || rounds(0) > first + 20);
        assert_eq!([rounds(1), rounds(2)], before, "the others rest again");
        over.store(true, SeqCst);
        let report = running.wait().unwrap();
        assert_eq!(report.stages[1].rounds, report.stages[2].rounds);
        assert_eq!(begun.load(SeqCst), 0, "all are cleaned up");
    }

    #[test]
    fn incarnations_come_and_go_on_threads() {
        incarnations_come_and_go(Kind::Thread);
    }

    #[test]
    fn incarnations_come_and_go_on_workers() {
        incarnations_come_and_go(Kind::Worker);
    }
}
