//! Very short turns for jobs whose threads only spin and outnumber the CPUs.
//!
//! The problem: such a thread keeps its CPU until the kernel's next tick (4 ms at 250 Hz), although the thread for which it waits is queued on the
//! same CPU. Gang scheduling does not help, and there is no call to interpose. The rule: while a job with this setting runs, a thread on each of its
//! CPUs wakes every [`PERIOD`] and sleeps again at once, so that the fair scheduler picks a thread again (decision 0050).

use std::io;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::thread::{CpuSet, futex, sched_setaffinity, set_current_timer_slack};

use crate::cpubits::{CpuBits, WORDS};
use crate::realtime::Ahead;

/// Time between two wake-ups of a thread: 5 % of a CPU for turns of a sixteenth of a tick (decision 0050 compares others).
const PERIOD: Duration = Duration::from_micros(250);
/// Below the slot thread, above every program of ordinary priority.
const PRIORITY: i32 = 1;

/// The state shared by the slot thread and the ticking threads.
#[derive(Debug)]
pub(super) struct TickState {
    /// For each CPU 1 while its thread ticks; a futex.
    on: [AtomicU32; WORDS * 64],
    /// The CPUs that have such a thread.
    threads: CpuBits,
    stop: AtomicBool,
    pub(super) has_threads: AtomicBool,
}

impl Default for TickState {
    fn default() -> TickState {
        let on = [const { AtomicU32::new(0) }; WORDS * 64];
        TickState { on, threads: CpuBits::none(), stop: AtomicBool::default(), has_threads: AtomicBool::default() }
    }
}

impl TickState {
    /// Lets exactly the threads of these CPUs tick: a store for each CPU that changes, and a system call for each that starts.
    pub(super) fn set(&self, cpus: &[u64; WORDS]) {
        let mut threads = [0; WORDS];
        self.threads.join_into(&mut threads);
        for (word, (mut left, wanted)) in threads.iter().copied().zip(cpus).enumerate() {
            while left != 0 {
                let bit = left.trailing_zeros() as usize;
                left &= left - 1;
                TickState::turn(&self.on[word * 64 + bit], (wanted >> bit) as u32 & 1);
            }
        }
    }

    fn turn(on: &AtomicU32, wanted: u32) {
        if on.swap(wanted, Relaxed) < wanted {
            // The address is valid, so there is no error.
            let _ = futex::wake(on, futex::Flags::PRIVATE, 1);
        }
    }

    fn run(&self, on: &AtomicU32) {
        while !self.stop.load(Acquire) {
            if on.load(Relaxed) == 1 {
                std::thread::sleep(PERIOD);
            } else {
                // Whether it was woken early or late, the state is checked again.
                let _ = futex::wait(on, futex::Flags::PRIVATE, 0, None);
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
        state.threads.set(cpus);
        let mut ticks = Ticks { state, threads: Vec::new() };
        let (tell, told) = mpsc::channel();
        for &cpu in cpus {
            let (state, tell) = (Arc::clone(&ticks.state), tell.clone());
            let thread = std::thread::Builder::new().name(format!("cosched-tick{cpu}")).spawn(move || {
                // Without a receiver another thread has failed, and all are being stopped.
                match prepare(cpu as usize) {
                    Ok(_ahead) => {
                        let _ = tell.send(Ok(()));
                        drop(tell);
                        state.run(&state.on[CpuBits::index(cpu)]);
                    }
                    Err(e) => drop(tell.send(Err(e))),
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
        // A thread that is about to wait must not do so.
        self.state.set(&[u64::MAX; WORDS]);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        self.state.set(&[0; WORDS]);
        self.state.stop.store(false, Release);
    }
}

fn prepare(cpu: usize) -> io::Result<Ahead> {
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set)?;
    // Otherwise each sleep is 50 µs longer.
    set_current_timer_slack(Some(NonZeroU64::MIN))?;
    Ahead::at(PRIORITY)
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
        let on = || state.on[cpu as usize].load(Relaxed);
        assert!(state.has_threads.load(Relaxed) && on() == 0);
        state.set(&[u64::MAX; WORDS]);
        assert_eq!(on(), 1);
        state.set(&[!(1 << cpu); WORDS]);
        assert_eq!(on(), 0, "another CPU's job wants them");
        state.set(&[u64::MAX; WORDS]);
        drop(ticks);
        assert!(!state.has_threads.load(Relaxed) && on() == 0);
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
