//! A run's jobs as Parquet, which pandas, polars and DuckDB read with types and nulls.

use cosched_sim::metrics::{JobMetrics, job_metrics};
use cosched_sim::trace::Place;
use cosched_sim::{JobSpec, Outcome, Params};
use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use std::io::{self, Write};
use std::sync::Arc;

const SCHEMA: &str = "message jobs {
  required int64 id; required int32 tasks; required binary type (string); required int64 exec_ns;
  required int64 arrival_ns; optional int64 start_ns; optional int64 finish_ns;
  optional double wait_s; optional double response_s; optional double execution_s;
  optional double slowdown; optional double bounded_slowdown; optional binary allocated_resources (string);
}";

/// Writes one row per job, in the order of the job list; values that do not exist are null. Seed, strategy, version and
/// the other inputs are stored as the file's metadata.
pub(crate) fn write_parquet(
    out: &mut (impl Write + Send),
    workload: &str,
    params: &Params,
    jobs: &[JobSpec],
    outcome: &Outcome,
    places: &[Place],
    bound_s: f64,
) -> io::Result<()> {
    let schema = parse_message_type(SCHEMA).map_err(io_error)?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::UNCOMPRESSED)
        .set_created_by(format!("cosched {}", env!("CARGO_PKG_VERSION")))
        .set_key_value_metadata(Some(metadata(workload, params, bound_s)))
        .build();
    let mut writer = SerializedFileWriter::new(&mut *out, Arc::new(schema), Arc::new(properties)).map_err(io_error)?;
    let mut group = writer.next_row_group().map_err(io_error)?;
    write_columns(&mut group, jobs, outcome, places, bound_s).map_err(io_error)?;
    group.close().map_err(io_error)?;
    writer.close().map_err(io_error)?;
    out.flush()
}

fn metadata(workload: &str, params: &Params, bound_s: f64) -> Vec<KeyValue> {
    [
        ("cosched.version", env!("CARGO_PKG_VERSION").to_owned()),
        ("cosched.workload", workload.to_owned()),
        ("cosched.strategy", params.strategy.to_string()),
        ("cosched.seed", params.seed.to_string()),
        ("cosched.nodes", params.nodes.to_string()),
        ("cosched.mpl", params.mpl.to_string()),
        ("cosched.skew", params.skew.to_string()),
        ("cosched.bound_s", bound_s.to_string()),
        ("cosched.params", format!("{params:?}")),
    ]
    .map(|(key, value)| KeyValue::new(key.to_owned(), value))
    .to_vec()
}

fn write_columns(
    group: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
    jobs: &[JobSpec],
    outcome: &Outcome,
    places: &[Place],
    bound_s: f64,
) -> Result<(), ParquetError> {
    let times = || outcome.jobs.iter();
    let ns = |value: u64| value as i64;
    let mut ended: Vec<Option<JobMetrics>> = vec![None; jobs.len()];
    for job in job_metrics(jobs, outcome, bound_s) {
        ended[job.index] = Some(job);
    }
    let of = |get: fn(&JobMetrics) -> Option<f64>| ended.iter().map(move |job| get(job.as_ref()?));
    let resources =
        |place: &Place| (!place.nodes.is_empty()).then(|| bytes(&cosched_sim::metrics::interval_set(&place.nodes)));
    required::<Int64Type>(group, (0..jobs.len()).map(|id| id as i64))?;
    required::<Int32Type>(group, jobs.iter().map(|job| job.tasks as i32))?;
    required::<ByteArrayType>(group, jobs.iter().map(|job| bytes(job.kind.name())))?;
    required::<Int64Type>(group, jobs.iter().map(|job| ns(job.exec_ns)))?;
    required::<Int64Type>(group, jobs.iter().map(|job| ns(job.arrival_ns)))?;
    optional::<Int64Type>(group, times().map(|job| job.start_ns.map(ns)))?;
    optional::<Int64Type>(group, times().map(|job| job.finish_ns.map(ns)))?;
    optional::<DoubleType>(group, of(|job| Some(job.wait_s)))?;
    optional::<DoubleType>(group, of(|job| Some(job.response_s)))?;
    optional::<DoubleType>(group, of(|job| Some(job.execution_s)))?;
    optional::<DoubleType>(group, of(|job| job.slowdown))?;
    optional::<DoubleType>(group, of(|job| Some(job.bounded_slowdown)))?;
    optional::<ByteArrayType>(group, (0..jobs.len()).map(|id| places.get(id).and_then(resources)))
}

