//! Several processes with MPI, without linking against it.
//!
//! The environment shows which MPI implementation's launcher started this process; a small library for that implementation
//! (`programs/columnsort_mpi.c`) is then loaded, which brings MPI with it.

mod load;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cosched_pipeline::BoxError;

use crate::peers::{Parts, Peers};
use load::Library;

/// The processes that `mpirun` started.
pub struct Mpi {
    library: Library,
    rank: u64,
    size: u64,
}

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
    let library = Library::load(path).map_err(|why| NoMpi::Unusable { path: path.into(), why })?;
    let (rank, size) = library.init().map_err(NoMpi::Start)?;
    Ok(Arc::new(Mpi { library, rank, size }))
}

impl Mpi {
    /// Ends MPI, when all processes are done.
    pub fn finish(&self) {
        self.library.finalize();
    }
}

impl Peers for Mpi {
    fn rank(&self) -> u64 {
        self.rank
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn all_to_all(&self, send: &[u8], sent: &Parts, receive: &mut [u8], received: &Parts) -> Result<(), BoxError> {
        check(sent, send.len(), self.size)?;
        check(received, receive.len(), self.size)?;
        self.library.all_to_all(send, sent, receive, received).map_err(Into::into)
    }

    fn send_receive(&self, send: &[u8], to: u64, receive: &mut [u8], from: u64) -> Result<(), BoxError> {
        self.library.send_receive(send, to as i32, receive, from as i32).map_err(Into::into)
    }

    fn barrier(&self) -> Result<(), BoxError> {
        self.library.barrier().map_err(Into::into)
    }

    fn broadcast(&self, bytes: &mut [u8]) -> Result<(), BoxError> {
        self.library.broadcast(bytes).map_err(Into::into)
    }

    fn sum(&self, value: u64) -> Result<u64, BoxError> {
        self.library.sum(value).map_err(Into::into)
    }

    fn abort(&self, code: i32) {
        self.library.abort(code);
    }
}

/// Checks that there is one part for each process, each inside the buffer: MPI would access memory outside without an error.
fn check(parts: &Parts, len: usize, size: u64) -> Result<(), String> {
    if parts.len() as u64 != size {
        return Err(format!("{} parts for {size} processes", parts.len()));
    }
    match parts.iter().find(|(at, bytes)| *bytes > 0 && at.checked_add(*bytes).is_none_or(|end| end > len)) {
        None => Ok(()),
        Some((at, bytes)) => Err(format!("{bytes} bytes at {at} are not in a buffer of {len}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_to_be_inside() {
        assert!(check(&vec![(0, 5), (5, 5)], 10, 2).is_ok());
        assert!(check(&vec![(0, 5), (90, 0)], 10, 2).is_ok());
        assert!(check(&vec![(0, 5)], 10, 2).is_err());
        assert!(check(&vec![(0, 5), (6, 5)], 10, 2).is_err());
        assert!(check(&vec![(0, 5), (usize::MAX, 5)], 10, 2).is_err());
    }

    #[test]
    fn what_is_no_such_library_is_refused() {
        let Err(NoMpi::Unusable { .. }) = connect(Some(Path::new("/nowhere/lib.so"))) else { panic!() };
        // A library that loads, but has none of the functions.
        let Err(NoMpi::Unusable { why, .. }) = connect(Some(Path::new("libc.so.6"))) else { panic!() };
        assert!(why.contains("cosched_mpi_interface"), "{why}");
        assert!(connect(Some(Path::new("none"))).unwrap().is_none());
    }
}
