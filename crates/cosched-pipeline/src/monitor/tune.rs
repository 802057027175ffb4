//! Runs core's autotune: passes windows to it, applies its actions, and tells it which changes the system
//! refused.

use std::sync::Arc;
use std::time::Duration;

use cosched_core::stage::autotune::{Action, Autotune, Config, StageInfo};
use cosched_core::stage::{Change, Setting};
use cosched_linux::thread::{Thread, ThreadError, cpus_busy_ns, cpus_usable};

use super::totals::Totals;
use super::{Seat, Watch, Watched, lock};
use crate::priority::{change, describe, rights};
use crate::report;

/// Autotune on a running graph. Core numbers stages in the order of flow.
pub(super) struct Tuner {
    rule: Autotune,
    /// The CPUs of the process, on which other processes may run too.
    cpus: Vec<usize>,
    last: Totals,
    due_ns: u64,
}

impl Tuner {
    /// For a graph whose threads have started. Acts at once where the rule needs no window for that.
    pub(super) fn new(watch: &Watch, graph: &dyn Watched, config: Option<Config>) -> Tuner {
        let config = config.unwrap_or_else(default_config);
        let config = Config { rights: rights(config.rights), ..config };
        let stages: Vec<StageInfo> = watch.facts.flow.iter().map(|stage| watch.stage_info(*stage)).collect();
        let rule = Autotune::new(config, &stages);
        let cpus = own_cpus();
        let mut tuner = Tuner { rule, last: Totals::default(), cpus, due_ns: 0 };
        let actions = tuner.rule.begin(cpus_usable() as u32);
        tuner.act(watch, graph, actions);
        tuner.begin_window(totals(watch, &tuner.cpus));
        tuner
    }

    /// The time until the next window is complete.
    pub(super) fn due_in(&self, watch: &Watch) -> Duration {
        Duration::from_nanos(self.due_ns.saturating_sub(watch.now_ns()))
    }

    /// If a window is complete, passes it to the rule and applies the rule's actions.
    pub(super) fn look(&mut self, watch: &Watch, graph: &dyn Watched) {
        if watch.now_ns() < self.due_ns {
            return;
        }
        let now = totals(watch, &self.cpus);
        let window = watch.window(&self.last, &now);
        let actions = self.rule.window(&window);
        self.act(watch, graph, actions);
        // The time that an action takes is not part of the next window.
        self.begin_window(if watch.now_ns() - now.at_ns > 1_000_000 { totals(watch, &self.cpus) } else { now });
    }

    fn begin_window(&mut self, now: Totals) {
        self.due_ns = now.at_ns + self.rule.window_ns();
        self.last = now;
    }

    /// The graph ends: changes that are on trial are undone.
    pub(super) fn finish(&mut self, watch: &Watch, graph: &dyn Watched) {
        let actions = self.rule.finish();
        self.act(watch, graph, actions);
    }

    fn act(&mut self, watch: &Watch, graph: &dyn Watched, actions: Vec<Action>) {
        for action in actions {
            let stage = watch.facts.flow[action.stage];
            let result = watch.carry_out(stage, &action.change, graph);
            watch.record_tuned(stage, &action, &result);
            match result {
                // A stage whose threads have ended needs no setting.
                Ok(()) | Err(Refusal::Gone) => {}
                Err(Refusal::Told(_)) => self.rule.refused(action.stage, &action.change),
            }
        }
    }
}

/// Why a change was not made.
#[derive(Debug)]
pub(super) enum Refusal {
    /// Its threads have ended.
    Gone,
    /// The system's error message.
    Told(String),
}

impl Watch {
    fn stage_info(&self, stage: usize) -> StageInfo {
        let facts = &self.facts.stages[stage];
        let settings = lock(&self.settings)[stage].clone();
        // Core's values are absolute; a program that was started with `nice` does not start at 0.
        let base_nice = self.seats_of(stage).iter().find_map(|seat| Some(seat.base.as_ref()?.nice));
        let start = Setting { nice: settings.nice.or(base_nice), incarnations: Some(facts.incarnations), ..settings };
        // What the stage requests itself is not tried.
        let own_threads = facts.owns_threads && facts.settings.is_empty();
        StageInfo { resource: facts.resource, own_threads, replicable_to: facts.replicable_to, start }
    }

    /// Makes a change to all threads of a stage. If one refuses, the change is undone on the others.
    pub(super) fn carry_out(&self, stage: usize, wanted: &Change, graph: &dyn Watched) -> Result<(), Refusal> {
        if let Change::Incarnations(count) = wanted {
            return graph.incarnations(stage, *count).map_err(Refusal::Told);
        }
        let now = lock(&self.settings)[stage].clone();
        let mut done: Vec<Arc<Seat>> = Vec::new();
        let mut is_gone = true;
        for seat in self.seats_of(stage) {
            let (Some(thread), Some(base)) = (&seat.thread, &seat.base) else { continue };
            match change(thread, base, wanted) {
                Ok(()) => is_gone = false,
                Err(ThreadError::Gone { .. }) => continue,
                Err(error) => {
                    done.iter().for_each(|seat| undo(seat, &now, wanted));
                    return Err(Refusal::Told(error.why()));
                }
            }
            done.push(seat);
        }
        if is_gone { Err(Refusal::Gone) } else { Ok(()) }
    }

