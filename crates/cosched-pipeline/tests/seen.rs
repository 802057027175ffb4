//! Reports of runs: the numbers agree with what the stages did.

mod common;

use std::time::Duration;

use common::{bounded, numbers, spin};
use cosched_pipeline::{Options, Pipeline, Report, Resource, Stage};

fn slow_writer(options: &Options) -> Report {
    let line = Pipeline::new("cst-seen").buffers(4, 1 << 12).stage(numbers("read", 60));
    let line = line.stage(Stage::blocking("sort", Resource::Compute, |_| {
        spin(Duration::from_millis(1));
        Ok(())
    }));
    let line = line.stage(Stage::blocking("write", Resource::Io, |_| {
        std::thread::sleep(Duration::from_millis(4));
        Ok(())
    }));
    line.run(options).unwrap()
}

#[test]
fn times_queues_and_the_bound_tell_where_it_went() {
    bounded(|| {
        // If other processes want the CPUs, the stage that computes is the bottleneck: one undisturbed run
        // of several is enough.
        let mut report = slow_writer(&Options::default());
        for _ in 0..4 {
            if report.bound.limiting == "io" {
                break;
            }
            report = slow_writer(&Options::default());
        }
        let [read, sort, write] = &report.stages[..] else { panic!("{report:?}") };
        assert_eq!((report.rounds, report.memory_bytes), (60, 4 << 12));
        assert!(report.elapsed_s >= 0.24, "60 x 4 ms: {}", report.elapsed_s);
        // Sleeping is busy time without CPU time; spinning is CPU time or waiting for a CPU.
        assert!(write.busy_s >= 0.24 && write.cpu_s < write.busy_s / 2.0, "{write:?}");
        assert!(sort.busy_s >= 0.06 && sort.cpu_s + sort.delay_s > 0.04, "{sort:?}");
        assert!(write.wait_in_s < write.busy_s && read.wait_out_s > 0.1, "the pool is empty: {read:?}");
        assert!(write.queue_mean > 1.0 && write.queue_max >= 2 && write.queue_max <= 4, "{write:?}");
        assert!(write.switches_voluntary >= 50, "each sleep leaves the CPU: {write:?}");
        assert!(read.tids.is_empty(), "nobody lives any more");
        assert_eq!((report.bound.limiting.as_str(), report.bound.stage.as_deref()), ("io", Some("write")));
        let efficiency = report.efficiency();
        // On a busy machine it is far below 1; above 1 the bound would be wrong.
        assert!((0.02..=1.01).contains(&efficiency), "{efficiency}");
        let occupancy = &report.occupancy;
        assert!(occupancy.at_s.len() > 20 && occupancy.waiting.iter().all(|row| row.len() == 3));
        assert!(report.trace.is_none());
    });
}

#[test]
fn a_snapshot_is_of_the_moment_and_names_the_threads() {
    bounded(|| {
        let line = Pipeline::new("cst-now").buffers(2, 64).stage(numbers("read", 1000));
        let line = line.stage(Stage::blocking("write", Resource::Io, |_| {
            std::thread::sleep(Duration::from_millis(2));
            Ok(())
        }));
        let running = line.start(&Options::default()).unwrap();
        std::thread::sleep(Duration::from_millis(120));
        let now = running.snapshot();
        let write = &now.stages[1];
        assert!(write.rounds > 0 && write.rounds < 1000, "{write:?}");
        assert_eq!(write.tids.len(), 1);
        assert!(std::fs::exists(format!("/proc/self/task/{}", write.tids[0])).unwrap());
        running.stop();
        assert!(running.wait().unwrap_err().to_string().contains("it was stopped"));
    });
}

#[test]
fn a_trace_has_every_round_in_its_time() {
    bounded(|| {
        let mut options = Options::default();
        options.trace = true;
        let report = slow_writer(&options);
        let trace = report.trace.as_ref().unwrap();
        // The source is called once more, and returns that no block is left.
        assert_eq!((trace.spans.len(), trace.dropped), (181, 0));
        for stage in 0..3 {
            let mut rounds: Vec<u64> = trace.spans.iter().filter(|span| span.0 == stage).map(|span| span.2).collect();
            rounds.sort_unstable();
            assert_eq!(rounds[..60], (0..60).collect::<Vec<_>>(), "stage {stage}");
        }
        let writes: Vec<_> = trace.spans.iter().filter(|span| span.0 == 2).collect();
        assert!(writes.iter().all(|span| span.4 >= 4000.0), "each sleeps 4 ms");
        assert!(writes.windows(2).all(|pair| pair[0].3 + pair[0].4 <= pair[1].3), "one after the other");
        let events = report.chrome_trace();
        let complete = events["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "X").count();
        assert_eq!(complete, 181);
        let text = serde_json::to_string(&report).unwrap();
        assert_eq!(serde_json::from_str::<Report>(&text).unwrap().trace, report.trace);
    });
}

#[test]
fn a_thread_of_two_stages_divides_its_time_as_they_worked() {
    bounded(|| {
        let work = |name: &str, ms: u64| {
            Stage::blocking(name, Resource::Compute, move |_| {
                spin(Duration::from_millis(ms));
                Ok(())
            })
        };
        let line = Pipeline::new("cst-divide").buffers(3, 64).stage(numbers("read", 20));
        let line = line.stage(work("long", 6).on_thread("both")).stage(work("short", 2).on_thread("both"));
        let report = line.run(&Options::default()).unwrap();
        let (long, short) = (&report.stages[1], &report.stages[2]);
        // Their CPU times are in the proportion of their times at work, whatever else ran on the machine.
        let (cpu, busy) = (long.cpu_s / short.cpu_s, long.busy_s / short.busy_s);
        assert!((cpu / busy - 1.0).abs() < 0.2, "{cpu} {busy} {long:?} {short:?}");
        assert!(long.busy_s >= 0.12 && short.busy_s >= 0.04);
    });
}
