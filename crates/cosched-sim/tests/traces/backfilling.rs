//! Backfilling on real logs compared with another program's schedules.

use crate::{expected, log, traces};
use cosched_sim::batch::{EventOrder, Filter, Policy, Summary, simulate, summarise};
use cosched_sim::workload::swf::Record;

fn schedule(records: &[Record], procs: u32, policy: Policy, order: EventOrder) -> Summary {
    let mut filter = Filter::new(procs);
    records.iter().for_each(|record| filter.add(record));
    let (jobs, ..) = filter.finish();
    summarise(&jobs, procs, &simulate(&jobs, procs, policy, order)).unwrap()
}

#[test]
fn every_schedule_of_every_log() {
    let Some(folder) = traces() else { return };
    let expected = expected(&folder);
    let arms = [
        ("fcfs", Policy::Fcfs, EventOrder::All),
        ("easy", Policy::Easy, EventOrder::All),
        ("easy-sjbf", Policy::EasySjbf, EventOrder::All),
        ("easy-one-event-at-a-time", Policy::Easy, EventOrder::One),
    ];
    for name in ["CTC-SP2-1996-3.1-cln", "KTH-SP2-1996-2.1-cln"] {
        let (records, header, _) = log(&folder, name);
        for (arm, policy, order) in arms {
            let found = schedule(&records, header.processors().unwrap(), policy, order);
            let values = &expected[name]["simulated"][arm];
            assert_eq!(values["n"].as_u64(), Some(found.jobs_used));
            let pairs = [
                ("wait", found.mean_wait_s),
                ("flow", found.mean_flow_s),
                ("maxflow", found.max_flow_s),
                ("sld", found.mean_slowdown),
                ("bsld", found.avebsld),
                ("maxb", found.max_bsld),
                ("ppbsld", found.mean_bsld_per_processor),
                ("util", found.utilization),
                ("makespan", found.makespan_s),
            ];
            for (key, found) in pairs {
                let value = values[key].as_f64().unwrap();
                assert!((found / value - 1.0).abs() < 1e-9, "{name} {arm} {key}: {found}, not {value}");
            }
        }
    }
}
