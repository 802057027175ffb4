//! The directory into which the ranks write. It is removed when the command has ended.

use crate::out::Failure;
use crate::run::EXIT_FAILED;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// A directory of our own.
#[derive(Debug)]
pub(super) struct Scratch(PathBuf);

impl Scratch {
    /// Makes one in `base`, or where temporary files go.
    pub(super) fn make(base: Option<&Path>) -> Result<Scratch, Failure> {
        let base = base.map_or_else(std::env::temp_dir, Path::to_path_buf);
        let failed = |e: std::io::Error| {
            let what = format!("cannot make a directory in {}", base.display());
            Failure::explained(EXIT_FAILED, &what, &e.to_string(), "name an existing directory: --scratch DIR")
        };
        // The processes may have another working directory.
        let base = base.canonicalize().map_err(failed)?;
        for number in 0.. {
            let path = base.join(format!("cosched-record-{}-{number}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Scratch(path)),
                // An earlier process with the same number may have left one.
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(failed(e)),
            }
        }
        Err(Failure::silent(EXIT_FAILED))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
