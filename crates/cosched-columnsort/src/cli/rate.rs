//! `cosched-columnsort rate`: how fast bytes can be copied from a file to a directory, with the stages that a sort uses. Each
//! pass of a sort moves all bytes once in this way, so this is the disk's part of a sort's lower bound.

use std::path::Path;
use std::sync::Arc;

use cosched_pipeline::file::{BlockFile, Caching, Engine, ReadAt, WriteAt};
use cosched_pipeline::{Flow, Options, Pipeline, Report};
use serde_json::json;

use super::args::RateArgs;
use super::out::{self, Problem};
use super::{common, size, stop};

/// The size of a block in bytes: what a sort writes at once.
const BLOCK_BYTES: u64 = 4 << 20;
/// Number of blocks between the two stages: enough to keep both busy.
const BLOCKS: usize = 8;

pub(crate) fn run(args: &RateArgs) -> Result<u8, Problem> {
    stop::on_signals();
    let report = copy(args)?;
    let bytes = report.stages.first().map_or(0, |stage| stage.bytes);
    let rate = 2.0 * bytes as f64 / report.elapsed_s.max(1e-9);
    let value = json!({ "bytes": bytes, "elapsed_s": report.elapsed_s, "moved_bytes_per_s": rate });
    let (all, rate) = (size::text(bytes), size::text(rate as u64));
    let text = format!("{all} read and written in {:.2} s: {rate}/s of reading and writing\n", report.elapsed_s);
    out::give(args.json, &value, &text)
}

/// Copies from the input to a file without a name.
fn copy(args: &RateArgs) -> Result<Report, Problem> {
    let io = common::io(args.io);
    let caching = io.engine.map_or(Caching::Direct, Engine::caching);
    let input = Arc::new(BlockFile::open(&args.input, caching).map_err(Problem::failed)?);
    let beside = args.input.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let working = BlockFile::scratch(args.temp.as_deref().unwrap_or(beside), caching).map_err(Problem::failed)?;
    let working = Arc::new(working);
    let bytes = input.len();
    working.reserve(0, bytes.next_multiple_of(BLOCK_BYTES)).map_err(Problem::failed)?;
    let blocks = bytes.div_ceil(BLOCK_BYTES).max(1);
    let read = ReadAt::new(&input, move |_, places| {
        let begin = places.round() * BLOCK_BYTES;
        places.extent(begin, 0..(bytes - begin).min(BLOCK_BYTES) as usize);
        Ok(if places.round() + 1 == blocks { Flow::Last } else { Flow::Continue })
    });
    let write = WriteAt::new(&working, |buffer, places| {
        places.extent(buffer.round() * BLOCK_BYTES, 0..buffer.len());
        Ok(())
    });
    Pipeline::new("rate")
        .buffers(BLOCKS, BLOCK_BYTES as usize)
        .stage(read.io(&io).stage("read"))
        .stage(write.io(&io).stage("write"))
        .run(&Options::default())
        .map_err(Problem::failed)
}
