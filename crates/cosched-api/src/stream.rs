//! Events as they happen: `GET /v1/events`, server-sent events; and samples of the last hour.

use crate::error::ClientError;
use crate::http::Lines;
use crate::job_state::JobState;
use crate::policy::{Policy, Sharing};
use crate::types::{Class, Matrix, Warning};
use crate::wire::wire;
use serde::{Deserialize, Serialize};
use std::io;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// More than the 15 s after which a daemon sends something at the latest.
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(60);

/// The parameters of `GET /v1/events`.
#[derive(Clone, Debug, Default)]
pub struct StreamRequest {
    /// The id of the last event that is known; `0`: send all that are remembered. None: send the current state, then events as they
    /// happen.
    pub after: Option<String>,
    /// Whether the stream continues with later events.
    pub follow: bool,
}

wire! {
    /// What an event is about.
    pub enum EventKind {
        /// A job.
        Job,
        /// The matrix and its cycle.
        Plan,
        /// What is wrong.
        Problems,
        /// Events between the last one that the reader has and the next one were forgotten: ask for the state again.
        Gap,
    }

    /// One event of `GET /v1/events`, the JSON behind `data:`. Its kind stands behind `event:`, its id behind `id:`.
    pub struct StreamEvent {
        /// What to resume after, in `Last-Event-ID` or `?after=`. Not in the JSON of the stream.
        #[serde(skip_serializing_if = "String::is_empty", default)]
        pub id: String,
        /// When it was noticed: changes within 100 ms are told together.
        pub unix_ms: u64,
        /// What it is about. One of the next fields is present.
        pub kind: EventKind,
        /// What happened to a job.
        pub job: Option<JobEvent>,
        /// The plan that holds from now on.
        pub plan: Option<PlanEvent>,
        /// What is wrong now.
        pub problems: Option<Vec<Warning>>,
        /// Why events are missing.
        pub gap: Option<String>,
    }

    /// What happened to a job, and what it is now.
    pub struct JobEvent {
        /// A short fixed word: registered, waits, began, suspended, resumed, asleep, awake, dropped, unknown, class, policy, share,
        /// resources, ended, lost.
        pub what: String,
        /// The rest, for people.
        pub detail: String,
        /// The job.
        pub id: u64,
        /// Its name.
        pub name: String,
        /// Its owner.
        pub uid: u32,
        /// Its owner's name, or the number where it has none.
        pub user: String,
        /// Its class.
        pub class: Class,
        /// Its own policy; absent: the machine's.
        pub own_policy: Option<Policy>,
        /// The part of the time that it has at most, 0 to 1, if it has a share.
        pub share_max: Option<f64>,
        /// CPUs at a time.
        pub cpus: u32,
        /// Where it is in its life.
        pub state: JobState,
    }

    /// A plan: with the clock all that is needed to know the row of any moment, until the next one.
    pub struct PlanEvent {
        /// Its generation.
        pub generation: u64,
        /// The beginning of slot 0, in ns since the Unix epoch.
        pub epoch_unix_ns: u64,
        /// The first slot in which it holds.
        pub from_slot: u64,
        /// The length of a slot.
        pub slot_length_ns: u64,
        /// The machine's policy.
        pub policy: Policy,
        /// What gangs that are not current may do.
        pub sharing: Sharing,
        /// The matrix. `turns` has the row of each slot of the cycle.
        pub matrix: Matrix,
        /// The matrix is too long for the stream; `GET /v1/status` has it.
        #[serde(default)]
        pub cut: bool,
    }

    /// `GET /v1/samples`: the last hour, while jobs were registered. It is empty after a restart of the daemon.
    pub struct Samples {
        /// From sample to sample.
        pub period_ms: u64,
        /// The oldest first.
        pub samples: Vec<Sample>,
    }

    /// What the machine and its jobs did at one time.
    pub struct Sample {
        /// When.
        pub unix_ms: u64,
        /// The part of the CPUs that was not idle, 0 to 1.
        pub busy: f64,
        /// The jobs of which shares were known, 64 at most: those that used the most.
        pub jobs: Vec<JobSample>,
    }

    /// A job's part of the machine's CPU time, over about 10 s.
    pub struct JobSample {
        /// The job.
        pub id: u64,
        /// Its owner.
        pub uid: u32,
        /// What the plan gave it, 0 to 1.
        pub due: f64,
        /// What it used, 0 to 1.
        pub received: f64,
    }
}

/// The events of `GET /v1/events`, in order; `next` blocks until there is one. The iterator ends when the daemon ends the stream.
#[derive(Debug)]
pub struct EventStream {
    lines: Lines<UnixStream>,
    path: PathBuf,
    over: bool,
}

impl EventStream {
    pub(crate) fn new(lines: Lines<UnixStream>, path: PathBuf) -> EventStream {
        EventStream { lines, path, over: false }
    }

    fn read(&mut self) -> io::Result<Option<Result<StreamEvent, String>>> {
        let (mut id, mut data) = (String::new(), String::new());
        while let Some(line) = self.lines.next_line()? {
            match line.split_once(": ") {
                Some(("id", value)) => value.clone_into(&mut id),
                Some(("data", value)) => data.push_str(value),
                None if line.is_empty() && !data.is_empty() => {
                    let event = serde_json::from_str::<StreamEvent>(&data).map_err(|e| e.to_string());
                    return Ok(Some(event.map(|event| StreamEvent { id, ..event })));
                }
                // Comments, and fields that a later version adds.
                _ => (),
            }
        }
        Ok(None)
    }
}

impl Iterator for EventStream {
    type Item = Result<StreamEvent, ClientError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let next = match self.read() {
            Ok(event) => event.map(|event| event.map_err(ClientError::Protocol)),
            Err(e) if e.kind() == io::ErrorKind::InvalidData => Some(Err(ClientError::Protocol(e.to_string()))),
            Err(source) => Some(Err(ClientError::Unreachable { path: self.path.clone(), source })),
        };
        self.over = !matches!(next, Some(Ok(_)));
        next
    }
}
