//! Files that a command writes: replaced in one step at the end, after a check that they can be.

use crate::out::Failure;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Where a result goes.
pub(crate) struct Target {
    path: PathBuf,
    /// A file beside it; removed on drop. None for a device or a pipe, which is written to: a rename would take its place.
    partial: Option<PathBuf>,
    /// What to do when it cannot be written.
    hint: &'static str,
}

impl Target {
    /// Makes sure that the file can be written; its present contents stay until then.
    pub(crate) fn prepare(path: &Path) -> Result<Target, Failure> {
        Target::or_hint(path, "choose another place: -o FILE")
    }

    /// The same for a file that no `-o` names.
    pub(crate) fn or_hint(path: &Path, hint: &'static str) -> Result<Target, Failure> {
        let name = path.file_name().filter(|_| !path.is_dir());
        let name = name.ok_or_else(|| failed(path, "it is a directory, or has no name", hint))?;
        let is_replaced = fs::metadata(path).map_or(true, |found| found.is_file());
        let partial = format!(".{}.{}.partial", name.to_string_lossy(), std::process::id());
        let partial = is_replaced.then(|| path.with_file_name(partial));
        let target = Target { path: path.to_owned(), partial, hint };
        target.open().map_err(|error| failed(path, &error.to_string(), hint))?;
        Ok(target)
    }

    /// Replaces the file's contents with the text.
    pub(crate) fn write(self, text: &str) -> Result<(), Failure> {
        self.write_with(text, None)
    }

    /// The same, executable by all.
    pub(crate) fn write_script(self, text: &str) -> Result<(), Failure> {
        self.write_with(text, Some(0o755))
    }

    fn write_with(self, text: &str, mode: Option<u32>) -> Result<(), Failure> {
        let written = self.open().and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            if let Some(mode) = mode {
                file.set_permissions(fs::Permissions::from_mode(mode))?;
            }
            let Some(partial) = &self.partial else { return Ok(()) };
            file.sync_all()?;
            fs::rename(partial, &self.path)
        });
        written.map_err(|error| failed(&self.path, &error.to_string(), self.hint))
    }

    fn open(&self) -> std::io::Result<fs::File> {
        match &self.partial {
            Some(partial) => fs::File::create(partial),
            None => fs::File::options().write(true).open(&self.path),
        }
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if let Some(partial) = &self.partial {
            let _ = fs::remove_file(partial);
        }
    }
}

fn failed(path: &Path, why: &str, hint: &str) -> Failure {
    Failure::explained(1, &format!("cannot write {}", path.display()), why, hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_appears_whole_or_not_at_all() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("m.toml");
        fs::write(&path, "old").unwrap();
        drop(Target::prepare(&path).unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        Target::prepare(&path).unwrap().write("new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        Target::prepare(&path).unwrap().write_script("script").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o755);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1, "no partial file is left");
        assert!(Target::prepare(&place.path().join("no/m.toml")).is_err());
        assert!(Target::prepare(place.path()).is_err());
    }

    #[test]
    fn a_device_stays_one() {
        let place = tempfile::tempdir().unwrap();
        let link = place.path().join("null");
        std::os::unix::fs::symlink("/dev/null", &link).unwrap();
        Target::prepare(&link).unwrap().write("text").unwrap();
        assert!(link.is_symlink() && fs::read(&link).unwrap().is_empty());
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
    }
}
