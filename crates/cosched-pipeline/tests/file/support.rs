//! Helpers: a time limit for each test, files with known bytes, and pipelines that copy.

use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::Duration;

use cosched_pipeline::file::{Engine, IoOptions, IoReport, Sink, SinkOptions, Source, SourceOptions};
use cosched_pipeline::{Failure, Options, Pipeline, Report, Stage};

/// Far more than any of the tests takes: a test that needs longer hangs.
const PATIENCE: Duration = Duration::from_secs(20);

/// Runs a test on a separate thread; it fails if it hangs.
pub(crate) fn within<T: Send + 'static>(test: impl FnOnce() -> T + Send + 'static) -> T {
    let (tell, told) = channel();
    let thread = std::thread::spawn(move || tell.send(test()));
    match told.recv_timeout(PATIENCE) {
        Ok(result) => result,
        Err(std::sync::mpsc::RecvTimeoutError::Timeout) => panic!("it hangs: nothing after {PATIENCE:?}"),
        Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => match thread.join() {
            Err(panic) => std::panic::resume_unwind(panic),
            Ok(_) => unreachable!("it sends before it ends"),
        },
    }
}

pub(crate) fn scratch() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("cst-pipeline-").tempdir().unwrap()
}

/// Bytes that depend on their position.
pub(crate) fn pattern(len: usize) -> Vec<u8> {
    (0..len as u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

pub(crate) fn io(engine: Engine) -> IoOptions {
    IoOptions { engine: Some(engine), chunk_bytes: 8192, depth: 6, threads: 2 }
}

/// The names in a directory.
pub(crate) fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A copy of one file.
#[derive(Clone)]
pub(crate) struct Copy {
    pub(crate) from: PathBuf,
    pub(crate) to: PathBuf,
    pub(crate) io: IoOptions,
    pub(crate) buffers: usize,
    pub(crate) block: usize,
    pub(crate) record: usize,
    pub(crate) held_max: usize,
    pub(crate) expect: bool,
}

impl Copy {
    pub(crate) fn new(dir: &Path, engine: Engine) -> Copy {
        let (from, to) = (dir.join("from"), dir.join("to"));
        Copy { from, to, io: io(engine), buffers: 4, block: 16 << 10, record: 1, held_max: 16, expect: true }
    }

    /// Reads, passes each buffer through the middle stage, writes. Also returns how it was read and
    /// written.
    pub(crate) fn through(self, middle: Stage) -> Result<(Report, IoReport, IoReport), Failure> {
        let Copy { from, to, io, buffers, block, record, held_max, expect } = self;
        let options = SourceOptions { block_bytes: block, record_bytes: record, io: io.clone(), held_max };
        let source = Source::open([from.as_path()], &options).unwrap();
        let expect_bytes = expect.then(|| source.bytes());
        let sink =
            Sink::create(&to, &SinkOptions { expect_bytes, inputs: vec![from], io, held_max, sync: false }).unwrap();
        let (rounds, size) = (source.rounds(), source.block_bytes());
        let (read, written) = (source.report(), sink.report());
        let line = Pipeline::new("copy").buffers(buffers, size).stage(source.stage("read")).stage(middle);
        let report = line.stage(sink.stage("write")).run(&Options::default())?;
        assert!(report.stages.iter().all(|stage| stage.rounds == rounds), "{rounds} rounds were announced: {report:?}");
        Ok((report, read.get(), written.get()))
    }
}

/// A stage that does nothing.
pub(crate) fn pass() -> Stage {
    Stage::compute("pass", |_| Ok(()))
}
