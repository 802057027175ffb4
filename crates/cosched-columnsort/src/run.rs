//! A sort from the input to the output: opens the files, runs the passes one after the other, and reports on them.

use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Instant;

use cosched_pipeline::file::{BlockFile, Caching, Engine, FileError, IoOptions, Output, OutputOptions};
use cosched_pipeline::{BoxError, Failure, Kind, Options, Report};

use crate::passes::{Context, Files, graph};
use crate::peers::Peers;
use crate::plan::Plan;

/// What to sort, and how.
#[derive(Debug, Clone)]
pub struct Job {
    /// The file of records. It is only read.
    pub input: PathBuf,
    /// The file to which the sorted records are written.
    pub output: PathBuf,
    /// The directory of working files; None: that of the output, and with a single process the output itself is the working file.
    pub temp: Option<PathBuf>,
    /// The matrix, memory, and numbers of buffers.
    pub plan: Plan,
    /// How files are read and written.
    pub io: IoOptions,
    /// Whether columns are sorted on workers or on threads of their own.
    pub kind: Kind,
    /// Sync the output to the disk.
    pub sync: bool,
    /// How the pipelines run.
    pub options: Options,
}

/// The results of a sort.
#[derive(Debug)]
pub struct Outcome {
    /// A report for each pass.
    pub passes: Vec<Report>,
    /// The time from opening the first file until the output has its name, in seconds.
    pub elapsed_s: f64,
    /// Why the bytes of the input or of the output went through the page cache, if all of them did.
    pub why_buffered: Option<String>,
}

