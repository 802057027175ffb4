//! The monitor's own thread.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::stall::{Found, STALL_WARNING};
use super::tune::Tuner;
use super::{Watch, lock};
use crate::error::Cause;
use crate::options::Options;
use crate::queue::prepare_heavy_fence;
use crate::report::Report;

/// How long a stopped graph may take to end, before its stuck threads are left behind.
const GRACE: Duration = Duration::from_secs(1);
/// A run that has lasted this long is worth some milliseconds of preparation.
const LONG_RUN: Duration = Duration::from_millis(200);
/// The watchdog polls this number of times within its limit.
const LOOKS_PER_LIMIT: u32 = 20;

/// The monitor's view of a running graph.
pub(crate) trait Watched: Send + Sync {
    /// The graph's watch.
    fn watch(&self) -> &Watch;

    /// The number of buffers that wait for a stage.
    fn queue_len(&self, stage: usize) -> usize;

    /// Stops the graph, because of this stage.
    fn fail(&self, stage: usize, cause: Cause);

    /// Sets the number of active incarnations of a stage.
    ///
    /// # Errors
    /// Why that is not possible.
    fn incarnations(&self, stage: usize, count: u32) -> Result<(), String>;

    /// What has been done so far.
    fn report(&self) -> Report;
}

#[derive(Default)]
struct Stop {
    is_asked: Mutex<bool>,
    asked: Condvar,
}

impl Stop {
    /// Waits for this time; true if the thread has to stop.
    fn wait(&self, time: Duration) -> bool {
        let is_asked = lock(&self.is_asked);
        let waited = self.asked.wait_timeout_while(is_asked, time, |is_asked| !*is_asked);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn ask(&self) {
        *lock(&self.is_asked) = true;
        self.asked.notify_all();
    }
}

/// The monitor of a running graph. Dropping it ends its thread.
pub(crate) struct Watching {
    stop: Arc<Stop>,
    thread: Option<JoinHandle<()>>,
    /// Answers `cosched pipeline show`.
    _served: Option<crate::live::Served>,
}

impl Watching {
    /// Watches a graph whose threads are about to begin.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub(crate) fn start(graph: Arc<dyn Watched>, options: &Options) -> std::io::Result<Watching> {
        let served = if options.serve { serve(&graph) } else { None };
        let stop = Arc::new(Stop::default());
        let (stop_there, options) = (stop.clone(), options.clone());
        let body = move || Monitor::new(graph.as_ref(), &options).run(&stop_there);
        let thread = std::thread::Builder::new().name("cosched-monitor".into()).spawn(body)?;
        Ok(Watching { stop, thread: Some(thread), _served: served })
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.stop.ask();
        if let Some(thread) = self.thread.take() {
            // A panic in the monitor is our own defect, and was printed; it must not affect the result of the run.
            let _ = thread.join();
        }
    }
}

/// A run does not fail because its socket cannot be created.
fn serve(graph: &Arc<dyn Watched>) -> Option<crate::live::Served> {
    let of = Arc::downgrade(graph);
    let served = crate::live::Served::start(move || Some(of.upgrade()?.report()));
    served.map_err(|problem| lock(&graph.watch().log).note(format!("it cannot be shown while it runs: {problem}"))).ok()
}

struct Monitor<'a> {
    graph: &'a dyn Watched,
    tuner: Option<Tuner>,
    stall_limit: Option<Duration>,
    stall_warning: Duration,
    next_stall_look: Instant,
    ended: Option<Instant>,
}

impl<'a> Monitor<'a> {
    fn new(graph: &'a dyn Watched, options: &Options) -> Monitor<'a> {
        let warning = options.stall_warning.unwrap_or(STALL_WARNING);
        Monitor {
            graph,
            tuner: None,
            stall_limit: options.stall_limit,
            stall_warning: options.stall_limit.map_or(warning, |limit| limit.min(warning)),
            next_stall_look: Instant::now(),
            ended: None,
        }
    }

    fn run(mut self, stop: &Stop) {
        let watch = self.graph.watch();
        let mut is_prepared = false;
        while !stop.wait(self.pause()) {
            if !is_prepared && watch.started.elapsed() >= LONG_RUN {
                // Not earlier: a short run would have to wait for this at its end.
                prepare_heavy_fence(true);
                is_prepared = true;
            }
            let lengths = (0..watch.facts.stages.len()).map(|stage| self.graph.queue_len(stage));
            let lengths: Vec<usize> = lengths.collect();
            lock(&watch.samples).look(watch.now_s(), lengths.into_iter());
            self.tune();
            self.look_for_stalls();
        }
        // Stalls that have ended since the last poll are over.
        watch.note_stalls(&watch.stalled(self.stall_warning));
        if let Some(mut tuner) = self.tuner.take() {
            tuner.finish(watch, self.graph);
        }
    }

    /// Short at first, so that short runs have samples too; longer later, because each poll costs about 10 µs of a CPU,
    /// which a worker loses.
    fn pause(&self) -> Duration {
        let pause_max = if self.tuner.is_some() { 10 } else { 20 };
        let pause = self.graph.watch().started.elapsed() / 8;
        let pause = pause.clamp(Duration::from_millis(2), Duration::from_millis(pause_max));
        self.tuner.as_ref().map_or(pause, |tuner| pause.min(tuner.due_in(self.graph.watch())))
    }

    /// Autotune starts when all stages have threads: a stage without any has nothing to tune.
    fn tune(&mut self) {
        let watch = self.graph.watch();
        if let Some(tuner) = &mut self.tuner {
            tuner.look(watch, self.graph);
        } else if let Some(config) = watch.priorities.autotune()
            && watch.has_begun()
        {
            self.tuner = Some(Tuner::new(watch, self.graph, config));
        }
    }

    fn look_for_stalls(&mut self) {
        if Instant::now() < self.next_stall_look {
            return;
        }
        self.next_stall_look = Instant::now() + self.stall_warning / LOOKS_PER_LIMIT;
        let watch = self.graph.watch();
        let found = watch.stalled(self.stall_warning);
        for news in watch.note_stalls(&found) {
            eprintln!("cosched: {news}");
        }
        let Some(limit) = self.stall_limit else { return };
        match self.ended {
            None => self.end(&watch.stalled(limit)),
            Some(ended) if ended.elapsed() >= GRACE => watch.give_up(),
            Some(_) => self.next_stall_look = Instant::now(),
        }
    }

    /// Stops the graph because of the thread that has been stuck for the longest time.
    fn end(&mut self, found: &[Found]) {
        let Some(worst) = found.iter().min_by_key(|found| found.since_ns) else { return };
        let words = self.graph.watch().describe(worst);
        self.graph.fail(worst.stage, Cause::Stalled(words));
        self.ended = Some(Instant::now());
        self.next_stall_look = Instant::now();
    }
}
