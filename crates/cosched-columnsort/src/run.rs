//! A sort from the input to the output: files, passes one after the other, and what they were like.

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
    /// The records. They are only read.
    pub input: PathBuf,
    /// Where the sorted records go, at the end.
    pub output: PathBuf,
    /// Where working files are; none: beside the output, and as the output itself where one process sorts.
    pub temp: Option<PathBuf>,
    /// The matrix, and what there is of everything.
    pub plan: Plan,
    /// How files are read and written.
    pub io: IoOptions,
    /// Where columns are sorted: on workers or on threads of their own.
    pub kind: Kind,
    /// Wait until the output is on the disk.
    pub sync: bool,
    /// How the pipelines run.
    pub options: Options,
}

/// How a sort went.
#[derive(Debug)]
pub struct Outcome {
    /// A report for each pass.
    pub passes: Vec<Report>,
    /// From the first open to the output's name, seconds.
    pub elapsed_s: f64,
    /// Why bytes of the input or of the output went through the page cache, where all of them did.
    pub why_buffered: Option<String>,
}

/// Why a sort failed. The input is as it was, and nothing is left of the output and of working files.
#[derive(Debug, thiserror::Error)]
pub enum SortError {
    /// A file.
    #[error(transparent)]
    File(#[from] FileError),
    /// A pass.
    #[error(transparent)]
    Pass(#[from] Failure),
    /// The input has another length than the plan says.
    #[error("the input has {now_bytes} bytes, but the plan is for {planned_bytes}")]
    Changed {
        /// What it has.
        now_bytes: u64,
        /// What it should have.
        planned_bytes: u64,
    },
    /// The other processes.
    #[error("the processes of the sort do not reach each other: {0}")]
    Peers(BoxError),
}

/// The output, or another process's.
enum Target {
    Own(Output),
    /// The first process gives it its name.
    Shared(Arc<BlockFile>),
}

impl Job {
    fn caching(&self) -> Caching {
        self.io.engine.map_or(Caching::Direct, Engine::caching)
    }

    /// Opens the input, and makes sure that it is what the plan is for.
    fn open_input(&self) -> Result<Arc<BlockFile>, SortError> {
        let input = BlockFile::open(&self.input, self.caching())?;
        let planned_bytes = self.plan.output_bytes;
        match input.len() == planned_bytes {
            true => Ok(Arc::new(input)),
            false => Err(SortError::Changed { now_bytes: input.len(), planned_bytes }),
        }
    }

    /// The first process makes the output, the others open it.
    fn open_output(&self, peers: Option<&dyn Peers>, named: impl Fn(&Path)) -> Result<Target, SortError> {
        let Some(peers) = peers else { return Ok(Target::Own(self.create_output(false)?)) };
        match self.share_unnamed(peers)? {
            Some(target) => Ok(target),
            None => self.share_named(peers, named),
        }
    }

    /// On one machine the others reach a file without a name by the first one's descriptor. None if one of them cannot.
    fn share_unnamed(&self, peers: &dyn Peers) -> Result<Option<Target>, SortError> {
        let own = if peers.rank() == 0 { Some(self.create_output(false)?) } else { None };
        let path =
            own.as_ref().map(|own| format!("/proc/{}/fd/{}", std::process::id(), own.file().as_fd().as_raw_fd()));
        let place = share_path(peers, path.as_deref().map(Path::new)).map_err(SortError::Peers)?;
        // Elsewhere the same number may be another process's.
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

    /// Otherwise it has a name that all can open.
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

    /// A working file of this process; the output serves where it can.
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

    /// Sorts. `done_bytes` counts the bytes of all passes while they go; `named` is told the output's name where it has one before
    /// it is complete.
    ///
    /// # Errors
    /// What failed. Where there are other processes they are to be told ([`Peers::abort`]): they may wait for this one.
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
            // Working files of a pass are complete when all processes have written.
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

/// Which file a path leads to.
fn identity(path: &Path) -> Option<(u64, u64)> {
    let meta = std::fs::metadata(path).ok()?;
    Some((meta.dev(), meta.ino()))
}

/// The first process's path, for all.
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
