//! The results of a sort, as data and as text.

use cosched_columnsort::plan::Plan;
use cosched_columnsort::run::Outcome;
use serde_json::{Value, json};

use super::size;

/// The result as JSON. `actions` contains the actions of the priority rules in all passes.
pub(crate) fn json(plan: &Plan, outcome: &Outcome) -> Value {
    let passes: Vec<Value> = outcome.passes.iter().map(|pass| json!(pass)).collect();
    let mut actions = Vec::new();
    for pass in &passes {
        for stage in pass["stages"].as_array().into_iter().flatten() {
            for action in stage["actions"].as_array().into_iter().flatten() {
                actions.push(json!({ "pass": pass["name"], "stage": stage["name"], "action": action }));
            }
        }
    }
    json!({
        "format": "cosched-columnsort-1",
        "records": plan.shape.records,
        "bytes": plan.output_bytes,
        "moved_bytes": plan.moved_bytes,
        "elapsed_s": outcome.elapsed_s,
        "plan": plan,
        "why_buffered": outcome.why_buffered,
        "passes": passes,
        "actions": actions,
    })
}

/// The result for people: one line in total, and one for each pass with the lower bound of its time.
pub(crate) fn text(plan: &Plan, outcome: &Outcome) -> String {
    let rate = |bytes: u64, seconds: f64| size::text((bytes as f64 / seconds.max(1e-9)) as u64);
    let mut text = format!(
        "sorted {} records, {}, in {:.2} s: {}/s, {}/s of reading and writing\n",
        plan.shape.records,
        size::text(plan.output_bytes),
        outcome.elapsed_s,
        rate(plan.output_bytes, outcome.elapsed_s),
        rate(plan.moved_bytes, outcome.elapsed_s),
    );
    for pass in &outcome.passes {
        text += &format!(
            "  {:<9}  {:7.2} s, at least {:.2} s ({})\n",
            pass.name,
            pass.elapsed_s,
            pass.bound.s(),
            pass.bound.limiting
        );
    }
    text
}

/// All passes as one Chrome trace, one after the other.
pub(crate) fn trace(outcome: &Outcome) -> Value {
    let mut events = Vec::new();
    let mut begin_us = 0.0;
    for (number, pass) in outcome.passes.iter().enumerate() {
        let mut trace = pass.chrome_trace();
        for mut event in trace["traceEvents"].as_array_mut().map(std::mem::take).unwrap_or_default() {
            // Each pass is a process of the trace, so that the passes' threads are kept apart.
            event["pid"] = json!(number + 1);
            if let Some(at) = event["ts"].as_f64() {
                event["ts"] = json!(at + begin_us);
            }
            events.push(event);
        }
        begin_us += pass.elapsed_s * 1e6;
    }
    json!({ "displayTimeUnit": "ms", "traceEvents": events })
}
