//! What a scheduler answers: its decisions, each with its time.

use super::hosts;
use crate::batch::intervals::Places;
use crate::workload::excerpt;
use serde::Deserialize;
use serde_json::Value;

/// The end of the clock, µs (71 years): until then a time in seconds is exact to the microsecond.
pub(super) const TIME_US_MAX: u64 = 1 << 51;

/// What a scheduler wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    Execute { job: String, places: Places },
    Reject { job: String },
    Kill { jobs: Vec<String> },
    CallAt { time_us: u64 },
}

/// An answer that is well-formed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    /// From then on the scheduler can be told something.
    pub(super) ready_us: u64,
    /// The decisions, by their times.
    pub(super) decisions: Vec<(u64, Decision)>,
}

#[derive(Deserialize)]
struct Message {
    now: f64,
    events: Vec<Event>,
}

#[derive(Deserialize)]
struct Event {
    timestamp: f64,
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    data: Value,
}

/// Reads the answer to a message of the time `now_us`.
pub(super) fn read(bytes: &[u8], now_us: u64) -> Result<Answer, String> {
    let Message { now, events } =
        serde_json::from_slice(bytes).map_err(|error| format!("it is not a message of Batsim's protocol: {error}"))?;
    let mut last_us = now_us;
    let ready_us = time_us(now).ok_or_else(|| format!("`now` is {now:?}, which is no time"))?;
    if ready_us < now_us {
        return Err(format!("`now` is {now:?}, and it is {} s already: the past cannot be changed", seconds(now_us)));
    }
    let mut decisions = Vec::new();
    for event in events {
        let at = event.timestamp;
        let at_us = time_us(at).filter(|at_us| (last_us..=ready_us).contains(at_us)).ok_or_else(|| {
            format!("the timestamp of {} is {at:?}: times begin at {} and rise to `now`", event.name(), seconds(now_us))
        })?;
        last_us = at_us;
        if let Some(decision) = event.decision().map_err(|what| format!("{}: {what}", event.name()))? {
            decisions.push((at_us, decision));
        }
    }
    Ok(Answer { ready_us, decisions })
}

impl Event {
    fn name(&self) -> String {
        excerpt(&self.kind)
    }

    fn decision(&self) -> Result<Option<Decision>, String> {
        let text = |key: &str| match &self.data[key] {
            Value::String(text) => Ok(text.clone()),
            _ => Err(format!("data.{key} is not a text")),
        };
        Ok(Some(match self.kind.as_str() {
            "EXECUTE_JOB" => {
                let more = ["mapping", "storage_mapping", "additional_io_job"];
                if let Some(key) = more.into_iter().find(|key| !self.data[*key].is_null()) {
                    return Err(format!("data.{key} is not simulated"));
                }
                Decision::Execute { job: text("job_id")?, places: hosts::parse(&text("alloc")?)? }
            }
            "REJECT_JOB" => Decision::Reject { job: text("job_id")? },
            "KILL_JOB" => {
                let ids = self.data["job_ids"].as_array().ok_or("data.job_ids is not a list")?;
                let ids = ids.iter().map(|id| id.as_str().map(str::to_owned));
                Decision::Kill { jobs: ids.collect::<Option<_>>().ok_or("data.job_ids has something else than ids")? }
            }
            "CALL_ME_LATER" => {
                let time = self.data["timestamp"].as_f64().ok_or("data.timestamp is not a number")?;
                let us = time_us(time).ok_or_else(|| format!("data.timestamp is {time:?}, which is no time"))?;
                // Not before the time that was asked for: a scheduler that compares would ask again.
                Decision::CallAt { time_us: us + u64::from(seconds(us) < time) }
            }
            // Jobs cannot be registered, so it does not matter whether the scheduler is done with that.
            "NOTIFY" => match text("type")?.as_str() {
                "registration_finished" | "continue_registration" | "submission_finished" | "continue_submission" => {
                    return Ok(None);
                }
                other => return Err(format!("no notification is called `{}`", excerpt(other))),
            },
            _ => {
                return Err(
                    "it is not simulated; there are EXECUTE_JOB, REJECT_JOB, KILL_JOB, CALL_ME_LATER and NOTIFY".into(),
                );
            }
        }))
    }
}

pub(super) fn seconds(us: u64) -> f64 {
    us as f64 / 1e6
}

/// `None`: negative, or after the end of the clock.
fn time_us(seconds: f64) -> Option<u64> {
    let us = (seconds * 1e6).round();
    (0.0..TIME_US_MAX as f64).contains(&us).then_some(us as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn times_come_back_as_they_were_told(us in 0..TIME_US_MAX) {
            let told = serde_json::to_string(&seconds(us)).unwrap();
            prop_assert_eq!(time_us(serde_json::from_str(&told).unwrap()), Some(us));
        }

        #[test]
        fn calls_are_never_early(time in 0.0..1e9_f64) {
            let text = format!(
                r#"{{"now": 0, "events": [{{"timestamp": 0, "type": "CALL_ME_LATER", "data": {{"timestamp": {time:?}}}}}]}}"#
            );
            let answer = read(text.as_bytes(), 0).unwrap();
            let [(0, Decision::CallAt { time_us })] = answer.decisions[..] else { panic!("{answer:?}") };
            prop_assert!(seconds(time_us) >= time && seconds(time_us) - time < 2e-6, "{} {}", time_us, time);
        }

        #[test]
        fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes, 5);
        }
    }
}
