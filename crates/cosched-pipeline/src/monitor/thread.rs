//! The monitor's own thread.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::stall::{Found, STALL_WARNING};
use super::tune::Tuner;
use super::{Watch, lock};
use crate::error::Cause;
use crate::options::Options;
use crate::report::Report;

/// How long a graph that has been ended may take, before its stuck threads are left behind.
const GRACE: Duration = Duration::from_secs(1);
/// The watchdog looks this often within its limit.
const LOOKS_PER_LIMIT: u32 = 20;

/// A running graph, as the monitor sees it.
pub(crate) trait Watched: Send + Sync {
    /// What is known of it.
    fn watch(&self) -> &Watch;

    /// How many buffers wait before a stage.
    fn queue_len(&self, stage: usize) -> usize;

    /// Ends it.
    fn fail(&self, stage: usize, cause: Cause);

    /// Lets so many threads work as a stage.
    ///
    /// # Errors
    /// Why that cannot be.
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
    /// Waits for so long; true when it is time to stop.
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
    /// A thread that cannot be started.
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
            // A panic in the monitor is a defect of ours, and was printed; the run's own result is not its victim.
            let _ = thread.join();
        }
    }
}

/// Nobody's run fails because it cannot be shown.
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
        let mut looks = 0;
        while !stop.wait(self.pause(looks)) {
            looks += 1;
            let lengths = (0..watch.facts.stages.len()).map(|stage| self.graph.queue_len(stage));
            let lengths: Vec<usize> = lengths.collect();
            lock(&watch.samples).look(watch.now_s(), lengths.into_iter());
            self.tune();
            self.look_for_stalls();
        }
        // What has gone on since the last look is over.
        watch.note_stalls(&watch.stalled(self.stall_warning));
        if let Some(mut tuner) = self.tuner.take() {
            tuner.finish(watch, self.graph);
        }
    }

    /// Often at first, so that short runs have samples too; later seldom, as each look costs some 10 µs of a CPU.
    fn pause(&self, looks: u32) -> Duration {
        let pause = Duration::from_millis(match looks {
            0..50 => 2,
            50..200 => 5,
            _ if self.tuner.is_some() => 10,
            _ => 20,
        });
        self.tuner.as_ref().map_or(pause, |tuner| pause.min(tuner.due_in(self.graph.watch())))
    }

    /// Autotune begins with the threads: a stage without any has nothing to tune.
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

    /// Ends the graph because of the thread that has been stuck for the longest time.
    fn end(&mut self, found: &[Found]) {
        let Some(worst) = found.iter().min_by_key(|found| found.since_ns) else { return };
        let words = self.graph.watch().describe(worst);
        self.graph.fail(worst.stage, Cause::Stalled(words));
        self.ended = Some(Instant::now());
        self.next_stall_look = Instant::now();
    }
}
