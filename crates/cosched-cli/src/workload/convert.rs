//! `cosched workload convert`.

use super::args::{Convert, Format};
use super::generate::{Summary, estimate};
use super::input::{self, Source};
use super::output::{Origin, format_of, write_to, write_workload};
use super::say_left_out;
use crate::context::Context;
use crate::out::{EXIT_REFUSED, Failure, print_json, say};
use cosched_sim::workload::TraceJob;
use cosched_sim::workload::scale::{Scaling, scale};
use cosched_sim::workload::select::{NotTaken, Selection};
use cosched_sim::workload::swf::{Record, SwfHeader, write_comment, write_header, write_record};
use serde::Serialize;

#[derive(Serialize)]
struct Output {
    #[serde(flatten)]
    summary: Summary,
    not_taken: NotTaken,
}

/// `cosched workload convert`.
pub(super) fn convert(context: &Context, options: &Convert) -> Result<u8, Failure> {
    if context.json && options.output_file.as_os_str() == "-" {
        let hint = "write the workload to a file, or leave --json out";
        return Err(Failure::explained(
            2,
            "--json conflicts with writing to standard output",
            "standard output gets the workload",
            hint,
        ));
    }
    let mut source = input::read(&options.input, options.flops, options.strict.strict)?;
    let procs = processors(&source, options);
    let numbers = renumber(&mut source);
    let (mut jobs, not_taken) = source.select(Selection {
        from_s: options.window.from_s,
        to_s: options.window.to_s,
        procs: options.nodes,
        max_tasks: options.max_tasks,
        statuses: options.status.clone(),
        limit: options.limit,
    });
    say_left_out(&not_taken.by_reason());
    if jobs.is_empty() {
        let what = format!("{}: no job is left", options.input.display());
        let why = "see the reasons above";
        return Err(Failure::explained(EXIT_REFUSED, &what, why, "select more jobs, or see `cosched workload show`"));
    }
    let nodes = procs.unwrap_or_else(|| jobs.iter().map(|job| job.size).max().unwrap_or(1));
    let scaling = Scaling {
        lengths: options.lengths,
        times: options.times,
        load: options.load.map(|load| (load, nodes)),
        together: options.together,
        keep_start: matches!(source, Source::Jobs(_)) && options.window.from_s.is_none(),
    };
    scale(&mut jobs, &scaling).map_err(|error| Failure { code: EXIT_REFUSED, message: error.to_string() })?;
    estimate(&mut jobs, &options.estimates, options.draw.seed)?;
    write(options, &source, &mut jobs, &numbers, nodes)?;
    let summary = Summary::of(&jobs, nodes);
    if context.json {
        print_json(&Output { summary, not_taken })?;
    } else {
        say(&summary.text(nodes));
    }
    Ok(0)
}

fn processors(source: &Source, options: &Convert) -> Option<u32> {
    options.nodes.or(match source {
        Source::Swf { header, .. } => header.processors(),
        Source::Batsim(workload) => Some(workload.procs),
        Source::Jobs(_) => None,
    })
}

/// Numbers of a trace need not be unique, so its records are renumbered by their positions; returns the original
/// numbers.
fn renumber(source: &mut Source) -> Vec<f64> {
    let Source::Swf { records, .. } = source else { return Vec::new() };
    let numbers = records.iter().map(Record::number).collect();
    for (place, record) in records.iter_mut().enumerate() {
        let mut fields = *record.fields();
        fields[0] = (place + 1) as f64;
        *record = Record::new(fields);
    }
    numbers
}

/// Writes the jobs; from trace to trace, unchanged columns are kept.
fn write(
    options: &Convert,
    source: &Source,
    jobs: &mut [TraceJob],
    numbers: &[f64],
    nodes: u32,
) -> Result<(), Failure> {
    let format = format_of(&options.output_file, options.output.format);
    let note = format!("from {}", options.input.display());
    if let (Source::Swf { records, header, .. }, Format::Swf) = (source, format) {
        return write_to(&options.output_file, |out| {
            let entries = header.entries().iter().cloned();
            let note = ("Note".to_string(), format!("a selection, written by cosched, {note}"));
            write_header(&mut *out, &SwfHeader::new(entries.chain([note])))?;
            write_comment(
                &mut *out,
                "Submit times, run times and estimates may be changed; waits are those of the log.",
            )?;
            jobs.iter().try_for_each(|job| write_record(&mut *out, &changed(records, numbers, job)))
        });
    }
    for job in jobs.iter_mut() {
        let number = usize::try_from(job.number).ok().and_then(|number| numbers.get(number.wrapping_sub(1)));
        job.number = number.map_or(job.number, |number| *number as u64);
    }
    let mix = options.draw.types.unwrap_or_default();
    let origin = Origin { note: &note, procs: nodes };
    write_workload(&options.output_file, options.output, jobs, &origin, (mix, options.draw.seed))
}

/// The original record of a job, with the job's times.
fn changed(records: &[Record], numbers: &[f64], job: &TraceJob) -> Record {
    let place = (job.number as usize).wrapping_sub(1);
    let (Some(record), Some(number)) = (records.get(place), numbers.get(place)) else { return job.record() };
    let mut fields = *record.fields();
    fields[0] = *number;
    fields[1] = job.submit_s;
    fields[3] = job.run_s;
    fields[8] = job.estimate_s.unwrap_or(fields[8]);
    Record::new(fields)
}
