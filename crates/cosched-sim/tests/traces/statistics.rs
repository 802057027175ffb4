//! Statistics and fits.

use crate::{LOGS, compare, expected, log, traces};
use cosched_sim::workload::stats::{Collector, TraceStats};
use cosched_sim::workload::swf::Record;
use serde_json::Value;

/// Values of expected.json that another module checks, or that concern the file and not its jobs.
const ELSEWHERE: [&str; 3] = ["sha256", "bytes_gz", "simulated"];

#[test]
fn every_statistic_of_every_log() {
    let Some(folder) = traces() else { return };
    let expected = expected(&folder);
    for name in LOGS {
        let (records, header, report) = log(&folder, name);
        let mut collector = Collector::default();
        records.iter().for_each(|record| collector.add(record));
        let stats = collector.finish(&header, &report, None).unwrap();
        let mut values = expected[name].clone();
        values.as_object_mut().unwrap().retain(|key, _| !ELSEWHERE.contains(&key.as_str()));
        compare(name, &serde_json::to_value(&stats).unwrap(), &values, 1e-9);
        assert_eq!(report.malformed, 0);
    }
}

fn window() -> Option<(TraceStats, Value)> {
    let folder = traces()?;
    let (records, header, report) = log(&folder, "CTC-SP2-1996-3.1-cln");
    let mut collector = Collector::default();
    let weeks = |record: &&Record| (0.0..6_764_040.0).contains(&record.submit_s());
    records.iter().filter(weeks).for_each(|record| collector.add(record));
    let stats = collector.finish(&header, &report, None).unwrap();
    let expected = expected(&folder);
    let (_, values) = expected.as_object().unwrap().iter().find(|(name, _)| name.contains("window")).unwrap();
    Some((stats, values.clone()))
}

#[test]
fn the_weeks_of_jann_et_al() {
    let Some((stats, mut values)) = window() else { return };
    let rho = values.as_object_mut().unwrap().remove("rho_from_class_means").unwrap();
    let actual = serde_json::to_value(&stats).unwrap();
    compare("window", &actual["hyper_erlang"], &values, 1e-9);
    compare("rho", &actual["rho_from_class_means"], &rho, 1e-9);
}

#[test]
fn distances_and_recorded_slowdowns() {
    let Some(folder) = traces() else { return };
    // Kolmogorov–Smirnov distances of gaps and run times, of the fits and of exponentials, with three digits; recorded slowdowns.
    let values = [
        ("LLNL-Thunder-2007-1.1-cln", [0.311, 0.519, 0.339, 0.591], None),
        ("CTC-SP2-1996-3.1-cln", [0.278, 0.265, 0.300, 0.409], Some(77.286)),
        ("KTH-SP2-1996-2.1-cln", [0.180, 0.356, 0.337, 0.413], Some(192.503)),
    ];
    for (name, distances, slowdown) in values {
        let (records, header, report) = log(&folder, name);
        let mut collector = Collector::default();
        records.iter().for_each(|record| collector.add(record));
        let stats = collector.finish(&header, &report, None).unwrap();
        let (_, all) = &stats.hyper_erlang[0];
        let gaps = all.interarrival.as_ref().unwrap();
        let found = [gaps.ks.unwrap(), all.runtime.ks.unwrap(), gaps.ks_exponential, all.runtime.ks_exponential];
        for (found, distance) in found.into_iter().zip(distances) {
            assert!((found - distance).abs() < 0.0006, "{name}: {found}, not {distance}");
        }
        assert_eq!(stats.recorded_avebsld.map(|mean| (mean * 1000.0).round() / 1000.0), slowdown, "{name}");
    }
}
