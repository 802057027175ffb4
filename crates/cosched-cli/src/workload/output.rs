//! Writes workloads. A failing write (a full disk) is a failure of the command; a closed pipe is not.

use super::args::{Format, OutputFormat};
use super::say_left_out;
use crate::out::Failure;
use cosched_sim::workload::batsim::{of_types, write_batsim, write_batsim_programs};
use cosched_sim::workload::swf::{SwfHeader, write_comment, write_header, write_record};
use cosched_sim::workload::{TraceJob, TypeMix, to_records, to_specs, write_jobs};
use cosched_sim::{Params, Strategy};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Writes to a file, or to standard output for `-`.
pub(crate) fn write_to(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    let is_stdout = path.as_os_str() == "-";
    let written = if is_stdout {
        let mut out = BufWriter::new(io::stdout().lock());
        write(&mut out).and_then(|()| out.flush())
    } else {
        File::create(path).and_then(|file| {
            let mut out = BufWriter::new(file);
            write(&mut out)?;
            out.into_inner()?.flush()
        })
    };
    written.map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe if is_stdout => Failure::silent(0),
        _ => {
            let name = if is_stdout { "standard output".into() } else { path.display().to_string() };
            let hint = "the output is incomplete; check free disk space and the directory's permissions";
            Failure::explained(1, &format!("cannot write {name}"), &error.to_string(), hint)
        }
    })
}

/// The requested format, else the one that the file's name implies.
pub(crate) fn format_of(path: &Path, asked: Option<Format>) -> Format {
    let name = path.to_string_lossy().to_ascii_lowercase();
    asked.unwrap_or(match name.rsplit('.').next() {
        Some("swf") => Format::Swf,
        Some("json") => Format::Batsim,
        _ => Format::Csv,
    })
}

/// Notes that are stored in a written workload.
pub(crate) struct Origin<'a> {
    /// Where the jobs come from.
    pub(crate) note: &'a str,
    /// The machine's processors.
    pub(crate) procs: u32,
}

/// Writes jobs in a format; unknown types are drawn at random.
pub(crate) fn write_workload(
    path: &Path,
    asked: OutputFormat,
    jobs: &[TraceJob],
    origin: &Origin<'_>,
    types: (TypeMix, u64),
) -> Result<(), Failure> {
    let format = format_of(path, asked.format);
    match (asked.work_flops, format) {
        (None, _) => {}
        (Some(flops), Format::Batsim) => return write_work(path, flops, jobs, origin.procs, types),
        _ => {
            let why = "job lists and SWF have no computation and messages of their own";
            let hint = "write Batsim's workload (a file .json, or --format batsim), or leave --work-flops out";
            return Err(Failure::explained(2, "--work-flops is for Batsim's workloads", why, hint));
        }
    }
    write_to(path, |out| match format {
        Format::Csv => write_jobs(out, &to_specs(jobs, types.0, types.1)),
        Format::Batsim => write_batsim(out, origin.procs, jobs),
        Format::Swf => write_swf(out, jobs, origin),
    })
}

fn write_work(
    path: &Path,
    flops: f64,
    jobs: &[TraceJob],
    procs: u32,
    (mix, seed): (TypeMix, u64),
) -> Result<(), Failure> {
    let params = Params::paper(Strategy::Gang, procs);
    let jobs = of_types(jobs, mix, seed, &params);
    let mut left_out = Vec::new();
    write_to(path, |out| {
        left_out = write_batsim_programs(out, procs, &jobs, (flops, &params))?;
        Ok(())
    })?;
    say_left_out(&left_out);
    Ok(())
}

fn write_swf(out: &mut dyn Write, jobs: &[TraceJob], origin: &Origin<'_>) -> io::Result<()> {
    let entry = |key: &str, value: String| (key.to_string(), value);
    let header = SwfHeader::new([
        entry("Version", "2.2".into()),
        entry("Conversion", format!("cosched {}", env!("CARGO_PKG_VERSION"))),
        entry("MaxJobs", jobs.len().to_string()),
        entry("MaxRecords", jobs.len().to_string()),
        entry("MaxProcs", origin.procs.to_string()),
        entry("Note", origin.note.replace(['\n', '\r'], " ")),
    ]);
    write_header(&mut *out, &header)?;
    write_comment(&mut *out, "Times are seconds with decimals; -1 is unknown.")?;
    to_records(jobs).try_for_each(|record| write_record(&mut *out, &record))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_choose_formats() {
        let of = |name: &str| format_of(Path::new(name), None);
        assert_eq!(
            (of("a.swf"), of("B.JSON"), of("c.csv"), of("-")),
            (Format::Swf, Format::Batsim, Format::Csv, Format::Csv)
        );
        assert_eq!(format_of(Path::new("a.swf"), Some(Format::Csv)), Format::Csv);
    }

    #[test]
    fn a_full_disk_is_reported() {
        if !Path::new("/dev/full").exists() {
            eprintln!("SKIPPED: there is no /dev/full");
            return;
        }
        let failure = write_to(Path::new("/dev/full"), |out| out.write_all(&[b'x'; 100_000])).unwrap_err();
        assert!(failure.code == 1 && failure.message.contains("the output is incomplete"), "{}", failure.message);
    }
}
