//! Runs the program in a directory of its own, with a time limit.

use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_cosched-columnsort");

/// A temporary directory for one test.
pub(crate) struct Place(tempfile::TempDir);

impl Place {
    pub(crate) fn new() -> Place {
        Place(tempfile::Builder::new().prefix("cst-columnsort-").tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The names of the files in it.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// The program with arguments, in this directory.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(args);
        self.here(command)
    }

    /// Prepares another program to run in this directory.
    pub(crate) fn here(&self, mut command: Command) -> Command {
        command.current_dir(self.0.path()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Output {
        finish(self.command(args))
    }

    /// Runs it with --json, and expects success.
    pub(crate) fn json(&self, args: &[&str]) -> serde_json::Value {
        let args: Vec<&str> = args.iter().copied().chain(["--json"]).collect();
        serde_json::from_str(&done(self.run(&args))).unwrap()
    }
}

/// Runs a command until it ends, at most a minute.
pub(crate) fn finish(mut command: Command) -> Output {
    let child = command.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    finish_child(child)
}

/// Waits for the end, at most a minute, and collects the output.
pub(crate) fn finish_child(mut child: Child) -> Output {
    let (stdout, stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let read = |mut from: Box<dyn Read + Send>| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = from.read_to_end(&mut bytes);
            bytes
        })
    };
    let (out, err) = (read(Box::new(stdout)), read(Box::new(stderr)));
    let begin = Instant::now();
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if begin.elapsed() > Duration::from_secs(60) => {
                let _ = child.kill();
                panic!("no end within a minute");
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    Output { status, stdout: out.join().unwrap(), stderr: err.join().unwrap() }
}

/// The output of a command that succeeded.
pub(crate) fn done(output: Output) -> String {
    assert!(output.status.success(), "{:?}: {}", output.status, String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The error message of a command that ended with this code.
pub(crate) fn refused(output: Output, code: i32) -> String {
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{message}");
    assert!(output.stdout.is_empty());
    message
}

/// Reports that this machine cannot run a test, and why.
pub(crate) fn skipped(why: &str) {
    println!("SKIPPED: {why}");
}

/// Whether tests may mount file systems and create cgroups.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whether a program is in the PATH.
pub(crate) fn has(program: &str) -> bool {
    std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).any(|dir| dir.join(program).exists())
}

/// Whether a process has a file without a name open: its output or working file.
pub(crate) fn has_unnamed_file(pid: u32) -> bool {
    let Ok(open) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    open.flatten().filter_map(|entry| std::fs::read_link(entry.path()).ok()).any(|to| {
        let to = to.to_string_lossy();
        to.contains("cst-columnsort") && to.contains("deleted")
    })
}