fn required<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
    values: impl Iterator<Item = T::T>,
) -> Result<(), ParquetError> {
    let values: Vec<T::T> = values.collect();
    column::<T>(group, &values, None)
}

fn optional<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
    values: impl Iterator<Item = Option<T::T>>,
) -> Result<(), ParquetError> {
    let (mut present, mut levels) = (Vec::new(), Vec::new());
    for value in values {
        levels.push(i16::from(value.is_some()));
        present.extend(value);
    }
    column::<T>(group, &present, Some(&levels))
}

fn column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
    values: &[T::T],
    levels: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let none = || ParquetError::General("more columns than the schema has".to_owned());
    let mut column = group.next_column()?.ok_or_else(none)?;
    column.typed::<T>().write_batch(values, levels, None)?;
    column.close()
}

fn bytes(text: &str) -> ByteArray {
    text.as_bytes().to_vec().into()
}

/// Keeps the kind of an I/O error, such as a full disk.
fn io_error(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cosched_sim::{JobTimes, JobType, Strategy};
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    fn run() -> (Params, Vec<JobSpec>, Outcome, Vec<Place>) {
        let job = |arrival_ns, tasks| JobSpec {
            arrival_ns,
            tasks,
            exec_ns: 2_000_000_000,
            kind: JobType::J4,
            class: cosched_sim::Class::Batch,
            footprint: cosched_sim::Footprint::default(),
        };
        let done = JobTimes { start_ns: Some(1_500_000_000), finish_ns: Some(4_000_000_000) };
        let outcome = Outcome { jobs: vec![done, JobTimes::default()], ..Outcome::default() };
        let places = vec![Place { nodes: vec![0, 1, 3], row: None }, Place::default()];
        (Params::paper("PB".parse::<Strategy>().unwrap(), 4), vec![job(1_000_000_000, 3), job(7, 1)], outcome, places)
    }

    #[test]
    fn rows_are_read_back_with_nulls_and_metadata() {
        let (params, jobs, outcome, places) = run();
        let mut file = tempfile::tempfile().unwrap();
        write_parquet(&mut file, "mine", &params, &jobs, &outcome, &places, 10.0).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        let metadata = reader.metadata().file_metadata().key_value_metadata().unwrap();
        let value = |key: &str| metadata.iter().find(|entry| entry.key == key).unwrap().value.clone().unwrap();
        assert_eq!((value("cosched.strategy"), value("cosched.seed")), ("PB".to_owned(), "1".to_owned()));
        let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        assert_eq!(rows.len(), 2);
        assert_eq!((rows[0].get_long(0).unwrap(), rows[0].get_int(1).unwrap()), (0, 3));
        assert_eq!(rows[0].get_string(2).unwrap(), "J4");
        assert_eq!(rows[0].get_long(6).unwrap(), 4_000_000_000);
        assert_eq!((rows[0].get_double(8).unwrap(), rows[0].get_double(10).unwrap()), (3.0, 1.5));
        assert_eq!(rows[0].get_string(12).unwrap(), "0-1 3");
        assert!(
            (5..13).all(|column| rows[1].get_column_iter().nth(column).unwrap().1 == &parquet::record::Field::Null)
        );
    }

    #[test]
    fn a_full_disk_is_told_as_one() {
        let (params, jobs, outcome, places) = run();
        let mut full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let error = write_parquet(&mut full, "mine", &params, &jobs, &outcome, &places, 10.0).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull, "{error:?}");
    }
}