/// Why a sort failed. The input is unchanged, and nothing is left of the output and of working files.
#[derive(Debug, thiserror::Error)]
pub enum SortError {
    /// An error of a file.
    #[error(transparent)]
    File(#[from] FileError),
    /// A pass failed.
    #[error(transparent)]
    Pass(#[from] Failure),
    /// The length of the input is not the one in the plan.
    #[error("the input has {now_bytes} bytes, but the plan is for {planned_bytes}")]
    Changed {
        /// Its length now.
        now_bytes: u64,
        /// The length in the plan.
        planned_bytes: u64,
    },
    /// An error of the communication with the other processes.
    #[error("the processes of the sort do not reach each other: {0}")]
    Peers(BoxError),
}

/// The output file: created by this process, or shared by the first one.
enum Target {
    Own(Output),
    /// The first process gives it its name.
    Shared(Arc<BlockFile>),
}

impl Job {
    fn caching(&self) -> Caching {
        self.io.engine.map_or(Caching::Direct, Engine::caching)
    }

    /// Opens the input, and checks that it matches the plan.
    fn open_input(&self) -> Result<Arc<BlockFile>, SortError> {
        let input = BlockFile::open(&self.input, self.caching())?;
        let planned_bytes = self.plan.output_bytes;
        match input.len() == planned_bytes {
            true => Ok(Arc::new(input)),
            false => Err(SortError::Changed { now_bytes: input.len(), planned_bytes }),
        }
    }

    /// The first process creates the output, the others open it.
    fn open_output(&self, peers: Option<&dyn Peers>, named: impl Fn(&Path)) -> Result<Target, SortError> {
        let Some(peers) = peers else { return Ok(Target::Own(self.create_output(false)?)) };
        match self.share_unnamed(peers)? {
            Some(target) => Ok(target),
            None => self.share_named(peers, named),
        }
    }

    /// On one machine the others can open a file without a name by the first process's descriptor. None if one of them cannot.
    fn share_unnamed(&self, peers: &dyn Peers) -> Result<Option<Target>, SortError> {
        let own = if peers.rank() == 0 { Some(self.create_output(false)?) } else { None };
        let path =
            own.as_ref().map(|own| format!("/proc/{}/fd/{}", std::process::id(), own.file().as_fd().as_raw_fd()));
        let place = share_path(peers, path.as_deref().map(Path::new)).map_err(SortError::Peers)?;
        // On another machine the same process ID may belong to a different process.
        let mine = identity(&place).map(|(device, inode)| [device.to_le_bytes(), inode.to_le_bytes()].concat());
        let mut first = mine.clone().unwrap_or_else(|| vec![0; 16]);
        peers.broadcast(&mut first).map_err(SortError::Peers)?;
        let target = match own {
            Some(own) => (own.temporary().is_none() && mine.is_some()).then_some(Target::Own(own)),
            None if mine.as_ref() != Some(&first) => None,
            None => BlockFile::open_update(&place, self.caching()).ok().map(|file| Target::Shared(Arc::new(file))),
        };
        let without = peers.sum(u64::from(target.is_none())).map_err(SortError::Peers)?;
        Ok(target.filter(|_| without == 0))
    }

    /// Otherwise the output gets a temporary name, which all can open.
    fn share_named(&self, peers: &dyn Peers, named: impl Fn(&Path)) -> Result<Target, SortError> {
        if peers.rank() > 0 {
            let path = share_path(peers, None).map_err(SortError::Peers)?;
            return Ok(Target::Shared(Arc::new(BlockFile::open_update(&path, self.caching())?)));
        }
        let output = self.create_output(true)?;
        let path = output.temporary().map(Path::to_path_buf).unwrap_or_default();
        named(&path);
        share_path(peers, Some(&path)).map_err(SortError::Peers)?;
        Ok(Target::Own(output))
    }

    fn create_output(&self, named: bool) -> Result<Output, SortError> {
        let options =
            OutputOptions { caching: self.caching(), inputs: vec![self.input.clone()], named, sync: self.sync };
        let mut output = Output::create(&self.output, &options)?;
        output.reserve(self.plan.output_bytes)?;
        Ok(output)
    }

    /// Opens a working file of this process; if possible, that is the output itself.
    fn open_working(&self, target: &mut Target, alone: bool) -> Result<Arc<BlockFile>, SortError> {
        if let (Target::Own(output), true, None) = (&mut *target, alone, &self.temp) {
            output.reserve(self.plan.working_bytes)?;
            return Ok(output.file().clone());
        }
        let beside = self.output.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let working = BlockFile::scratch(self.temp.as_deref().unwrap_or(beside), self.caching())?;
        working.reserve(0, self.plan.working_bytes)?;
        Ok(Arc::new(working))
    }

    /// Runs the sort. `done_bytes` counts the bytes of all passes while they run; `named` is called with the output's temporary
    /// name, if it has one.
    ///
    /// # Errors
    /// What failed. If there are other processes, they have to be aborted ([`Peers::abort`]), because they may wait for this one.
    pub fn run(
        &self,
        peers: Option<Arc<dyn Peers>>,
        done_bytes: Arc<AtomicU64>,
        named: impl Fn(&Path),
    ) -> Result<Outcome, SortError> {
        let begin = Instant::now();
        let input = self.open_input()?;
        let mut target = self.open_output(peers.as_deref(), named)?;
        let working = self.open_working(&mut target, peers.is_none())?;
        let output = match &target {
            Target::Own(output) => output.file().clone(),
            Target::Shared(file) => file.clone(),
        };
        let why_buffered = input.why_buffered().or(output.why_buffered()).map(Into::into);
        let context = Arc::new(Context {
            plan: self.plan.clone(),
            layout: self.plan.layout(),
            files: Files { input: input.clone(), working, output },
            io: self.io.clone(),
            peers: peers.clone(),
            kind: self.kind,
            done_bytes,
        });
        let mut passes = Vec::new();
        for pass in self.plan.pass_list {
            passes.push(graph(&context, *pass).run(&self.options)?);
            // The working files of a pass are complete when all processes have written.
            if let Some(peers) = &peers {
                peers.barrier().map_err(SortError::Peers)?;
            }
        }
        input.check_unchanged()?;
        if let Target::Own(output) = target {
            output.publish(self.plan.output_bytes)?;
        }
        Ok(Outcome { passes, elapsed_s: begin.elapsed().as_secs_f64(), why_buffered })
    }
}

/// Device and inode of the file at a path.
fn identity(path: &Path) -> Option<(u64, u64)> {
    let meta = std::fs::metadata(path).ok()?;
    Some((meta.dev(), meta.ino()))
}

/// Sends the first process's path to all.
fn share_path(peers: &dyn Peers, path: Option<&Path>) -> Result<PathBuf, BoxError> {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let mut bytes = vec![0; 4096];
    if let Some(path) = path {
        let name = path.as_os_str().as_bytes();
        let place = bytes.get_mut(..name.len()).ok_or("the output's path is too long")?;
        place.copy_from_slice(name);
    }
    peers.broadcast(&mut bytes)?;
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    bytes.truncate(end);
    Ok(std::ffi::OsString::from_vec(bytes).into())
}
