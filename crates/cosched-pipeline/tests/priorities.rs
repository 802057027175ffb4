//! Priorities on real threads: visible in /proc, undone, refused without harm to the run.

mod common;

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{bounded, numbers, spin};
use cosched_pipeline::autotune::{Config, Rights};
use cosched_pipeline::{
    Buffer, Class, FixedRule, GraphError, Options, Pipeline, Priorities, Report, Resource, Settings, Stage, StageReport,
};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

/// Nice value and policy of the calling thread, from /proc/thread-self/stat: fields 19 and 41.
fn in_proc() -> (i32, i32) {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
    let fields: Vec<&str> = stat[stat.rfind(')').unwrap() + 1..].split_whitespace().collect();
    (fields[19 - 3].parse().unwrap(), fields[41 - 3].parse().unwrap())
}

/// Nice value and policy of a stage's own thread, block after block.
type Seen = Arc<Mutex<Vec<(i32, i32)>>>;

/// A stage on a thread of its own that records its scheduling before it works.
fn looks(name: &str, resource: Resource, seen: &Seen, work: Duration) -> Stage {
    let seen = seen.clone();
    Stage::blocking(name, resource, move |_| {
        seen.lock().unwrap().push(in_proc());
        std::thread::sleep(work);
        Ok(())
    })
}

fn options(priorities: Priorities) -> Options {
    let mut options = Options::default();
    options.priorities = priorities;
    options
}

/// The nice value of a lowered thread: the tests may have been started with `nice` themselves.
fn lowered() -> i32 {
    (in_proc().0 + 10).min(19)
}

fn has_the_right() -> bool {
    capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_NICE))
}

/// Runs `body` on a thread without CAP_SYS_NICE, which its threads inherit.
fn without_the_right<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> T {
    let limited = move || {
        let now = capabilities(None).unwrap();
        let effective = now.effective.difference(CapabilitySet::SYS_NICE);
        set_capabilities(None, CapabilitySets { effective, ..now }).unwrap();
        body()
    };
    std::thread::spawn(limited).join().unwrap()
}

fn stage<'a>(report: &'a Report, name: &str) -> &'a StageReport {
    report.stages.iter().find(|stage| stage.name == name).unwrap()
}

#[test]
fn what_a_stage_asks_for_holds_from_its_first_block_on() {
    bounded(|| {
        let (asked, left) = (Seen::default(), Seen::default());
        let settings =
            Settings { nice: Some(7), slice_us: Some(300), class: Some(Class::Batch), ..Settings::default() };
        let report = Pipeline::new("cst-asks")
            .buffers(3, 64)
            .stage(numbers("read", 5))
            .stage(looks("sort", Resource::Compute, &asked, Duration::ZERO).with(settings))
            .stage(looks("write", Resource::Io, &left, Duration::ZERO))
            .run(&Options::default())
            .unwrap();
        // SCHED_BATCH is 3.
        assert_eq!(*asked.lock().unwrap(), [(7, 3); 5]);
        assert_eq!(*left.lock().unwrap(), [in_proc(); 5], "others keep theirs");
        let sort = stage(&report, "sort");
        assert_eq!(sort.settings, "nice 7, slice 0.3 ms, class batch");
        assert_eq!(sort.actions.len(), 3);
        assert!(sort.actions.iter().all(|action| action.by == "stage" && action.refused.is_none()), "{sort:?}");
        assert!(stage(&report, "write").actions.is_empty());
    });
}

#[test]
fn the_fixed_rule_goes_by_what_a_stage_uses_and_leaves_its_own_wishes() {
    bounded(|| {
        let (io, own, compute) = (Seen::default(), Seen::default(), Seen::default());
        let report = Pipeline::new("cst-fixed")
            .buffers(3, 64)
            .stage(numbers("read", 3))
            .stage(looks("load", Resource::Io, &io, Duration::ZERO))
            .stage(looks("sort", Resource::Compute, &compute, Duration::ZERO))
            .stage(
                looks("write", Resource::Io, &own, Duration::ZERO)
                    .with(Settings { nice: Some(3), ..Settings::default() }),
            )
            .run(&options(Priorities::Fixed(FixedRule::NiceUpIo)))
            .unwrap();
        let base = in_proc().0;
        let nices = |seen: &Seen| seen.lock().unwrap().iter().map(|(nice, _)| *nice).collect::<Vec<_>>();
        assert_eq!(nices(&io), [lowered(); 3]);
        assert_eq!(nices(&compute), [base; 3]);
        assert_eq!(nices(&own), [3; 3]);
        assert_eq!(stage(&report, "load").actions[0].by, "nice-up-io");
        assert_eq!(report.priorities, "nice-up-io");
    });
}

