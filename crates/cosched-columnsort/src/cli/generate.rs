//! `cosched-columnsort generate`: a pipeline that numbers blocks, fills them on all CPUs, and writes them.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

use cosched_columnsort::generate::Generator;
use cosched_pipeline::file::{Sink, SinkOptions};
use cosched_pipeline::{BoxError, Buffer, Flow, Options, Pipeline, Resource, Stage};
use serde_json::json;

use super::args::GenerateArgs;
use super::out::{self, EXIT_USAGE, Problem};
use super::progress::Progress;
use super::{common, files, machine, size, stop};

/// The approximate size of a block in bytes.
const BLOCK_BYTES: usize = 4 << 20;

pub(crate) fn run(args: &GenerateArgs) -> Result<u8, Problem> {
    stop::on_signals();
    let format = common::format(&args.records)?;
    let size = format.record_bytes as u64;
    let records = args.count.unwrap_or_else(|| args.bytes.unwrap_or(0) / size);
    let bytes = records.checked_mul(size).filter(|bytes| *bytes <= i64::MAX as u64).ok_or_else(|| {
        Problem::explained(
            EXIT_USAGE,
            "such a file is not possible",
            "it would be larger than any file can be",
            "give fewer --records",
        )
    })?;
    files::may_write(&args.output, args.force)?;
    let generator = Generator { format, keys: args.keys, lines: args.lines, seed: args.seed, records };
    let done_bytes = Arc::new(AtomicU64::new(0));
    let progress = Progress::start(args.quiet, &done_bytes, bytes, vec!["generate"]);
    let checksum = write(args, generator, bytes, &done_bytes);
    drop(progress);
    let checksum = format!("{:x}", checksum?);
    let text = format!("{records} records, {}, checksum {checksum}\n", size::text(bytes));
    out::give(args.json, &json!({ "records": records, "bytes": bytes, "checksum": checksum }), &text)
}

/// Writes all records; returns the sum of their CRC-32.
fn write(args: &GenerateArgs, generator: Generator, bytes: u64, done_bytes: &Arc<AtomicU64>) -> Result<u128, Problem> {
    let record = generator.format.record_bytes;
    let in_block = (BLOCK_BYTES / record).max(1) as u64;
    let io = common::io(args.io);
    let sink = SinkOptions { expect_bytes: Some(bytes), io, ..SinkOptions::default() };
    let sink = Sink::create(&args.output, &sink).map_err(Problem::failed)?;
    let checksum = Arc::new(Mutex::new(0u128));
    let (sum, done) = (checksum.clone(), done_bytes.clone());
    let cpus = machine::cpus();
    let number = move |buffer: &mut Buffer, block: u64| {
        let left = generator.records.saturating_sub(block * in_block);
        buffer.set_tag(block * in_block);
        buffer.set_len(left.min(in_block) as usize * record);
        if left > in_block { Flow::Continue } else { Flow::Last }
    };
    let mut block = 0;
    Pipeline::new("generate")
        .buffers(cpus + 4, in_block as usize * record)
        .stage(Stage::source("number", Resource::Compute, move |buffer: &mut Buffer| {
            block += 1;
            Ok::<_, BoxError>(number(buffer, block - 1))
        }))
        .stage(Stage::replicated("make", cpus, Resource::Compute, move |_| {
            let (sum, done) = (sum.clone(), done.clone());
            move |buffer: &mut Buffer| {
                let first = buffer.tag();
                let mut crcs = 0;
                for (i, record) in buffer.bytes_mut().chunks_exact_mut(record).enumerate() {
                    generator.fill(first + i as u64, record);
                    crcs += u128::from(crc32fast::hash(record));
                }
                *sum.lock().unwrap_or_else(PoisonError::into_inner) += crcs;
                done.fetch_add(buffer.len() as u64, std::sync::atomic::Ordering::Relaxed);
                Ok::<_, BoxError>(Flow::Continue)
            }
        }))
        .stage(sink.stage("write"))
        .run(&Options::default())
        .map_err(Problem::failed)?;
    let checksum = *checksum.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(checksum)
}
