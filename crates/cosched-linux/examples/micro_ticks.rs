//! Measures the effect of very short turns on programs that spin with more threads than CPUs.
//!
//! `micro_ticks WAYS REPEATS COMMAND…`: runs COMMAND under each of the WAYS in turn, comma-separated: `none`; `rt:US`, a real-time thread on each CPU
//! that wakes every US µs and sleeps again at once, so that the fair scheduler picks a thread again; `fair:US`, the same without privileges, by
//! threads with a slice of 0.1 ms beside programs with one of 0.2 ms. Printed: for each way the time of COMMAND (s, median), its ratio to that under
//! `none`, the CPU time of the threads (%), and the computation that one busy thread on each CPU completes meanwhile (% of `none`).

use std::error::Error;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use cosched_linux::{observe, realtime};
use rustix::time::{ClockId, clock_gettime};

const TICKER_SLICE_NS: u64 = 100_000;
const PROGRAM_SLICE_NS: u64 = 200_000;
/// How long the busy threads compute.
const COST_TIME: Duration = Duration::from_secs(1);

#[derive(Clone, Copy)]
enum Way {
    None,
    RealTime(Duration),
    Fair(Duration),
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [ways, repeats, command @ ..] = &args[..] else {
        return Err("usage: micro_ticks none,rt:250,fair:250 REPEATS COMMAND…".into());
    };
    let ways = ways.split(',').map(|text| Ok((text, way(text)?))).collect::<Result<Vec<_>, Box<dyn Error>>>()?;
    let mut seen = vec![Vec::new(); ways.len()];
    for _ in 0..repeats.parse::<u32>()? {
        for ((_, way), seen) in ways.iter().zip(&mut seen) {
            seen.push(measure(*way, command)?);
        }
    }
    let median = |figures: &[[f64; 3]], which: usize| {
        let mut all: Vec<f64> = figures.iter().map(|figure| figure[which]).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    println!("{:10} {:>8} {:>8} {:>8} {:>10}", "way", "s", "of none", "ticks %", "computes %");
    for ((name, _), figures) in ways.iter().zip(&seen) {
        let [time, ticks, computed] = [0, 1, 2].map(|which| median(figures, which));
        let of_none = |which: usize| median(&seen[0], which);
        println!(
            "{name:10} {time:8.2} {:8.3} {:8.1} {:10.1}",
            time / of_none(0),
            ticks * 100.0,
            computed / of_none(2) * 100.0
        );
    }
    Ok(())
}

fn way(text: &str) -> Result<Way, Box<dyn Error>> {
    let period = |us: &str| us.parse().map(Duration::from_micros);
    match text.split_once(':') {
        None if text == "none" => Ok(Way::None),
        Some(("rt", us)) => Ok(Way::RealTime(period(us)?)),
        Some(("fair", us)) => Ok(Way::Fair(period(us)?)),
        _ => Err(format!("no way {text}: none, rt:US or fair:US").into()),
    }
}

/// The command's time, the part of a CPU's time that a ticking thread used, and the computation that busy threads completed.
fn measure(way: Way, command: &[String]) -> Result<[f64; 3], Box<dyn Error>> {
    let ticks = Ticks::start(way)?;
    let begun = Instant::now();
    let words: Vec<String> = command.to_vec();
    // In a thread of its own, whose slice the command inherits.
    let status = std::thread::spawn(move || {
        if let Way::Fair(_) = way {
            set_slice(PROGRAM_SLICE_NS)?;
        }
        Command::new(&words[0]).args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null()).status()
    });
    let status = status.join().map_err(|_| "the command's thread panicked")??;
    let time = begun.elapsed();
    if !status.success() {
        return Err(format!("{}: {status}", command[0]).into());
    }
    let busy: Vec<JoinHandle<u64>> = observe::cpus_allowed().iter().map(|_| std::thread::spawn(compute)).collect();
    let computed: u64 = busy.into_iter().map(|thread| thread.join().unwrap_or(0)).sum();
    Ok([time.as_secs_f64(), ticks.stop(begun.elapsed()), computed as f64])
}

fn compute() -> u64 {
    let end = Instant::now() + COST_TIME;
    let mut rounds = 0;
    while Instant::now() < end {
        std::hint::black_box((0..1000_u64).fold(0, |sum, n| std::hint::black_box(sum ^ n)));
        rounds += 1;
    }
    rounds
}

/// A thread on each CPU.
struct Ticks {
    /// Each returns the CPU time that it used, in ns.
    threads: Vec<JoinHandle<u64>>,
    stop: Arc<AtomicBool>,
}

impl Ticks {
    fn start(way: Way) -> Result<Ticks, Box<dyn Error>> {
        let stop = Arc::new(AtomicBool::new(false));
        let mut threads = Vec::new();
        if let Way::RealTime(period) | Way::Fair(period) = way {
            let (ready, told) = std::sync::mpsc::channel();
            for cpu in observe::cpus_allowed() {
                let (stop, ready) = (Arc::clone(&stop), ready.clone());
                threads.push(std::thread::spawn(move || {
                    let _ = ready.send(prepare(cpu as usize, way));
                    drop(ready);
                    while !stop.load(Relaxed) {
                        std::thread::sleep(period);
                    }
                    let used = clock_gettime(ClockId::ThreadCPUTime);
                    (used.tv_sec * 1_000_000_000 + used.tv_nsec) as u64
                }));
            }
            drop(ready);
            for result in told {
                result?;
            }
        }
        Ok(Ticks { threads, stop })
    }

    fn stop(self, time: Duration) -> f64 {
        self.stop.store(true, Relaxed);
        let count = self.threads.len().max(1) as f64;
        let cpu_ns: u64 = self.threads.into_iter().map(|thread| thread.join().unwrap_or(0)).sum();
        cpu_ns as f64 / 1e9 / time.as_secs_f64() / count
    }
}

fn prepare(cpu: usize, way: Way) -> std::io::Result<()> {
    let mut set = rustix::thread::CpuSet::new();
    set.set(cpu);
    rustix::thread::sched_setaffinity(None, &set)?;
    // Otherwise each sleep is 50 µs longer.
    rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1))?;
    match way {
        Way::RealTime(_) => realtime::become_realtime(1),
        _ => set_slice(TICKER_SLICE_NS),
    }
}

/// The calling thread's slice under the fair scheduler, and its children's (Linux 6.12 and newer, sched(7)).
fn set_slice(ns: u64) -> std::io::Result<()> {
    let attr = libc::sched_attr {
        size: size_of::<libc::sched_attr>() as u32,
        sched_policy: libc::SCHED_OTHER as u32,
        sched_flags: 0,
        sched_nice: 0,
        sched_priority: 0,
        sched_runtime: ns,
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: the structure is alive, and has the size that it states.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attr, 0) };
    if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}
