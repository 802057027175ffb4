//! The kernel's data of this process: its cgroups, and its start time.

use crate::sys::{File, number};
use crate::text::Text;
use core::fmt::Write;

/// Whether this process is in the cgroup of a job with this id, or below it, in any hierarchy.
pub(super) fn is_in(id: u64) -> bool {
    let mut name = Text::<32>::new();
    let _ = write!(name, "/job-{id}");
    let Some(file) = File::open(c"/proc/self/cgroup", libc::O_RDONLY) else { return false };
    // On most machines the file has one line. An incomplete line at the end of a piece is kept for the next one.
    let mut bytes = [0; 4096];
    let mut kept = 0;
    let mut found = false;
    while !found {
        let read = file.read(&mut bytes[kept..]).len();
        if read == 0 {
            break;
        }
        let known = kept + read;
        found = names(&bytes[..known], name.bytes());
        kept = known.min(name.bytes().len());
        bytes.copy_within(known - kept..known, 0);
    }
    file.close();
    found
}

/// Whether a path of `text` has this component.
fn names(text: &[u8], component: &[u8]) -> bool {
    let ends = |rest: Option<&u8>| matches!(rest, Some(b'/' | b'\n'));
    let mut windows = text.windows(component.len()).enumerate();
    windows.any(|(at, window)| window == component && ends(text.get(at + component.len())))
}

/// The start time of this process, in clock ticks since boot: field 22 of its stat (proc(5)).
pub(super) fn own_start_ticks() -> Option<u64> {
    let mut bytes = [0; 1024];
    start_ticks(crate::sys::read_file(c"/proc/self/stat", &mut bytes))
}

fn start_ticks(stat: &[u8]) -> Option<u64> {
    // The name, field 2, may contain blanks and parentheses; after it and a blank comes field 3.
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    number(stat.get(end + 2..)?.split(|byte| *byte == b' ').nth(22 - 3)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_component_of_a_path() {
        let text = b"3:cpuset:/\n1:cpu:/cosched/job-17/gang\n0::/cosched/job-7\n";
        assert!(names(text, b"/job-7") && names(text, b"/job-17"));
        assert!(!names(text, b"/job-1") && !names(b"0::/x/job-7x\n", b"/job-7") && !names(b"", b"/job-7"));
    }

    #[test]
    fn start_times() {
        let stat = b"42 (a b) c) S 1 42 42 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 987654 1 1 1";
        assert_eq!(start_ticks(stat), Some(987_654));
        assert_eq!(start_ticks(b"42 (a"), None);
        assert!(own_start_ticks().is_some_and(|ticks| ticks > 0));
        assert!(!is_in(u64::MAX >> 1));
    }
}
