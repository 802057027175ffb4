//! Several processes with MPI, without linking against it.
//!
//! The environment shows which MPI implementation's launcher started this process; a small library for that implementation
//! (`programs/columnsort_mpi.c`) is then loaded, which brings MPI with it.

mod load;

use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use load::Mpi;

/// Why MPI cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum NoMpi {
    /// The launcher is known, but the library for it was not found.
    #[error("{launcher} started {size} processes, but {library} is not in: {}", looked.iter().map(|p| p.display().to_string()).collect::<Vec<_>>().join(", "))]
    Missing {
        /// The MPI implementation of the launcher.
        launcher: &'static str,
        /// The number of processes, according to the launcher.
        size: u64,
        /// The file's name.
        library: &'static str,
        /// The places that were searched.
        looked: Vec<PathBuf>,
    },
    /// The library cannot be loaded, or is a different one.
    #[error("{path} cannot be used: {why}", path = path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// MPI does not start.
    #[error("MPI does not start: {0}")]
    Start(String),
}

/// A launcher and the variables that it sets in the environment of the processes that it starts.
struct Launcher {
    name: &'static str,
    size: &'static str,
    library: &'static str,
}

const LAUNCHERS: [Launcher; 2] = [
    Launcher { name: "Open MPI", size: "OMPI_COMM_WORLD_SIZE", library: "libcosched_mpi_openmpi.so" },
    // Hydra's variable, which MPICH's derivatives use too.
    Launcher { name: "MPICH", size: "PMI_SIZE", library: "libcosched_mpi_mpich.so" },
];

/// Connects to the processes that were started together with this one; None if it is alone. `wanted` is a library to load, or "none".
///
/// # Errors
/// If other processes were started, but MPI cannot be used.
pub fn connect(wanted: Option<&Path>) -> Result<Option<Arc<Mpi>>, NoMpi> {
    if wanted.is_some_and(|wanted| wanted.as_os_str() == "none") {
        return Ok(None);
    }
    if let Some(path) = wanted {
        return start(path).map(Some);
    }
    for launcher in &LAUNCHERS {
        let size = std::env::var(launcher.size).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
        if size > 1 {
            let looked = places(launcher.library);
            let found = looked.iter().find(|path| path.exists()).cloned();
            let missing = || NoMpi::Missing { launcher: launcher.name, size, library: launcher.library, looked };
            return start(&found.ok_or_else(missing)?).map(Some);
        }
    }
    Ok(None)
}

/// The candidate paths: next to the program, where it is installed, and where `make programs` builds it.
fn places(library: &str) -> Vec<PathBuf> {
    let program = std::env::current_exe().unwrap_or_default();
    let above = |levels| program.ancestors().nth(levels).map(Path::to_path_buf).unwrap_or_default();
    vec![
        above(1).join(library),
        above(2).join("lib/cosched").join(library),
        above(3).join("build/programs").join(library),
    ]
}

fn start(path: &Path) -> Result<Arc<Mpi>, NoMpi> {
    let mut mpi = Mpi::load(path).map_err(|why| NoMpi::Unusable { path: path.into(), why })?;
    mpi.start().map_err(NoMpi::Start)?;
    Ok(Arc::new(mpi))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_such_library_is_refused() {
        let Err(NoMpi::Unusable { .. }) = connect(Some(Path::new("/nowhere/lib.so"))) else { panic!() };
        // A library that loads, but has none of the functions.
        let Err(NoMpi::Unusable { why, .. }) = connect(Some(Path::new("libc.so.6"))) else { panic!() };
        assert!(why.contains("cosched_mpi_interface"), "{why}");
        assert!(connect(Some(Path::new("none"))).unwrap().is_none());
    }
}
