//! The thread's own view of its seat, from its start to its end.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use cosched_core::stage::fixed;
use cosched_core::stage::{Change, Resource, Setting};
use cosched_linux::thread::{Scheduling, Thread, ThreadError};

use super::pace::Pace;
use super::spans::Spans;
use super::{Doing, Seat, Watch, lock};
use crate::graph::Kind;
use crate::priority::{self, Adjusted, Priorities};
use crate::report::{Action, Span};

/// The calling thread works for the graph for the lifetime of this value.
pub(crate) struct Tracker<'a> {
    watch: &'a Watch,
    seat: Arc<Seat>,
    doing: Cell<(Doing, u64)>,
    pace: Cell<Pace>,
    /// The kind of wait for which it last yielded.
    gives: Cell<Doing>,
    /// If a trace is kept, since when a body has worked on the buffer that it accepted last.
    accepted_ns: Cell<u64>,
    is_adjusted: bool,
    adjusted: RefCell<Option<Adjusted>>,
}

impl Watch {
    /// The calling thread starts to work for these stages. Their settings are applied to it.
    pub(crate) fn track(&self, stages: &[usize]) -> Tracker<'_> {
        let seat = self.seat(Seat::here(stages, Spans::new(self.is_traced)));
        let adjusted = self.adjusted(&seat);
        Tracker {
            watch: self,
            seat,
            doing: Cell::new((Doing::Nothing, 0)),
            pace: Cell::default(),
            gives: Cell::new(Doing::Nothing),
            accepted_ns: Cell::new(0),
            is_adjusted: adjusted.is_some(),
            adjusted: RefCell::new(adjusted),
        }
    }

    /// Registers a thread's seat and applies the settings of its stages.
    pub(super) fn seat(&self, seat: Seat) -> Arc<Seat> {
        if let (Some(thread), Some(base)) = (&seat.thread, &seat.base) {
            self.settle(thread, base, &seat.stages);
        }
        let seat = Arc::new(seat);
        lock(&self.crew).enter(seat.clone());
        seat
    }

    /// Applies the stages' requests, the fixed rule and autotune's results so far, before anything else happens on the thread.
    fn settle(&self, thread: &Thread, base: &Scheduling, stages: &[usize]) {
        let asked = |stage: usize| self.facts.stages[stage].settings.setting();
        let asks: Vec<usize> = stages.iter().copied().filter(|stage| self.asks(*stage, stages)).collect();
        if let Some(setting) = self.agreed(&asks, "settings", asked) {
            self.apply(thread, base, stages, &setting, ("stage", "the stage requests it"));
        }
        if let Priorities::Fixed(rule) = &self.priorities {
            let resources: Vec<Resource> = self.facts.stages.iter().map(|stage| stage.resource).collect();
            let ruled = fixed::settings(*rule, &resources);
            if let Some(setting) = self.agreed(stages, "fixed priorities", |stage| ruled[stage].clone()) {
                let setting = stages.iter().fold(relative(setting, base), |left, stage| without(left, &asked(*stage)));
                self.apply(thread, base, stages, &setting, (&self.priorities.name(), "fixed before the run"));
            }
        }
        self.catch_up(thread, base, stages);
    }

    /// Whether the stage's own request matters on this thread. On a thread that stages share by name, those without a request
    /// leave the choice to the others; the workers are shared by all stages.
    fn asks(&self, stage: usize, stages: &[usize]) -> bool {
        let stage = &self.facts.stages[stage];
        stages.len() == 1 || stage.kind == Kind::Worker || !stage.settings.is_empty()
    }

    /// Gives an incarnation that autotune has added the settings that the others have by now.
    fn catch_up(&self, thread: &Thread, base: &Scheduling, stages: &[usize]) {
        let ([stage], Some(_)) = (stages, self.priorities.autotune()) else { return };
        let now = Setting { incarnations: None, ..lock(&self.settings)[*stage].clone() };
        let rest = without(now, &self.facts.stages[*stage].settings.setting());
        drop(priority::apply(thread, base, &rest));
    }

    /// The setting of a thread that works for several stages: the one that all of them have, if they agree.
    fn agreed(&self, stages: &[usize], what: &str, of: impl Fn(usize) -> Setting) -> Option<Setting> {
        let first = of(*stages.first()?);
        if stages.iter().all(|stage| of(*stage) == first) {
            return Some(first);
        }
        lock(&self.log).note(format!("{what} not set: {} share threads and differ", self.names(stages)));
        None
    }

    fn names(&self, stages: &[usize]) -> String {
        let names: Vec<&str> = stages.iter().map(|stage| self.facts.stages[*stage].name.as_str()).collect();
        format!("stages {}", names.join(", "))
    }

    fn apply(&self, thread: &Thread, base: &Scheduling, stages: &[usize], setting: &Setting, who: (&str, &str)) {
        for (change, result) in priority::apply(thread, base, setting) {
            for stage in stages {
                // Each incarnation would log the same.
                if !lock(&self.log).has(*stage, who.0, &priority::describe(&change)) {
                    self.record(*stage, &change, who, &result);
                }
            }
        }
    }

    /// Logs a requested change and its result.
    pub(super) fn record(&self, stage: usize, change: &Change, who: (&str, &str), result: &Result<(), ThreadError>) {
        if result.is_ok() {
            lock(&self.settings)[stage].apply(change);
        }
        let action = Action {
            at_s: self.now_s(),
            by: who.0.to_owned(),
            change: priority::describe(change),
            why: who.1.to_owned(),
            refused: result.as_ref().err().map(ThreadError::why),
        };
        lock(&self.log).action(stage, action);
    }

    /// The adjusting rule of a thread. Only for threads of a single stage: a worker has no output queue of its own.
    fn adjusted(&self, seat: &Seat) -> Option<Adjusted> {
        let rule = self.priorities.adjusting()?;
        let [stage] = seat.stages[..] else {
            if seat.stages.is_empty() {
                return None;
            }
            lock(&self.log).note(format!("priorities not adjusted: {} share threads", self.names(&seat.stages)));
            return None;
        };
        if !self.facts.stages[stage].settings.is_empty() {
            return None;
        }
        let now = seat.thread.as_ref()?.scheduling().ok()?;
        Some(Adjusted::new(rule, &now))
    }
}