    fn record_tuned(&self, stage: usize, action: &Action, result: &Result<(), Refusal>) {
        let refused = match result {
            Ok(()) => None,
            Err(Refusal::Gone) => return,
            Err(Refusal::Told(words)) => Some(words.clone()),
        };
        if refused.is_none() {
            lock(&self.settings)[stage].apply(&action.change);
        }
        let action = report::Action {
            at_s: self.now_s(),
            by: self.priorities.name(),
            change: describe(&action.change),
            why: action.why.to_string(),
            refused,
        };
        lock(&self.log).action(stage, action);
    }
}

/// Resets the setting that `wanted` changes to its value in `now`.
fn undo(seat: &Seat, now: &Setting, wanted: &Change) {
    let (Some(thread), Some(base)) = (&seat.thread, &seat.base) else { return };
    let now = Setting { nice: now.nice.or(Some(base.nice)), ..now.clone() };
    // The same setting was changed successfully a moment ago; a thread that has ended since needs no reset.
    let _ = change(thread, base, &now.inverse(wanted));
}

/// The CPUs of the calling thread: the monitor's affinity is never changed.
fn own_cpus() -> Vec<usize> {
    Thread::current().and_then(|thread| thread.scheduling()).map_or(Vec::new(), |now| now.cpus)
}

/// The totals until now, with the CPU time of all processes on these CPUs.
fn totals(watch: &Watch, cpus: &[usize]) -> Totals {
    let mut totals = watch.totals();
    totals.all_ns = cpus_busy_ns(cpus);
    totals
}

/// The default bounds: threads may be bound to the CPUs of this process.
fn default_config() -> Config {
    let cpus = own_cpus();
    // With a CPU quota below the number of CPUs, a bound thread could wait for its own CPU while another one has
    // the quota.
    let cpus = if cpus.len() > cpus_usable() { Vec::new() } else { cpus };
    Config { cpus, ..Config::default() }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

    use cosched_core::stage::Class;

    use super::*;
    use crate::{Cause, Graph, Options, Path, Report, Resource, Stage};

    /// A graph whose only thread is that of the test.
    struct Alone {
        watch: Watch,
        incarnations: AtomicU32,
    }

    impl Watched for Alone {
        fn watch(&self) -> &Watch {
            &self.watch
        }

        fn queue_len(&self, _: usize) -> usize {
            0
        }

        fn fail(&self, _: usize, cause: Cause) {
            panic!("{cause}");
        }

        fn incarnations(&self, _: usize, count: u32) -> Result<(), String> {
            if count > 2 {
                return Err("there are 2".to_owned());
            }
            self.incarnations.store(count, SeqCst);
            Ok(())
        }

        fn report(&self) -> Report {
            Report::default()
        }
    }

    fn alone() -> Alone {
        let mut graph = Graph::new("cst");
        let stage = graph.stage(Stage::blocking("write", Resource::Io, |_| Ok(())));
        graph.path(Path::new("p").buffers(1, 8).through([stage]));
        let watch = Watch::new(super::super::facts(&graph), &Options::default());
        Alone { watch, incarnations: AtomicU32::new(1) }
    }

    #[test]
    fn changes_reach_the_stage_s_threads_and_are_taken_back() {
        // On a separate thread, because a lowered priority may remain.
        std::thread::spawn(|| {
            let graph = alone();
            let before = Thread::current().unwrap().scheduling().unwrap();
            let _tracker = graph.watch.track(&[0]);
            let change =
                |change: Change| graph.watch.carry_out(0, &change, &graph).map_err(|refusal| format!("{refusal:?}"));
            let now = || Thread::current().unwrap().scheduling().unwrap();
            if change(Change::SliceUs(200)).is_ok() {
                assert_eq!(now().slice_ns, 200_000);
                change(Change::SliceUs(0)).unwrap();
                assert!(now().slice_is_default);
            }
            change(Change::Class(Class::Batch)).unwrap();
            assert_eq!(now().class, cosched_linux::thread::Class::Batch);
            change(Change::Class(Class::Normal)).unwrap();
            change(Change::Affinity(before.cpus[..1].to_vec())).unwrap();
            assert_eq!(now().cpus, before.cpus[..1]);
            change(Change::Affinity(Vec::new())).unwrap();
            assert_eq!(now(), before);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn threads_are_the_executor_s() {
        let graph = alone();
        assert!(graph.watch.carry_out(0, &Change::Incarnations(2), &graph).is_ok());
        assert_eq!(graph.incarnations.load(SeqCst), 2);
        let refusal = graph.watch.carry_out(0, &Change::Incarnations(3), &graph).unwrap_err();
        assert!(matches!(refusal, Refusal::Told(words) if words == "there are 2"));
    }

    #[test]
    fn a_stage_without_threads_refuses_nothing() {
        let graph = alone();
        assert!(matches!(graph.watch.carry_out(0, &Change::Nice(5), &graph), Err(Refusal::Gone)));
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        std::thread::scope(|scope| {
            let watch = &graph.watch;
            let (told, tell) = std::sync::mpsc::channel();
            scope.spawn(move || {
                let _tracker = watch.track(&[0]);
                told.send(()).unwrap();
                let _ = receiver.recv();
            });
            tell.recv().unwrap();
            let what_no_system_has = graph.watch.carry_out(0, &Change::SliceUs(1), &graph);
            assert!(matches!(what_no_system_has, Err(Refusal::Told(_))), "{what_no_system_has:?}");
            assert!(graph.watch.carry_out(0, &Change::Nice(19), &graph).is_ok());
            drop(sender);
        });
    }
}
