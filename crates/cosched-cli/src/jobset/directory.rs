//! A directory of each job's own for what its launcher keeps of the session.
//!
//! Open MPI's launchers of one user share /tmp/ompi.HOST.UID: one that ends removes it under another that is about to
//! make its own part, and that one fails (`orte_session_dir failed`). Jobs that begin at the same moment meet this often.

use std::ffi::OsString;
use std::path::PathBuf;
use std::{env, fs};

/// Where Open MPI 4 and 5 look for the directory.
const VARIABLES: [&str; 2] = ["OMPI_MCA_orte_tmpdir_base", "PRTE_MCA_prte_tmpdir_base"];

/// Removed when this goes.
#[derive(Debug)]
pub(super) struct SessionDirectory(Option<PathBuf>);

impl SessionDirectory {
    /// Makes it. Without one the job runs as it would by itself.
    pub(super) fn make() -> SessionDirectory {
        // Short, because sockets are made in it.
        let path = env::temp_dir().join(format!("cosched-{}", std::process::id()));
        SessionDirectory(fs::create_dir(&path).ok().map(|()| path))
    }

    /// What the job's environment gets: nothing that the user has set.
    pub(super) fn environment(&self) -> impl Iterator<Item = (&'static str, OsString)> {
        let path = self.0.clone();
        let free = VARIABLES.into_iter().filter(|variable| env::var_os(variable).is_none());
        free.filter_map(move |variable| Some((variable, path.clone()?.into_os_string())))
    }
}

impl Drop for SessionDirectory {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            // What cannot be removed is the temporary directory's to keep.
            let _ = fs::remove_dir_all(path);
        }
    }
}
