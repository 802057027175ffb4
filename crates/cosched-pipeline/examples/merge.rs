//! A k-way merge of sorted files: FG 2's virtual stages and paths that intersect.
//!
//! `cargo run --release -p cosched-pipeline --example merge -- OUT RUN...` merges files of sorted 8-byte little-endian numbers.
//!
//! One *virtual* stage reads all runs: it is the first stage of a path for each of them and fills each empty buffer that
//! arrives, so a single thread keeps two buffers of each run ahead. The paths meet in a [`Body`], which takes buffers from each
//! path as the order of the records requires, and is the first stage of the output's path.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::error::Error;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path as FilePath, PathBuf};

use cosched_pipeline::{
    Body, BoxError, Buffer, Each, Failure, Flow, Graph, Options, Path, PathId, Port, Report, Resource, Stage,
};

const RECORD: usize = 8;

/// Merges sorted runs into one file. Each path has buffers of `buffer_bytes`.
pub(crate) fn merge(runs: &[PathBuf], out: &FilePath, buffer_bytes: usize) -> Result<Report, Box<dyn Error>> {
    let open = |path: &PathBuf| File::open(path).map_err(|error| format!("{}: {error}", path.display()));
    let files = runs.iter().map(open).collect::<Result<Vec<_>, _>>()?;
    let graph = graph(runs, files, File::create(out)?, buffer_bytes / RECORD * RECORD);
    eprintln!("merge: {} runs, {} bytes of buffers", runs.len(), graph.memory_bytes());
    graph.run(&Options::default()).map_err(|failure: Failure| failure.into())
}

fn graph(runs: &[PathBuf], files: Vec<File>, mut out: File, buffer_bytes: usize) -> Graph {
    let mut graph = Graph::new("merge");
    let names = runs.iter().map(|path| path.display().to_string()).collect();
    let read = graph.stage(Stage::source("read", Resource::Io, Reader { files }));
    let merge = graph.stage(Stage::body("merge", Resource::Compute, Merger { names }));
    let write = graph.stage(Stage::blocking("write", Resource::Io, move |buffer| Ok(out.write_all(buffer.bytes())?)));
    for run in runs {
        graph.path(Path::new(run.display().to_string()).buffers(2, buffer_bytes).through([read, merge]));
    }
    graph.path(Path::new("out").buffers(3, buffer_bytes).through([merge, write]));
    graph
}

/// Reads all runs; the index of a run is that of its path.
struct Reader {
    files: Vec<File>,
}

impl Each for Reader {
    fn round(&mut self, buffer: &mut Buffer) -> Result<Flow, BoxError> {
        let file = &mut self.files[buffer.path().index()];
        let mut len = 0;
        while len < buffer.capacity() {
            match file.read(&mut buffer.storage_mut()[len..])? {
                0 => break,
                read => len += read,
            }
        }
        if len % RECORD != 0 {
            return Err(format!("a run of {} bytes too many: its size is no multiple of {RECORD}", len % RECORD).into());
        }
        buffer.set_len(len);
        Ok(if len == 0 { Flow::End } else { Flow::Continue })
    }
}

/// Merges its incoming paths into the path that it begins.
struct Merger {
    names: Vec<String>,
}

impl Body for Merger {
    fn run(&mut self, port: &mut Port) -> Result<(), BoxError> {
        let (comes, goes): (Vec<PathId>, Vec<PathId>) = port.paths().iter().partition(|path| !port.begins(**path));
        let mut runs: Vec<Run> = comes.into_iter().map(Run::new).collect();
        let mut next = BinaryHeap::new();
        for (index, run) in runs.iter_mut().enumerate() {
            next.extend(run.advance(port).map(|key| Reverse((key, index))));
        }
        let mut output = Output { path: goes[0], buffer: None };
        while let Some(Reverse((key, index))) = next.pop() {
            if !output.put(port, key) {
                return Ok(());
            }
            if let Some(following) = runs[index].advance(port) {
                if following < key {
                    return Err(format!("{} is not sorted: {following} comes after {key}", self.names[index]).into());
                }
                next.push(Reverse((following, index)));
            }
        }
        output.end(port);
        Ok(())
    }
}

/// One run: its current buffer and the position in it.
struct Run {
    path: PathId,
    buffer: Option<Buffer>,
    at: usize,
}

impl Run {
    fn new(path: PathId) -> Run {
        Run { path, buffer: None, at: 0 }
    }

    /// The next record's key. None at the end of the run.
    fn advance(&mut self, port: &mut Port) -> Option<u64> {
        loop {
            if let Some(buffer) = &self.buffer
                && let Some(record) = buffer.bytes().get(self.at..self.at + RECORD)
            {
                self.at += RECORD;
                return Some(u64::from_le_bytes(record.try_into().ok()?));
            }
            // The used buffer is returned before waiting for the next one: the reader can fill it meanwhile.
            if let Some(used) = self.buffer.take() {
                port.convey(used);
            }
            self.buffer = Some(port.accept_from(self.path)?);
            self.at = 0;
        }
    }
}

/// The output: a buffer that is filled record by record.
struct Output {
    path: PathId,
    buffer: Option<Buffer>,
}

impl Output {
    /// Adds a record. False if the pipeline is stopping.
    fn put(&mut self, port: &mut Port, key: u64) -> bool {
        if self.buffer.is_none() {
            self.buffer = port.accept_from(self.path);
        }
        let Some(buffer) = &mut self.buffer else { return false };
        let at = buffer.len();
        buffer.set_len(at + RECORD);
        buffer.bytes_mut()[at..].copy_from_slice(&key.to_le_bytes());
        if buffer.len() + RECORD > buffer.capacity() {
            self.buffer.take().into_iter().for_each(|full| port.convey(full));
        }
        true
    }

    fn end(&mut self, port: &mut Port) {
        match self.buffer.take() {
            Some(mut rest) => {
                rest.mark_last();
                port.convey(rest);
            }
            None => drop(port.end(self.path)),
        }
    }
}

#[allow(dead_code)]
fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (out, runs): (Option<PathBuf>, Vec<PathBuf>) = (arguments.next(), arguments.collect());
    let Some(out) = out.filter(|_| !runs.is_empty()) else {
        return Err("usage: merge OUT RUN... (files of sorted 8-byte little-endian numbers)".into());
    };
    let report = merge(&runs, &out, 1 << 20)?;
    for stage in &report.stages {
        println!("{:<6} {:>8} buffers {:>12} bytes, busy {:.3} s", stage.name, stage.rounds, stage.bytes, stage.busy_s);
    }
    Ok(())
}
