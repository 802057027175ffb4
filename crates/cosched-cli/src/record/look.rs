//! Samples a process and all its descendants from outside: /proc tells the CPU time of each thread, how long it waited
//! for a CPU, and whether it waits for a device now.

use cosched_study::profile::Observed;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Instant;

/// A thread's number and start time, so that a reused number counts as another thread.
type Name = (u32, u64);

/// What was seen so far.
#[derive(Debug)]
pub(crate) struct Looks {
    root: u32,
    /// Processes that were descendants at some time, even if their parents have ended.
    known: BTreeMap<u32, u64>,
    threads: BTreeMap<Name, Observed>,
    last: Instant,
    count: u64,
}

/// The contents of /proc/PID/stat of a process or a thread.
#[derive(Debug, PartialEq)]
struct Stat {
    name: String,
    state: char,
    /// In ticks since boot.
    begin: u64,
}

impl Looks {
    /// Samples this process and its descendants.
    pub(crate) fn of(root: u32) -> Looks {
        Looks { root, known: BTreeMap::new(), threads: BTreeMap::new(), last: Instant::now(), count: 0 }
    }

    /// The number of samples.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The threads, in the order of their numbers.
    pub(crate) fn threads(&self) -> Vec<Observed> {
        self.threads.values().cloned().collect()
    }

    /// Takes one sample.
    pub(crate) fn look(&mut self) {
        let since_ns = self.last.elapsed().as_nanos() as u64;
        self.last = Instant::now();
        self.count += 1;
        let mut open = vec![self.root];
        open.extend(self.known.keys());
        let mut seen: Vec<u32> = Vec::new();
        while let Some(pid) = open.pop() {
            if seen.contains(&pid) {
                continue;
            }
            seen.push(pid);
            let Some(stat) = read_stat(&PathBuf::from(format!("/proc/{pid}/stat"))) else { continue };
            if *self.known.entry(pid).or_insert(stat.begin) != stat.begin {
                // The number belongs to another process now.
                self.known.remove(&pid);
                continue;
            }
            open.extend(self.process(pid, since_ns));
        }
    }

    /// Samples the threads of a process; returns its children.
    fn process(&mut self, pid: u32, since_ns: u64) -> Vec<u32> {
        let mut children = Vec::new();
        for entry in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
            let path = entry.path();
            let Some(tid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            let Some(stat) = read_stat(&path.join("stat")) else { continue };
            let thread = self.threads.entry((tid, stat.begin)).or_default();
            thread.name = stat.name;
            if let Some((cpu_ns, wait_ns)) =
                fs::read_to_string(path.join("schedstat")).ok().as_deref().and_then(schedstat)
            {
                thread.cpu_ns = cpu_ns;
                thread.wait_ns = wait_ns;
            }
            if stat.state == 'D' {
                thread.io_ns += since_ns;
            }
            let text = fs::read_to_string(path.join("children")).unwrap_or_default();
            children.extend(text.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
        }
        children
    }
}

fn read_stat(path: &PathBuf) -> Option<Stat> {
    parse_stat(&fs::read_to_string(path).ok()?)
}

/// `PID (NAME) STATE …`; the name may contain anything, also brackets.
fn parse_stat(text: &str) -> Option<Stat> {
    let (before, rest) = text.rsplit_once(')')?;
    let (_, name) = before.split_once('(')?;
    let mut fields = rest.split_whitespace();
    let state = fields.next()?.chars().next()?;
    let begin = fields.nth(18)?.parse().ok()?;
    Some(Stat { name: name.to_owned(), state, begin })
}

/// CPU time and time waited for a CPU, in nanoseconds.
fn schedstat(text: &str) -> Option<(u64, u64)> {
    let mut fields = text.split_whitespace().map(|field| field.parse().ok());
    Some((fields.next()??, fields.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_writes_is_read() {
        let text = "7 (a) b (c) D 1 7 7 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 4711 0 0";
        assert_eq!(parse_stat(text), Some(Stat { name: "a) b (c".into(), state: 'D', begin: 4711 }));
        assert_eq!((parse_stat("7 (a"), parse_stat("")), (None, None));
        assert_eq!((schedstat("12 34 5\n"), schedstat("12"), schedstat("x y")), (Some((12, 34)), None, None));
    }

    #[test]
    fn a_child_and_its_child_are_seen() {
        let script = "sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done'; true";
        let mut child = std::process::Command::new("sh").args(["-c", script]).spawn().unwrap();
        let mut looks = Looks::of(child.id());
        while child.try_wait().unwrap().is_none() {
            looks.look();
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        let threads = looks.threads();
        assert!(threads.len() >= 2 && threads.iter().any(|thread| thread.cpu_ns > 1_000_000), "{threads:?}");
    }
}