#[test]
fn adjusting_once_lowers_on_a_backlog_for_good() {
    bounded(|| {
        let fast = Seen::default();
        let report = Pipeline::new("cst-once")
            .buffers(6, 64)
            .stage(numbers("read", 12))
            .stage(looks("fast", Resource::Io, &fast, Duration::ZERO))
            .stage(Stage::blocking("slow", Resource::Io, |_| {
                std::thread::sleep(Duration::from_millis(5));
                Ok(())
            }))
            .run(&options(Priorities::AdjustOnce))
            .unwrap();
        let base = in_proc().0;
        let nices: Vec<i32> = fast.lock().unwrap().iter().map(|(nice, _)| *nice).collect();
        assert_eq!((nices[0], *nices.last().unwrap()), (base, lowered()), "{nices:?}");
        let adjusted = stage(&report, "fast");
        assert_eq!(adjusted.actions_count, 1, "{adjusted:?}");
        assert!(adjusted.actions[0].why.contains("buffers wait after it"), "{adjusted:?}");
        assert!(stage(&report, "slow").actions.is_empty(), "nothing waits behind the last");
    });
}

/// Every fourth block is slow, so that the queue before it repeatedly fills and empties.
fn bursts(seen: &Seen, rule: Priorities) -> Report {
    let mut slept = 0;
    let mut sent = 0;
    Pipeline::new("cst-bursts")
        .buffers(6, 64)
        .stage(numbers("read", 40))
        .stage({
            let seen = seen.clone();
            Stage::blocking("first", Resource::Io, move |_| {
                seen.lock().unwrap().push(in_proc());
                sent += 1;
                // After a burst of five the next one finds an empty queue.
                std::thread::sleep(Duration::from_millis(if sent % 5 == 0 { 40 } else { 0 }));
                Ok(())
            })
        })
        .stage(Stage::blocking("second", Resource::Io, move |_| {
            slept += 1;
            std::thread::sleep(Duration::from_millis(if slept % 5 == 1 { 15 } else { 1 }));
            Ok(())
        }))
        .run(&options(rule))
        .unwrap()
}

#[test]
fn adjusting_up_and_down_raises_again_when_nothing_waits() {
    bounded(|| {
        if !has_the_right() {
            return;
        }
        let seen = Seen::default();
        let report = bursts(&seen, Priorities::AdjustUpDown);
        let base = in_proc().0;
        let nices: Vec<i32> = seen.lock().unwrap().iter().map(|(nice, _)| *nice).collect();
        let first_low = nices.iter().position(|nice| *nice == lowered()).expect("it was lowered");
        assert!(nices[first_low..].contains(&base), "and raised again: {nices:?}");
        let first = stage(&report, "first");
        assert!(first.actions.iter().any(|action| action.change == format!("nice {}", lowered())));
        assert!(first.actions.iter().any(|action| action.change == format!("nice {base}")), "{first:?}");
        assert!(first.actions.iter().all(|action| action.refused.is_none()));
    });
}

#[test]
fn without_the_right_the_rule_says_what_it_would_have_done_and_the_run_goes_on() {
    bounded(|| {
        let (fixed, adjusted, nices) = without_the_right(|| {
            let line = Pipeline::new("cst-refused").buffers(3, 64).stage(numbers("read", 4));
            let line = line.stage(Stage::blocking("write", Resource::Io, |_| Ok(())));
            let fixed = line.run(&options(Priorities::Fixed(FixedRule::NiceDownIo))).unwrap();
            let seen = Seen::default();
            let adjusted = bursts(&seen, Priorities::AdjustUpDown);
            let nices: Vec<i32> = seen.lock().unwrap().iter().map(|(nice, _)| *nice).collect();
            (fixed, adjusted, nices)
        });
        if rustix::process::getrlimit(rustix::process::Resource::Nice).current != Some(0) {
            return;
        }
        assert_eq!(fixed.rounds, 4);
        let write = stage(&fixed, "write");
        let refused = write.actions[0].refused.as_ref().expect("root without CAP_SYS_NICE may not");
        assert!(refused.contains("CAP_SYS_NICE") && refused.contains("RLIMIT_NICE"), "{refused}");
        assert_eq!(write.settings, "", "what was refused is not said to hold");
        let text = fixed.text();
        assert!(
            text.contains(&format!(
                "'write' would have had nice {} (fixed before the run), but it is not",
                in_proc().0 - 10
            )),
            "{text}"
        );
        assert_eq!(adjusted.rounds, 40);
        let first = stage(&adjusted, "first");
        assert_eq!(first.actions.iter().filter(|action| action.refused.is_some()).count(), 1, "asked once: {first:?}");
        let first_low = nices.iter().position(|nice| *nice == lowered()).expect("it was lowered");
        assert!(nices[first_low..].iter().all(|nice| *nice == lowered()), "lowered for good: {nices:?}");
    });
}

