//! `cosched shim`: scripts named like the MPI launchers. If a test suite or script calls mpiexec itself, each call becomes a job.

use crate::context::Context;
use crate::out::{EXIT_REFUSED, Failure, print, print_json};
use crate::run::carry::JOB;
use crate::run::{Run, find_program};
use crate::target::Target;
use clap::{Args, Parser};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

#[derive(Args, Debug)]
#[command(after_help = crate::commands::help::SHIM)]
pub(crate) struct Shim {
    /// The directory to write them to; put it first on PATH
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,

    /// Commands to run as jobs [default: every MPI launcher on PATH]
    #[arg(value_name = "NAME")]
    names: Vec<String>,

    /// Options of `cosched run` for these jobs
    #[arg(last = true, value_name = "OPTION")]
    options: Vec<OsString>,
}

/// The names of launchers in Open MPI, MPICH, their packages in Debian, and PRRTE.
const LAUNCHERS: [&str; 10] = [
    "mpiexec",
    "mpirun",
    "mpiexec.hydra",
    "mpiexec.mpich",
    "mpirun.mpich",
    "mpiexec.openmpi",
    "mpirun.openmpi",
    "orterun",
    "prterun",
    "prun",
];

/// Marks the scripts that this command created. A file without it is not overwritten.
const MARK: &str = "# Made by `cosched shim`";

/// `cosched shim`.
pub(crate) fn shim(context: &Context, options: &Shim) -> Result<u8, Failure> {
    check_options(&options.options)?;
    let failed = |e: io::Error| Failure::other(format!("cannot write to {}: {e}", options.dir.display()));
    std::fs::create_dir_all(&options.dir).map_err(failed)?;
    let dir = options.dir.canonicalize().map_err(failed)?;
    let names = names(&options.names, &dir)?;
    let own = std::env::current_exe().map_err(|e| Failure::other(format!("where this command is: {e}")))?;
    let mut words: Vec<OsString> = vec![own.into()];
    if let Some(socket) = &context.socket {
        words.extend(["--socket".into(), socket.clone().into()]);
    }
    words.push("run".into());
    words.extend_from_slice(&options.options);
    let command = words.iter().map(|word| quoted(word)).collect::<Result<Vec<_>, _>>()?.join(" ");
    for name in &names {
        write(&dir.join(name), &script(&quoted(name.as_ref())?, &command))?;
    }
    tell(context, &dir, &names)
}

/// The words of `cosched run`.
#[derive(Debug, Parser)]
#[command(name = "cosched run")]
struct RunWords {
    #[command(flatten)]
    run: Run,
}

/// Invalid options are reported now, not at each call.
fn check_options(options: &[OsString]) -> Result<(), Failure> {
    let words = ["cosched run".into()].into_iter().chain(options.iter().cloned()).chain(["true".into()]);
    let words = RunWords::try_parse_from(words).map_err(|e| Failure { code: EXIT_REFUSED, message: e.to_string() })?;
    if words.run.command != ["true"] {
        let command = words.run.command[0].display().to_string();
        return Err(refused(
            "these are not options of `cosched run` alone",
            &format!("{command:?} is none"),
            "write names of commands before `--`",
        ));
    }
    Ok(())
}

fn refused(what: &str, why: &str, hint: &str) -> Failure {
    Failure::explained(EXIT_REFUSED, what, why, hint)
}

