//! Very short turns for jobs whose threads only spin and are more than the CPUs.
//!
//! The problem: such a thread keeps its CPU until the next tick of the kernel (4 ms at 250 Hz), although the thread for which it
//! waits is queued on the same CPU. No gang helps, and there is nothing to interpose. The rule: while a job that asked for it runs, a thread on
//! each CPU wakes every [`PERIOD`] and sleeps again at once, so that the fair scheduler picks a thread again (decision 0050).

use std::io;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::thread::{CpuSet, futex, sched_setaffinity, set_current_timer_slack};

use crate::realtime;

/// Time between two wake-ups of a thread: 5 % of a CPU for turns of a sixteenth of a tick (decision 0050 has others).
const PERIOD: Duration = Duration::from_micros(250);
/// Below the slot thread, above every program of ordinary priority.
const PRIORITY: i32 = 1;

/// What the slot thread and the ticking threads share.
#[derive(Debug, Default)]
pub(super) struct TickState {
    /// 1 while threads tick; a futex.
    on: AtomicU32,
    stop: AtomicBool,
    pub(super) has_threads: AtomicBool,
}

impl TickState {
    /// Switches the ticks on or off: one store, and one system call where they begin.
    pub(super) fn set(&self, on: bool) {
        if self.on.swap(u32::from(on), Relaxed) == 0 && on {
            self.wake();
        }
    }

    pub(super) fn is_on(&self) -> bool {
        self.on.load(Relaxed) == 1
    }

    fn wake(&self) {
        // It fails for no address of this process.
        let _ = futex::wake(&self.on, futex::Flags::PRIVATE, i32::MAX as u32);
    }

    fn run(&self) {
        while !self.stop.load(Acquire) {
            if self.is_on() {
                std::thread::sleep(PERIOD);
            } else {
                // Woken early or late: the state is looked at again.
                let _ = futex::wait(&self.on, futex::Flags::PRIVATE, 0, None);
            }
        }
    }
}

/// The ticking threads, one on each CPU. They end when this is dropped.
#[derive(Debug)]
pub(super) struct Ticks {
    state: Arc<TickState>,
    threads: Vec<JoinHandle<()>>,
}

impl Ticks {
    /// # Errors
    /// The kernel's, where it gives no thread, no such CPU or no real-time priority; then no thread is left.
    pub(super) fn start(state: Arc<TickState>, cpus: &[u32]) -> io::Result<Ticks> {
        let mut ticks = Ticks { state, threads: Vec::new() };
        let (tell, told) = mpsc::channel();
        for &cpu in cpus {
            let (state, tell) = (Arc::clone(&ticks.state), tell.clone());
            let thread = std::thread::Builder::new().name(format!("cosched-tick{cpu}")).spawn(move || {
                let prepared = prepare(cpu as usize);
                let may_run = prepared.is_ok();
                // Without a listener another thread has failed, and all are stopped.
                let _ = tell.send(prepared);
                drop(tell);
                if may_run {
                    state.run();
                }
            });
            ticks.threads.push(thread?);
        }
        drop(tell);
        told.iter().collect::<io::Result<()>>()?;
        ticks.state.has_threads.store(true, Release);
        Ok(ticks)
    }
}

impl Drop for Ticks {
    fn drop(&mut self) {
        self.state.has_threads.store(false, Release);
        self.state.stop.store(true, Release);
        // A thread that is about to wait must not.
        self.state.on.store(1, Release);
        self.state.wake();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        self.state.on.store(0, Relaxed);
        self.state.stop.store(false, Release);
    }
}

fn prepare(cpu: usize) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set)?;
    // Else a sleep is 50 µs longer.
    set_current_timer_slack(Some(NonZeroU64::MIN))?;
    realtime::become_realtime(PRIORITY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_tick_while_they_are_on_and_end_when_dropped() {
        let state = Arc::new(TickState::default());
        let cpu = crate::observe::cpus_allowed()[0];
        let ticks = match Ticks::start(Arc::clone(&state), &[cpu]) {
            Err(e) => return println!("SKIPPED: no real-time priority: {e}"),
            Ok(ticks) => ticks,
        };
        assert!(state.has_threads.load(Relaxed) && !state.is_on());
        state.set(true);
        assert!(state.is_on());
        state.set(false);
        state.set(true);
        drop(ticks);
        assert!(!state.has_threads.load(Relaxed) && !state.is_on());
    }

    #[test]
    fn a_cpu_that_does_not_exist_is_an_error_and_leaves_no_thread() {
        let state = Arc::new(TickState::default());
        let first = crate::observe::cpus_allowed()[0];
        let refused = Ticks::start(Arc::clone(&state), &[first, 1023]).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
        assert!(!state.has_threads.load(Relaxed));
        assert_eq!(Arc::strong_count(&state), 1, "a thread is left");
    }
}
