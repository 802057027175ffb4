//! What runs found, in a directory of the user: one below `web` for each run.

use crate::state::state_directory;
use serde::{Deserialize, Serialize};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// At more than this the oldest go.
const RUNS_MAX: usize = 40;
const BYTES_MAX: u64 = 128 << 20;
const RECORD_BYTES_MAX: u64 = 64 << 10;
const RECORD: &str = "run.json";
const OUTPUT: &str = "output";
const MESSAGES: &str = "messages";
const REPORT: &str = "report.html";
const INPUT: &str = "in";
/// In a run's directory: held while it runs. In the shelf's: held while runs come and go. A file of its own, since directories have no locks on NFS.
const LOCK: &str = "lock";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum State {
    Waiting,
    Running,
    Done,
    Failed,
    Cancelled,
    /// Its server ended before it did.
    Interrupted,
}

/// A run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) id: String,
    pub(super) kind: String,
    pub(super) title: String,
    pub(super) state: State,
    /// Why it failed.
    pub(super) why: String,
    pub(super) begun_unix_ms: u64,
    pub(super) ended_unix_ms: Option<u64>,
    /// Whether it has a report.
    pub(super) report: bool,
}

impl Record {
    pub(super) fn new(title: String, kind: &str, begun_unix_ms: u64) -> Record {
        let (id, why, state) = (String::new(), String::new(), State::Waiting);
        Record { id, kind: kind.to_owned(), title, state, why, begun_unix_ms, ended_unix_ms: None, report: false }
    }
}

/// All runs of the user.
#[derive(Debug)]
pub(super) struct Shelf(PathBuf);

/// The directory of a run that has not ended, which is locked.
#[derive(Debug)]
pub(super) struct Place {
    path: PathBuf,
    _lock: File,
}

impl Shelf {
    pub(super) fn of_user() -> Shelf {
        Shelf(state_directory().join("web"))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Makes room, and a place for a new run, which gets its id.
    pub(super) fn add(
        &self,
        mut record: Record,
        upload: Option<(String, Vec<u8>)>,
        own: &[String],
    ) -> io::Result<(Record, Place)> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.0)?;
        // Under another user's $HOME the paths are that user's to change.
        if std::fs::metadata(&self.0)?.uid() != rustix::process::geteuid().as_raw() {
            return Err(io::Error::other("the directory belongs to another user"));
        }
        let shelf = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(self.0.join(LOCK))?;
        shelf.lock()?;
        self.make_room(own)?;
        record.id = crate::web::guard::random()?;
        let path = self.0.join(&record.id);
        DirBuilder::new().mode(0o700).create(&path)?;
        let lock = create(&path.join(LOCK))?;
        lock.lock()?;
        let place = Place { path, _lock: lock };
        DirBuilder::new().mode(0o700).create(place.input())?;
        if let Some((name, bytes)) = upload {
            create(&place.input().join(name))?.write_all(&bytes)?;
        }
        place.write(&record)?;
        Ok((record, place))
    }

    /// The newest first.
    pub(super) fn list(&self, own: &[String]) -> io::Result<Vec<Record>> {
        let mut all: Vec<Record> = self.ids()?.iter().filter_map(|id| self.record(id, own)).collect();
        all.sort_by(|a, b| (b.begun_unix_ms, &b.id).cmp(&(a.begun_unix_ms, &a.id)));
        Ok(all)
    }

    pub(super) fn record(&self, id: &str, own: &[String]) -> Option<Record> {
        let path = self.place(id)?;
        let text = read(&path.join(RECORD), RECORD_BYTES_MAX).ok()?;
        let mut record: Record = serde_json::from_slice(&text).ok()?;
        let is_open = matches!(record.state, State::Waiting | State::Running);
        // Whoever runs it holds its lock.
        if is_open && !own.contains(&record.id) && File::open(path.join(LOCK)).ok()?.try_lock_shared().is_ok() {
            record.state = State::Interrupted;
        }
        // A command that fails has made sure that it could write one.
        let is_written = std::fs::metadata(path.join(REPORT)).is_ok_and(|report| report.len() > 0);
        record.report = is_written && !matches!(record.state, State::Waiting | State::Running);
        Some(record)
    }

    /// What it wrote: the beginning of its output, and the end of its messages.
    pub(super) fn texts(&self, id: &str, bytes_max: usize) -> [String; 2] {
        let of = |name: &str, from_end: bool| {
            let mut file = File::open(self.place(id)?.join(name)).ok()?;
            let length = file.metadata().ok()?.len();
            if from_end {
                file.seek(SeekFrom::Start(length.saturating_sub(bytes_max as u64))).ok()?;
            }
            let mut bytes = Vec::new();
            file.take(bytes_max as u64).read_to_end(&mut bytes).ok()?;
            Some(String::from_utf8_lossy(&bytes).into_owned())
        };
        [of(OUTPUT, false), of(MESSAGES, true)].map(Option::unwrap_or_default)
    }

    pub(super) fn report(&self, id: &str) -> Option<Vec<u8>> {
        std::fs::read(self.place(id)?.join(REPORT)).ok()
    }

    /// The directory of a run; none for what is no id.
    fn place(&self, id: &str) -> Option<PathBuf> {
        let is_id = id.len() == 32 && id.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        is_id.then(|| self.0.join(id))
    }

    fn ids(&self) -> io::Result<Vec<String>> {
        let entries = match std::fs::read_dir(&self.0) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(e),
        };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        Ok(names.filter(|name| self.place(name).is_some()).collect())
    }

    /// Removes the oldest ended runs, so that one more has its place, and directories of which nothing is known.
    fn make_room(&self, own: &[String]) -> io::Result<()> {
        let kept = self.list(own)?;
        let (mut bytes, mut count) = (0, 0);
        for id in self.ids()? {
            if !kept.iter().any(|run| run.id == id) {
                std::fs::remove_dir_all(self.0.join(&id))?;
            }
        }
        for run in &kept {
            (bytes, count) = (bytes + size(&self.0.join(&run.id)), count + 1);
            let is_open = matches!(run.state, State::Waiting | State::Running);
            if !is_open && (count >= RUNS_MAX || bytes > BYTES_MAX) {
                std::fs::remove_dir_all(self.0.join(&run.id))?;
            }
        }
        Ok(())
    }
}

