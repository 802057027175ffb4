//! Follows the daemon while the job runs: one long poll, no thread.
//!
//! The poll ends when the job has ended. When the connection breaks, the daemon has died; the launcher connects again
//! with increasing pauses, and thaws its job when no daemon has listened for 300 ms. It does not while one does: that one
//! thaws all jobs when it begins, and would not notice that a job which it has frozen since is thawed.

use super::is_absent;
use super::thaw::thaw;
use cosched_api::{Client, ClientError, ErrorCode, Job, PendingWait};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// Jobs that end sooner are not worth a connection.
pub(super) const FIRST_POLL_AFTER: Duration = Duration::from_millis(50);
/// How long one poll waits; less than the daemon's limit.
const POLL_TIME: Duration = Duration::from_secs(50);
/// How long the daemon may be away before the job is thawed, at the fourth attempt to connect.
const THAW_AFTER: Duration = Duration::from_millis(300);
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// The state of the connection to the daemon, for one job.
#[derive(Debug)]
pub(crate) struct Follow<'a> {
    client: &'a Client,
    id: u64,
    cgroup: &'a str,
    poll: Option<PendingWait>,
    /// When to start the next poll, while none is in progress.
    next: Option<Instant>,
    /// While the daemon is away.
    away: Option<Away>,
    ended: bool,
}

#[derive(Debug)]
struct Away {
    since: Instant,
    pause: Duration,
    thawed: bool,
}

impl<'a> Follow<'a> {
    /// The first poll starts after this time; `client` only provides the daemon's path.
    pub(crate) fn new(client: &'a Client, job: &'a Job, after: Duration) -> Follow<'a> {
        let next = Some(Instant::now() + after);
        Follow { client, id: job.id, cgroup: &job.cgroup, poll: None, next, away: None, ended: false }
    }

    /// Becomes readable when there is something to do.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.poll.as_ref().map(AsFd::as_fd)
    }

    /// When there is something to do even if the descriptor is not readable.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.next
    }

    /// Nothing more will come: the job has ended, or the daemon does not know it.
    pub(crate) fn is_over(&self) -> bool {
        self.poll.is_none() && self.next.is_none()
    }

    /// The daemon has said that the job has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }

    /// How long the daemon has not answered.
    pub(crate) fn away_for(&self) -> Option<Duration> {
        self.away.as_ref().map(|away| away.since.elapsed())
    }

    /// Does what is due.
    pub(crate) fn step(&mut self, readable: bool) {
        if readable && let Some(poll) = self.poll.take() {
            self.answered(poll.finish());
        }
        if self.next.is_some_and(|next| next <= Instant::now()) {
            self.next = None;
            // After a lost connection, a poll without waiting time: a live daemon answers it at once.
            let time = if self.away.is_some() { Duration::ZERO } else { POLL_TIME };
            match self.client.start_wait(self.id, time) {
                Ok(poll) => self.poll = Some(poll),
                Err(error) => {
                    self.broken();
                    if is_absent(&error) {
                        self.thaw_once();
                    }
                }
            }
        }
    }

    fn answered(&mut self, answer: Result<Job, ClientError>) {
        match answer {
            Ok(job) => {
                self.away = None;
                self.ended = job.state.has_ended();
                if !self.ended {
                    // A pause, so that a daemon that answers at once does not make this a busy loop.
                    self.next = Some(Instant::now() + PAUSE_MIN);
                }
            }
            // A daemon that does not know the job will not thaw it, either.
            Err(ClientError::Refused(body)) if body.code == ErrorCode::NotFound => {
                self.away = None;
                thaw(self.cgroup);
            }
            Err(_) => self.broken(),
        }
    }

    fn broken(&mut self) {
        let away = self.away.get_or_insert(Away { since: Instant::now(), pause: PAUSE_MIN / 2, thawed: false });
        away.pause = (away.pause * 2).min(PAUSE_MAX);
        self.next = Some(Instant::now() + away.pause);
    }

    /// For the moment after an attempt to connect at which no daemon listened.
    fn thaw_once(&mut self) {
        if let Some(away) = self.away.as_mut().filter(|away| !away.thawed)
            && away.since.elapsed() >= THAW_AFTER
        {
            away.thawed = true;
            thaw(self.cgroup);
        }
    }
}
