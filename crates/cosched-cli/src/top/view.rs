//! The data that is shown: the newest state, the selected job, and the present question to the user.

use super::feed::{Order, Shot};
use super::sort::Sort;
use cosched_api::{Class, Job, Sample};
use std::ops::Range;

/// What the keys do now.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Mode {
    /// They select jobs.
    List,
    /// They edit the filter.
    Filter,
    /// The help is shown.
    Help,
    /// The page of this job is shown.
    Page(u64),
    /// They choose a class for this job.
    Class(u64),
    /// This order is executed if the user confirms it.
    Confirm(Order),
}

/// A message about something done or refused.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Message {
    pub(super) good: bool,
    pub(super) text: String,
}

/// Everything on the screen.
#[derive(Debug)]
pub(super) struct View {
    pub(super) shot: Option<Shot>,
    /// The last hour, the oldest first.
    pub(super) past: Vec<Sample>,
    /// Why there is no newer state.
    pub(super) trouble: Option<String>,
    pub(super) message: Option<Message>,
    pub(super) chosen: Option<u64>,
    pub(super) filter: String,
    pub(super) sort: Sort,
    pub(super) turned: bool,
    pub(super) mode: Mode,
    pub(super) colour: bool,
    /// No keys are accepted: a picture for a pipe.
    pub(super) still: bool,
    /// The number of jobs that fitted into the last picture.
    pub(super) page: usize,
    /// The lines of the last picture that have jobs, and the place of the first of these jobs.
    pub(super) listed: (Range<u16>, usize),
    /// The first line that is shown of the page of a job.
    pub(super) scrolled: usize,
}

impl View {
    pub(super) fn new(filter: &str, sort: Sort, colour: bool) -> View {
        View {
            shot: None,
            past: Vec::new(),
            trouble: None,
            message: None,
            chosen: None,
            filter: filter.to_owned(),
            sort,
            turned: false,
            mode: Mode::List,
            colour,
            still: false,
            page: 1,
            listed: (0..0, 0),
            scrolled: 0,
        }
    }

    /// The jobs that pass the filter, in order.
    pub(super) fn jobs(&self) -> Vec<&Job> {
        let needle = self.filter.to_lowercase();
        let all = self.shot.iter().flat_map(|shot| &shot.jobs);
        let mut jobs: Vec<&Job> = all.filter(|job| needle.is_empty() || has(job, &needle)).collect();
        jobs.sort_by(|a, b| self.sort.compare(a, b));
        if self.turned {
            jobs.reverse();
        }
        jobs
    }

    /// The selected job's position among the jobs shown; 0 if it no longer exists.
    pub(super) fn place(&self, jobs: &[&Job]) -> usize {
        jobs.iter().position(|job| Some(job.id) == self.chosen).unwrap_or(0)
    }

    /// The job that keys act on.
    pub(super) fn job(&self) -> Option<&Job> {
        let jobs = self.jobs();
        jobs.get(self.place(&jobs)).copied()
    }

    /// Takes over a newer state.
    pub(super) fn take(&mut self, shot: Shot) {
        self.shot = Some(shot);
        self.trouble = None;
        // A question about a job that has ended is dropped.
        let gone = match &self.mode {
            Mode::Class(id) => Some(*id),
            Mode::Confirm(order) => Some(order.job()),
            _ => None,
        };
        if gone.is_some_and(|id| self.shot.iter().flat_map(|shot| &shot.jobs).all(|job| job.id != id)) {
            self.mode = Mode::List;
            self.message = Some(Message { good: false, text: "that job has ended".into() });
        }
        self.chosen = self.job().map(|job| job.id);
    }

    /// The row of the matrix at a moment in ns since 1970, while gangs have slots.
    pub(super) fn row_at(&self, unix_ns: u128) -> Option<u32> {
        let status = &self.shot.as_ref()?.status;
        let turns = &status.matrix.turns;
        let slot = unix_ns / (u128::from(status.slot_length_ms.max(1)) * 1_000_000);
        (!turns.is_empty()).then(|| turns[(slot % turns.len() as u128) as usize])
    }
}

fn has(job: &Job, needle: &str) -> bool {
    let words = [&job.name, &job.user].into_iter().chain(&job.command);
    words.into_iter().any(|word| word.to_lowercase().contains(needle))
        || job.class.name().contains(needle)
        || job.state.name().contains(needle)
        || job.id.to_string() == needle
}

/// The classes, with the key of each.
pub(super) const CLASSES: [(char, Class); 4] =
    [('e', Class::Express), ('i', Class::Interactive), ('b', Class::Batch), ('s', Class::Standby)];

/// Whether the job can still be changed.
pub(super) fn lives(job: &Job) -> bool {
    !job.state.has_ended()
}