#[test]
fn settings_that_no_system_takes_are_refused_before_anything_runs() {
    let run = |settings: Settings| {
        let line = Pipeline::new("cst-bad").buffers(2, 64).stage(numbers("read", 1).with(settings));
        match line.run(&Options::default()).unwrap_err().cause {
            cosched_pipeline::Cause::Graph(error @ GraphError::Settings { .. }) => error.to_string(),
            other => panic!("{other}"),
        }
    };
    let nice = run(Settings { nice: Some(20), ..Settings::default() });
    assert!(nice.contains("stage 'read' requests nice 20") && nice.contains("-20 to 19"), "{nice}");
    let slice = run(Settings { slice_us: Some(10), ..Settings::default() });
    assert!(slice.contains("100 to 100000"), "{slice}");
}

#[test]
fn stages_on_one_thread_cannot_ask_for_different_things() {
    let with = |name: &str, nice: i8| {
        let settings = Settings { nice: Some(nice), ..Settings::default() };
        Stage::blocking(name, Resource::Io, |_| Ok(())).on_thread("disk").with(settings)
    };
    let line = Pipeline::new("cst-shared").buffers(2, 64).stage(numbers("read", 1));
    let failure = line.stage(with("a", 1)).stage(with("b", 2)).run(&Options::default()).unwrap_err();
    assert!(failure.to_string().contains("other settings"), "{failure}");
}

#[test]
fn one_of_two_on_a_thread_may_ask_for_both() {
    bounded(|| {
        let (quiet, asks) = (Seen::default(), Seen::default());
        let settings = Settings { nice: Some(5), ..Settings::default() };
        let report = Pipeline::new("cst-both")
            .buffers(3, 64)
            .stage(numbers("read", 3))
            .stage(looks("quiet", Resource::Io, &quiet, Duration::ZERO).on_thread("disk"))
            .stage(looks("asks", Resource::Io, &asks, Duration::ZERO).on_thread("disk").with(settings))
            .run(&Options::default())
            .unwrap();
        assert!(quiet.lock().unwrap().iter().chain(asks.lock().unwrap().iter()).all(|(nice, _)| *nice == 5));
        assert_eq!(stage(&report, "quiet").settings, "nice 5", "it has it too");
    });
}

/// Windows so short that several trials fit into a test.
fn hasty() -> Priorities {
    Priorities::AutoWith(Config {
        rights: Rights::default(),
        window_ns_min: 20_000_000,
        window_ns_max: 30_000_000,
        window_rounds: 1,
        loss_ppm_max: 1_000_000,
        ..Config::default()
    })
}

#[test]
fn autotune_acts_beside_others_says_why_and_leaves_a_run_that_is_right() {
    bounded(|| {
        // All on one CPU, with a thread that does not belong to the pipeline: the bottleneck waits for its CPU, whatever else
        // runs on this machine.
        let mut one = rustix::thread::CpuSet::new();
        let mine = rustix::thread::sched_getaffinity(None).unwrap();
        one.set((0..).find(|cpu| mine.is_set(*cpu)).unwrap());
        rustix::thread::sched_setaffinity(None, &one).unwrap();
        let over = Arc::new(AtomicBool::new(false));
        let hog = std::thread::spawn({
            let over = over.clone();
            move || {
                while !over.load(SeqCst) {
                    spin(Duration::from_millis(1));
                }
            }
        });
        let line = Pipeline::new("cst-auto").buffers(4, 64).stage(numbers("read", u64::MAX));
        let work = |name: &str, resource, spins_us: u64, sleeps_us: u64| {
            Stage::blocking(name, resource, move |_| {
                spin(Duration::from_micros(spins_us));
                std::thread::sleep(Duration::from_micros(sleeps_us));
                Ok(())
            })
        };
        let line = line.stage(work("sort", Resource::Compute, 1000, 0)).stage(work("write", Resource::Io, 200, 200));
        let running = line.start(&options(hasty())).unwrap();
        let began = std::time::Instant::now();
        let acts = |report: &Report| report.stages.iter().any(|stage| stage.actions_count > 0);
        while !acts(&running.snapshot()) && began.elapsed() < Duration::from_secs(12) {
            std::thread::sleep(Duration::from_millis(20));
        }
        running.stop();
        let report = running.wait().unwrap_err().report;
        over.store(true, SeqCst);
        hog.join().unwrap();
        assert!(acts(&report), "{}", report.text());
        let actions: Vec<_> = report.stages.iter().flat_map(|stage| &stage.actions).collect();
        assert!(actions.iter().all(|action| action.by == "auto" && !action.why.is_empty()), "{actions:?}");
        assert_eq!(report.priorities, "auto");
    });
}

