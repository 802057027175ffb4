//! Whether other processes want the CPUs: only then yielding is worth anything.
//!
//! Rule, with a page: another job competes for the job's CPUs, or more of its own processes poll than it has CPUs. Without one: the launcher reports
//! more ranks on this node than it has CPUs, or this thread had to queue for a CPU for an eighth of the last 10 ms (the kernel's own account,
//! /proc/thread-self/schedstat). A thread that blocks queues less, so a finding remains in force for a quarter of a second, and twice as long each
//! time that it is confirmed.

use crate::{shared, sys};
use core::cell::Cell;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use cosched_core::wait::page::{self, Head, NO_CROWD, Page};

/// The length of a measurement of the queueing, in ns.
const WINDOW_NS: u64 = 10_000_000;
/// If this part (1/8) of the window was spent in the queue, there is a crowd.
const QUEUED_PART: u64 = 8;
/// How long a finding remains in force, initially and at most, in ns.
const HOLD_NS: u64 = 250_000_000;
const HOLD_NS_MAX: u64 = 8_000_000_000;
/// How often the processes of the page are counted, in ns.
const COUNT_EVERY_NS: u64 = 100_000_000;

/// The launcher reports more ranks than CPUs.
static OVERSUBSCRIBED: AtomicBool = AtomicBool::new(false);
/// The number of processes that poll, and when they were last counted.
static LIVE: AtomicU32 = AtomicU32::new(0);
static COUNTED_NS: AtomicU64 = AtomicU64::new(0);

/// Reads the number of ranks on this node, and of its CPUs.
pub(crate) fn learn_the_machine() {
    const LOCAL_RANK_VARIABLES: [&core::ffi::CStr; 5] = [
        c"OMPI_COMM_WORLD_LOCAL_SIZE",
        c"MPI_LOCALNRANKS",
        c"PMI_LOCAL_SIZE",
        c"SLURM_NTASKS_PER_NODE",
        c"MV2_COMM_WORLD_LOCAL_SIZE",
    ];
    let Some(ranks) = LOCAL_RANK_VARIABLES.iter().find_map(|name| sys::number(sys::variable(name)?.to_bytes())) else {
        return;
    };
    // Not the CPUs that this rank is bound to: other ranks have others.
    // SAFETY: no memory is passed.
    let online = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) } as u64;
    let cpus = sys::variable(c"COSCHED_WAIT_CPUS").and_then(|value| told(value.to_bytes(), online)).unwrap_or(online);
    OVERSUBSCRIBED.store(cpus > 0 && ranks > cpus, Relaxed);
}

/// The CPUs that `cosched run` has counted, `CPUS/ONLINE`; `None` on a node with a different number online.
fn told(value: &[u8], online: u64) -> Option<u64> {
    let at = value.iter().position(|byte| *byte == b'/')?;
    let (cpus, of) = (sys::number(&value[..at])?, sys::number(&value[at + 1..])?);
    (cpus > 0 && of == online).then_some(cpus)
}

/// The other processes that want the CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Crowd {
    /// There are none.
    None,
    /// Processes of the same job, as far as is known: they yield to each other.
    OwnJob,
    /// Others, for which a yield frees little CPU time.
    Others,
    /// Others, and processes of the same job.
    Both,
}

/// One thread's measurements of its queueing.
pub(crate) struct Queueing {
    looked_ns: Cell<u64>,
    delay_ns: Cell<u64>,
    until_ns: Cell<u64>,
    hold_ns: Cell<u64>,
}

impl Queueing {
    /// Nothing known.
    pub(crate) const fn new() -> Self {
        Self { looked_ns: Cell::new(0), delay_ns: Cell::new(0), until_ns: Cell::new(0), hold_ns: Cell::new(HOLD_NS) }
    }

