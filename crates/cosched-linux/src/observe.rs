//! Facts about the machine, and the quality of its clock.

use std::path::Path;

use crate::cgfile;

/// The CPUs that this process may use, in ascending order.
pub fn cpus_allowed() -> Vec<u32> {
    match rustix::thread::sched_getaffinity(None) {
        Ok(set) => (0..rustix::thread::CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).map(|cpu| cpu as u32).collect(),
        // There are more CPUs than the set can hold.
        Err(_) => (0..cpus_online() as u32).collect(),
    }
}

/// The number of online CPUs.
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

/// The machine's limit on processes and threads.
pub fn tasks_max() -> u64 {
    let limit = |name: &str| cgfile::read(&Path::new("/proc/sys/kernel").join(name)).ok()?.trim().parse().ok();
    ["pid_max", "threads-max"].into_iter().filter_map(limit).min().unwrap_or(32_768)
}

fn parse_meminfo(content: &str) -> Option<u64> {
    kibibytes(content, "MemTotal:")
}

fn kibibytes(content: &str, key: &str) -> Option<u64> {
    let line = content.lines().find_map(|line| line.strip_prefix(key))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

/// The load of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Load {
    /// Threads that run or wait for a CPU, on average over 1, 5 and 15 minutes.
    pub average: [f64; 3],
    /// Threads that run or wait for a CPU now.
    pub runnable: u32,
    /// Memory that new programs could have, in bytes.
    pub memory_available_bytes: u64,
}

/// The load from /proc/loadavg and /proc/meminfo; `None` where they cannot be read.
pub fn load() -> Option<Load> {
    let (average, runnable) = parse_loadavg(&cgfile::read(Path::new("/proc/loadavg")).ok()?)?;
    let meminfo = cgfile::read(Path::new("/proc/meminfo")).ok()?;
    Some(Load { average, runnable, memory_available_bytes: kibibytes(&meminfo, "MemAvailable:")? })
}

/// "0.20 0.18 0.12 1/80 11206": the averages and the threads that are runnable now.
fn parse_loadavg(content: &str) -> Option<([f64; 3], u32)> {
    let mut words = content.split_whitespace();
    let mut average = [0.0; 3];
    for value in &mut average {
        *value = words.next()?.parse().ok()?;
    }
    Some((average, words.next()?.split_once('/')?.0.parse().ok()?))
}

/// The machine's name.
pub fn hostname() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The kernel's release, such as "6.1.0-18-amd64".
pub fn kernel_release() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

/// A different text for every boot; empty if /proc does not provide it.
pub fn boot_id() -> String {
    let content = cgfile::read(Path::new("/proc/sys/kernel/random/boot_id")).unwrap_or_default();
    content.trim().to_string()
}

/// The wall clock in nanoseconds since 1970.
pub fn realtime_ns() -> i64 {
    nanoseconds(rustix::time::clock_gettime(rustix::time::ClockId::Realtime))
}

/// The monotonic clock in nanoseconds, without suspended time.
pub fn monotonic_ns() -> u64 {
    nanoseconds(rustix::time::clock_gettime(rustix::time::ClockId::Monotonic)) as u64
}

/// The CPU time of the calling thread, in nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    nanoseconds(rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime)) as u64
}

fn nanoseconds(time: rustix::time::Timespec) -> i64 {
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// The kernel's view of its wall clock (adjtimex(2)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockError {
    /// True when a time daemon keeps the clock.
    pub synchronised: bool,
    /// The bound of the error, in nanoseconds.
    pub error_ns_max: u64,
    /// The estimated error, in nanoseconds.
    pub error_ns_estimated: u64,
}

/// The error of the wall clock; `None` where the kernel does not report it (some sandboxes).
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
    fn the_load_is_read() {
        assert_eq!(parse_loadavg("0.20 1.18 0.12 3/80 11206\n"), Some(([0.2, 1.18, 0.12], 3)));
        assert_eq!(parse_loadavg("0.20 1.18"), None);
        let load = load().unwrap();
        assert!(load.runnable >= 1 && load.memory_available_bytes <= memory_total());
    }

    #[test]
    fn clocks_go_forward() {
        let first = monotonic_ns();
        assert!(monotonic_ns() >= first);
        assert!(realtime_ns() > 1_600_000_000_000_000_000);
    }
}