/// Nice values of the threads of this process with this name.
fn nices_of(name: &str) -> Vec<i32> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let stats = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("stat")).ok());
    let named = stats.filter(|stat| stat.contains(&format!("({name})")));
    named
        .map(|stat| stat[stat.rfind(')').unwrap() + 1..].split_whitespace().nth(16).unwrap().parse().unwrap())
        .collect()
}

#[test]
fn the_threads_of_a_file_engine_have_the_settings_of_its_stage() {
    use cosched_pipeline::file::{Engine, IoOptions, Sink, SinkOptions};
    bounded(|| {
        let scratch = tempfile::Builder::new().prefix("cst-").tempdir().unwrap();
        let io = IoOptions { engine: Some(Engine::Buffered), ..IoOptions::default() };
        let sink = Sink::create(&scratch.path().join("out"), &SinkOptions { io, ..SinkOptions::default() }).unwrap();
        let settings = Settings { nice: Some(11), ..Settings::default() };
        let line = Pipeline::new("cst-file").buffers(3, 4096).stage(numbers("read", 500));
        let line = line.stage(Stage::blocking("slow", Resource::Io, |_| {
            std::thread::sleep(Duration::from_millis(2));
            Ok(())
        }));
        let running = line.stage(sink.stage("write").with(settings)).start(&Options::default()).unwrap();
        let began = std::time::Instant::now();
        let helped = || nices_of("cosched-file").contains(&11) && running.snapshot().stages[2].tids.len() >= 2;
        while !helped() {
            assert!(began.elapsed() < Duration::from_secs(10), "its own thread and the engine's, nice 11");
            std::thread::sleep(Duration::from_millis(5));
        }
        let report = running.wait().unwrap();
        assert_eq!(stage(&report, "write").actions.len(), 1, "told once: {:?}", stage(&report, "write").actions);
    });
}

#[test]
fn the_workers_have_the_rule_of_their_stages() {
    bounded(|| {
        let seen = Seen::default();
        let there = seen.clone();
        let line = Pipeline::new("cst-workers").buffers(4, 64).stage(numbers("read", 20));
        let line = line.stage(Stage::compute("sort", move |_| {
            there.lock().unwrap().push(in_proc());
            Ok(())
        }));
        let report = line
            .stage(Stage::compute("merge", |_| Ok(())))
            .run(&options(Priorities::Fixed(FixedRule::LowerRest(Resource::Io))));
        let report = report.unwrap();
        assert_eq!(stage(&report, "sort").kind, "worker");
        assert!(seen.lock().unwrap().iter().all(|(nice, _)| *nice == lowered()), "{:?}", seen.lock().unwrap());
        for name in ["sort", "merge"] {
            assert_eq!(stage(&report, name).actions.len(), 1, "told once, of all workers: {:?}", stage(&report, name));
        }
    });
}

#[test]
fn workers_are_not_adjusted_and_the_report_says_so() {
    bounded(|| {
        let line = Pipeline::new("cst-none").buffers(4, 64).stage(numbers("read", 20));
        let line = line.stage(Stage::compute("sort", |_| Ok(()))).stage(Stage::compute("merge", |_| Ok(())));
        let report = line.run(&options(Priorities::AdjustOnce)).unwrap();
        assert_eq!(report.notes, ["priorities not adjusted: stages sort, merge share threads"]);
    });
}

#[test]
fn stages_are_pinned_in_turn() {
    bounded(|| {
        let mut options = Options::default();
        options.pin_in_turn = true;
        let single = move |buffer: &mut Buffer| -> Result<(), cosched_pipeline::BoxError> {
            let status = std::fs::read_to_string("/proc/thread-self/status")?;
            let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap().trim();
            buffer.set_tag(list.parse().map_err(|_| format!("may use {list}"))?);
            Ok(())
        };
        let (to, from) = std::sync::mpsc::channel();
        let line = Pipeline::new("cst-pin").buffers(2, 64).stage(numbers("read", 1));
        let line = line.stage(Stage::blocking("one", Resource::Io, single));
        let tell = to.clone();
        let line = line.stage(Stage::blocking("tell", Resource::Io, move |buffer| Ok(tell.send(buffer.tag())?)));
        line.stage(Stage::blocking("two", Resource::Io, single))
            .stage(Stage::blocking("tell 2", Resource::Io, move |buffer| Ok(to.send(buffer.tag())?)))
            .run(&options)
            .unwrap();
        let got: Vec<u64> = from.try_iter().collect();
        assert_eq!(got.len(), 2);
    });
}
