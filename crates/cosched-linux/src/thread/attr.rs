//! The system calls for a thread's scheduling, with the kernel's errors as they are.

use std::io;

use rustix::process::{Pid, Resource, getpriority_process, getrlimit, setpriority_process};
use rustix::thread::{CapabilitySet, CpuSet, sched_getaffinity, sched_setaffinity};

/// The scheduling attributes of a thread in the kernel's form.
pub(super) type Attr = libc::sched_attr;

const SIZE: u32 = size_of::<Attr>() as u32;

/// The result of `sched_getattr` for thread `tid`.
pub(super) fn get(tid: Pid) -> io::Result<Attr> {
    // SAFETY: sched_attr is plain numbers, for which all zero is a value.
    let mut attr: Attr = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes at most SIZE bytes to a live sched_attr of that size.
    let result = unsafe { libc::syscall(libc::SYS_sched_getattr, tid.as_raw_pid(), &raw mut attr, SIZE, 0) };
    if result == 0 { Ok(attr) } else { Err(io::Error::last_os_error()) }
}

/// Gives thread `tid` these attributes.
pub(super) fn set(tid: Pid, attr: &Attr) -> io::Result<()> {
    let attr = Attr { size: SIZE, ..*attr };
    // SAFETY: the kernel reads the SIZE bytes of a live sched_attr and writes at most its size field.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, tid.as_raw_pid(), &raw const attr, 0) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Sets the policy and the static priority alone: nice value and slice stay (`sched_setattr` would set these too).
pub(super) fn set_policy(tid: Pid, policy: i32, priority: i32) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: the pointer is to a live sched_param, which the call only reads.
    let result = unsafe { libc::sched_setscheduler(tid.as_raw_pid(), policy, &parameters) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// On Linux PRIO_PROCESS with a thread's number means that thread. `sched_getattr` leaves the nice value out for SCHED_FIFO.
pub(super) fn nice(tid: Pid) -> io::Result<i32> {
    Ok(getpriority_process(Some(tid))?)
}

pub(super) fn set_nice(tid: Pid, nice: i32) -> io::Result<()> {
    Ok(setpriority_process(Some(tid), nice)?)
}

/// The CPUs that thread `tid` may use, in ascending order.
pub(super) fn cpus(tid: Pid) -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(Some(tid))?;
    Ok((0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect())
}

/// Every CPU must be below [`CpuSet::MAX_CPU`].
pub(super) fn set_cpus(tid: Pid, cpus: &[usize]) -> io::Result<()> {
    let mut set = CpuSet::new();
    cpus.iter().for_each(|&cpu| set.set(cpu));
    Ok(sched_setaffinity(Some(tid), &set)?)
}

/// The lowest nice value that RLIMIT_NICE permits without CAP_SYS_NICE; 20 means: no raise at all.
pub(super) fn nice_min_unprivileged() -> i32 {
    let limit = getrlimit(Resource::Nice).current.unwrap_or(40).min(40);
    20 - limit as i32
}

/// Whether the calling thread has CAP_SYS_NICE.
pub(super) fn is_privileged() -> bool {
    rustix::thread::capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_NICE))
}

/// The CPU time of thread `tid` until now, in nanoseconds. The kernel adds the time of a running thread up to the present, which its files in /proc
/// do not show before the next tick. `None` once the thread has ended.
pub(super) fn cpu_ns(tid: Pid) -> Option<u64> {
    // Linux encodes the number of a thread's clock in this way: bit 2 is for threads, 2 is the scheduler's clock.
    let clock = (!tid.as_raw_pid() << 3) | 0b100 | 2;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a live timespec, which the call fills; an unknown clock is an error, nothing else.
    let result = unsafe { libc::clock_gettime(clock, &raw mut time) };
    (result == 0).then(|| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}
