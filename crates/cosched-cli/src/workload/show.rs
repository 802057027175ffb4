//! `cosched workload show`.

use super::args::Show;
use super::shown::{Shown, class_label, facts};
use super::{draw, input, page};
use crate::context::Context;
use crate::format::{duration_s, grouped, or_dash};
use crate::out::{EXIT_REFUSED, Failure, print, print_json};
use crate::table::Listing;
use cosched_sim::workload::stats::{ClassFits, Collector, SampleFit, TraceStats, arrivals_by_hour, jobs_by_class};
use cosched_sim::workload::swf::{BadLine, ReadReport, SwfHeader};
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The JSON output.
#[derive(Serialize)]
struct Output<'a> {
    file: &'a str,
    #[serde(flatten)]
    identity: Option<Identity>,
    #[serde(flatten)]
    stats: &'a TraceStats,
    malformed_lines: &'a [BadLine],
}

/// The identity of the file, so that a result can name it.
#[derive(Serialize)]
struct Identity {
    sha256: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_gz: Option<u64>,
    bytes: u64,
}

/// `cosched workload show`.
pub(super) fn show(context: &Context, options: &Show) -> Result<u8, Failure> {
    let (collector, header, report) = collect(options)?;
    let jobs = collector.jobs().to_vec();
    let records = report.records;
    let Some(stats) = collector.finish(&header, &report, options.procs) else {
        let what = format!("{}: nothing is usable", options.file.display());
        let why = format!("none of {} records has run time and processors above 0", grouped(records));
        return Err(Failure::explained(EXIT_REFUSED, &what, &why, "check the file, --from-s and --to-s"));
    };
    let title = options.file.file_name().unwrap_or_default().to_string_lossy();
    let shown = Shown { title: &title, header: &header, stats: &stats, jobs: &jobs };
    if let Some(path) = &options.html {
        let page = page::page(&shown);
        super::write_to(path, |out| out.write_all(page.as_bytes()))?;
    }
    if context.json {
        let file = options.file.display().to_string();
        let identity = identity(&options.file).map_err(|error| reread_failure(&options.file, &error))?;
        print_json(&Output { file: &file, identity, stats: &stats, malformed_lines: &report.malformed_lines })?;
    } else {
        print(&text(&shown))?;
    }
    Ok(0)
}

fn collect(options: &Show) -> Result<(Collector, SwfHeader, ReadReport), Failure> {
    let mut collector = Collector::default();
    let (header, report) = input::stream(&options.file, options.strict.strict, |_, record| {
        if options.window.has(record) {
            collector.add(record);
        }
    })?;
    Ok((collector, header, report))
}

/// The file's length and SHA-256; nothing for standard input.
fn identity(path: &Path) -> io::Result<Option<Identity>> {
    if path.as_os_str() == "-" {
        return Ok(None);
    }
    let mut file = File::open(path)?;
    let (mut hash, mut bytes, mut is_gzip) = (Sha256::new(), 0, false);
    let mut buffer = vec![0; 1 << 16];
    loop {
        let length = file.read(&mut buffer)?;
        if length == 0 {
            break;
        }
        is_gzip |= bytes == 0 && buffer[..length].starts_with(b"\x1f\x8b");
        hash.update(&buffer[..length]);
        bytes += length as u64;
    }
    let sha256 = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(Some(Identity { sha256, bytes_gz: is_gzip.then_some(bytes), bytes }))
}

fn reread_failure(path: &Path, error: &io::Error) -> Failure {
    let what = format!("cannot read {} again", path.display());
    Failure::explained(1, &what, &error.to_string(), "--json gives the file's SHA-256, so it is read twice")
}

fn text(shown: &Shown<'_>) -> String {
    let mut text = format!("{}\n", shown.title);
    for (title, value) in facts(shown) {
        text.push_str(&format!("  {title:<13}{value}\n"));
    }
    let hours = arrivals_by_hour(shown.jobs, shown.header);
    text.push_str(&format!("\nArrivals by hour of the day\n  0h {} 23h\n", draw::sparkline(&hours)));
    let total = shown.stats.usable as f64;
    let row = |(label, count): (String, u64)| {
        let note = format!("{} ({:.1}%)", grouped(count), count as f64 * 100.0 / total);
        (label, count as f64, note)
    };
    let times = draw::time_classes(shown.jobs.iter().map(|job| job.run_s));
    text.push_str("\nRun times, from\n");
    text.push_str(&draw::bars(&times.into_iter().map(row).collect::<Vec<_>>(), 40));
    let sizes = jobs_by_class(shown.jobs).into_iter().map(|(class, count)| (class_label(&class.name()), count));
    text.push_str("\nProcessors\n");
    text.push_str(&draw::bars(&sizes.map(row).collect::<Vec<_>>(), 40));
    text.push_str("\nHyper-Erlang fits by three moments (KS: distance to the sample, 0 to 1)\n");
    text.push_str(&fits(shown.stats));
    text
}

fn fits(stats: &TraceStats) -> String {
    type Rows<'a> = Listing<&'a (String, ClassFits)>;
    fn with<'a>(table: Rows<'a>, mean: &'static str, of: fn(&ClassFits) -> Option<&SampleFit>) -> Rows<'a> {
        let known = |show: fn(&SampleFit) -> Option<String>| {
            move |(_, fits): &(String, ClassFits)| or_dash(of(fits).and_then(show))
        };
        table
            .numbers(mean, 0, known(|fit| Some(duration_s(fit.moments[0]))))
            .numbers("CV", 2, known(|fit| Some(format!("{:.2}", fit.cv2.max(0.0).sqrt()))))
            .numbers("n", 1, known(|fit| fit.order.map(|order| order.to_string())))
            .numbers("KS", 0, known(|fit| fit.ks.map(|ks| format!("{ks:.3}"))))
    }
    let table = Listing::of(&stats.hyper_erlang).words("SIZE", 0, |(name, _)| class_label(name)).numbers(
        "JOBS",
        0,
        |(_, fits)| grouped(fits.jobs),
    );
    let table = with(table, "GAP MEAN", |fits| fits.interarrival.as_ref());
    let table = with(table, "RUN MEAN", |fits| Some(&fits.runtime));
    table.render(crate::out::terminal_width()).lines().map(|line| format!("  {line}\n")).collect()
}
