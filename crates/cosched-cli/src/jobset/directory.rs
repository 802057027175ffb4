//! A separate directory for each job, for the session files of its launcher.
//!
//! Open MPI's launchers of one user share /tmp/ompi.HOST.UID: when one ends, it removes the directory while another is
//! about to create its own part in it, and that one fails (`orte_session_dir failed`). Jobs that begin at the same moment
//! often run into this.

use std::ffi::OsString;
use std::path::PathBuf;
use std::{env, fs};

/// Where Open MPI 4 and 5 look for the directory.
const VARIABLES: [&str; 2] = ["OMPI_MCA_orte_tmpdir_base", "PRTE_MCA_prte_tmpdir_base"];

/// Removed on drop.
#[derive(Debug)]
pub(super) struct SessionDirectory(Option<PathBuf>);

impl SessionDirectory {
    /// Creates the directory. If that fails, the job runs as it would without cosched.
    pub(super) fn make() -> SessionDirectory {
        // Short, because sockets are created in it.
        let path = env::temp_dir().join(format!("cosched-{}", std::process::id()));
        SessionDirectory(fs::create_dir(&path).ok().map(|()| path))
    }

    /// The variables for the job's environment; none that the user has set.
    pub(super) fn environment(&self) -> impl Iterator<Item = (&'static str, OsString)> {
        let path = self.0.clone();
        let free = VARIABLES.into_iter().filter(|variable| env::var_os(variable).is_none());
        free.filter_map(move |variable| Some((variable, path.clone()?.into_os_string())))
    }
}

impl Drop for SessionDirectory {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            // If it cannot be removed, it is left in the temporary directory.
            let _ = fs::remove_dir_all(path);
        }
    }
}
