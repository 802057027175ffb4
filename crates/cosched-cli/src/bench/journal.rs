//! `--out DIR`: results are written to the disk after every set, so that nothing is lost, and `--resume` continues from
//! there.
//!
//! `runs.jsonl` is the journal: the head, then one run per line, each written to the disk before the next begins. All
//! other files are generated from it.

use super::output;
use super::report;
use crate::out::json_line;
use crate::out::{EXIT_REFUSED, Failure};
use crate::target::Target;
use cosched_study::slowdown::record::{Document, Ended, FORMAT, Head, Run};
use std::fs::{File, create_dir_all};
use std::io::Write;
use std::path::{Path, PathBuf};

/// A directory with results.
#[derive(Debug)]
pub(crate) struct Journal {
    directory: PathBuf,
    file: File,
}

const NAME: &str = "runs.jsonl";
/// The files that are generated from it.
const MADE: [&str; 4] = ["slowdown.json", "runs.csv", "results.csv", "report.html"];

impl Journal {
    /// Begins in an empty or new directory.
    ///
    /// # Errors
    /// When it has results or files of these names, or cannot be written.
    pub(crate) fn begin(directory: &Path, head: &Head) -> Result<Journal, Failure> {
        if directory.join(NAME).exists() {
            let what = format!("{} has results", directory.display());
            let hint = format!(
                "resume with `cosched bench slowdown --resume {}`, or name another directory",
                directory.display()
            );
            return Err(Failure::explained(EXIT_REFUSED, &what, "they would be overwritten", &hint));
        }
        // For example a report.html of the user's own.
        if let Some(name) = MADE.iter().find(|name| directory.join(name).exists()) {
            let what = format!("{} has a {name} that is not from `cosched bench`", directory.display());
            return Err(Failure::explained(
                EXIT_REFUSED,
                &what,
                "it would be overwritten",
                "name a new directory: --out DIR",
            ));
        }
        create_dir_all(directory.join("logs")).map_err(|e| cannot(directory, &e))?;
        let file = File::options().append(true).create_new(true).open(directory.join(NAME));
        let mut journal = Journal { directory: directory.to_owned(), file: file.map_err(|e| cannot(directory, &e))? };
        journal.line(head)?;
        Ok(journal)
    }

    /// Continues a journal; what was interrupted is run again.
    ///
    /// # Errors
    /// When there is no journal, or its first line is damaged; other damaged lines are left out, and run again.
    pub(crate) fn resume(directory: &Path) -> Result<(Journal, Head, Vec<Run>), Failure> {
        let path = directory.join(NAME);
        let text = std::fs::read_to_string(&path).map_err(|e| {
            let what = format!("{} cannot be resumed", directory.display());
            Failure::explained(EXIT_REFUSED, &what, &format!("{NAME}: {e}"), "name a directory that --out made")
        })?;
        let (head, runs) = read(&text).map_err(|why| {
            let what = format!("{} cannot be resumed", directory.display());
            Failure::explained(EXIT_REFUSED, &what, &why, "start again in another directory")
        })?;
        let mut file = File::options().append(true).open(&path).map_err(|e| cannot(directory, &e))?;
        if !text.ends_with('\n') {
            // The harness died while it wrote a line, which does not count.
            file.write_all(b"\n").map_err(|e| cannot(directory, &e))?;
        }
        Ok((Journal { directory: directory.to_owned(), file }, head, runs))
    }

    /// Keeps a run.
    pub(crate) fn add(&mut self, run: &Run) -> Result<(), Failure> {
        self.line(run)
    }

    /// Writes the files that are generated from the runs.
    pub(crate) fn write(&self, document: &Document) -> Result<(), Failure> {
        let texts =
            [json_line(document)?, output::runs_csv(document), output::results_csv(document), report::html(document)];
        let target =
            |name: &str| Target::or_hint(&self.directory.join(name), "make room, and continue with --resume DIR");
        MADE.iter().zip(&texts).try_for_each(|(name, text)| target(name)?.write(text))
    }

    /// The common prefix of the names of a set's logs.
    pub(crate) fn logs(&self, name: &str) -> String {
        self.directory.join("logs").join(name).to_string_lossy().into_owned()
    }

    fn line(&mut self, value: &impl serde::Serialize) -> Result<(), Failure> {
        let line = json_line(value)?;
        let written = self.file.write_all(line.as_bytes()).and_then(|()| self.file.sync_data());
        written.map_err(|e| cannot(&self.directory, &e))
    }
}

fn cannot(directory: &Path, error: &std::io::Error) -> Failure {
    Failure::other(format!("cannot write to {}: {error}", directory.display()))
}

fn read(text: &str) -> Result<(Head, Vec<Run>), String> {
    let mut lines = text.lines();
    let head: Head = serde_json::from_str(lines.next().unwrap_or_default()).map_err(|e| format!("its head: {e}"))?;
    if head.format != FORMAT {
        return Err(format!("its format is {}, not {FORMAT}", head.format));
    }
    // An unfinished line is a run that was not saved.
    let runs = lines.filter_map(|line| serde_json::from_str::<Run>(line).ok());
    Ok((head, runs.filter(|run| run.outcome != Ended::Interrupted).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cosched_study::slowdown::samples::{head, run};

    #[test]
    fn goes_on_after_a_line_that_was_cut_and_without_what_was_interrupted() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("out");
        let head = head(&["linux"], &[1, 2], 2);
        let mut journal = Journal::begin(&place, &head).unwrap();
        journal.add(&run("linux", 0, &[1.0])).unwrap();
        journal.add(&Run { outcome: Ended::Interrupted, ..run("linux", 0, &[1.0, 1.0]) }).unwrap();
        journal.file.write_all(b"{\"policy\":\"li").unwrap();
        drop(journal);
        assert!(Journal::begin(&place, &head).unwrap_err().message.contains("--resume"));
        let (mut journal, again, runs) = Journal::resume(&place).unwrap();
        assert_eq!((again, runs.len()), (head, 1));
        journal.add(&run("linux", 1, &[1.0])).unwrap();
        assert_eq!(Journal::resume(&place).unwrap().2.len(), 2);
    }

    #[test]
    fn files_of_others_are_not_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("report.html"), "mine").unwrap();
        let failure = Journal::begin(dir.path(), &head(&["linux"], &[1], 1)).unwrap_err();
        assert!(failure.message.contains("has a report.html"), "{}", failure.message);
        assert!(!dir.path().join(NAME).exists(), "it was not begun");
    }

    #[test]
    fn what_is_no_journal_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Journal::resume(dir.path()).unwrap_err().code, EXIT_REFUSED);
        std::fs::write(dir.path().join(NAME), "{}\n").unwrap();
        assert!(Journal::resume(dir.path()).unwrap_err().message.contains("head"));
    }
}