/// The requested names, or those of the launchers on PATH, except in the directory itself.
fn names(asked: &[String], dir: &Path) -> Result<Vec<String>, Failure> {
    if let Some(bad) = asked.iter().find(|name| name.is_empty() || name.contains('/') || name.as_str() == "cosched") {
        return Err(refused(
            &format!("{bad:?} cannot be a job by its name"),
            "it is not the name of another command",
            "give names as mpiexec",
        ));
    }
    if !asked.is_empty() {
        return Ok(asked.to_vec());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let others = std::env::split_paths(&path).filter(|part| part.canonicalize().ok().as_deref() != Some(dir));
    // Parts of a PATH contain no colon.
    let others = std::env::join_paths(others).unwrap_or_default();
    let there = |name: &&&str| find_program(name.as_ref(), Some(others.clone())).is_ok();
    let found: Vec<String> = LAUNCHERS.iter().filter(there).map(|name| (*name).to_owned()).collect();
    if found.is_empty() {
        let why = format!("none of {} is on PATH", LAUNCHERS.join(", "));
        return Err(refused(
            "no MPI launcher was found",
            &why,
            "install one, or name the commands that are to be jobs",
        ));
    }
    Ok(found)
}

/// Quotes a word for a shell.
fn quoted(word: &OsStr) -> Result<String, Failure> {
    let text = word
        .to_str()
        .ok_or_else(|| refused(&format!("{word:?} is not UTF-8"), "a script cannot hold it", "use another name"))?;
    Ok(format!("'{}'", text.replace('\'', r"'\''")))
}

/// The script for a command; both arguments are quoted for a shell. Inside a job it runs the real command, whose ranks belong to
/// that job. It recognises itself by its inode, however PATH spells the directory.
fn script(name: &str, command: &str) -> String {
    format!(
        r#"#!/bin/sh
{MARK}: each call is a job. With COSCHED_SHIM=off in the environment, or inside a job, it runs the command itself.
name={name}
real=
set -f
IFS=:
for part in $PATH; do
    if [ -f "$part/$name" ] && [ -x "$part/$name" ] && ! [ "$part/$name" -ef "$0" ]; then
        real=$part/$name
        break
    fi
done
unset IFS
set +f
if [ -z "$real" ]; then
    echo "$name: not found on PATH, except for $0, which \`cosched shim\` made" >&2
    exit 127
fi
if [ "$COSCHED_SHIM" = off ] || [ -n "${JOB}" ]; then exec "$real" "$@"; fi
exec {command} -- "$real" "$@"
"#
    )
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let failed = |e: io::Error| Failure::other(format!("cannot write {}: {e}", path.display()));
    match std::fs::read(path) {
        Ok(before) if !before.windows(MARK.len()).any(|part| part == MARK.as_bytes()) => {
            let what = format!("{} is not replaced", path.display());
            return Err(refused(&what, "`cosched shim` did not make it", "name a directory of its own"));
        }
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(failed(e)),
        _ => {}
    }
    // A concurrent call finds the whole old script or the whole new one.
    Target::or_hint(path, "name another directory")?.write_script(text)
}

fn tell(context: &Context, dir: &Path, names: &[String]) -> Result<u8, Failure> {
    if context.json {
        print_json(&serde_json::json!({ "dir": dir, "names": names }))?;
    } else {
        let dir = dir.display();
        print(&format!(
            "{}: each call is a job where this directory is the first one of PATH:\n  PATH={dir}:$PATH\n",
            names.join(", ")
        ))?;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(words: &[&str]) -> Result<(), Failure> {
        check_options(&words.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn options_of_run_are_checked_at_once() {
        assert!(options(&[]).is_ok() && options(&["--class", "batch", "-n", "2"]).is_ok());
        assert!(options(&["--class", "bacth"]).unwrap_err().message.contains("'batch'"));
        assert!(options(&["mpiexec"]).unwrap_err().message.contains("\"mpiexec\" is none"));
    }

    #[test]
    fn names_are_names() {
        let dir = Path::new("/");
        assert_eq!(names(&["lmp".to_owned()], dir).unwrap(), ["lmp"]);
        for bad in ["", "a/b", "cosched"] {
            assert!(names(&[bad.to_owned()], dir).unwrap_err().message.contains("cannot be a job"), "{bad}");
        }
    }

    #[test]
    fn what_somebody_else_wrote_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("mpiexec");
        std::fs::write(&path, "#!/bin/sh\n").unwrap();
        assert!(write(&path, "new").unwrap_err().message.contains("did not make it"));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "#!/bin/sh\n");
        std::fs::remove_file(&path).unwrap();
        write(&path, &script("mpiexec", "'cosched' 'run'")).unwrap();
        write(&path, &script("mpiexec", "'cosched' 'run' '-n' '2'")).unwrap();
        assert!(std::fs::read_to_string(&path).unwrap().contains("exec 'cosched' 'run' '-n' '2' -- \"$real\""));
        assert!(find_program(path.as_os_str(), None).is_ok());
    }
}
