//! The page of a job: shared memory between its waiting processes and their node.
//!
//! Problem: whether to spin or to yield depends on which other jobs want the CPUs, which the node knows, and on how the waits
//! of this process end, which only the process knows. Rule: a file of [`SIZE`] bytes per job and node, mapped by the
//! job's processes (`COSCHED_WAIT_PAGE`) and only read by the daemon, with pread, so that users who damage their own file
//! harm no one else. The daemon writes to a separate [`Head`], which processes can only read, in a file whose
//! name ends in [`ORDERS_SUFFIX`]; without that file the page's own head applies. All words are native-endian and atomic; a field has one
//! writer, unless its description says otherwise. Units: `_ns` is nanoseconds of CLOCK_MONOTONIC or a duration, `_us` microseconds.

use core::mem::size_of;
use core::sync::atomic::{AtomicU32, AtomicU64};

/// Appended to the page's name: the file that the daemon writes.
pub const ORDERS_SUFFIX: &str = ".orders";
/// The first word of a page: "CSW1".
pub const MAGIC: u32 = 0x4353_5731;
/// The number of processes that fit; further ones wait as well, but are not counted.
pub const SLOTS: usize = 255;
/// The size of a page in bytes.
pub const SIZE: usize = size_of::<Page>();

/// [`Head::mode`]: spin until the message arrives.
pub const BUSY: u32 = 0;
/// [`Head::mode`]: spin for the spin time, then block.
pub const SPIN_BLOCK: u32 = 1;
/// [`Head::mode`]: spin for the spin time, then yield, and spin again.
pub const SPIN_YIELD: u32 = 2;
/// [`Head::spin_us`]: each process finds its own.
pub const ADAPTIVE: u32 = u32::MAX;

/// [`Head::cpus`]: not known, or its own processes are no crowd, however many of them wait.
pub const NO_CROWD: u32 = 0;

/// [`Slot::state`]: it does not wait.
pub const COMPUTING: u32 = 0;
/// [`Slot::state`]: it polls for a message.
pub const SPINNING: u32 = 1;
/// [`Slot::state`]: it sleeps until a message arrives.
pub const BLOCKED: u32 = 2;

/// The fields of the whole job.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Head {
    /// [`MAGIC`], once the page is ready.
    pub magic: AtomicU32,
    /// How the processes wait (the daemon writes): [`BUSY`], [`SPIN_BLOCK`] or [`SPIN_YIELD`].
    pub mode: AtomicU32,
    /// The spin time in µs (the daemon writes), or [`ADAPTIVE`].
    pub spin_us: AtomicU32,
    /// 1: other jobs compete for this job's CPUs now (the daemon writes). 0: it is alone.
    pub rivals: AtomicU32,
    /// The CPUs that the job may use on this node (the daemon writes), or [`NO_CROWD`].
    pub cpus: AtomicU32,
    /// A futex that a process increments when it may have ended another process's wait (every process writes).
    pub doorbell: AtomicU32,
    /// Processes that sleep on the doorbell (every process writes).
    pub sleepers: AtomicU32,
}

/// The fields of one process. Only its owner writes. Counters rise from zero; a process that takes over the slot of one that has ended
/// continues its counters, so that the sum over all slots is the job's.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Slot {
    /// The process ID as root sees it in its PID namespace; 0: the slot is free. Taken by compare-and-exchange.
    pub pid: AtomicU32,
    /// [`COMPUTING`], [`SPINNING`] or [`BLOCKED`]; with several threads the last one's.
    pub state: AtomicU32,
    /// The spin time in force, in µs.
    pub spin_us: AtomicU32,
    /// Since when it has been in `state`, in µs modulo 2^32.
    pub since_us: AtomicU32,
    /// Calls that polled for a message without waiting.
    pub polls: AtomicU64,
    /// Waits: series of such calls.
    pub waits: AtomicU64,
    /// Waits that ended while it still spun.
    pub spins: AtomicU64,
    /// Times that it blocked.
    pub blocks: AtomicU64,
    /// Number of times that it yielded.
    pub yields: AtomicU64,
    /// Time spent spinning.
    pub spin_ns: AtomicU64,
    /// Time spent blocked.
    pub block_ns: AtomicU64,
    /// Blocks that ended by their time limit and not by a message.
    pub timeouts: AtomicU64,
}

/// The whole page.
#[derive(Debug)]
#[repr(C)]
pub struct Page {
    /// The job.
    pub head: Head,
    /// Its processes.
    pub slots: [Slot; SLOTS],
}

const _: () = assert!(SIZE == 128 * (SLOTS + 1));
