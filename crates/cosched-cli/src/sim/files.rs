//! Output files: they are opened before a long simulation, and every failure is reported.

use crate::out::Failure;
use std::fs::File;
use std::io::{self, BufWriter, Stdout, Write};
use std::path::{Path, PathBuf};

/// A file, or standard output (`-`).
#[derive(Debug)]
pub(crate) struct Output {
    path: PathBuf,
    out: Out,
}

#[derive(Debug)]
enum Out {
    File(BufWriter<File>),
    Stdout(Stdout),
}

impl Output {
    /// Creates or truncates the file.
    pub(crate) fn create(path: &Path) -> Result<Output, Failure> {
        let out = if is_stdout(path) {
            Out::Stdout(io::stdout())
        } else {
            Out::File(BufWriter::new(File::create(path).map_err(|error| failed("create", path, &error))?))
        };
        Ok(Output { path: path.to_owned(), out })
    }

    /// The file's path.
    pub(crate) fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// Writes a text after what is buffered, and flushes.
    pub(crate) fn finish(mut self, text: &str) -> Result<(), Failure> {
        let written = self.write_all(text.as_bytes()).and_then(|()| self.flush());
        self.written(written)
    }

    /// Turns an I/O error on this file into a failure. A closed pipe ends the command quietly.
    pub(crate) fn written<T>(&self, result: io::Result<T>) -> Result<T, Failure> {
        written(&self.path, result)
    }
}

/// Turns an I/O error on this path into a failure.
pub(crate) fn written<T>(path: &Path, result: io::Result<T>) -> Result<T, Failure> {
    result.map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe if is_stdout(path) => Failure::silent(0),
        _ => failed("write", path, &error),
    })
}

/// Checks that this file can be written; its contents stay. For files that are only opened after a long simulation.
pub(crate) fn writable(path: &Path) -> Result<(), Failure> {
    if is_stdout(path) {
        return Ok(());
    }
    let opened = File::options().append(true).create(true).open(path);
    opened.map(drop).map_err(|error| failed("create", path, &error))
}

/// Whether a path means standard output.
pub(crate) fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

/// Refuses to write two outputs to one file, or to overwrite the regular file that is read.
pub(crate) fn distinct(source: &Path, files: &[&Path]) -> Result<(), Failure> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    for (k, path) in files.iter().enumerate() {
        let shown = if is_stdout(path) { "standard output".to_owned() } else { path.display().to_string() };
        let is_shared = files[..k].iter().any(|other| real(other) == real(path));
        let why = if !is_stdout(path) && path.is_file() && real(path) == real(source) {
            "it is also an input, and its contents would be lost"
        } else if is_shared && (is_stdout(path) || path.is_file() || !path.exists()) {
            "two outputs go there and would overwrite each other"
        } else {
            continue;
        };
        return Err(Failure::explained(2, &format!("cannot write {shown}"), why, "give each output a file of its own"));
    }
    Ok(())
}

fn failed(what: &str, path: &Path, error: &io::Error) -> Failure {
    let shown = if is_stdout(path) { "standard output".to_owned() } else { path.display().to_string() };
    let hint = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "free disk space, or write to another disk",
        io::ErrorKind::NotFound => "create its directory first",
        _ => "check its permissions",
    };
    Failure::explained(1, &format!("cannot {what} {shown}"), &error.to_string(), hint)
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.out {
            Out::File(file) => file.write(bytes),
            Out::Stdout(stdout) => stdout.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.out {
            Out::File(file) => file.flush(),
            Out::Stdout(stdout) => stdout.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_have_a_reason_and_a_hint() {
        let failure = Output::create(Path::new("/nowhere/at/all.csv")).unwrap_err();
        assert_eq!(failure.code, 1);
        assert!(failure.message.starts_with("cannot create /nowhere/at/all.csv\n  why: No such file"), "{failure:?}");
        assert!(failure.message.ends_with("hint: create its directory first"), "{failure:?}");
    }

    #[test]
    fn a_full_disk_is_told() {
        let output = Output::create(Path::new("/dev/full")).unwrap();
        let failure = output.finish("text").unwrap_err();
        assert!(failure.message.starts_with("cannot write /dev/full\n  why: No space left"), "{failure:?}");
        assert!(failure.message.ends_with("free disk space, or write to another disk"), "{failure:?}");
    }
}
