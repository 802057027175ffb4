//! The idle probe: detects within a slot that a CPU is idle.
//!
//! The problem: a soft gang switch may let another gang run only where the current one leaves a CPU idle, and the kernel gives no notice when that
//! happens. The rule: a helper process with one thread per CPU, in a cgroup of its own below everything else (cpu.idle), wakes a few times per slot.
//! On a busy CPU it has to wait for its turn, which shows that the CPU is busy. On an idle one it runs at once; if then no process wants the CPU for
//! 50 µs, it reports that, by an event descriptor on which the slot thread waits. It is a process, because v2 cgroups take processes and not threads,
//! and a thread in the daemon's cgroup would have the daemon's weight. It costs a few microseconds per check and CPU. Without it a soft mechanism
//! switches strictly.

mod child;

pub(crate) use child::probe_main;

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed, Ordering::Release};

use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::thread::futex;

use crate::cpubits::{CpuBits, WORDS};
use crate::observe::monotonic_ns;
use crate::problem::TreeError;
use crate::process::open_pidfd;
use crate::realtime::ordinarily;
use crate::shared::{Shareable, SharedPage};
use crate::tree::Tree;

/// The page shared by the slot thread and the probe.
#[derive(Debug)]
#[repr(C)]
struct Page {
    /// Microseconds between two checks; 0: sleep until it changes (a futex).
    period_us: AtomicU32,
    /// The time of the last switch (CLOCK_MONOTONIC, nanoseconds): a CPU counts as idle only if it was idle after this.
    since_ns: AtomicU64,
    /// 1: idle CPUs are wanted; 0: every job that could use one has been let in.
    wanted: AtomicU32,
    /// The CPUs that were found idle and have not been reported yet.
    idle: CpuBits,
}

// SAFETY: atomics only, in C's layout.
unsafe impl Shareable for Page {}

/// The running probe, a child of the daemon.
#[derive(Debug)]
pub struct IdleProbe {
    page: SharedPage<Page>,
    event: OwnedFd,
    child: Mutex<Child>,
}

impl IdleProbe {
    /// Starts `exe` (the binary whose `main` is [`crate::guard::guard_main`]) as the probe of this process, in a cgroup of `tree`. It ends by itself
    /// after the daemon.
    ///
    /// # Errors
    /// The program cannot be started or put into its cgroup.
    pub fn spawn(exe: &Path, tree: &Tree) -> Result<IdleProbe, TreeError> {
        let failed = |action| TreeError::io(action, exe);
        let (page, event) = prepare().map_err(failed("prepare"))?;
        let daemon = open_pidfd(std::process::id() as i32).map_err(failed("prepare"))?;
        let inherited = [daemon.as_raw_fd(), page.as_fd().as_raw_fd(), event.as_raw_fd()];
        let mut command = Command::new(exe);
        command.arg("probe").args(inherited.map(|fd| fd.to_string()));
        command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::null());
        crate::process::keep_descriptors(&mut command, &inherited);
        let mut child = command.spawn().map_err(failed("start"))?;
        if let Err(e) = tree.attach_probe(child.id() as i32) {
            // A probe outside its cgroup would compete with the jobs.
            let _ = child.kill();
            let _ = ordinarily(|| child.wait());
            return Err(e);
        }
        Ok(IdleProbe { page, event, child: Mutex::new(child) })
    }

    /// Its process number.
    pub fn pid(&self) -> i32 {
        self.child.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).id() as i32
    }

    /// Makes it check several times in each slot of `slot_length_ns`. Neither locks nor allocates.
    pub(crate) fn arm(&self, slot_length_ns: u64) {
        let period = (cosched_core::fill::period_ns(slot_length_ns) / 1000) as u32;
        let before = self.page.period_us.swap(period, Release);
        if before == 0 {
            // The address is valid, so there is no error.
            let _ = futex::wake(&self.page.period_us, futex::Flags::empty(), i32::MAX as u32);
        }
    }

    /// Stops its checks. Neither locks nor allocates.
    pub(crate) fn disarm(&self) {
        self.page.period_us.store(0, Relaxed);
    }

    /// Records a switch: only CPUs that are idle from now on count.
    pub(crate) fn note_switch(&self) {
        self.page.since_ns.store(monotonic_ns(), Relaxed);
        self.page.wanted.store(1, Relaxed);
    }

    /// Nothing is reported until the next switch.
    pub(crate) fn rest(&self) {
        self.page.wanted.store(0, Relaxed);
    }

    /// The time between two checks of a CPU.
    pub(crate) fn period_ns(&self) -> u64 {
        u64::from(self.page.period_us.load(Relaxed)) * 1000
    }

    /// Takes the CPUs that were reported idle, a bit each, and the number of reports; `None` if there is none.
    pub(crate) fn take_report(&self) -> Option<([u64; WORDS], u64)> {
        let mut count = [0u8; 8];
        rustix::io::read(&self.event, &mut count).ok()?;
        Some((self.page.idle.take(), u64::from_ne_bytes(count)))
    }
}

fn prepare() -> io::Result<(SharedPage<Page>, OwnedFd)> {
    let page = SharedPage::fresh(memfd_create("cosched-probe", MemfdFlags::CLOEXEC)?)?;
    Ok((page, eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
}

/// Readable when a CPU was found idle.
impl AsFd for IdleProbe {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

impl Drop for IdleProbe {
    fn drop(&mut self) {
        let child = self.child.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner());
        // It may already have ended by itself.
        let _ = child.kill();
        let _ = ordinarily(|| child.wait());
    }
}
