//! The same on a small log in the repository, with the oddities of real ones (testdata/swf/reference.py).

use crate::compare;
use cosched_sim::batch::{EventOrder, Filter, Policy, simulate, summarise};
use cosched_sim::workload::stats::Collector;
use cosched_sim::workload::swf::read_records;
use serde_json::Value;

const LOG: &[u8] = include_bytes!("../../testdata/swf/synthetic.swf");

fn expected() -> Value {
    serde_json::from_str(include_str!("../../testdata/swf/synthetic.json")).unwrap()
}

#[test]
fn statistics_of_a_log_with_oddities() {
    let (records, header, report) = read_records(LOG).unwrap();
    assert_eq!((report.malformed, report.extra_columns, report.missing_columns), (2, 1, 1));
    let mut collector = Collector::default();
    records.iter().for_each(|record| collector.add(record));
    let stats = collector.finish(&header, &report, None).unwrap();
    let mut values = expected();
    values.as_object_mut().unwrap().remove("simulated");
    compare("synthetic", &serde_json::to_value(&stats).unwrap(), &values, 1e-9);
}

#[test]
fn schedules_of_a_log_with_oddities() {
    let (records, header, report) = read_records(LOG).unwrap();
    let procs = header.processors().unwrap();
    let mut filter = Filter::new(procs);
    filter.malformed(report.malformed);
    records.iter().for_each(|record| filter.add(record));
    let (jobs, dropped, _) = filter.finish();
    assert_eq!(jobs.len() as u64 + dropped.total(), records.len() as u64 + 2);
    assert_eq!((dropped.malformed, dropped.larger_than_machine), (2, 1));
    for (name, policy) in [("fcfs", Policy::Fcfs), ("easy", Policy::Easy), ("easy-sjbf", Policy::EasySjbf)] {
        let found = summarise(&jobs, procs, &simulate(&jobs, procs, policy, EventOrder::All)).unwrap();
        let values = &expected()["simulated"][name];
        assert_eq!(values["n"].as_u64(), Some(found.jobs_used));
        for (key, found) in [("flow", found.mean_flow_s), ("bsld", found.avebsld), ("maxb", found.max_bsld)] {
            let value = values[key].as_f64().unwrap();
            assert!((found / value - 1.0).abs() < 1e-9, "{name} {key}: {found}, not {value}");
        }
    }
}
