//! The wire types of a job's state and of its events.

use crate::wire::wire;
use serde::{Deserialize, Serialize};

wire! {
    /// Where a job is in its life.
    pub enum JobState {
        /// In its queue: it has no place yet, or its nodes lack memory for it now. `waits_for` says why.
        Waiting,
        /// Scheduled by its policy.
        Running,
        /// A gang that used no CPU for a while: it has no slots until it wakes.
        Asleep,
        /// A gang that used no CPU for a very long time: Linux schedules it until a user resumes it.
        Dropped,
        /// Stopped by its user or an administrator.
        Suspended,
        /// The state of the cluster cannot be read. As far as is known, the job has not ended.
        Unknown,
        /// All its processes have ended.
        Ended,
        /// Its processes vanished while no daemon was looking (a restart of the machine).
        Lost,
    }

    /// What an administrator can decide about another user's job.
    pub enum DecidedMatter {
        /// That it stands still.
        Suspension,
        /// Its class.
        Class,
        /// Its policy.
        Policy,
        /// The part of the time that it has at most.
        Share,
    }

    /// An administrator's decision about another user's job.
    pub struct Decision {
        /// What about.
        pub matter: DecidedMatter,
        /// The administrator.
        pub uid: u32,
        /// His name, or the number as text.
        pub user: String,
    }
}

impl JobState {
    /// Every state.
    pub const ALL: [JobState; 8] = [
        JobState::Waiting,
        JobState::Running,
        JobState::Asleep,
        JobState::Dropped,
        JobState::Suspended,
        JobState::Unknown,
        JobState::Ended,
        JobState::Lost,
    ];

    /// Whether the job has ended, in whatever way.
    pub fn has_ended(self) -> bool {
        matches!(self, JobState::Ended | JobState::Lost)
    }
}

wire! {
    /// One thing that happened to a job.
    pub struct Event {
        /// When.
        pub unix_ms: u64,
        /// A short fixed word: registered, main-exited, suspended, resumed, asleep, awake, dropped, class, policy, signal, ended, lost, found.
        pub what: String,
        /// The rest, for people.
        pub detail: String,
    }

    /// `GET /v1/jobs/{id}/events`.
    pub struct EventList {
        /// In order of time.
        pub events: Vec<Event>,
    }
}
