//! The usage of a thread so far, read without allocation.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// CPU time, delay and runs of a thread since its start (its CPU clock, and /proc/self/task/TID/schedstat).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Time on a CPU, in nanoseconds.
    pub cpu_ns: u64,
    /// Time in which the thread was ready but waited for a CPU, in nanoseconds, up to the last time it got one. 0 on kernels without
    /// CONFIG_SCHED_INFO.
    pub delay_ns: u64,
    /// How often it was put on a CPU.
    pub runs: u64,
}

impl Usage {
    /// The usage between `earlier` and this.
    pub fn since(self, earlier: Usage) -> Usage {
        Usage {
            cpu_ns: self.cpu_ns.saturating_sub(earlier.cpu_ns),
            delay_ns: self.delay_ns.saturating_sub(earlier.delay_ns),
            runs: self.runs.saturating_sub(earlier.runs),
        }
    }
}

/// How often a thread left its CPU (/proc/self/task/TID/status).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Switches {
    /// Because it waited.
    pub voluntary: u64,
    /// Because another thread took its CPU.
    pub involuntary: u64,
}

/// Reads from the beginning into the caller's memory: a file of /proc is generated again at offset 0.
fn read<'a>(file: &File, buffer: &'a mut [u8]) -> io::Result<&'a str> {
    let length = file.read_at(buffer, 0)?;
    std::str::from_utf8(&buffer[..length]).map_err(|_| io::ErrorKind::InvalidData.into())
}

pub(super) fn usage(schedstat: &File) -> io::Result<Usage> {
    parse_usage(read(schedstat, &mut [0; 128])?).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

pub(super) fn switches(status: &File) -> io::Result<Switches> {
    // The file is about 1500 bytes long; the switches are its last two lines, after masks that grow with the machine's CPUs.
    parse_switches(read(status, &mut [0; 16 * 1024])?).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

fn parse_usage(text: &str) -> Option<Usage> {
    let mut numbers = text.split_ascii_whitespace().map(str::parse);
    let mut next = || numbers.next()?.ok();
    Some(Usage { cpu_ns: next()?, delay_ns: next()?, runs: next()? })
}

fn parse_switches(text: &str) -> Option<Switches> {
    let number = |key: &str| text.lines().rev().find_map(|line| line.strip_prefix(key)?.trim().parse().ok());
    Some(Switches {
        voluntary: number("voluntary_ctxt_switches:")?,
        involuntary: number("nonvoluntary_ctxt_switches:")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_proc_are_read() {
        assert_eq!(parse_usage("923904 17 3\n"), Some(Usage { cpu_ns: 923_904, delay_ns: 17, runs: 3 }));
        assert_eq!(parse_usage("923904 17"), None);
        assert_eq!(parse_usage("a b c"), None);
        let status = "Name:\tx\nMems_allowed:\t1\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n";
        assert_eq!(parse_switches(status), Some(Switches { voluntary: 12, involuntary: 3 }));
        assert_eq!(parse_switches("Name:\tx\n"), None);
    }
}
