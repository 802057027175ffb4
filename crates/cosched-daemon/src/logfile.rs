//! Append-only logs of the daemon, a line of JSON each.
//!
//! No request waits for them: lines go through a bounded queue to a thread of its own, which writes them and rotates the files. Lines that could not
//! be written are counted, and the number is written as soon as that is possible.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// A file is rotated at this length; this number of old files is kept.
const FILE_BYTES_MAX: u64 = 16 << 20;
pub(crate) const OLD_FILES: usize = 7;
/// Lines that wait to be written.
const QUEUE: usize = 1024;

/// Starts a thread that writes whole lines, as they are sent, to a file whose name ends in `.log`.
pub(crate) fn start(path: PathBuf, thread: &str) -> io::Result<SyncSender<String>> {
    let (to_writer, lines) = sync_channel(QUEUE);
    let mut writer = Writer { path, file: None, bytes: 0, lost: 0 };
    std::thread::Builder::new().name(thread.to_owned()).spawn(move || writer.run(&lines))?;
    Ok(to_writer)
}

/// The path of an older file of a log, from 1, the newest, to [`OLD_FILES`].
pub(crate) fn old(path: &Path, number: usize) -> PathBuf {
    path.with_extension(format!("log.{number}"))
}

/// The state of the thread.
struct Writer {
    path: PathBuf,
    file: Option<File>,
    bytes: u64,
    /// Lines that could not be written.
    lost: u64,
}

impl Writer {
    fn run(&mut self, lines: &Receiver<String>) {
        while let Ok(line) = lines.recv() {
            let told =
                if self.lost > 0 { format!("{{\"act\":\"lost\",\"lines\":{}}}\n", self.lost) } else { String::new() };
            match self.write(&(told + &line)) {
                Ok(()) => self.lost = 0,
                Err(e) => {
                    if self.lost == 0 {
                        tracing::error!("the log {} cannot be written: {e}", self.path.display());
                    }
                    self.lost += 1;
                    // The file may end with a part of a line; the next line begins with a new file handle and a new line.
                    self.file = None;
                }
            }
        }
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        if self.file.as_ref().is_some_and(|file| !is_at(file, &self.path)) {
            self.file = None;
        }
        if self.bytes >= FILE_BYTES_MAX && self.file.take().is_some() {
            self.turn_over()?;
        }
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let flags = rustix::fs::OFlags::NOFOLLOW.bits() as i32;
                let mut file =
                    OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(flags).open(&self.path)?;
                self.bytes = file.metadata()?.len();
                if !ends_whole(&self.path, self.bytes)? {
                    file.write_all(b"\n")?;
                }
                none.insert(file)
            }
        };
        file.write_all(text.as_bytes())?;
        self.bytes += text.len() as u64;
        Ok(())
    }

    /// Renames `NAME.log` to `NAME.log.1`, and so on, up to the first number that is free; the oldest is removed if there is none.
    fn turn_over(&mut self) -> io::Result<()> {
        let old = |number| old(&self.path, number);
        let free = (1..OLD_FILES).find(|number| !old(*number).exists()).unwrap_or(OLD_FILES);
        for number in (1..free).rev() {
            std::fs::rename(old(number), old(number + 1))?;
        }
        std::fs::rename(&self.path, old(1))?;
        self.bytes = 0;
        Ok(())
    }
}

/// Whether the file still has this name: an operator may have moved or removed it.
fn is_at(file: &File, path: &Path) -> bool {
    let id = |found: std::fs::Metadata| (found.dev(), found.ino());
    file.metadata().map(id).ok() == std::fs::symlink_metadata(path).map(id).ok()
}

/// Whether a file ends with a whole line: a line cut off by a crash or a full disk is not continued.
fn ends_whole(path: &Path, bytes: u64) -> io::Result<bool> {
    use std::os::unix::fs::FileExt;
    let mut last = [b'\n'];
    if bytes > 0 {
        File::open(path)?.read_exact_at(&mut last, bytes - 1)?;
    }
    Ok(last == [b'\n'])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn lines(path: &Path) -> Vec<Value> {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn files_are_turned_over_and_what_the_disk_does_not_take_is_counted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.log");
        let mut writer = Writer { path: path.clone(), file: None, bytes: 0, lost: 0 };
        for round in 0..10 {
            writer.write(&format!("{{\"round\":{round}}}\n")).unwrap();
            writer.bytes = FILE_BYTES_MAX;
        }
        assert_eq!(lines(&path)[0]["round"], 9);
        assert_eq!(lines(&path.with_extension("log.7"))[0]["round"], 2);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 8);
        // An operator moves the file away, and the older ones stay where they are.
        writer.bytes = FILE_BYTES_MAX;
        std::fs::rename(&path, dir.path().join("archived")).unwrap();
        writer.write("{\"round\":10}\n").unwrap();
        assert_eq!(
            (lines(&path)[0]["round"].clone(), lines(&path.with_extension("log.7"))[0]["round"].clone()),
            (10.into(), 2.into())
        );
        // A directory in place of the file simulates a disk that refuses all writes.
        let broken = dir.path().join("broken");
        std::fs::create_dir(&broken).unwrap();
        let (to, from) = sync_channel(4);
        let mut writer = Writer { path: broken, file: None, bytes: 0, lost: 0 };
        to.send("x\n".to_owned()).unwrap();
        to.send("y\n".to_owned()).unwrap();
        drop(to);
        writer.run(&from);
        assert_eq!(writer.lost, 2);
    }

    #[test]
    fn half_a_line_is_not_continued() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.log");
        std::fs::write(&path, "{\"cut\"").unwrap();
        let mut writer = Writer { path: path.clone(), file: None, bytes: 0, lost: 0 };
        writer.write("{\"whole\":1}\n").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\"cut\"\n{\"whole\":1}\n");
    }
}
