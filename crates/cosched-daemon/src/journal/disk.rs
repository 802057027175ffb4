//! Work on a disk that may not answer.
//!
//! Work that need not be on the disk at once is started, and awaited together with the next work.
//!
//! Problem: a thread that writes to a disk that hangs is blocked for as long as that lasts, with its other duties: to renew the node's lease, to
//! answer users. Rule: the file goes to a thread with the work and comes back with the result. A caller that has waited long enough continues without
//! it, as if the disk had refused; while the file is away, all other work on it is refused at once. When the file is back, it is unknown which part
//! of the work reached the disk, so the file is rewritten before anything is appended.

use super::file::JournalFile;
use cosched_linux::realtime::Pace;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

/// The wait on a single machine: nothing else depends on the daemon meanwhile, and a busy disk takes seconds.
const PATIENCE: Duration = Duration::from_secs(10);

type Work = Box<dyn FnOnce(&mut JournalFile) -> io::Result<()> + Send>;

/// The file, and the thread that works on it.
#[derive(Debug)]
pub(super) struct Disk {
    to: Sender<(JournalFile, Work)>,
    back: Receiver<(JournalFile, io::Result<()>)>,
    /// `None` while the thread has it.
    file: Option<JournalFile>,
    /// The thread has it with work that was started and not awaited.
    begun: bool,
    patience: Duration,
}

impl Disk {
    pub(super) fn new(file: JournalFile) -> io::Result<Disk> {
        let (to, works) = channel::<(JournalFile, Work)>();
        let (done, back) = channel();
        thread::Builder::new().name("journal".to_owned()).spawn(move || {
            // The driver waits for it.
            let mut pace = Pace::begin();
            pace.limit();
            for (mut file, work) in works {
                pace.heed();
                let outcome = work(&mut file);
                if done.send((file, outcome)).is_err() {
                    return;
                }
            }
        })?;
        Ok(Disk { to, back, file: Some(file), begun: false, patience: PATIENCE })
    }

    pub(super) fn wait_at_most(&mut self, patience: Duration) {
        self.patience = patience.min(PATIENCE);
    }

    /// The file, when all work started with it is done.
    ///
    /// # Errors
    /// The disk does not answer.
    pub(super) fn fetch(&mut self) -> io::Result<&mut JournalFile> {
        let failed = self.end().is_err();
        if self.file.is_none()
            && let Ok((mut file, _)) = self.back.try_recv()
        {
            file.unsure = true;
            self.file = Some(file);
        }
        let file = self.file.as_mut().ok_or_else(|| no_answer(self.patience))?;
        // The failure of started work is reported nowhere else.
        file.unsure |= failed;
        Ok(file)
    }

    /// Does work on the file and waits for it.
    ///
    /// # Errors
    /// The work's own, or the disk does not answer.
    pub(super) fn run(
        &mut self,
        work: impl FnOnce(&mut JournalFile) -> io::Result<()> + Send + 'static,
    ) -> io::Result<()> {
        self.begin(work)?;
        self.end()
    }

    /// Starts work on the file. If it fails, the file has to be rewritten.
    ///
    /// # Errors
    /// The disk does not answer.
    pub(super) fn begin(
        &mut self,
        work: impl FnOnce(&mut JournalFile) -> io::Result<()> + Send + 'static,
    ) -> io::Result<()> {
        self.fetch()?;
        let file = self.file.take().ok_or_else(ended)?;
        self.to.send((file, Box::new(work))).map_err(|_| ended())?;
        self.begun = true;
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        if !std::mem::take(&mut self.begun) {
            return Ok(());
        }
        match self.back.recv_timeout(self.patience) {
            Ok((file, outcome)) => {
                self.file = Some(file);
                outcome
            }
            Err(RecvTimeoutError::Timeout) => Err(no_answer(self.patience)),
            Err(RecvTimeoutError::Disconnected) => Err(ended()),
        }
    }
}

impl Drop for Disk {
    /// An orderly end waits for started work.
    fn drop(&mut self) {
        let _ = self.end();
    }
}

fn ended() -> io::Error {
    io::Error::other("the thread that writes the journal has ended")
}

fn no_answer(patience: Duration) -> io::Error {
    let why = format!("the disk does not answer (within {} ms)", patience.as_millis());
    io::Error::new(io::ErrorKind::TimedOut, why)
}

#[cfg(test)]
mod tests {
    use crate::journal::{Journal, look};
    use std::iter::once;
    use std::thread::sleep;
    use std::time::{Duration, Instant};

    #[test]
    fn what_was_begun_and_failed_is_written_anew() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("j");
        let (mut journal, _) = Journal::open::<u32>(&path).unwrap();
        journal.append_soon(1).unwrap();
        assert!(!journal.is_unsure());
        journal.disk.begin(|_| Err(std::io::Error::other("no room"))).unwrap();
        assert!(journal.is_unsure(), "what it would have written is missing");
        journal.rewrite([1, 2].into_iter()).unwrap();
        assert!(!journal.is_unsure());
        assert_eq!(look::<u32>(&path).unwrap(), (vec![1, 2], 0));
    }

    #[test]
    fn a_disk_that_hangs_refuses_and_what_comes_then_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("j");
        let (mut journal, _) = Journal::open::<u32>(&path).unwrap();
        journal.append(once(1)).unwrap();
        journal.wait_at_most(Duration::from_millis(20));
        let (hold, held) = std::sync::mpsc::channel::<()>();
        let late = journal.disk.run(move |file| {
            let _ = held.recv();
            let (text, next) = crate::journal::lines::text(file.next, once(2))?;
            file.put(&text, next)
        });
        assert_eq!(late.unwrap_err().kind(), std::io::ErrorKind::TimedOut);
        let begin = Instant::now();
        assert!(journal.append(once(3)).is_err() && journal.rewrite(once(3)).is_err() && journal.is_unsure());
        assert!(begin.elapsed() < Duration::from_secs(5), "it was waited for");
        drop(hold);
        while journal.disk.fetch().is_err() {
            sleep(Duration::from_millis(5));
        }
        // The owner is told to rewrite the file, and the refused change is not in it.
        assert!(journal.is_unsure());
        journal.rewrite([1, 3].into_iter()).unwrap();
        journal.append(once(4)).unwrap();
        assert_eq!(look::<u32>(&path).unwrap(), (vec![1, 3, 4], 0));
    }
}
