//! Where a command runs, what it reads and where its output is written: `--output`, `--error`, `--input`, `--chdir`, `--env`.
//!
//! Files are opened by the launcher and by the gate, as the user; the daemon only gets the path.

use super::EXIT_FAILED;
use super::gate::{ERROR, INPUT, OUTPUT};
use crate::out::Failure;
use clap::Args;
use rustix::fs::Access;
use std::ffi::{OsStr, OsString};
use std::fs::OpenOptions;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

#[derive(Args, Debug)]
pub(crate) struct Files {
    /// Write standard output to this file, and standard error unless --error is given; %j is the job's id, %n its name, %a its index
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Write standard error to this file
    #[arg(long, short, value_name = "FILE")]
    error: Option<PathBuf>,

    /// Read standard input from this file
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,

    /// Run the command in this directory
    #[arg(long, value_name = "DIR")]
    chdir: Option<PathBuf>,

    /// Set a variable in the command's environment; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    pub(crate) env: Vec<(String, String)>,
}

/// A variable of the command's environment as its user has set it: by `--env` (`own`), else by that of this command.
pub(crate) fn of_user(own: &[(String, String)], name: &str) -> Option<OsString> {
    let given = own.iter().rev().find(|(given, _)| given == name).map(|(_, value)| value.into());
    given.or_else(|| std::env::var_os(name))
}

/// What the file names of a job may contain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words<'a> {
    pub(crate) name: &'a str,
    pub(crate) index: Option<u32>,
}

impl Files {
    /// Changes to the directory.
    pub(super) fn enter(&self) -> Result<(), Failure> {
        let Some(dir) = &self.chdir else { return Ok(()) };
        std::env::set_current_dir(dir)
            .map_err(|e| cannot("the command cannot run in", dir, &e, "does the directory exist?"))
    }

    /// The path of the output for the daemon, which substitutes the job's id for `%j`.
    pub(super) fn log_path(&self, words: Words<'_>) -> Option<String> {
        let path = expand(self.output.as_deref()?.as_os_str(), words, None);
        std::path::absolute(path).ok().map(|path| path.to_string_lossy().into_owned())
    }

    /// The file to which all jobs of an array would write, if there is one.
    pub(super) fn is_shared(&self) -> Option<&Path> {
        let named = |path: &&PathBuf| ["%a", "%j"].iter().any(|word| path.to_string_lossy().contains(word));
        self.output
            .iter()
            .chain(&self.error)
            .find(|path| !named(path) && !path.starts_with("/dev"))
            .map(PathBuf::as_path)
    }

    /// Whether the name of a file contains the job's id.
    pub(super) fn names_job(&self) -> bool {
        self.output.iter().chain(&self.error).any(|path| path.to_string_lossy().contains("%j"))
    }

    /// Creates the files that do not exist. Those that do are left alone: while the job waits, another may write to them.
    pub(super) fn check(&self, words: Words<'_>, id: u64) -> Result<(), Failure> {
        self.open(words, id, false).map(drop)
    }

    /// Creates or empties the files, and returns what the gate has to open.
    pub(super) fn prepare(&self, words: Words<'_>, id: u64) -> Result<Vec<(String, OsString)>, Failure> {
        self.open(words, id, true)
    }

    fn open(&self, words: Words<'_>, id: u64, empties: bool) -> Result<Vec<(String, OsString)>, Failure> {
        let mut streams = Vec::new();
        if let Some(path) = &self.input {
            let readable = rustix::fs::access(path, Access::READ_OK);
            readable.map_err(|e| cannot("cannot read", path, &e.into(), "check the path of --input"))?;
            streams.push((INPUT.to_owned(), path.clone().into_os_string()));
        }
        let error = self.error.as_ref().or(self.output.as_ref());
        for (stream, path) in [(OUTPUT, self.output.as_ref()), (ERROR, error)] {
            let Some(path) = path.map(|path| expand(path.as_os_str(), words, Some(id))) else { continue };
            // Truncated once; the gate appends.
            let made = OpenOptions::new().write(true).create(true).truncate(empties).open(&path);
            made.map_err(|e| {
                cannot("cannot write to", Path::new(&path), &e, "does the directory exist, and may you write there?")
            })?;
            streams.push((stream.to_owned(), path));
        }
        Ok(streams)
    }
}

fn cannot(what: &str, path: &Path, error: &std::io::Error, hint: &str) -> Failure {
    Failure::explained(EXIT_FAILED, &format!("{what} {}", path.display()), &error.to_string(), hint)
}

/// Expands what is known of a file's name; without an id `%j` stays, and a literal percent sign is doubled.
fn expand(template: &OsStr, words: Words<'_>, id: Option<u64>) -> OsString {
    let percent: &[u8] = if id.is_some() { b"%" } else { b"%%" };
    let mut path = Vec::new();
    let mut rest = template.as_bytes();
    let literal = |path: &mut Vec<u8>, text: &[u8]| {
        for byte in text {
            path.extend_from_slice(if *byte == b'%' { percent } else { std::slice::from_ref(byte) });
        }
    };
    while let [first, tail @ ..] = rest {
        rest = tail;
        match (first, tail.first()) {
            (b'%', Some(b'n')) => literal(&mut path, words.name.replace('/', "_").as_bytes()),
            (b'%', Some(b'a')) => literal(&mut path, words.index.map(|n| n.to_string()).unwrap_or_default().as_bytes()),
            (b'%', Some(b'j')) => path.extend_from_slice(id.map_or("%j".to_owned(), |id| id.to_string()).as_bytes()),
            (b'%', Some(b'%')) => path.extend_from_slice(percent),
            _ => {
                literal(&mut path, &[*first]);
                continue;
            }
        }
        rest = &tail[1..];
    }
    OsString::from_vec(path)
}

/// `NAME=VALUE`.
fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').unwrap_or(("", ""));
    if name.is_empty() {
        return Err("write NAME=VALUE, as in OMP_NUM_THREADS=4".to_owned());
    }
    if name == "LD_PRELOAD" || name.starts_with("COSCHED_") {
        return Err(format!(
            "cosched itself sets {name} for the command; set it before `cosched run`: {name}=… cosched run …"
        ));
    }
    Ok((name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_expanded() {
        let words = Words { name: "a/b 50%", index: Some(3) };
        let of = |text: &str, id| expand(OsStr::new(text), words, id).into_string().unwrap();
        assert_eq!(of("out-%j-%n.%a", Some(7)), "out-7-a_b 50%.3");
        assert_eq!(of("out-%j-%n", None), "out-%j-a_b 50%%");
        assert_eq!((of("5%%-%x%", Some(7)), of("5%%-%x%", None)), ("5%-%x%".into(), "5%%-%%x%%".into()));
        assert_eq!(expand(OsStr::new("%a"), Words { index: None, ..words }, Some(1)), "");
    }

    #[test]
    fn variables() {
        assert_eq!(variable("A=b=c"), Ok(("A".into(), "b=c".into())));
        assert_eq!(variable("A="), Ok(("A".into(), String::new())));
        assert!(variable("A").is_err() && variable("=b").is_err() && variable("LD_PRELOAD=x").is_err());
    }
}
