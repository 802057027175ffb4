//! The weight of our subtree against its siblings, in the form that the slot thread switches.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use rustix::io::Errno;

use crate::switch::{decimal, put};

/// A weight against the siblings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weighs {
    /// The number in cpu.shares or cpu.weight.
    Number(u32),
    /// Below everything of ordinary priority (cpu.idle); the least weight where the kernel has no such file.
    Idle,
}

/// The weights of the subtree while slots are divided between gangs and neighbours, and while they are not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Weights {
    /// No part of the slots is held back: the total weight of the jobs if each were a session of its own.
    pub(crate) undivided: u32,
    /// In the gangs' part of a slot.
    pub(crate) own: u32,
    /// In the part that is held back.
    pub(crate) held: Weighs,
}

/// The open files of the subtree's weight.
#[derive(Debug)]
pub struct TreeWeight {
    weight: File,
    idle: Option<File>,
    least: u32,
    /// The number that was written last; 0: unknown.
    number: AtomicU32,
    /// The mark that was written last: 0, 1, or 2: unknown.
    mark: AtomicU32,
}

impl TreeWeight {
    /// Opens the files in `dir`.
    pub(crate) fn open(dir: &Path, name: &str, least: u32) -> io::Result<TreeWeight> {
        let open = |name: &str| OpenOptions::new().write(true).open(dir.join(name));
        let (number, mark) = (AtomicU32::new(0), AtomicU32::new(2));
        Ok(TreeWeight { weight: open(name)?, idle: open("cpu.idle").ok(), least, number, mark })
    }

    /// Writes only differences. Neither allocates nor locks.
    pub(crate) fn set(&self, to: Weighs) -> Result<(), Errno> {
        match (to, &self.idle) {
            (Weighs::Idle, Some(_)) => self.set_mark(1),
            (Weighs::Idle, None) => self.set_number(self.least),
            (Weighs::Number(number), _) => {
                // Before the number: the kernel refuses the number while the mark is set, and resets it together with the mark.
                self.set_mark(0)?;
                self.set_number(number)
            }
        }
    }

    fn set_mark(&self, mark: u32) -> Result<(), Errno> {
        let Some(file) = &self.idle else { return Ok(()) };
        if self.mark.load(Relaxed) != mark {
            put(file, if mark == 1 { b"1" } else { b"0" })?;
            self.mark.store(mark, Relaxed);
            self.number.store(0, Relaxed);
        }
        Ok(())
    }

    fn set_number(&self, number: u32) -> Result<(), Errno> {
        if self.number.load(Relaxed) != number {
            put(&self.weight, decimal(number, &mut [0; 11]))?;
            self.number.store(number, Relaxed);
        }
        Ok(())
    }

    /// Another process may have written the files: the next call writes all values.
    pub(crate) fn forget(&self) {
        self.number.store(0, Relaxed);
        self.mark.store(2, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_number_takes_the_mark_away_first() {
        let dir = tempfile::tempdir().unwrap();
        let read = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
        ["cpu.shares", "cpu.idle"].iter().for_each(|name| fs::write(dir.path().join(name), "").unwrap());
        let tree = TreeWeight::open(dir.path(), "cpu.shares", 2).unwrap();
        tree.set(Weighs::Idle).unwrap();
        assert_eq!([read("cpu.shares"), read("cpu.idle")], ["", "1"]);
        tree.set(Weighs::Number(2048)).unwrap();
        assert_eq!([read("cpu.shares"), read("cpu.idle")], ["2048\n", "0"]);
        fs::write(dir.path().join("cpu.shares"), "other").unwrap();
        tree.set(Weighs::Number(2048)).unwrap();
        assert_eq!(read("cpu.shares"), "other", "written only when it differs");
        tree.forget();
        tree.set(Weighs::Number(2048)).unwrap();
        assert!(read("cpu.shares").starts_with("2048\n"));
    }

    #[test]
    fn without_the_mark_the_least_weight_stands_for_it() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("cpu.weight"), "").unwrap();
        let tree = TreeWeight::open(dir.path(), "cpu.weight", 1).unwrap();
        tree.set(Weighs::Idle).unwrap();
        assert_eq!(fs::read_to_string(dir.path().join("cpu.weight")).unwrap(), "1\n");
        assert!(TreeWeight::open(dir.path(), "cpu.shares", 2).is_err());
    }
}
