//! The main function of the probe's process.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::thread::{CpuSet, futex, sched_setaffinity, sched_yield};

use cosched_core::fill::{LOOK_NS, SETTLE_NS};

use super::Page;
use crate::observe::{cpus_allowed, monotonic_ns};
use crate::process::inherited;
use crate::shared::SharedPage;

/// If the probe was queued for longer than this at its wake-up or while it yields, another process has run.
const GAP_NS: u64 = 30_000;
/// The minimum number of yields in that time, in case the hypervisor takes the time for itself.
const OFFERS_MIN: u32 = 10;

/// The probe: `args` are the descriptors of the daemon's pidfd, the page and the event. Returns when the daemon has ended.
pub(crate) fn probe_main(args: &[OsString]) -> Result<(), String> {
    let [daemon, page, event] = args else { return Err("the probe needs three descriptors".into()) };
    let (daemon, event) = (inherited(daemon)?, Arc::new(inherited(event)?));
    let page = SharedPage::open(inherited(page)?).map_err(|e| format!("the page cannot be mapped: {e}"))?;
    let page = Arc::new(page);
    for cpu in cpus_allowed() {
        let (page, event) = (Arc::clone(&page), Arc::clone(&event));
        let watch = move || watch_cpu(cpu, &page, &event);
        // 64 KiB is enough: it makes a few system calls only, and there is one thread per CPU.
        std::thread::Builder::new().stack_size(64 * 1024).spawn(watch).map_err(|e| format!("no thread: {e}"))?;
    }
    while poll(&mut [PollFd::new(&daemon, PollFlags::IN)], None).is_err() {}
    Ok(())
}

fn watch_cpu(cpu: u32, page: &SharedPage<Page>, event: &OwnedFd) {
    let mut set = CpuSet::new();
    set.set(cpu as usize);
    if sched_setaffinity(None, &set).is_err() {
        // The CPU has been taken offline; the others are still watched.
        return;
    }
    crate::realtime::no_timer_slack();
    let queue = Queue::open();
    loop {
        let period_us = page.period_us.load(Acquire);
        if period_us == 0 {
            // Returns at once when the word has changed meanwhile; any other return only means that it is checked once more.
            let _ = futex::wait(&page.period_us, futex::Flags::empty(), 0, None);
            continue;
        }
        let period = Duration::from_micros(u64::from(period_us));
        let due_ns = monotonic_ns() + period.as_nanos() as u64;
        let before_ns = queue.waited_ns();
        std::thread::sleep(period);
        let late_ns = match (before_ns, queue.waited_ns()) {
            (Some(before_ns), Some(now_ns)) => now_ns.saturating_sub(before_ns),
            _ => monotonic_ns().saturating_sub(due_ns),
        };
        if late_ns < GAP_NS && page.wanted.load(Relaxed) == 1 && is_idle(page, &queue) {
            page.idle.add(cpu);
            // Only a full counter, which does not happen, would refuse.
            let _ = rustix::io::write(event, &1u64.to_ne_bytes());
        }
    }
}

/// The kernel's account of how long this thread has waited in the queue of its CPU. The clock would do on bare metal; a virtual machine wakes an idle
/// CPU late, or takes it away for a while, and by the clock it looks busy then.
struct Queue(Option<File>);

impl Queue {
    /// That of the calling thread; none where the kernel keeps no such account (CONFIG_SCHED_INFO).
    fn open() -> Queue {
        Queue(File::open("/proc/thread-self/schedstat").ok())
    }

    fn waited_ns(&self) -> Option<u64> {
        let mut buffer = [0; 96];
        let count = rustix::io::pread(self.0.as_ref()?, &mut buffer, 0).ok()?;
        std::str::from_utf8(&buffer[..count]).ok()?.split_ascii_whitespace().nth(1)?.parse().ok()
    }
}

/// Yields the CPU for a moment: true when no process took it, and the last switch was before that.
fn is_idle(page: &SharedPage<Page>, queue: &Queue) -> bool {
    let before_ns = queue.waited_ns();
    let start_ns = monotonic_ns();
    let (mut last_ns, mut longest_ns, mut offers) = (start_ns, 0, 0);
    while last_ns - start_ns < LOOK_NS || offers < OFFERS_MIN {
        sched_yield();
        let now_ns = monotonic_ns();
        longest_ns = longest_ns.max(now_ns - last_ns);
        (last_ns, offers) = (now_ns, offers + 1);
    }
    let away_ns = match (before_ns, queue.waited_ns()) {
        (Some(before_ns), Some(after_ns)) => after_ns.saturating_sub(before_ns),
        _ => longest_ns,
    };
    away_ns < GAP_NS && page.since_ns.load(Relaxed) + SETTLE_NS < start_ns
}
