//! Profiles of programs without MPI, from observing their threads from outside.

use super::build::Run;
use super::{By, Profile, Task};

/// The last observed state of a thread.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "the fields are named by what they are")]
pub struct Observed {
    /// The name of its process.
    pub name: String,
    pub cpu_ns: u64,
    /// Time ready to run, but without a CPU.
    pub wait_ns: u64,
    /// Time in uninterruptible sleep, which is how Linux waits for a disk: the fraction of samples, times
    /// the elapsed time.
    pub io_ns: u64,
    /// Bytes read from and written to storage.
    pub io_bytes: u64,
    pub voluntary: u64,
    pub involuntary: u64,
}

/// Threads with less than this share of the busiest one's time are helpers, not tasks.
const TASK_SHARE_MIN: f64 = 0.02;

/// The profile of an observed run. `cpu_s` is the kernel's total of the CPU time of all processes.
pub fn from_observation(run: &Run, mut threads: Vec<Observed>, elapsed_s: f64, cpu_s: f64, looks: u64) -> Profile {
    let busy = |thread: &Observed| thread.cpu_ns + thread.io_ns;
    let largest = threads.iter().map(busy).max().unwrap_or(0) as f64;
    threads.retain(|thread| busy(thread) > 0 && busy(thread) as f64 >= largest * TASK_SHARE_MIN);
    if threads.is_empty() {
        threads.push(Observed::default());
    }
    let seen_s = threads.iter().map(|thread| thread.cpu_ns as f64 / 1e9).sum::<f64>();
    let mut profile = run.profile(By::Observation);
    profile.elapsed_s = elapsed_s;
    profile.tasks = threads.len() as u32;
    // The time of short threads, of helpers and after the last sample is divided in proportion to the
    // rest.
    let scale = if seen_s > 0.0 { cpu_s / seen_s } else { 1.0 };
    if seen_s > 0.0 && !(0.9..1.1).contains(&scale) {
        profile.warnings.push(format!(
            "{seen_s:.3} s of CPU time were seen in {looks} looks, and {cpu_s:.3} s were used; the tasks were scaled to that"
        ));
    }
    let count = threads.len() as f64;
    let task = |(place, thread): (usize, Observed)| Task {
        task: place as u32,
        compute_s: if seen_s > 0.0 { thread.cpu_ns as f64 / 1e9 * scale } else { cpu_s / count },
        io_s: thread.io_ns as f64 / 1e9,
        wait_s: thread.wait_ns as f64 / 1e9,
        ..Task::default()
    };
    profile.each = threads.into_iter().enumerate().map(task).collect();
    profile
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> Run {
        Run { command: vec!["x".into()], recorded: String::new(), host: String::new(), exit: 0 }
    }

    fn thread(cpu_ms: u64, io_ms: u64) -> Observed {
        Observed { cpu_ns: cpu_ms * 1_000_000, io_ns: io_ms * 1_000_000, ..Observed::default() }
    }

    #[test]
    fn helpers_are_no_tasks_and_all_time_is_shared_out() {
        let profile = from_observation(&run(), vec![thread(900, 100), thread(5, 0), thread(900, 0)], 1.0, 1.98, 20);
        assert_eq!((profile.tasks, profile.by, profile.warnings.len()), (2, By::Observation, 0));
        let sum: f64 = profile.each.iter().map(|task| task.compute_s).sum();
        assert!((sum - 1.98).abs() < 1e-9);
        let text = profile.program().unwrap().to_string();
        assert!(text.contains("repeat 100 {") && text.contains("on 0 {"), "{text}");
        assert_eq!(profile.totals().messages_mean, 0.0);
    }

    #[test]
    fn a_program_too_short_to_be_seen_still_has_its_time() {
        let profile = from_observation(&run(), Vec::new(), 0.01, 0.008, 1);
        assert_eq!((profile.tasks, profile.each[0].compute_s), (1, 0.008));
        let missed = from_observation(&run(), vec![thread(100, 0)], 1.0, 0.5, 3);
        assert!(missed.warnings[0].contains("scaled"), "{:?}", missed.warnings);
    }
}
