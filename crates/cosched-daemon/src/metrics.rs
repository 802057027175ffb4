//! The metrics in the text format of OpenMetrics, which Prometheus reads.
//!
//! The slot thread counts for itself, without locks; the driver takes a snapshot of everything for each request, which becomes text here. Units are
//! seconds and bytes, as is usual there. Metrics contain no names of jobs or users: a reader of the metrics need not know which user runs what.

use cosched_api::{Class, JobState};
use cosched_linux::stats::Buckets;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use std::collections::BTreeMap;
use std::fmt;

/// The media type of the answer.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The labels of one series.
pub(crate) type Labels = Vec<(&'static str, String)>;

/// The values of one metric.
#[derive(Debug)]
pub(crate) enum Values {
    /// A value that only rises; `_total` is added to its name.
    Counter(Vec<(Labels, f64)>),
    /// A value that rises and falls.
    Gauge(Vec<(Labels, f64)>),
    /// Times, in seconds.
    Histogram(Buckets),
}

#[derive(Debug)]
pub(crate) struct Metric {
    name: &'static str,
    help: &'static str,
    values: Values,
}

/// All metrics at one moment.
#[derive(Debug, Default)]
pub(crate) struct Snapshot(Vec<Metric>);

impl Snapshot {
    /// Adds a metric.
    pub(crate) fn add(&mut self, name: &'static str, help: &'static str, values: Values) {
        self.0.push(Metric { name, help, values });
    }

    /// Adds a counter without labels.
    pub(crate) fn count(&mut self, name: &'static str, help: &'static str, value: u64) {
        self.add(name, help, Values::Counter(vec![(Labels::new(), value as f64)]));
    }

    /// Adds a gauge without labels, where its value is known.
    pub(crate) fn gauge(&mut self, name: &'static str, help: &'static str, value: impl Into<Option<f64>>) {
        if let Some(value) = value.into() {
            self.add(name, help, Values::Gauge(vec![(Labels::new(), value)]));
        }
    }

    /// The metrics as text.
    pub(crate) fn text(self) -> String {
        let mut registry = Registry::with_prefix("cosched");
        registry.register_collector(Box::new(self));
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = text::encode(&mut text, &registry);
        text
    }
}

impl Collector for Snapshot {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        for Metric { name, help, values } in &self.0 {
            let kind = match values {
                Values::Counter(_) => MetricType::Counter,
                Values::Gauge(_) => MetricType::Gauge,
                Values::Histogram(_) => MetricType::Histogram,
            };
            let mut metric = encoder.encode_descriptor(name, help, None, kind)?;
            match values {
                Values::Counter(series) => {
                    for (labels, value) in series {
                        one(&mut metric, labels, |m| m.encode_counter::<NoLabelSet, f64, u64>(value, None))?;
                    }
                }
                Values::Gauge(series) => {
                    for (labels, value) in series {
                        one(&mut metric, labels, |m| m.encode_gauge(value))?;
                    }
                }
                Values::Histogram(buckets) => {
                    let counts = seconds(buckets);
                    let sum_s = buckets.sum_ns as f64 / 1e9;
                    metric.encode_histogram::<NoLabelSet>(sum_s, buckets.count(), &counts, None)?;
                }
            }
        }
        Ok(())
    }
}

/// Encodes one series. Without labels the braces are left out: some readers do not accept empty ones.
fn one(
    metric: &mut MetricEncoder,
    labels: &Labels,
    encode: impl FnOnce(&mut MetricEncoder) -> fmt::Result,
) -> fmt::Result {
    if labels.is_empty() { encode(metric) } else { encode(&mut metric.encode_family(&labels.as_slice())?) }
}

/// Buckets from a microsecond to a second, one for each power of two; the kernel's clocks are not finer, and slots not longer.
fn seconds(buckets: &Buckets) -> Vec<(f64, u64)> {
    let mut bounds: Vec<(f64, u64)> = Vec::new();
    let mut below = 0;
    for (bound_ns, count) in &buckets.counts {
        match bound_ns {
            0..1_000 => below += count,
            1_000..2_000_000_000 => bounds.push((*bound_ns as f64 / 1e9, count + std::mem::take(&mut below))),
            _ => below += count,
        }
    }
    // The library writes this bound as +Inf.
    bounds.push((f64::MAX, below));
    bounds
}

/// The number of jobs by class and state; all pairs are listed, so that a series does not vanish with its last job.
pub(crate) fn jobs(counts: &BTreeMap<(Class, JobState), u64>) -> Values {
    let classes = [Class::Express, Class::Interactive, Class::Batch, Class::Standby];
    let pairs = classes.into_iter().flat_map(|class| JobState::ALL.into_iter().map(move |state| (class, state)));
    let series = pairs.map(|(class, state)| {
        let labels = vec![("class", class.name().to_owned()), ("state", state.name().to_owned())];
        (labels, counts.get(&(class, state)).copied().unwrap_or(0) as f64)
    });
    Values::Gauge(series.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cosched_linux::stats::Histogram;

    #[test]
    fn counters_gauges_and_labels() {
        let mut snapshot = Snapshot::default();
        snapshot.count("switches", "Switches", 7);
        snapshot.gauge("load", "Load", 0.5);
        snapshot.gauge("absent", "Not there", None);
        snapshot.add("jobs", "Jobs", jobs(&[((Class::Batch, JobState::Asleep), 3)].into()));
        let text = snapshot.text();
        assert!(text.contains("# TYPE cosched_switches counter\ncosched_switches_total 7.0\n"), "{text}");
        assert!(text.contains("cosched_load 0.5\n"), "{text}");
        assert!(text.contains("cosched_jobs{class=\"batch\",state=\"asleep\"} 3.0\n"), "{text}");
        assert!(text.contains("cosched_jobs{class=\"express\",state=\"lost\"} 0.0\n"), "{text}");
        assert!(!text.contains("absent"), "{text}");
        assert!(text.ends_with("# EOF\n"), "{text}");
    }

    #[test]
    fn a_histogram_holds_every_value_once() {
        let histogram = Histogram::default();
        let values = [10u64, 900, 1500, 40_000, 3_000_000, 5_000_000_000, 90_000_000_000];
        values.iter().for_each(|&ns| histogram.add(ns));
        let counts = seconds(&histogram.buckets());
        assert_eq!(counts.iter().map(|(_, count)| count).sum::<u64>(), values.len() as u64);
        let up_to = |bound: f64| counts.iter().filter(|(b, _)| *b <= bound).map(|(_, count)| count).sum::<u64>();
        for bound_s in [2.048e-6, 0.000131072, 1.073741824] {
            let expected = values.iter().filter(|&&ns| (ns as f64) < bound_s * 1e9).count() as u64;
            assert_eq!(up_to(bound_s), expected, "{bound_s}: {counts:?}");
        }
    }
}
