//! Reads the page on which the processes of a job note whether they wait.
//!
//! The problem: the page belongs to the job's user, who may damage, truncate or write it at any moment; and its layout is core's, which is unknown to
//! this crate. The rule: the caller passes the layout as numbers ([`PageLayout`]); the page is read with pread, never mapped, and anything odd counts
//! as no process.

use std::fs::File;

/// The offsets of the page's words in bytes, and the meaning of their values. Words are u32 in the machine's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageLayout {
    /// The offset of the first slot.
    pub slots_at: usize,
    /// The length of a slot.
    pub slot_size: usize,
    /// The number of slots.
    pub slots: usize,
    /// The offset of the process number in a slot; 0 there means that the slot is free.
    pub pid_at: usize,
    /// The offset of the state in a slot.
    pub state_at: usize,
    /// The state of a process that spins for a message.
    pub spinning: u32,
    /// The state of a process that sleeps for one.
    pub sleeping: u32,
}

/// The counts of a page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Waits {
    /// Slots with a process.
    pub processes: u32,
    /// Those that spin for a message.
    pub spinning: u32,
    /// Those that sleep for one.
    pub sleeping: u32,
}

/// How many slots are read beyond the last used one, and how often the whole page is read.
const MARGIN: usize = 4;
const WHOLE_EVERY: u32 = 64;

/// An open page.
#[derive(Debug)]
pub struct WaitPage {
    file: File,
    layout: PageLayout,
    buffer: Box<[u8]>,
    /// The number of slots up to the last one that was in use.
    used: usize,
    reads: u32,
}

impl WaitPage {
    /// A reader for `file`, which is open for reading.
    pub fn new(file: File, layout: PageLayout) -> WaitPage {
        let buffer = vec![0; layout.slots * layout.slot_size].into_boxed_slice();
        WaitPage { file, layout, buffer, used: 0, reads: 0 }
    }

    /// Counts the processes. One system call; neither locks nor allocates. A new process counts after 64 reads at the latest.
    pub fn read(&mut self) -> Waits {
        let PageLayout { slots_at, slot_size, slots, .. } = self.layout;
        let whole = self.reads.is_multiple_of(WHOLE_EVERY);
        self.reads = self.reads.wrapping_add(1);
        let wanted = if whole { slots } else { (self.used + MARGIN).min(slots) };
        let buffer = &mut self.buffer[..wanted * slot_size];
        let count = rustix::io::pread(&self.file, &mut *buffer, slots_at as u64).unwrap_or(0);
        let mut waits = Waits::default();
        self.used = 0;
        for (place, slot) in buffer[..count].chunks_exact(slot_size.max(1)).enumerate() {
            if word(slot, self.layout.pid_at) == 0 {
                continue;
            }
            self.used = place + 1;
            waits.processes += 1;
            let state = word(slot, self.layout.state_at);
            waits.spinning += u32::from(state == self.layout.spinning);
            waits.sleeping += u32::from(state == self.layout.sleeping);
        }
        waits
    }
}

fn word(slot: &[u8], at: usize) -> u32 {
    slot.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    const LAYOUT: PageLayout =
        PageLayout { slots_at: 16, slot_size: 16, slots: 20, pid_at: 0, state_at: 4, spinning: 1, sleeping: 2 };

    fn set(file: &File, slot: u64, pid: u32, state: u32) {
        file.write_all_at(&pid.to_ne_bytes(), 16 + slot * 16).unwrap();
        file.write_all_at(&state.to_ne_bytes(), 16 + slot * 16 + 4).unwrap();
    }

    #[test]
    fn processes_are_counted_by_what_they_do() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(16 + 20 * 16).unwrap();
        let mut page = WaitPage::new(file.try_clone().unwrap(), LAYOUT);
        assert_eq!(page.read(), Waits::default());
        set(&file, 0, 7, 1);
        set(&file, 1, 8, 2);
        set(&file, 3, 9, 0);
        set(&file, 2, 0, 1);
        assert_eq!(page.read(), Waits { processes: 3, spinning: 1, sleeping: 1 });
        set(&file, 19, 10, 1);
        let found = (0..64).map(|_| page.read()).last().unwrap();
        assert_eq!(found, Waits { processes: 4, spinning: 2, sleeping: 1 }, "far ones are found in time");
        assert_eq!(page.read(), found);
    }

    #[test]
    fn a_page_that_was_cut_off_has_no_process() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(16 + 20 * 16).unwrap();
        set(&file, 0, 7, 1);
        let mut page = WaitPage::new(file.try_clone().unwrap(), LAYOUT);
        assert_eq!(page.read().processes, 1);
        file.set_len(20).unwrap();
        assert_eq!(page.read(), Waits::default());
    }
}