impl Watch {
    /// Applies a change that a stage's own thread made to itself to its helpers too. The kernel allowed it to the thread, so it
    /// does not refuse it to them.
    fn helpers_follow(&self, stage: usize, change: &Change) {
        for seat in self.seats_of(stage).iter().filter(|seat| seat.is_helper) {
            if let (Some(thread), Some(base)) = (&seat.thread, &seat.base) {
                let _ = priority::change(thread, base, change);
            }
        }
    }
}

/// Makes a fixed rule's nice values, which are relative, absolute for the thread.
fn relative(setting: Setting, base: &Scheduling) -> Setting {
    let nice = setting.nice.map(|step| base.nice.saturating_add(step).clamp(-20, 19));
    Setting { nice, ..setting }
}

/// Removes what the stage requests itself, which has precedence.
fn without(setting: Setting, asked: &Setting) -> Setting {
    Setting {
        nice: setting.nice.filter(|_| asked.nice.is_none()),
        slice_us: setting.slice_us.filter(|_| asked.slice_us.is_none()),
        class: setting.class.filter(|_| asked.class.is_none()),
        cpus: setting.cpus.filter(|_| asked.cpus.is_none()),
        incarnations: None,
    }
}

impl Tracker<'_> {
    /// The thread starts another activity. Called when it starts or ends to wait, not for each buffer. Returns the time, in
    /// nanoseconds from the graph's start.
    pub(crate) fn switch(&self, doing: Doing) -> u64 {
        let now_ns = self.watch.now_ns();
        let (before, since_ns) = self.doing.replace((doing, now_ns));
        let time_ns = now_ns.saturating_sub(since_ns);
        match before {
            Doing::Nothing | Doing::Aside(_) | Doing::Carry(_) => {}
            Doing::Work(stage) => {
                let untimed_ns = self.with_pace(|pace| pace.divide(time_ns));
                self.waited(self.gives.get(), untimed_ns);
                self.worked(stage, time_ns - untimed_ns);
            }
            Doing::WaitIn(_) | Doing::WaitOut(_) => self.waited(before, time_ns),
        }
        self.seat.switch(doing, now_ns);
        now_ns
    }

    /// The thread starts to wait, perhaps only for a moment. Returns whether the clock was read.
    #[inline]
    pub(crate) fn gives_way(&self, waits: Doing) -> bool {
        // On a shared thread the work before may have been that of several stages, and a body may alternate between two kinds of
        // waits.
        let is_as_before = self.seat.stages.len() == 1 && self.gives.get() == waits;
        if is_as_before && !self.with_pace(Pace::times_next) {
            return false;
        }
        self.switch(waits);
        self.gives.set(waits);
        true
    }

    /// The wait has ended before the thread slept, and the clock was read at its start.
    pub(crate) fn resumes(&self, works: Doing) {
        let (_, since_ns) = self.doing.get();
        let now_ns = self.switch(works);
        self.with_pace(|pace| pace.waited(now_ns.saturating_sub(since_ns)));
    }

    /// The wait has not ended, and the thread is about to sleep. Returns the time, in nanoseconds from the graph's start.
    pub(crate) fn sleeps(&self, waits: Doing) -> u64 {
        let now_ns = self.switch(waits);
        self.with_pace(Pace::restart);
        now_ns
    }

    fn with_pace<T>(&self, change: impl FnOnce(&mut Pace) -> T) -> T {
        let mut pace = self.pace.get();
        let result = change(&mut pace);
        self.pace.set(pace);
        result
    }

    /// A worker arrives at a stage, and has not read the clock.
    #[inline]
    pub(crate) fn carries(&self, stage: usize) {
        self.seat.carries(Doing::Carry(stage));
    }

    /// A worker arrives at a stage at this instant. It reports itself how long it was there ([`Tracker::worked`]).
    pub(crate) fn carries_since(&self, stage: usize, begin: Instant) {
        let since_ns = begin.saturating_duration_since(self.watch.started).as_nanos() as u64;
        self.seat.switch(Doing::Work(stage), since_ns);
    }

    /// A worker is at no stage.
    #[inline]
    pub(crate) fn carries_nothing(&self) {
        self.seat.carries(Doing::Nothing);
    }

    /// The stage that the thread works for now.
    pub(crate) fn stage(&self) -> Option<usize> {
        match self.seat.doing().0 {
            Doing::Work(stage) | Doing::Carry(stage) | Doing::Aside(stage) => Some(stage),
            Doing::Nothing | Doing::WaitIn(_) | Doing::WaitOut(_) => None,
        }
    }

    /// The thread has worked on a stage for this time.
    pub(crate) fn worked(&self, stage: usize, time_ns: u64) {
        let counters = &self.watch.counters[stage];
        counters.add_time(&counters.busy_ns, time_ns);
        self.seat.worked(stage, time_ns);
    }

    /// The thread has waited for this time.
    fn waited(&self, waits: Doing, time_ns: u64) {
        let counters = &self.watch.counters;
        match waits {
            Doing::WaitIn(stage) => counters[stage].add_time(&counters[stage].wait_in_ns, time_ns),
            Doing::WaitOut(stage) => counters[stage].add_time(&counters[stage].wait_out_ns, time_ns),
            _ => {}
        }
    }

    /// Runs a round of a stage.
    #[inline]
    pub(crate) fn round<T>(&self, stage: usize, round: u64, work: impl FnOnce() -> T) -> T {
        self.seat.begins(round);
        if !self.watch.is_traced {
            return work();
        }
        let since_ns = self.watch.now_ns();
        let result = work();
        self.span(stage, round, since_ns);
        result
    }

    /// A body has accepted a block and holds `held` buffers now.
    #[inline]
    pub(crate) fn accepted(&self, round: u64, held: usize) {
        self.seat.begins(round);
        self.seat.held.store(held, Relaxed);
        if self.watch.is_traced {
            self.accepted_ns.set(self.watch.now_ns());
        }
    }

    /// A body is done with a block and holds `held` buffers now.
    #[inline]
    pub(crate) fn conveyed(&self, stage: usize, round: u64, held: usize) {
        self.seat.steps();
        self.seat.held.store(held, Relaxed);
        if self.watch.is_traced {
            self.span(stage, round, self.accepted_ns.replace(self.watch.now_ns()));
        }
    }

    fn span(&self, stage: usize, round: u64, since_ns: u64) {
        let us = |ns: u64| (ns as f64 / 100.0).round() / 10.0;
        let time_ns = self.watch.now_ns().saturating_sub(since_ns);
        self.seat.spans.add(Span(stage as u32, self.seat.tid, round, us(since_ns), us(time_ns)));
    }

    /// The thread is about to convey a buffer of a stage, while `output_len` others wait for the next stage; None at the end of a
    /// path.
    #[inline]
    pub(crate) fn conveys(&self, stage: usize, output_len: impl FnOnce() -> Option<usize>) {
        if self.is_adjusted {
            self.adjusts(stage, output_len());
        }
    }

    fn adjusts(&self, stage: usize, output_len: Option<usize>) {
        let Ok(mut adjusted) = self.adjusted.try_borrow_mut() else { return };
        let (Some(rule), Some(thread)) = (adjusted.as_mut(), &self.seat.thread) else { return };
        let Some(waiting) = output_len else { return };
        let Some((change, result)) = rule.convey(thread, waiting) else { return };
        let why = format!("{waiting} buffers wait after it");
        if result.is_ok() {
            self.watch.helpers_follow(stage, &change);
        }
        self.watch.record(stage, &change, (&self.watch.priorities.name(), &why), &result);
    }
}

impl Drop for Tracker<'_> {
    fn drop(&mut self) {
        self.switch(Doing::Nothing);
        self.seat.divide();
        lock(&self.watch.crew).leave(&self.seat);
    }
}