impl Place {
    /// Where the upload is, and where it runs.
    pub(super) fn input(&self) -> PathBuf {
        self.path.join(INPUT)
    }

    /// The files of its standard output and standard error.
    pub(super) fn outputs(&self) -> io::Result<(File, File)> {
        Ok((create(&self.path.join(OUTPUT))?, create(&self.path.join(MESSAGES))?))
    }

    pub(super) fn write(&self, record: &Record) -> io::Result<()> {
        let partial = self.path.join("partial");
        create(&partial)?.write_all(&serde_json::to_vec(record)?)?;
        std::fs::rename(partial, self.path.join(RECORD))
    }

    /// The upload has served.
    pub(super) fn finish(&self, record: &Record) -> io::Result<()> {
        self.write(record)?;
        std::fs::remove_dir_all(self.input())
    }
}

fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

fn read(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(bytes_max).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The bytes of the files in a directory and below.
fn size(path: &Path) -> u64 {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let of = |entry: std::fs::DirEntry| {
        let found = entry.metadata().ok()?;
        Some(if found.is_dir() { size(&entry.path()) } else { found.len() })
    };
    entries.filter_map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn shelf() -> (tempfile::TempDir, Shelf) {
        let directory = tempfile::tempdir().unwrap();
        let shelf = Shelf(directory.path().join("state/web"));
        (directory, shelf)
    }

    fn add(shelf: &Shelf, at: u64) -> (Record, Place) {
        shelf.add(Record::new("t".into(), "compare", at), Some(("a.swf".into(), b"1".to_vec())), &[]).unwrap()
    }

    #[test]
    fn a_run_is_kept_for_its_user_alone_and_its_upload_until_it_ends() {
        let (_directory, shelf) = shelf();
        assert_eq!(shelf.list(&[]).unwrap(), []);
        let (mut record, place) = add(&shelf, 1);
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let modes =
            [&place.path, &place.input(), &place.path.join(RECORD), &place.input().join("a.swf")].map(|p| mode(p));
        assert_eq!(modes, [0o700, 0o700, 0o600, 0o600]);
        assert_eq!(shelf.list(&[]).unwrap()[0].state, State::Waiting, "its lock is held");
        record.state = State::Done;
        place.finish(&record).unwrap();
        std::fs::write(place.path.join(REPORT), "r").unwrap();
        assert!(!place.input().exists() && shelf.list(&[]).unwrap()[0].report);
        assert_eq!(shelf.report(&record.id).unwrap(), b"r");
        for id in ["", "..", "../../etc", &record.id[1..], &record.id.to_uppercase().replace(char::is_numeric, "A")] {
            assert!(shelf.report(id).is_none() && shelf.record(id, &[]).is_none(), "{id}");
        }
        let (open, place) = add(&shelf, 2);
        drop(place);
        assert_eq!(shelf.record(&open.id, &[]).unwrap().state, State::Interrupted, "its lock is free");
    }

    #[test]
    fn the_oldest_go() {
        let (_directory, shelf) = shelf();
        let (first, open) = add(&shelf, 0);
        for at in 1..(RUNS_MAX as u64 + 3) {
            let (mut record, place) = add(&shelf, at);
            record.state = State::Done;
            place.finish(&record).unwrap();
        }
        let large = shelf.list(&[]).unwrap().remove(5);
        File::create(shelf.0.join(&large.id).join(REPORT)).unwrap().set_len(BYTES_MAX).unwrap();
        let kept = shelf.list(&[]).unwrap();
        assert!(kept.len() <= RUNS_MAX + 1 && kept.last().unwrap().id == first.id, "what has not ended stays");
        drop(open);
        add(&shelf, 99);
        let kept: Vec<u64> = shelf.list(&[]).unwrap().iter().map(|run| run.begun_unix_ms).collect();
        assert_eq!(kept.len(), 6, "the large one went, with what is older: {kept:?}");
    }
}
