//! The mark beside a journal: the number of the last line that was written.
//!
//! It is written after the line is on the disk and is itself not awaited: so it never claims too much. It survives the death of the daemon. A crash
//! of the machine leaves an older mark at worst, by which fewer missing lines are detected at the end.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Private, because records contain environments, and these contain passwords.
pub(super) const MODE: u32 = 0o600;

/// The content of the mark.
#[derive(Debug)]
pub(super) struct Mark {
    file: Option<File>,
    /// The last line's number; 0: none.
    pub(super) line: u64,
    /// The highest job number.
    pub(super) job: u64,
}

impl Mark {
    /// Opens or makes the mark of this journal.
    pub(super) fn open(journal: &Path) -> io::Result<Mark> {
        let file = OpenOptions::new().create(true).truncate(false).write(true).mode(MODE).open(path(journal))?;
        Ok(Mark { file: Some(file), ..Mark::look(journal) })
    }

    /// Reads the mark only; an unreadable mark counts as none.
    pub(super) fn look(journal: &Path) -> Mark {
        let (line, job) = std::fs::read_to_string(path(journal)).ok().and_then(|text| parse(&text)).unwrap_or_default();
        Mark { file: None, line, job }
    }

    /// Records that the journal is on the disk up to this line.
    pub(super) fn write(&mut self, line: u64) {
        self.line = line;
        let text = format!("{line:016x} {:016x}", self.job);
        let text = format!("{text} {:08x}\n", crc32fast::hash(text.as_bytes()));
        // If this fails, the old mark stays: it claims less, but nothing wrong.
        let _ = self.file.as_ref().map(|file| file.write_all_at(text.as_bytes(), 0));
    }
}

pub(super) fn path(journal: &Path) -> PathBuf {
    journal.with_extension("mark")
}

fn parse(text: &str) -> Option<(u64, u64)> {
    let (numbers, sum) = text.trim_end().rsplit_once(' ')?;
    let (line, job) = numbers.split_once(' ')?;
    let is_whole = u32::from_str_radix(sum, 16).ok()? == crc32fast::hash(numbers.as_bytes());
    let number = |text| u64::from_str_radix(text, 16).ok();
    Some((number(line)?, number(job)?)).filter(|_| is_whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_believed_when_it_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let journal = dir.path().join("j");
        let mut mark = Mark::open(&journal).unwrap();
        assert_eq!((mark.line, mark.job), (0, 0));
        mark.job = 7;
        mark.write(300);
        let look = || (Mark::look(&journal).line, Mark::look(&journal).job);
        assert_eq!(look(), (300, 7));
        let text = std::fs::read(path(&journal)).unwrap();
        for at in 0..text.len() - 1 {
            let mut damaged = text.clone();
            damaged[at] ^= 1;
            std::fs::write(path(&journal), &damaged).unwrap();
            assert_eq!(look(), (0, 0), "byte {at}: it says nothing rather than too much");
            std::fs::write(path(&journal), &text[..at]).unwrap();
            assert_eq!(look(), (0, 0), "cut at {at}");
        }
    }
}