    /// The processes that want the CPUs now.
    pub(crate) fn crowd(&self, now_ns: u64) -> Crowd {
        let (others, own) = match shared::page_and_orders() {
            Some((page, orders)) => (orders.rivals.load(Relaxed) > 0, too_many(page, orders, now_ns)),
            None if OVERSUBSCRIBED.load(Relaxed) => (false, true),
            None => (self.queued(now_ns), false),
        };
        match (others, own) {
            (true, true) => Crowd::Both,
            (true, false) => Crowd::Others,
            (false, true) => Crowd::OwnJob,
            (false, false) => Crowd::None,
        }
    }

    fn queued(&self, now_ns: u64) -> bool {
        let window_ns = now_ns.saturating_sub(self.looked_ns.get());
        if window_ns >= WINDOW_NS {
            let delay_ns = queue_delay_ns();
            let queued_ns = delay_ns.saturating_sub(self.delay_ns.get());
            let first = self.looked_ns.replace(now_ns) == 0;
            self.delay_ns.set(delay_ns);
            if !first && queued_ns >= window_ns / QUEUED_PART {
                self.found(now_ns);
            }
        }
        now_ns < self.until_ns.get()
    }

    fn found(&self, now_ns: u64) {
        let until_ns = self.until_ns.get();
        let since_ns = now_ns.saturating_sub(until_ns);
        if until_ns != 0 && since_ns > 0 {
            // The finding had expired; if it is confirmed soon after, it expired too early.
            let again = since_ns < 2 * self.hold_ns.get();
            self.hold_ns.set(if again { (2 * self.hold_ns.get()).min(HOLD_NS_MAX) } else { HOLD_NS });
        }
        self.until_ns.set(now_ns + self.hold_ns.get());
    }
}

fn too_many(page: &Page, orders: &Head, now_ns: u64) -> bool {
    let cpus = orders.cpus.load(Relaxed);
    if cpus == NO_CROWD {
        return false;
    }
    if now_ns.saturating_sub(COUNTED_NS.load(Relaxed)) >= COUNT_EVERY_NS {
        COUNTED_NS.store(now_ns, Relaxed);
        LIVE.store(shared::live_slots(page), Relaxed);
    }
    LIVE.load(Relaxed) > cpus
}

/// How long this thread has waited in the queue of a CPU since its start; 0 where the kernel does not report it.
fn queue_delay_ns() -> u64 {
    let mut bytes = [0; 96];
    let saved = sys::errno();
    let text = sys::read_file(c"/proc/thread-self/schedstat", &mut bytes);
    sys::set_errno(saved);
    text.split(u8::is_ascii_whitespace).nth(1).and_then(sys::number).unwrap_or(0)
}

/// The present way to wait, from the page or the environment. Mode and spin time as in [`page::Head`].
pub(crate) fn orders() -> (u32, u32) {
    match shared::page_and_orders() {
        Some((_, orders)) => (orders.mode.load(Relaxed).min(page::SPIN_YIELD), orders.spin_us.load(Relaxed)),
        None => (crate::config::mode(), crate::config::spin_us()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_holds_and_longer_when_it_comes_again() {
        let queueing = Queueing::new();
        queueing.found(1_000);
        assert_eq!(queueing.until_ns.get(), 1_000 + HOLD_NS);
        queueing.found(2_000);
        assert_eq!(queueing.until_ns.get(), 2_000 + HOLD_NS, "still in force");
        let soon_ns = queueing.until_ns.get() + HOLD_NS;
        queueing.found(soon_ns);
        assert_eq!(queueing.until_ns.get(), soon_ns + 2 * HOLD_NS);
        let late_ns = queueing.until_ns.get() + 4 * HOLD_NS;
        queueing.found(late_ns);
        assert_eq!(queueing.until_ns.get(), late_ns + HOLD_NS);
    }

    #[test]
    fn the_kernel_tells_how_long_a_thread_queued() {
        let path = c"/proc/thread-self/schedstat";
        let mut bytes = [0; 96];
        if sys::read_file(path, &mut bytes).is_empty() {
            return;
        }
        let before_ns = queue_delay_ns();
        (0..100).for_each(|_| std::thread::yield_now());
        assert!(queue_delay_ns() >= before_ns);
    }
}
