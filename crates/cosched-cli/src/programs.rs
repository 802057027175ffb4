//! The parallel programs that come with cosched, and the launcher of the MPI with which they are built.

use crate::run::find_program;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

/// An `mpirun`.
#[derive(Clone, Debug)]
pub(crate) struct Launcher {
    pub(crate) path: PathBuf,
    pub(crate) is_openmpi: bool,
}

impl Launcher {
    /// The words that start `processes` ranks, to be put before the program's words, and the environment that they
    /// need.
    pub(crate) fn start(&self, processes: usize) -> (Vec<OsString>, Vec<(&'static str, &'static str)>) {
        let mut start: Vec<OsString> = vec![self.path.clone().into(), "-n".into(), processes.to_string().into()];
        let mut environment = Vec::new();
        if self.is_openmpi {
            // Allows several jobs on the same CPUs, and does not bind all jobs to the same CPUs.
            start.extend(["--oversubscribe", "--bind-to", "none"].map(OsString::from));
            if rustix::process::getuid().is_root() {
                environment = vec![("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")];
            }
        }
        (start, environment)
    }
}

/// The named one, else `$COSCHED_MPIRUN`, else Open MPI's, with which the programs are built, else any.
pub(crate) fn mpirun(named: Option<&OsStr>) -> Option<Launcher> {
    let named = named.map(OsStr::to_owned);
    let named = named.or_else(|| std::env::var_os("COSCHED_MPIRUN").filter(|value| !value.is_empty()));
    let candidates = named.map_or_else(|| vec!["mpirun.openmpi".into(), "mpirun".into()], |named| vec![named]);
    candidates.into_iter().find_map(|name| {
        let path = find_program(&name, std::env::var_os("PATH")).ok()?;
        let output = Command::new(&path).arg("--version").output().ok().filter(|output| output.status.success())?;
        let text = String::from_utf8_lossy(&output.stdout);
        Some(Launcher { path, is_openmpi: text.contains("Open MPI") || text.contains("OpenRTE") })
    })
}

/// Where programs are searched for: only in the named directory if there is one, else beside an installed cosched or in
/// the build tree.
pub(crate) fn directories() -> Vec<PathBuf> {
    if let Some(named) = std::env::var_os("COSCHED_PROGRAMS").filter(|value| !value.is_empty()) {
        return vec![named.into()];
    }
    let executable = std::env::current_exe().ok();
    let beside = executable.as_deref().and_then(Path::parent).map(|directory| {
        let relative = ["programs", "../libexec/cosched/programs", "../lib/cosched/programs", "../../build/programs"];
        relative.map(|name| directory.join(name))
    });
    beside.into_iter().flatten().collect()
}

/// The first file of that name in them.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    directories().into_iter().map(|directory| directory.join(name)).find(|path| path.is_file())
}
