//! Which file a command is, as a shell finds it.

use super::{EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND};
use crate::out::Failure;
use cosched_api::parse::nearest;
use rustix::fs::Access;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

enum Found {
    Executable,
    NotExecutable(&'static str),
    Nothing,
}

/// The file of the command `name`, from `path` (the value of `$PATH`) unless it contains a slash.
pub(crate) fn find_program(name: &OsStr, path: Option<OsString>) -> Result<PathBuf, Failure> {
    let shown = name.to_string_lossy();
    if name.as_bytes().contains(&b'/') {
        return match look(Path::new(name)) {
            Found::Executable => Ok(name.into()),
            Found::NotExecutable(why) => Err(not_executable(&shown, why)),
            Found::Nothing => {
                let hint = if shown.contains(' ') {
                    "it is one word with blanks: leave the quotes out"
                } else {
                    "check the path; it is relative to the working directory unless it begins with /"
                };
                Err(Failure::explained(EXIT_NOT_FOUND, &format!("{shown}: not found"), "no such file", hint))
            }
        };
    }
    let directories = path.unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    let mut blocked = None;
    for directory in std::env::split_paths(&directories) {
        let candidate = directory.join(name);
        match look(&candidate) {
            Found::Executable if !name.is_empty() => return Ok(candidate),
            Found::NotExecutable(why) if !name.is_empty() => blocked = Some((candidate, why)),
            _ => {}
        }
    }
    match blocked {
        Some((candidate, why)) => Err(not_executable(&candidate.display().to_string(), why)),
        None => Err(not_in_path(name, &directories)),
    }
}

fn look(file: &Path) -> Found {
    match file.metadata() {
        Err(_) => Found::Nothing,
        Ok(meta) if meta.is_dir() => Found::NotExecutable("it is a directory"),
        Ok(_) => match rustix::fs::access(file, Access::EXEC_OK) {
            Ok(()) => Found::Executable,
            Err(_) => Found::NotExecutable("this user has no permission to execute it"),
        },
    }
}

fn not_executable(shown: &str, why: &str) -> Failure {
    Failure::explained(
        EXIT_NOT_EXECUTABLE,
        &format!("{shown}: cannot be executed"),
        why,
        "name a program, or make it executable: chmod +x",
    )
}

fn not_in_path(name: &OsStr, directories: &OsString) -> Failure {
    let shown = name.to_string_lossy();
    let first = shown.split_whitespace().next().filter(|first| first.len() < shown.len());
    let hint = if first.is_some() {
        "it is one word with blanks: leave the quotes out, or write sh -c '…'".to_owned()
    } else if look(Path::new(name)).is_executable() {
        format!("it exists in the working directory: ./{shown}")
    } else {
        match similar(&shown, directories) {
            Some(near) => format!("did you mean `{near}`? Options of cosched come before the command"),
            None => "check the spelling, or give the path".into(),
        }
    };
    Failure::explained(EXIT_NOT_FOUND, &format!("{shown}: command not found"), "no directory in $PATH has it", &hint)
}

impl Found {
    fn is_executable(&self) -> bool {
        matches!(self, Found::Executable)
    }
}

fn similar(name: &str, directories: &OsString) -> Option<String> {
    let entries = std::env::split_paths(directories).filter_map(|dir| dir.read_dir().ok()).flatten().flatten();
    let names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    // Short names are similar to everything.
    if name.chars().count() < 4 { None } else { nearest(name, names.iter().map(String::as_str)).map(str::to_owned) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn finds_what_a_shell_finds_and_says_why_not() {
        let dir = tempfile::tempdir().unwrap();
        let (first, second) = (dir.path().join("first"), dir.path().join("second"));
        for (place, name, mode) in [(&first, "tool", 0o644), (&second, "tool", 0o755), (&first, "data", 0o644)] {
            fs::create_dir_all(place).unwrap();
            fs::write(place.join(name), "").unwrap();
            fs::set_permissions(place.join(name), fs::Permissions::from_mode(mode)).unwrap();
        }
        let path = std::env::join_paths([&first, &second]).unwrap();
        let find = |name: &str| find_program(OsStr::new(name), Some(path.clone()));
        assert_eq!(find("tool").unwrap(), second.join("tool"));
        assert_eq!(find("data").unwrap_err().code, 126);
        let missing = find("toll").unwrap_err();
        assert_eq!(missing.code, 127);
        assert!(missing.message.contains("did you mean `tool`?"), "{}", missing.message);
        assert_eq!(find("").unwrap_err().code, 127);
        for quoted in ["tool -n 2", "./tool -n 2"] {
            assert!(find(quoted).unwrap_err().message.contains("leave the quotes out"), "{quoted}");
        }
        assert_eq!(find(first.to_str().unwrap()).unwrap_err().code, 126);
        assert_eq!(find(first.join("x").to_str().unwrap()).unwrap_err().code, 127);
        assert_eq!(find(second.join("tool").to_str().unwrap()).unwrap(), second.join("tool"));
    }
}
