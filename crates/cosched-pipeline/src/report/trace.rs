//! A report as a Chrome trace (chrome://tracing, Perfetto, speedscope): rounds by thread, queues over time, actions.

use serde_json::{Value, json};

use super::Report;

impl Report {
    /// The trace as JSON. It contains rounds if [`Options::trace`](crate::Options::trace) was set; queues and actions always.
    pub fn chrome_trace(&self) -> Value {
        let mut events = vec![json!({"ph": "M", "name": "process_name", "pid": 1, "args": {"name": self.name}})];
        self.rounds_of_threads(&mut events);
        self.queues(&mut events);
        self.changes(&mut events);
        json!({"displayTimeUnit": "ms", "traceEvents": events, "otherData": {"format": self.format}})
    }

    fn rounds_of_threads(&self, events: &mut Vec<Value>) {
        let Some(trace) = &self.trace else { return };
        let mut threads: Vec<(i32, u32)> = trace.spans.iter().map(|span| (span.1, span.0)).collect();
        threads.sort_unstable();
        threads.dedup();
        for group in threads.chunk_by(|a, b| a.0 == b.0) {
            let names: Vec<&str> = group.iter().filter_map(|(_, stage)| self.stage_name(*stage)).collect();
            let args = json!({"name": names.join(" + ")});
            events.push(json!({"ph": "M", "name": "thread_name", "pid": 1, "tid": group[0].0, "args": args}));
        }
        for span in &trace.spans {
            let Some(stage) = self.stages.get(span.0 as usize) else { continue };
            events.push(json!({
                "ph": "X", "name": stage.name, "cat": stage.resource, "pid": 1, "tid": span.1,
                "ts": span.3, "dur": span.4, "args": {"block": span.2},
            }));
        }
    }

    fn stage_name(&self, stage: u32) -> Option<&str> {
        self.stages.get(stage as usize).map(|stage| stage.name.as_str())
    }

    fn queues(&self, events: &mut Vec<Value>) {
        for (at_s, waiting) in self.occupancy.at_s.iter().zip(&self.occupancy.waiting) {
            let args: serde_json::Map<String, Value> =
                self.stages.iter().zip(waiting).map(|(stage, count)| (stage.name.clone(), json!(count))).collect();
            events.push(json!({"ph": "C", "name": "waiting buffers", "pid": 1, "ts": at_s * 1e6, "args": args}));
        }
    }

    fn changes(&self, events: &mut Vec<Value>) {
        for stage in &self.stages {
            for action in &stage.actions {
                let name = format!("{}: {}", stage.name, action.change);
                let args = json!({"why": action.why, "by": action.by, "refused": action.refused});
                events
                    .push(json!({"ph": "i", "s": "p", "name": name, "pid": 1, "ts": action.at_s * 1e6, "args": args}));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::report::{Action, Occupancy, Report, Span, StageReport, Trace};

    #[test]
    fn rounds_queues_and_actions_are_events() {
        let action = Action { at_s: 0.5, by: "auto".into(), change: "nice 10".into(), why: "w".into(), refused: None };
        let stage = |name: &str| StageReport { name: name.into(), resource: "io".into(), ..StageReport::default() };
        let report = Report {
            name: "p".into(),
            stages: vec![StageReport { actions: vec![action], ..stage("read") }, stage("write")],
            occupancy: Occupancy { at_s: vec![0.1], waiting: vec![vec![0.0, 2.0]] },
            trace: Some(Trace { spans: vec![Span(0, 7, 0, 1.0, 2.5), Span(1, 7, 0, 4.0, 1.0)], dropped: 0 }),
            ..Report::default()
        };
        let trace = report.chrome_trace();
        let events = trace["traceEvents"].as_array().unwrap();
        let of = |kind: &str| events.iter().filter(|event| event["ph"] == kind).collect::<Vec<_>>();
        assert_eq!(of("X").len(), 2);
        assert_eq!(
            (&of("X")[0]["ts"], &of("X")[0]["dur"], &of("X")[0]["name"]),
            (&1.0.into(), &2.5.into(), &"read".into())
        );
        assert_eq!(of("C")[0]["args"]["write"], 2.0);
        assert_eq!(of("i")[0]["ts"], 500_000.0);
        assert!(of("M").iter().any(|event| event["args"]["name"] == "read + write"), "one thread, two stages");
    }
}
