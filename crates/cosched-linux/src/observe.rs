//! What the machine is and how good its clock is.

use std::path::Path;

use crate::cgfile;

/// The CPUs that this process may use, in rising order.
pub fn cpus_allowed() -> Vec<u32> {
    match rustix::thread::sched_getaffinity(None) {
        Ok(set) => (0..rustix::thread::CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).map(|cpu| cpu as u32).collect(),
        // More CPUs than the set holds.
        Err(_) => (0..cpus_online() as u32).collect(),
    }
}

/// How many CPUs are online.
pub fn cpus_online() -> usize {
    // SAFETY: sysconf takes one number.
    let count = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    usize::try_from(count).unwrap_or(1).max(1)
}

/// The machine's memory in bytes; 0 when /proc/meminfo cannot be read.
pub fn memory_total() -> u64 {
    let content = cgfile::read(Path::new("/proc/meminfo")).unwrap_or_default();
    parse_meminfo(&content).unwrap_or(0)
}

fn parse_meminfo(content: &str) -> Option<u64> {
    let line = content.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

/// The machine's name.
pub fn hostname() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The kernel's release, such as "6.1.0-18-amd64".
pub fn kernel_release() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

/// Changes at every boot; empty when /proc does not tell.
pub fn boot_id() -> String {
    let content = cgfile::read(Path::new("/proc/sys/kernel/random/boot_id")).unwrap_or_default();
    content.trim().to_string()
}

/// The wall clock in nanoseconds since 1970.
pub fn realtime_ns() -> i64 {
    nanoseconds(rustix::time::clock_gettime(rustix::time::ClockId::Realtime))
}

/// A clock in nanoseconds that only goes forward and does not count suspended time.
pub fn monotonic_ns() -> u64 {
    nanoseconds(rustix::time::clock_gettime(rustix::time::ClockId::Monotonic)) as u64
}

fn nanoseconds(time: rustix::time::Timespec) -> i64 {
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// What the kernel thinks of its wall clock (adjtimex(2)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockError {
    /// True when a time daemon keeps the clock.
    pub synchronised: bool,
    /// The bound of the error, in nanoseconds.
    pub error_ns_max: u64,
    /// The estimated error, in nanoseconds.
    pub error_ns_estimated: u64,
}

/// The error of the wall clock; none where the kernel does not tell (some sandboxes).
pub fn clock_error() -> Option<ClockError> {
    // SAFETY: timex is plain numbers, for which zero is valid; modes = 0 only reads.
    let mut timex: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a live timex that the call fills.
    let state = unsafe { libc::adjtimex(&mut timex) };
    if state < 0 {
        return None;
    }
    Some(ClockError {
        synchronised: state != libc::TIME_ERROR && timex.status & libc::STA_UNSYNC == 0,
        error_ns_max: u64::try_from(timex.maxerror).unwrap_or(0) * 1000,
        error_ns_estimated: u64::try_from(timex.esterror).unwrap_or(0) * 1000,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_cpus_and_memory() {
        let cpus = cpus_allowed();
        assert!(!cpus.is_empty() && cpus.is_sorted());
        assert!(cpus_online() >= 1);
        assert!(memory_total() > 1 << 20);
        assert!(!hostname().is_empty());
    }

    #[test]
    fn meminfo_counts_kibibytes() {
        assert_eq!(parse_meminfo("MemTotal:       2048 kB\nMemFree: 1 kB\n"), Some(2 << 20));
        assert_eq!(parse_meminfo("MemFree: 1 kB\n"), None);
    }

    #[test]
    fn clocks_go_forward() {
        let first = monotonic_ns();
        assert!(monotonic_ns() >= first);
        assert!(realtime_ns() > 1_600_000_000_000_000_000);
    }
}
