//! `cosched-columnsort check`: a pipeline that reads blocks, summarises them on all CPUs, and joins the summaries
//! in order.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cosched_columnsort::check::Summary;
use cosched_columnsort::format::Format;
use cosched_pipeline::file::{Source, SourceOptions};
use cosched_pipeline::{BoxError, Buffer, Flow, Options, Pipeline, Resource, Stage};
use serde_json::json;

use super::args::CheckArgs;
use super::out::{self, EXIT_FAILED, Problem};
use super::progress::Progress;
use super::{common, machine, stop};

/// The approximate size of a block in bytes.
const BLOCK_BYTES: usize = 4 << 20;

pub(crate) fn run(args: &CheckArgs) -> Result<u8, Problem> {
    stop::on_signals();
    let format = common::format(&args.records)?;
    let summary = look(args, &args.input, &format)?;
    let expected = match (&args.against, &args.checksum) {
        (Some(other), _) => {
            let other = look(args, other, &format)?;
            Some((other.checksum_hex(), Some(other.records)))
        }
        (None, Some(checksum)) => Some((checksum.trim_start_matches("0x").to_ascii_lowercase(), None)),
        (None, None) => None,
    };
    let same = expected.as_ref().map(|(checksum, records)| {
        *checksum == summary.checksum_hex() && records.is_none_or(|records| records == summary.records)
    });
    let value = json!({
        "records": summary.records,
        "checksum": summary.checksum_hex(),
        "duplicates": summary.duplicates,
        "in_order": summary.in_order(),
        "unordered": summary.unordered,
        "first_unordered": summary.first_unordered,
        "same": same,
    });
    out::give(args.json, &value, &text(&summary, same, &args.input))?;
    Ok(if summary.in_order() && same != Some(false) { 0 } else { EXIT_FAILED })
}

fn text(summary: &Summary, same: Option<bool>, path: &Path) -> String {
    let order = match summary.first_unordered {
        None => "in order".to_owned(),
        Some(first) => {
            format!("OUT OF ORDER: {} records are less than the one before, first record {first}", summary.unordered)
        }
    };
    let same = match same {
        None => "",
        Some(true) => "; the same records",
        Some(false) => "; OTHER RECORDS",
    };
    format!(
        "{}: {} records, {order}{same}\nchecksum {}, {} duplicate keys\n",
        path.display(),
        summary.records,
        summary.checksum_hex(),
        summary.duplicates
    )
}

/// Summarises a file.
fn look(args: &CheckArgs, path: &Path, format: &Format) -> Result<Summary, Problem> {
    let format = *format;
    let cpus = machine::cpus();
    let block_bytes = BLOCK_BYTES.max(format.record_bytes);
    let options = SourceOptions {
        block_bytes,
        record_bytes: format.record_bytes,
        io: common::io(args.io),
        ..SourceOptions::default()
    };
    let source = Source::open([path], &options).map_err(Problem::failed)?;
    let done_bytes = Arc::new(AtomicU64::new(0));
    let progress = Progress::start(args.quiet, &done_bytes, source.bytes(), vec!["check"]);
    let blocks: Arc<Mutex<HashMap<u64, Summary>>> = Arc::default();
    let total: Arc<Mutex<Summary>> = Arc::default();
    let (seen, joined) = (blocks.clone(), total.clone());
    let result = Pipeline::new("check")
        .buffers(cpus + 4, source.block_bytes())
        .stage(source.stage("read"))
        .stage(Stage::replicated("look", cpus, Resource::Compute, move |_| {
            let (seen, done) = (seen.clone(), done_bytes.clone());
            move |buffer: &mut Buffer| {
                let summary = Summary::of(&format, buffer.bytes());
                seen.lock().unwrap_or_else(PoisonError::into_inner).insert(buffer.round(), summary);
                done.fetch_add(buffer.len() as u64, Ordering::Relaxed);
                Ok::<_, BoxError>(Flow::Continue)
            }
        }))
        .stage(Stage::compute("join", move |buffer: &mut Buffer| {
            let summary = blocks.lock().unwrap_or_else(PoisonError::into_inner).remove(&buffer.round());
            let summary = summary.ok_or("a block came twice")?;
            joined.lock().unwrap_or_else(PoisonError::into_inner).add(summary);
            Ok(())
        }))
        .run(&Options::default());
    drop(progress);
    result.map_err(Problem::failed)?;
    let summary = std::mem::take(&mut *total.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(summary)
}
